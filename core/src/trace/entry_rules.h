// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_entry.h>

/// \file
/// Small facts about entries that the hash, the files and the views have to agree on.
namespace lockstep {

/// The extent of a copy or set. Who fills in the byte size alone means one row of that width.
Extent effective_extent(const LaunchTraceEntry& entry) noexcept;

/// A cluster of one block is no cluster.
inline bool has_cluster(const LaunchTraceEntry& entry) noexcept {
  const bool zero = entry.cluster_x == 0 && entry.cluster_y == 0 && entry.cluster_z == 0;
  const bool one = entry.cluster_x == 1 && entry.cluster_y == 1 && entry.cluster_z == 1;
  return !zero && !one;
}

}  // namespace lockstep
