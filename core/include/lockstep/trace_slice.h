// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>
#include <lockstep/trace_file.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// \file
/// Parts of large traces as files of their own, and back. Both stream in bounded memory and write
/// aside, so that a failure leaves nothing behind.
///
/// A slice is a whole, valid trace. Its header says `"slice":true`; an entry whose predecessor in
/// the original is not its predecessor in the slice carries `"slice_at"`, its ordinal there; the
/// footer's
/// `"slice_of"` counts the original's entries.
namespace lockstep {

/// What a slice keeps; conditions that are given must all hold. Entries are taken as the file holds
/// them (enqueued order, graph launches not expanded). Definitions are kept always.
struct SliceOptions {
  std::uint64_t begin = 0;             ///< ordinal of the first entry, from 0
  std::optional<std::uint64_t> end;    ///< one past the last
  std::vector<std::uint32_t> streams;  ///< empty: all
  std::string name_pattern;            ///< empty: all; syntax as in trace_rules.h
  bool allow_truncated = false;        ///< take what a cut-off file still has
  TraceWriterOptions writer;
};

/// Writes the slice and returns how many entries it has. \throws Error as TraceReader and
/// TraceWriter do; kTruncatedFile naming the last good entry; kInvalidArgument for a bad pattern.
LOCKSTEP_API std::uint64_t slice_trace(const std::filesystem::path& from,
                                       const std::filesystem::path& to,
                                       const SliceOptions& options = {});

/// Puts slices of one trace together again: the same entries in the same order with the same
/// hashes, and every definition. Slices may overlap and come in any order. Returns how many entries
/// were written. \throws Error kMismatch when entries are missing or two slices disagree,
/// kInvalidArgument for a file that is no slice, kTruncatedFile, and as TraceWriter does.
LOCKSTEP_API std::uint64_t merge_traces(const std::vector<std::filesystem::path>& from,
                                        const std::filesystem::path& to,
                                        const TraceWriterOptions& options = {});

}  // namespace lockstep
