// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "src/trace/view_filter.h"

namespace lockstep {

const GraphDefinition* Trace::find_graph(std::int32_t graph, std::uint32_t version) const noexcept {
  const auto found = graphs.find({graph, version});
  return found == graphs.end() ? nullptr : &found->second;
}

void ViewFilter::define(const GraphDefinition& graph) {
  const Key key{graph.graph, graph.version};
  if (launched_undefined_.count(key) != 0) late_definition_ = true;
  Graph& known = graphs_[key];
  known = Graph{};
  known.definition = graph;
}

ViewFilter::Graph* ViewFilter::find(Key key) {
  const auto found = graphs_.find(key);
  if (found == graphs_.end()) return nullptr;
  Graph& graph = found->second;
  if (!graph.ordered) {
    graph.order = order_graph(graph.definition);
    graph.nodes = expand_ordered(graph.definition, graph.order, LaunchTraceEntry{});
    graph.ordered = true;
  }
  return &graph;
}

const std::vector<LaunchTraceEntry>* ViewFilter::nodes(Key key) {
  const Graph* graph = find(key);
  return graph == nullptr ? nullptr : &graph->nodes;
}

bool ViewFilter::is_defined(const LaunchTraceEntry& launch) const {
  return graphs_.count({launch.graph, launch.graph_version}) != 0;
}

bool ViewFilter::wants(const LaunchTraceEntry& entry) const {
  if (!options_.kinds.empty()) {
    return std::find(options_.kinds.begin(), options_.kinds.end(), entry.kind) !=
           options_.kinds.end();
  }
  return !options_.core_kinds_only || is_core_kind(entry.kind) ||
         entry.kind == OperationKind::kOpaque;
}

void ViewFilter::push(const LaunchTraceEntry& entry, const Sink& sink) {
  const bool executed = options_.kind == ViewOptions::Kind::kExecuted;
  if (executed && (entry.has(EntryFlag::kCaptured) || entry.has(EntryFlag::kFailed) ||
                   entry.has(EntryFlag::kInternal) || entry.is_empty_operation())) {
    return;
  }
  if (entry.kind != OperationKind::kGraphLaunch) {
    if (wants(entry)) sink(entry);
    return;
  }
  LaunchTraceEntry launch = entry;
  launch.launch = launches_++;
  Graph* graph = find({entry.graph, entry.graph_version});
  if (graph == nullptr) {
    // Whatever kinds were asked for: work that cannot be named must not vanish.
    launched_undefined_[{entry.graph, entry.graph_version}] = true;
    sink(launch);
    return;
  }
  if (!executed) {
    if (wants(launch)) sink(launch);
    return;
  }
  for (const LaunchTraceEntry& node : expand_ordered(graph->definition, graph->order, launch)) {
    if (!node.is_empty_operation() && wants(node)) sink(node);
  }
}

std::vector<LaunchTraceEntry> view(const Trace& trace, const ViewOptions& options) {
  ViewFilter filter(options);
  for (const auto& [key, graph] : trace.graphs) filter.define(graph);
  std::vector<LaunchTraceEntry> result;
  for (const LaunchTraceEntry& entry : trace.entries) {
    filter.push(entry, [&](const LaunchTraceEntry& shown) {
      result.push_back(shown);
      if (result.back().semantic_hash == 0) result.back().semantic_hash = semantic_hash(shown);
    });
  }
  return result;
}

}  // namespace lockstep
