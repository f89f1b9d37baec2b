// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_diff.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "src/trace/view_filter.h"

/// \file
/// Entries of a view as keys: equal keys are equal entries, kNeverEqual is equal to nothing.
namespace lockstep {

struct KeySequence {
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> streams;  ///< of every key; empty unless asked for
  bool truncated = false;
};

KeySequence collect_keys(const Trace& trace, const DiffOptions& options);
KeySequence collect_keys(const std::filesystem::path& path, const DiffOptions& options);

/// Streams the view of a file: `visit` gets each entry with its ordinal until it returns false.
void visit_view(const std::filesystem::path& path, const ViewOptions& options,
                const std::function<bool(std::uint64_t, const LaunchTraceEntry&)>& visit);

}  // namespace lockstep
