// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_file.h>

#include <fmt/format.h>

#include "src/trace/item_reader.h"

namespace lockstep {

ItemReader::ItemReader(const std::filesystem::path& path, const TraceReaderOptions& options)
    : path_(path), source_(path), decoder_(options.check_hashes) {
  read_header();
}

void ItemReader::fail(ErrorCode code, const std::string& what, std::uint64_t line) {
  ended_ = true;
  truncated_ = true;
  ErrorContext context;
  context.where = fmt::format("{}:{}", path_.string(), line);
  throw Error(code, fmt::format("{}: {}", context.where, what), context);
}

void ItemReader::read_header() {
  constexpr const char* kNoHeader = "not a Lockstep trace (the first line is not its header)";
  std::string_view line;
  if (source_.next(line) != LineSource::Status::kLine) {
    const std::string_view text = source_.cut_text();
    if (!text.empty() && text.front() != '{' && text.front() != '\x28') {
      fail(ErrorCode::kInvalidFile, kNoHeader, 1);
    }
    fail(ErrorCode::kTruncatedFile, "truncated before the end of its first line", 1);
  }
  try {
    kind_ = decoder_.decode(line, item_);
  } catch (const DecodeError& error) {
    // What a JSON parser thinks of a file that is something else helps nobody.
    if (line.find("\"lockstep_trace\"") == std::string_view::npos) {
      fail(ErrorCode::kInvalidFile, kNoHeader, 1);
    }
    fail(ErrorCode::kInvalidFile, fmt::format("not a trace header: {}", error.what()), 1);
  }
  if (kind_ != LineKind::kHeader) {
    fail(ErrorCode::kInvalidFile, kNoHeader, 1);
  }
}

void ItemReader::check_order() {
  switch (kind_) {
    case LineKind::kHeader:
      fail(ErrorCode::kInvalidFile, "a second header", line());
    case LineKind::kEntry:
      ++entries_;
      break;
    case LineKind::kStream:
      if (!streams_.insert(item_.stream.stream).second) {
        fail(ErrorCode::kInvalidFile,
             fmt::format("stream {} is defined twice", item_.stream.stream), line());
      }
      break;
    case LineKind::kGraph:
      if (!graphs_.emplace(item_.graph.graph, item_.graph.version).second) {
        fail(ErrorCode::kInvalidFile,
             fmt::format("graph {} version {} is defined twice", item_.graph.graph,
                         item_.graph.version),
             line());
      }
      break;
    case LineKind::kFooter:
      if (item_.footer.entries != entries_) {
        fail(ErrorCode::kInvalidFile,
             fmt::format("the footer counts {} entries, the file has {}", item_.footer.entries,
                         entries_),
             line());
      }
      break;
    case LineKind::kMeta:
      break;
  }
}

bool ItemReader::next() {
  std::string_view line_text;
  do {
    if (ended_) return false;
    const LineSource::Status status = source_.next(line_text);
    if (kind_ == LineKind::kFooter && status != LineSource::Status::kEnd) {
      // Only a frame that was cut behind its last line leaves nothing there: it could not be
      // checked.
      if (status == LineSource::Status::kLine || !source_.cut_text().empty()) {
        const std::uint64_t at =
            source_.lines_read() + (status == LineSource::Status::kCut ? 1 : 0);
        fail(ErrorCode::kInvalidFile, "something stands after the footer", at);
      }
    } else if (kind_ == LineKind::kFooter) {
      ended_ = true;
      return false;
    }
    if (status != LineSource::Status::kLine) {
      ended_ = true;
      truncated_ = true;
      return false;
    }
    if (const LaunchTraceEntry* known = cache_.find(line_text)) {
      kind_ = LineKind::kEntry;
      item_.entry = *known;
      ++entries_;
      break;
    }
    try {
      kind_ = decoder_.decode(line_text, item_);
    } catch (const DecodeError& error) {
      fail(ErrorCode::kInvalidFile, error.what(), line());
    }
    check_order();
    if (kind_ == LineKind::kEntry) cache_.remember(line_text, item_.entry);
  } while (kind_ == LineKind::kStream && !take_stream());
  if (kind_ == LineKind::kEntry && !numbers_.empty()) {
    item_.entry.stream_index = numbers_.final_number(item_.entry.stream_index);
  }
  return true;
}

/// False when the definition says nothing new.
bool ItemReader::take_stream() {
  try {
    return numbers_.take(item_.stream, source_);
  } catch (const DecodeError& error) {
    fail(ErrorCode::kInvalidFile, error.what(), line());
  }
}

struct TraceReader::Impl {
  ItemReader items;
};

TraceReader::TraceReader(const std::filesystem::path& path, const TraceReaderOptions& options)
    : impl_(new Impl{ItemReader(path, options)}) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

const TraceInfo& TraceReader::info() const noexcept { return impl_->items.item().info; }
bool TraceReader::truncated() const noexcept { return impl_->items.truncated(); }
std::uint64_t TraceReader::line() const noexcept { return impl_->items.line(); }

std::optional<TraceItem> TraceReader::next() {
  ItemReader& items = impl_->items;
  if (!items.next()) return std::nullopt;
  switch (items.kind()) {
    case LineKind::kEntry:
      return std::move(items.item().entry);
    case LineKind::kStream:
      return std::move(items.item().stream);
    case LineKind::kGraph:
      return std::move(items.item().graph);
    case LineKind::kFooter:
      return std::move(items.item().footer);
    case LineKind::kMeta:
    case LineKind::kHeader:
      break;
  }
  return items.item().info;
}

Trace read_trace(const std::filesystem::path& path, const TraceReaderOptions& options) {
  ItemReader items(path, options);
  Trace trace;
  while (items.next()) {
    DecodedLine& item = items.item();
    switch (items.kind()) {
      case LineKind::kEntry:
        trace.entries.push_back(std::move(item.entry));
        break;
      case LineKind::kStream:
        trace.streams.push_back(std::move(item.stream));
        break;
      case LineKind::kGraph: {
        const std::pair key{item.graph.graph, item.graph.version};
        trace.graphs.emplace(key, std::move(item.graph));
        break;
      }
      case LineKind::kFooter:
        trace.footer = std::move(item.footer);
        break;
      case LineKind::kMeta:
      case LineKind::kHeader:
        break;
    }
  }
  if (items.truncated()) trace.footer = TraceFooter{};
  trace.info = std::move(items.item().info);
  return trace;
}

}  // namespace lockstep
