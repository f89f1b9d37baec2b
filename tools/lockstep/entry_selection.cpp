// SPDX-License-Identifier: Apache-2.0
#include "entry_selection.h"

#include <lockstep/error.h>
#include <lockstep/trace_file.h>
#include <lockstep/trace_slice.h>

#include <array>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>

#include "exit_code.h"
#include "scratch_folder.h"
#include "text.h"
#include "trace_input.h"

namespace lockstep::cli {
namespace {

/// Writes entries with the definitions that they refer to, each before its first use.
class SliceWriter {
 public:
  SliceWriter(TraceWriter& writer, const ViewReader& reader) : writer_(writer), reader_(reader) {}

  void write(const LaunchTraceEntry& entry) {
    const Trace& trace = reader_.trace();
    for (const StreamDefinition& stream : trace.streams) {
      if (stream.stream == entry.stream_index && streams_.insert(stream.stream).second) {
        writer_.write(stream);
      }
    }
    const GraphDefinition* graph = trace.find_graph(entry.graph, entry.graph_version);
    if (graph != nullptr && graphs_.insert({graph->graph, graph->version}).second) {
      writer_.write(*graph);
    }
    writer_.write(entry);
  }

 private:
  TraceWriter& writer_;
  const ViewReader& reader_;
  std::set<std::uint32_t> streams_;
  std::set<std::pair<std::int32_t, std::uint32_t>> graphs_;
};

void print_file(Console& console, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 65536> buffer;
  while (file.read(buffer.data(), buffer.size()) || file.gcount() > 0) {
    console.print({buffer.data(), static_cast<std::size_t>(file.gcount())});
  }
  if (file.bad()) throw Failure(kInternal, "cannot read back " + path.native());
}

}  // namespace

EntrySelection EntrySelection::parse(const ShowOptions& options) {
  EntrySelection selection;
  selection.view = parse_selection(options.selection);
  if (!options.range.empty()) {
    const std::vector<std::string> ends = split(options.range, ':');
    const bool digits = options.range.find_first_not_of("0123456789:") == std::string::npos;
    const auto read = [&](const std::string& text, std::uint64_t& value) {
      if (digits && !text.empty() && !parse_number(text, value)) {
        throw Failure(kUsage, fmt::format("--range: {} is beyond the last position that there can "
                                          "be; leave B out for all that follow A",
                                          text));
      }
      return text.empty() || parse_number(text, value);
    };
    if (ends.size() != 2 || !read(ends[0], selection.begin) || !read(ends[1], selection.end) ||
        selection.begin > selection.end) {
      throw Failure(kUsage, fmt::format("--range takes A:B with A not above B, either may be left "
                                        "out; '{}' is not that",
                                        options.range));
    }
  }
  if (!options.streams.empty()) {
    for (const std::string& text : split(options.streams, ',')) {
      std::uint64_t stream = 0;
      if (!parse_number(text, stream)) {
        throw Failure(kUsage, fmt::format("--stream takes numbers of streams, comma-separated; "
                                          "'{}' is not one",
                                          text));
      }
      if (stream > std::numeric_limits<std::uint32_t>::max()) {
        throw Failure(kUsage, fmt::format("--stream: there is no stream {}; numbers of streams end "
                                          "at {}",
                                          text, std::numeric_limits<std::uint32_t>::max()));
      }
      selection.streams.insert(static_cast<std::uint32_t>(stream));
    }
  }
  if (!options.name.empty()) {
    try {
      selection.name.emplace(options.name);
    } catch (const Error& error) {
      throw Failure(kUsage, fmt::format("--name: {}", error.what()));
    }
  }
  return selection;
}

bool EntrySelection::wants(std::uint64_t position, const LaunchTraceEntry& entry) const {
  if (position < begin || position >= end) return false;
  if (!streams.empty() && streams.count(entry.stream_index) == 0) return false;
  return !name || name->matches_name(entry.name);
}

namespace {

/// Returns whether the source was truncated.
bool write_view(const EntrySelection& selection, const std::filesystem::path& file,
                const std::filesystem::path& path) {
  ViewReader reader(file, selection.view);
  TraceInfo header;
  std::optional<TraceWriter> writer;
  std::optional<SliceWriter> slice;
  const auto begin = [&] {
    header = reader.trace().info;
    slice.emplace(writer.emplace(path, header), reader);
  };
  reader.for_each([&](std::uint64_t position, const LaunchTraceEntry& entry) {
    if (!selection.wants(position, entry)) return;
    if (!slice) begin();
    slice->write(entry);
  });
  if (!slice) begin();
  if (reader.trace().info != header) writer->write_meta(reader.trace().info);
  if (reader.truncated()) {
    writer->flush();
  } else {
    writer->finish(reader.trace().footer);
  }
  return reader.truncated();
}

bool is_truncated(const std::filesystem::path& file) {
  TraceReader reader(file);
  while (reader.next()) {
  }
  return reader.truncated();
}

}  // namespace

int print_slice(Console& console, const ShowOptions& options) {
  const EntrySelection selection = EntrySelection::parse(options);
  const RereadableTrace input(options.file);
  const std::string& view = options.selection.view;
  const std::string& kinds = options.selection.kinds;
  const bool file_order = view != "executed" && (kinds.empty() || kinds == "all");
  // The writers know files only, and a pipe could not take back what follows a damaged line.
  const ScratchFolder scratch;
  const std::filesystem::path path = scratch.path() / "slice.jsonl";
  bool truncated = false;
  if (file_order && !(truncated = is_truncated(input.file()))) {
    SliceOptions slice;
    slice.begin = selection.begin;
    slice.end = selection.end;
    slice.name_pattern = options.name;
    slice.streams.assign(selection.streams.begin(), selection.streams.end());
    slice_trace(input.file(), path, slice);
  } else {
    EntrySelection lines = selection;
    if (file_order) {
      lines.view.kind = ViewOptions::Kind::kEnqueued;
      lines.view.core_kinds_only = false;
    }
    truncated = write_view(lines, input.file(), path);
  }
  print_file(console, path);
  if (!truncated) return kDone;
  console.flush();
  console.warning(fmt::format("{} is truncated, and so is the slice", options.file));
  return kUnreadable;
}

}  // namespace lockstep::cli
