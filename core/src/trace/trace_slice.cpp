// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_slice.h>

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>

#include "src/trace/item_reader.h"
#include "src/trace/pattern.h"

namespace lockstep {
namespace {

constexpr std::string_view kSliceKey = "slice";
constexpr std::string_view kSliceOfKey = "slice_of";
constexpr std::string_view kAtKey = "slice_at";

using Unknown = std::vector<std::pair<std::string, std::string>>;

/// Takes a key out and returns its JSON text.
std::optional<std::string> take_key(Unknown& unknown, std::string_view key) {
  for (auto i = unknown.begin(); i != unknown.end(); ++i) {
    if (i->first != key) continue;
    std::string value = std::move(i->second);
    unknown.erase(i);
    return value;
  }
  return std::nullopt;
}

/// A file with its entries numbered as in the original, which it may be a slice of.
class NumberedReader {
 public:
  explicit NumberedReader(const std::filesystem::path& path) : path_(path), items_(path, {}) {
    is_slice_ = take_key(items_.item().info.unknown, kSliceKey).has_value();
  }

  /// Advances; entries have their ordinal in at() and no key of a slice any more.
  bool next() {
    if (!items_.next()) return false;
    if (items_.kind() == LineKind::kEntry) number_entry();
    if (items_.kind() == LineKind::kFooter) {
      const auto whole = take_key(items_.item().footer.unknown, kSliceOfKey);
      original_entries_ = whole ? parse(*whole) : items_.item().footer.entries;
    }
    return true;
  }

  ItemReader& items() { return items_; }
  DecodedLine& item() { return items_.item(); }
  LineKind kind() const { return items_.kind(); }
  bool is_slice() const { return is_slice_; }
  std::uint64_t at() const { return next_ - 1; }
  std::uint64_t original_entries() const { return original_entries_; }

  [[noreturn]] void fail(ErrorCode code, const std::string& what) const {
    ErrorContext context;
    context.where = fmt::format("{}:{}", path_.string(), items_.line());
    throw Error(code, fmt::format("{}: {}", context.where, what), context);
  }

  void fail_if_truncated() const {
    if (!items_.truncated()) return;
    fail(ErrorCode::kTruncatedFile,
         items_.entries() == 0
             ? std::string("the file is cut off before its first entry")
             : fmt::format("the file is cut off; its last good entry is number {}",
                           items_.entries() - 1));
  }

 private:
  std::uint64_t parse(const std::string& text) const {
    std::uint64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size()) {
      fail(ErrorCode::kInvalidFile, fmt::format("\"{}\" is not an ordinal of a slice", text));
    }
    return value;
  }

  void number_entry() {
    if (is_slice_) {
      if (const auto at = take_key(items_.item().entry.unknown, kAtKey)) {
        const std::uint64_t ordinal = parse(*at);
        if (ordinal < next_ || ordinal + 1 == 0) {
          fail(ErrorCode::kInvalidFile, "the ordinals of a slice must rise");
        }
        next_ = ordinal;
      }
    }
    ++next_;
  }

  std::filesystem::path path_;
  ItemReader items_;
  bool is_slice_ = false;
  std::uint64_t next_ = 0;
  std::uint64_t original_entries_ = 0;
};

/// Definitions of several slices: each is written once, and all must say the same.
class Definitions {
 public:
  void add(NumberedReader& reader, TraceWriter& writer) {
    if (reader.kind() == LineKind::kGraph) {
      const GraphDefinition& graph = reader.item().graph;
      add(graphs_, std::pair{graph.graph, graph.version}, graph, reader, writer);
    } else if (reader.kind() == LineKind::kStream) {
      const StreamDefinition& stream = reader.item().stream;
      add(streams_, stream.stream, stream, reader, writer);
    }
  }

 private:
  template <typename Map, typename Id, typename Definition>
  void add(Map& known, const Id& id, const Definition& definition, NumberedReader& reader,
           TraceWriter& writer) {
    const auto [found, fresh] = known.emplace(id, definition);
    if (fresh) {
      writer.write(definition);
    } else if (!(found->second == definition)) {
      reader.fail(ErrorCode::kMismatch, "defines something that another slice defines otherwise");
    }
  }

  std::map<std::pair<std::int32_t, std::uint32_t>, GraphDefinition> graphs_;
  std::map<std::uint32_t, StreamDefinition> streams_;
};

}  // namespace

