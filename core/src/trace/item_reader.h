// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/error.h>
#include <lockstep/trace_file.h>

#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "src/trace/line_cache.h"
#include "src/trace/line_source.h"
#include "src/trace/stream_numbers.h"
#include "src/trace/trace_decode.h"

/// \file
/// Items of a trace file without copying them out: the storage of one is used for the next.
namespace lockstep {

class ItemReader {
 public:
  /// Reads the header. \throws as TraceReader does.
  ItemReader(const std::filesystem::path& path, const TraceReaderOptions& options);

  /// Advances to the next item, whose kind is `kind()`; false at the end.
  bool next();
  LineKind kind() const noexcept { return kind_; }
  DecodedLine& item() noexcept { return item_; }
  const DecodedLine& item() const noexcept { return item_; }
  bool truncated() const noexcept { return truncated_; }
  std::uint64_t line() const noexcept { return source_.lines_read(); }
  std::uint64_t entries() const noexcept { return entries_; }

 private:
  [[noreturn]] void fail(ErrorCode code, const std::string& what, std::uint64_t line);
  void read_header();
  void check_order();
  bool take_stream();

  std::filesystem::path path_;
  LineSource source_;
  LineDecoder decoder_;
  LineCache cache_;
  DecodedLine item_;
  LineKind kind_ = LineKind::kHeader;
  std::uint64_t entries_ = 0;
  bool ended_ = false;
  bool truncated_ = false;
  std::set<std::pair<std::int32_t, std::uint32_t>> graphs_;
  std::set<std::uint32_t> streams_;
  StreamNumbers numbers_;
};

}  // namespace lockstep
