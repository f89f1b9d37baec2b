// SPDX-License-Identifier: Apache-2.0
#include "graph_plan.h"

#include <algorithm>
#include <utility>

namespace lockstep::hostrt {
namespace {

using Ordinals = std::vector<std::uint32_t>;

void unite(Ordinals& into, const Ordinals& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

// Appends the nodes of `graph`, which begin after `entry`; returns what has to end before anything
// that follows the graph. A graph without nodes hands its entry through.
Ordinals append(GraphPlan& plan, const Graph& graph, const Ordinals& entry, Ordinals* top_to_flat) {
  const std::uint32_t count = graph.node_count();
  std::vector<Ordinals> ends(count);
  std::vector<bool> has_successor(count, false);
  for (std::uint32_t i = 0; i < count; ++i) {
    const GraphNode& node = graph.node(i);
    Ordinals before;
    for (const std::uint32_t dependency : node.dependencies) {
      unite(before, ends[dependency]);
      has_successor[dependency] = true;
    }
    if (node.dependencies.empty()) before = entry;
    if (node.child != nullptr) {
      ends[i] = append(plan, *node.child->object, before, nullptr);
      if (top_to_flat != nullptr) top_to_flat->push_back(UINT32_MAX);
      continue;
    }
    const auto flat = static_cast<std::uint32_t>(plan.nodes.size());
    PlanNode& planned = plan.nodes.emplace_back();
    planned.kind = node.kind;
    planned.work = node.work;
    planned.event = node.event;
    planned.memory = node.memory;
    planned.record = node.record;
    planned.dependency_count = static_cast<std::uint32_t>(before.size());
    if (node.work != nullptr && !node.work->any_thread()) plan.any_thread = false;
    for (const std::uint32_t from : before) {
      plan.nodes[from].successors.push_back(flat);
      plan.edges.push_back({from, flat, 0});
    }
    ends[i] = {flat};
    if (top_to_flat != nullptr) top_to_flat->push_back(flat);
  }
  if (count == 0) return entry;
  Ordinals exits;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!has_successor[i]) unite(exits, ends[i]);
  }
  return exits;
}

}  // namespace

GraphPlan GraphPlan::of(const Graph& graph) {
  GraphPlan plan;
  append(plan, graph, {}, &plan.top_to_flat);
  std::sort(plan.edges.begin(), plan.edges.end(), [](const auto& a, const auto& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  return plan;
}

std::uint32_t compare_shapes(const GraphPlan& now, const GraphPlan& next) {
  const auto has_memory = [](const PlanNode& node) { return node.memory != nullptr; };
  if (std::any_of(now.nodes.begin(), now.nodes.end(), has_memory) ||
      std::any_of(next.nodes.begin(), next.nodes.end(), has_memory)) {
    return LOCKSTEP_UPDATE_NOT_SUPPORTED;
  }
  const bool same_edges =
      std::equal(now.edges.begin(), now.edges.end(), next.edges.begin(), next.edges.end(),
                 [](const lockstep_graph_edge& a, const lockstep_graph_edge& b) {
                   return a.from == b.from && a.to == b.to;
                 });
  if (now.nodes.size() != next.nodes.size() || !same_edges || now.top_to_flat != next.top_to_flat) {
    return LOCKSTEP_UPDATE_TOPOLOGY_CHANGED;
  }
  for (std::size_t i = 0; i < now.nodes.size(); ++i) {
    if (now.nodes[i].kind != next.nodes[i].kind) return LOCKSTEP_UPDATE_NODE_TYPE_CHANGED;
  }
  return LOCKSTEP_UPDATE_DONE;
}

}  // namespace lockstep::hostrt