std::uint64_t slice_trace(const std::filesystem::path& from, const std::filesystem::path& to,
                          const SliceOptions& options) {
  std::optional<Pattern> pattern;
  if (!options.name_pattern.empty()) pattern.emplace(options.name_pattern);
  const std::uint64_t end = options.end.value_or(std::numeric_limits<std::uint64_t>::max());
  if (end < options.begin) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a slice from {} to {} ends before it begins", options.begin, end));
  }
  NumberedReader reader(from);
  TraceInfo header = reader.item().info;
  header.unknown.emplace_back(kSliceKey, "true");
  TraceWriter writer = TraceWriter::aside(to, header, options.writer);
  TraceFooter footer;
  std::uint64_t expected = 0;
  while (reader.next()) {
    DecodedLine& item = reader.item();
    switch (reader.kind()) {
      case LineKind::kEntry: {
        const std::uint64_t at = reader.at();
        const auto& streams = options.streams;
        const bool wanted =
            at >= options.begin && at < end &&
            (streams.empty() ||
             std::find(streams.begin(), streams.end(), item.entry.stream_index) != streams.end()) &&
            (!pattern || pattern->matches_name(item.entry.name));
        if (!wanted) break;
        if (at != expected) item.entry.unknown.emplace_back(kAtKey, std::to_string(at));
        expected = at + 1;
        writer.write(item.entry);
        break;
      }
      case LineKind::kStream:
        writer.write(item.stream);
        break;
      case LineKind::kGraph:
        writer.write(item.graph);
        break;
      case LineKind::kMeta:
        writer.write_meta(item.info);
        break;
      case LineKind::kFooter:
        footer = item.footer;
        footer.unknown.emplace_back(kSliceOfKey, std::to_string(reader.original_entries()));
        break;
      case LineKind::kHeader:
        break;
    }
  }
  if (reader.items().truncated()) {
    if (!options.allow_truncated) reader.fail_if_truncated();
    footer = TraceFooter{};
    footer.unknown.emplace_back(kSliceOfKey, std::to_string(reader.items().entries()));
  }
  writer.finish(footer);
  return writer.entries_written();
}

std::uint64_t merge_traces(const std::vector<std::filesystem::path>& from,
                           const std::filesystem::path& to, const TraceWriterOptions& options) {
  if (from.empty()) throw Error(ErrorCode::kInvalidArgument, "there are no slices to merge");
  std::vector<std::unique_ptr<NumberedReader>> readers;
  for (const std::filesystem::path& path : from) {
    readers.push_back(std::make_unique<NumberedReader>(path));
    if (!readers.back()->is_slice()) {
      readers.back()->fail(ErrorCode::kInvalidArgument, "not a slice of a trace");
    }
  }
  TraceWriter writer = TraceWriter::aside(to, readers.front()->item().info, options);
  Definitions definitions;
  std::optional<std::uint64_t> whole;
  TraceFooter footer;
  // Brings a reader to its next entry; what it meets on the way is written at once, so that every
  // definition stands in front of what needs it.
  const auto advance = [&](std::unique_ptr<NumberedReader>& reader, bool first) {
    while (reader->next()) {
      if (reader->kind() == LineKind::kEntry) return;
      definitions.add(*reader, writer);
      if (reader->kind() == LineKind::kMeta && first) writer.write_meta(reader->item().info);
      if (reader->kind() != LineKind::kFooter) continue;
      if (whole && *whole != reader->original_entries()) {
        reader->fail(ErrorCode::kMismatch, "a slice of another trace");
      }
      whole = reader->original_entries();
      if (first) footer = reader->item().footer;
    }
    reader->fail_if_truncated();
    reader.reset();
  };
  for (std::size_t i = 0; i < readers.size(); ++i) advance(readers[i], i == 0);

  std::uint64_t expected = 0;
  const auto missing = [&](std::uint64_t until) {
    throw Error(ErrorCode::kMismatch, fmt::format("entries {} to {} are in none of the {} slices",
                                                  expected, until - 1, from.size()));
  };
  while (true) {
    NumberedReader* earliest = nullptr;
    for (const auto& reader : readers) {
      if (reader && (earliest == nullptr || reader->at() < earliest->at())) earliest = reader.get();
    }
    if (earliest == nullptr) break;
    const std::uint64_t at = earliest->at();
    if (at != expected) missing(at);
    const LaunchTraceEntry entry = earliest->item().entry;
    writer.write(entry);
    ++expected;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      if (!readers[i] || readers[i]->at() != at) continue;
      if (!(readers[i]->item().entry == entry)) {
        readers[i]->fail(ErrorCode::kMismatch,
                         fmt::format("entry {} is another one in another slice", at));
      }
      advance(readers[i], i == 0);
    }
  }
  if (whole && expected != *whole) missing(*whole);
  writer.finish(footer);
  return writer.entries_written();
}

}  // namespace lockstep
