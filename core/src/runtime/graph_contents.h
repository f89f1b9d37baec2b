// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/buffer.h>
#include <lockstep/graph.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// \file
/// What the library knows of a graph beyond what its driver keeps.
namespace lockstep::runtime {

/// Memory that a node uses by raw pointer and that the library had allocated.
struct RawPointer {
  std::uintptr_t address = 0;
  std::uint64_t allocation = 0;  ///< AllocationMap id at the time
  std::uint32_t node = 0;
  std::string role;  ///< "argument 2", "source", "destination"
};

struct GraphContents {
  std::vector<detail::AllocationPtr> allocations;    ///< kept alive
  std::vector<std::shared_ptr<const void>> objects;  ///< kernels, host functions, snapshots, events
  std::vector<HostSlot> slots;
  std::vector<RawPointer> raw_pointers;
  /// Each node as the library enqueued it, to be held against what the graph says.
  std::vector<LaunchTraceEntry> recorded;
  bool captured = false;

  void keep(const detail::AllocationPtr& allocation);
  void keep(std::shared_ptr<const void> object);
  /// Notes a node and returns the ordinal that it should have.
  std::uint32_t add_node(LaunchTraceEntry entry);
  std::uint32_t add_node(OperationKind kind);
  /// Adds the contents of a child graph, whose nodes are all reported as `node`.
  void add_child(const GraphContents& child, std::uint32_t node);
};

}  // namespace lockstep::runtime
