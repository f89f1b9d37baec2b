// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "graph.h"

namespace lockstep::hostrt {

// A node ready to be executed; child graphs are inlined.
struct PlanNode {
  std::uint32_t kind = LOCKSTEP_NODE_EMPTY;
  WorkPtr work;
  EventPtr event;
  std::shared_ptr<GraphMemory> memory;
  lockstep_record record{};
  bool enabled = true;
  std::uint32_t dependency_count = 0;
  std::vector<std::uint32_t> successors;
};

// What an executable executes. Immutable once launched: a change makes a new one, so that runs in
// flight keep theirs.
struct GraphPlan {
  std::vector<PlanNode> nodes;
  std::vector<lockstep_graph_edge> edges;  // sorted by (from, to)
  std::vector<std::uint32_t> top_to_flat;  // by the graph's own ordinals; UINT32_MAX: a child graph
  bool any_thread = true;                  // no node insists on a thread of the runtime

  static GraphPlan of(const Graph& graph);
};

// A LOCKSTEP_UPDATE_* result: may `next` take the place of `now`?
std::uint32_t compare_shapes(const GraphPlan& now, const GraphPlan& next);

}  // namespace lockstep::hostrt
