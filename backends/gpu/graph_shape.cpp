// SPDX-License-Identifier: Apache-2.0
#include "graph_shape.h"

#include <algorithm>

#include "graph.h"
#include "state.h"

namespace lockstep::gpu {
namespace {

Result nodes_of(Handle graph, std::vector<GraphNode>* nodes) {
  std::vector<Handle> listed;
  if (const Result result = driver().graph_nodes(graph, &listed)) return result;
  for (Handle node : listed) nodes->push_back({node, std::nullopt, {}});
  return kSuccess;
}

bool same_edge(const lockstep_graph_edge& a, const lockstep_graph_edge& b) {
  return a.from == b.from && a.to == b.to && a.programmatic == b.programmatic;
}

}  // namespace

Result compare_shapes(Handle a, const std::vector<GraphNode>& a_nodes, Handle b,
                      const std::vector<GraphNode>& b_nodes, std::uint32_t* outcome) {
  *outcome = LOCKSTEP_UPDATE_TOPOLOGY_CHANGED;
  if (a_nodes.size() != b_nodes.size()) return kSuccess;
  std::vector<lockstep_graph_edge> a_edges, b_edges;
  if (const Result result = edges_between(a, a_nodes, &a_edges)) return result;
  if (const Result result = edges_between(b, b_nodes, &b_edges)) return result;
  if (!std::equal(a_edges.begin(), a_edges.end(), b_edges.begin(), b_edges.end(), same_edge)) {
    return kSuccess;
  }
  for (std::size_t index = 0; index < a_nodes.size(); ++index) {
    NodeFacts of_a, of_b;
    if (const Result result = driver().graph_node_facts(a_nodes[index].native, &of_a)) {
      return result;
    }
    if (const Result result = driver().graph_node_facts(b_nodes[index].native, &of_b)) {
      return result;
    }
    if (of_a.kind != of_b.kind || of_a.native_kind != of_b.native_kind) {
      *outcome = LOCKSTEP_UPDATE_NODE_TYPE_CHANGED;
      return kSuccess;
    }
    if (of_a.kind != LOCKSTEP_NODE_CHILD_GRAPH) continue;
    std::vector<GraphNode> a_inner, b_inner;
    if (const Result result = nodes_of(of_a.child, &a_inner)) return result;
    if (const Result result = nodes_of(of_b.child, &b_inner)) return result;
    const Result result = compare_shapes(of_a.child, a_inner, of_b.child, b_inner, outcome);
    if (result != kSuccess || *outcome != LOCKSTEP_UPDATE_DONE) return result;
    *outcome = LOCKSTEP_UPDATE_TOPOLOGY_CHANGED;
  }
  *outcome = LOCKSTEP_UPDATE_DONE;
  return kSuccess;
}

}  // namespace lockstep::gpu
