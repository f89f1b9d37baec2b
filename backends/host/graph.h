// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "event.h"
#include "memory.h"
#include "work.h"

namespace lockstep::hostrt {

class Graph;

// One node. Exactly what `kind` (LOCKSTEP_NODE_*) asks for is set.
struct GraphNode {
  std::uint32_t kind = LOCKSTEP_NODE_EMPTY;
  WorkPtr work;                             // kernel, copy, set, host function
  std::shared_ptr<lockstep_graph> child;    // child graph, as the handle that listings give out
  EventPtr event;                           // event record and wait
  std::shared_ptr<GraphMemory> memory;      // alloc and free
  lockstep_record record{};                 // as listed and as define_graph reports it
  std::vector<std::uint32_t> dependencies;  // ordinals of earlier nodes, sorted
};

// Nodes in creation order; a node depends on earlier ones only, so that this order is topological.
// Thread-safe.
class Graph {
 public:
  explicit Graph(Device& device);

  Device& device() const noexcept { return device_; }
  std::uint64_t identity() const noexcept { return identity_; }

  // Fills in the record of nodes without work. Throws kInvalidValue for a dependency that is no
  // node.
  std::uint32_t add(GraphNode node, std::vector<std::uint32_t> dependencies);
  // Throws kNotSupported when there are memory nodes: they have one address each.
  std::shared_ptr<Graph> clone() const;

  std::uint32_t node_count() const;
  // Stays in place until the graph is destroyed.
  const GraphNode& node(std::uint32_t ordinal) const;
  std::vector<lockstep_graph_edge> edges() const;  // sorted by (from, to)
  bool has_memory_nodes() const;
  // The memory that `pointer` begins, when a node of this graph allocates it.
  std::shared_ptr<GraphMemory> memory_at(const void* pointer) const;
  bool frees(const GraphMemory& memory) const;

  // A graph with memory nodes may have one executable at a time. False: there is one already.
  bool claim_executable();
  void release_executable() noexcept;

 private:
  Device& device_;
  const std::uint64_t identity_;
  mutable std::mutex mutex_;
  std::deque<GraphNode> nodes_;
  std::atomic<bool> executable_{false};
};

}  // namespace lockstep::hostrt

// The handle of backend.h; here, because nodes own those of their child graphs.
struct lockstep_graph {
  std::shared_ptr<lockstep::hostrt::Graph> object;
};
