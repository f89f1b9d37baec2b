// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_file.h>

#include <cstdio>
#include <fmt/format.h>

#include "src/trace/output_file.h"
#include "src/trace/trace_encode.h"

namespace lockstep {

struct TraceWriter::Impl {
  TraceWriterOptions options;
  OutputFile file;
  std::unique_ptr<ZstdFrames> frames;
  std::string text;
  std::uint64_t entries = 0;
  bool finished = false;
  std::string failure;  ///< what broke this writer; nothing may be written after a hole

  Impl(const std::filesystem::path& path, const TraceWriterOptions& given, OutputFile::Mode mode)
      : options(given), file(path, mode, given.force) {
    if (given.compress || path.extension() == ".zst") {
      frames = std::make_unique<ZstdFrames>(given.compression_level);
    }
    text.reserve(options.flush_bytes + 4096);
  }

  void begin(const TraceInfo& header) {
    add_line([&](std::string& out) { encode_header(out, header); });
    if (!header.devices.empty() || !header.driver.empty() || header.simulated) {
      add_line([&](std::string& out) { encode_meta(out, header, false); });
    }
  }

  void flush() {
    if (text.empty()) return;
    try {
      file.write(frames ? frames->frame(text) : std::string_view(text));
    } catch (const Error& error) {
      failure = error.what();
      throw;
    }
    text.clear();
  }

  void check_usable() const {
    if (finished) {
      throw Error(ErrorCode::kInvalidArgument, "this trace writer has been finished");
    }
    if (!failure.empty()) {
      throw Error(ErrorCode::kInputOutput,
                  fmt::format("this trace writer failed before: {}", failure));
    }
  }

  template <typename Encode>
  void add_line(const Encode& encode) {
    check_usable();
    const std::size_t before = text.size();
    try {
      encode(text);
    } catch (const Error&) {
      text.resize(before);  // half a line would damage the file
      throw;
    }
    text.push_back('\n');
    if (text.size() >= options.flush_bytes) flush();
  }

  void finish(TraceFooter footer) {
    footer.entries = entries;
    add_line([&](std::string& out) { encode_footer(out, footer); });
    flush();
    finished = true;
    file.finish();
  }
};

TraceWriter::TraceWriter(const std::filesystem::path& path, const TraceInfo& header,
                         const TraceWriterOptions& options)
    : impl_(std::make_unique<Impl>(path, options, OutputFile::Mode::kInPlace)) {
  impl_->begin(header);
}
TraceWriter::TraceWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;

TraceWriter::~TraceWriter() {
  if (!impl_ || impl_->finished || !impl_->failure.empty()) return;
  try {
    impl_->flush();
  } catch (const std::exception& error) {
    // A destructor cannot throw, and a hole must not go unsaid.
    std::fprintf(stderr, "lockstep: a trace lost its last lines: %s\n", error.what());
  }
}

TraceWriter TraceWriter::aside(const std::filesystem::path& path, const TraceInfo& header,
                               const TraceWriterOptions& options) {
  auto impl = std::make_unique<Impl>(path, options, OutputFile::Mode::kAside);
  impl->begin(header);
  return TraceWriter(std::move(impl));
}

void TraceWriter::write_meta(const TraceInfo& info) {
  impl_->add_line([&](std::string& out) { encode_meta(out, info, true); });
}

void TraceWriter::write(const StreamDefinition& stream) {
  impl_->add_line([&](std::string& out) { encode_stream(out, stream); });
}

void TraceWriter::write(const GraphDefinition& graph) {
  impl_->add_line([&](std::string& out) { encode_graph(out, graph, impl_->options.write_hashes); });
}

void TraceWriter::write(const LaunchTraceEntry& entry) {
  impl_->add_line(
      [&](std::string& out) { encode_entry(out, entry, impl_->options.write_hashes, false); });
  ++impl_->entries;
}

void TraceWriter::flush() {
  impl_->check_usable();
  impl_->flush();
}

void TraceWriter::finish(TraceFooter footer) { impl_->finish(std::move(footer)); }

std::uint64_t TraceWriter::entries_written() const noexcept { return impl_->entries; }

void write_trace(const std::filesystem::path& path, const Trace& trace,
                 const TraceWriterOptions& options) {
  TraceWriter writer = TraceWriter::aside(path, trace.info, options);
  for (const StreamDefinition& stream : trace.streams) writer.write(stream);
  for (const auto& [key, graph] : trace.graphs) writer.write(graph);
  for (const LaunchTraceEntry& entry : trace.entries) writer.write(entry);
  writer.finish(trace.footer);
}

}  // namespace lockstep
