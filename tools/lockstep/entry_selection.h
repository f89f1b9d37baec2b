// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>

#include "src/trace/pattern.h"
#include "verbs.h"

/// \file
/// Which entries `show` was asked for, and those entries as a trace file.
namespace lockstep::cli {

struct EntrySelection {
  ViewOptions view;
  std::uint64_t begin = 0,
                end = std::numeric_limits<std::uint64_t>::max();  ///< positions, half-open
  std::set<std::uint32_t> streams;                                ///< empty = all
  std::optional<Pattern> name;  ///< of the name as recorded or as shown

  /// \throws Failure (kUsage) naming the option that cannot be read.
  static EntrySelection parse(const ShowOptions& options);
  bool wants(std::uint64_t position, const LaunchTraceEntry& entry) const;
};

/// `show --jsonl`: the selected entries on standard output as a trace with header, definitions and
/// footer. In the file's order it is a slice, which `merge` takes; in another view it stands for
/// itself. That of a truncated trace has no footer.
int print_slice(Console& console, const ShowOptions& options);

}  // namespace lockstep::cli
