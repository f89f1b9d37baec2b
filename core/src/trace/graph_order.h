// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>

#include <cstdint>
#include <vector>

/// \file
/// Executed order and chains of a graph definition, worked out once and used for every launch.
namespace lockstep {

struct GraphOrder {
  std::vector<std::uint32_t> order;  ///< node ordinals, Kahn's order, ties by creation
  std::vector<std::uint32_t> chain;  ///< of each node: ordinal of its chain
};

/// Chains are a path cover of the graph: nodes are visited in executed order; one that no chain
/// holds yet begins the next chain, which then takes the first successor (by creation) that no
/// chain holds, and so on until there is none.
/// \throws Error kInvalidArgument when the edges have a cycle or name a node that is not there.
GraphOrder order_graph(const GraphDefinition& graph);

/// Nodes of one launch from an order worked out before; see expand_graph().
std::vector<LaunchTraceEntry> expand_ordered(const GraphDefinition& graph, const GraphOrder& order,
                                             const LaunchTraceEntry& launch);

}  // namespace lockstep
