// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_entry.h>

/// \file
/// Small facts about entries that the hash, the files and the views have to agree on.
namespace lockstep {

/// The extent of a copy or set. Who fills in the byte size alone means one row of that width.
Extent effective_extent(const LaunchTraceEntry& entry) noexcept;

/// Why a set cannot have that value, "" when it can.
std::string set_value_problem(std::uint64_t value, std::uint64_t value_size);
/// Why an extent cannot cover that many bytes, "" when it does.
std::string extent_problem(const Extent& extent, std::uint64_t byte_size);

/// A cluster of one block is no cluster.
inline bool has_cluster(const LaunchTraceEntry& entry) noexcept {
  const bool zero = entry.cluster_x == 0 && entry.cluster_y == 0 && entry.cluster_z == 0;
  const bool one = entry.cluster_x == 1 && entry.cluster_y == 1 && entry.cluster_z == 1;
  return !zero && !one;
}

}  // namespace lockstep
