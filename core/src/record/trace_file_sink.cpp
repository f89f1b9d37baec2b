// SPDX-License-Identifier: Apache-2.0
#include "src/record/trace_file_sink.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace lockstep::record {
namespace {

TraceWriter open_writer(const std::filesystem::path& path, const TraceInfo& header, bool force) {
  TraceWriterOptions options;
  options.force = force;
  TraceWriter writer(path, header, options);
  writer.flush();  // a file that exists can be read, from the first moment on
  return writer;
}

/// Flat JSON that a recorder of ours wrote, or nothing.
std::string with_holes(std::string coverage, std::uint64_t holes) {
  if (holes == 0) return coverage;
  constexpr std::string_view kKey = "\"holes\":";
  const std::size_t key = coverage.find(kKey);
  if (key != std::string::npos) {
    const std::size_t begin =
        std::min(coverage.find_first_not_of(' ', key + kKey.size()), coverage.size());
    const std::size_t end =
        std::min(coverage.find_first_not_of("0123456789", begin), coverage.size());
    std::uint64_t counted = 0;
    std::from_chars(coverage.data() + begin, coverage.data() + end, counted);
    return coverage.replace(begin, end - begin, std::to_string(counted + holes));
  }
  const std::string member = std::string(kKey) + std::to_string(holes);
  const std::size_t brace = coverage.find('{');
  if (brace == std::string::npos) return "{" + member + "}";
  const bool empty = coverage.find_first_not_of(' ', brace + 1) == coverage.find('}');
  return coverage.insert(brace + 1, empty ? member : member + ",");
}

}  // namespace

TraceFileSink::TraceFileSink(std::filesystem::path path, const TraceInfo& header, bool force,
                             std::uint64_t begin_ns)
    : path_(std::move(path)),
      output_(open_writer(path_, header, force)),
      builder_(output_, {}, 0, begin_ns),
      written_(header) {}

void TraceFileSink::connect(Assembler& assembler) {
  assembler_ = &assembler;
  if (!assembler.info().devices.empty()) write_meta();
  assembler.add_trace(&builder_);
  assembler.on_info([this] { write_meta(); });
}

void TraceFileSink::write_meta() {
  const TraceInfo& info = assembler_->info();
  // The rest of it stands in the header.
  if (info.devices == written_.devices && info.driver == written_.driver &&
      info.simulated == written_.simulated) {
    return;
  }
  written_ = info;
  output_.write_meta(written_);
}

void TraceFileSink::flush_old() {
  output_.release_old();
  output_.flush();
}

TraceFooter TraceFileSink::finish(const recorder::Control* control, std::uint64_t damaged_rings,
                                  std::uint64_t holes) {
  builder_.finish();
  TraceFooter footer;
  footer.dropped = damaged_rings;
  if (control != nullptr) {
    footer.dropped += control->dropped.load(std::memory_order_relaxed);
    footer.stalls = control->stalls.load(std::memory_order_relaxed);
  }
  if (assembler_ != nullptr) {
    footer.dropped += assembler_->damaged_records();
    footer.coverage = assembler_->coverage();
    assembler_->on_info(nullptr);
    assembler_->remove_trace(&builder_);
  }
  footer.coverage = with_holes(std::move(footer.coverage), holes);
  footer.racing = builder_.racing();
  output_.finish(footer);
  footer.entries = output_.entries_written();
  return footer;
}

}  // namespace lockstep::record
