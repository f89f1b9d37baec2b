// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>
#include <lockstep/region.h>
#include <lockstep/stream.h>

#include <span>
#include <string>
#include <vector>

#include "src/runtime/states.h"

/// \file
/// Copies and fills: checks, plugin descriptions, and what graphs have to do about memory.
namespace lockstep::runtime {

/// Who owns the two sides of a copy; null = given by raw pointer.
struct CopyOwners {
  const detail::AllocationPtr* destination = nullptr;
  const detail::AllocationPtr* source = nullptr;
};

bool is_empty(const Extent& extent) noexcept;

/// \throws Error kInvalidArgument for pitches smaller than a row and null pointers.
lockstep_copy_desc describe_copy(const CopyRegion& region, const char* function,
                                 const std::string& where);
/// \throws Error kInvalidArgument also for value sizes, alignment and pitches.
lockstep_set_desc describe_fill(const FillRegion& region, const char* function,
                                const std::string& where);

/// A copy that becomes a node: how it is given to the plugin, and what its graph has to keep.
struct CopyPlan {
  lockstep_copy_desc desc;
  LaunchTraceEntry entry;
  GraphContents contents;  ///< slots, pointers and owners; nodes are numbered by commit()

  /// Hands everything to the graph as node `node`.
  void commit(GraphContents& graph, std::uint32_t node) const;
};

/// Which rules hold for host memory in a copy that becomes a node.
struct HostMemoryRules {
  /// Null: naming a destination in a hand-built node is the declaration.
  const std::vector<std::span<std::byte>>* declared = nullptr;
  std::uint64_t snapshot_limit_bytes = 0;
  std::uint64_t capture_id = 0;  ///< 0 = hand-built
};

/// Pinned memory stays where it is (a live slot), pageable sources are copied now (a snapshot),
/// pageable destinations have to be declared.
/// \throws Error kIllegalDuringCapture for host memory that breaks the rules; the capture goes on.
CopyPlan plan_copy(detail::DeviceState& device, const Device& handle, const CopyRegion& region,
                   const CopyOwners& owners, const HostMemoryRules& rules, const char* function,
                   const std::string& where);

/// One entry for each node that a fill makes.
LaunchTraceEntry fill_entry(const FillRegion& region);
/// Keeps the filled memory alive, or notes the raw pointer.
void keep_filled(GraphContents& contents, std::uint32_t node, detail::DeviceState& device,
                 const FillRegion& region, const detail::AllocationPtr* owner,
                 std::uint64_t capture_id);

}  // namespace lockstep::runtime
