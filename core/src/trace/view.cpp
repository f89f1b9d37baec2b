// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "src/trace/view_filter.h"

namespace lockstep {

const GraphDefinition* Trace::find_graph(std::int32_t graph, std::uint32_t version) const noexcept {
  const auto found = graphs.find({graph, version});
  return found == graphs.end() ? nullptr : &found->second;
}

void ViewFilter::define(const GraphDefinition& graph) {
  define({graph.graph, graph.version}, graph);
}

void ViewFilter::define(Key key, const GraphDefinition& graph) {
  if (launched_undefined_.count(key) != 0) late_definition_ = true;
  Graph& known = graphs_[key];
  known = Graph{};
  known.definition = graph;
  known.definition.graph = key.first;
  known.definition.version = key.second;
}

ViewFilter::Graph* ViewFilter::find(Key key) {
  const auto found = graphs_.find(key);
  if (found == graphs_.end()) return nullptr;
  Graph& graph = found->second;
  if (!graph.ordered) {
    graph.order = order_graph(graph.definition);
    graph.ordered = true;
  }
  return &graph;
}

const GraphDefinition* ViewFilter::definition(Key key) const {
  const auto found = graphs_.find(key);
  return found == graphs_.end() ? nullptr : &found->second.definition;
}

std::vector<LaunchTraceEntry> ViewFilter::shown_nodes(Key key) {
  std::vector<LaunchTraceEntry> result;
  const Graph* graph = find(key);
  if (graph == nullptr) return result;
  for (LaunchTraceEntry& node : expand_ordered(graph->definition, graph->order, {})) {
    if (!node.is_empty_operation() && wants(node)) result.push_back(std::move(node));
  }
  return result;
}

bool ViewFilter::wants(const LaunchTraceEntry& entry) const {
  if (!options_.kinds.empty()) {
    return std::find(options_.kinds.begin(), options_.kinds.end(), entry.kind) !=
           options_.kinds.end();
  }
  // Enqueued, a graph launch is itself the work; executed, its nodes are.
  const bool enqueued_graph =
      options_.kind == ViewOptions::Kind::kEnqueued && entry.kind == OperationKind::kGraphLaunch;
  return !options_.core_kinds_only || is_core_kind(entry.kind) ||
         entry.kind == OperationKind::kOpaque || enqueued_graph;
}

bool view_shows(const ViewOptions& options, const LaunchTraceEntry& entry) {
  const bool unexpanded =
      options.kind == ViewOptions::Kind::kExecuted && entry.kind == OperationKind::kGraphLaunch;
  return unexpanded || ViewFilter(options).wants(entry);
}

void ViewFilter::push(const LaunchTraceEntry& entry, const Sink& sink) {
  push(entry, sink, [&](const LaunchTraceEntry& launch, Key key) {
    const Graph* graph = find(key);
    for (const LaunchTraceEntry& node : expand_ordered(graph->definition, graph->order, launch)) {
      if (!node.is_empty_operation() && wants(node)) sink(node);
    }
  });
}

void ViewFilter::push(const LaunchTraceEntry& entry, const Sink& sink,
                      const GraphSink& graph_sink) {
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
  graph_sink(launch, {entry.graph, entry.graph_version});
}

std::vector<LaunchTraceEntry> view(const Trace& trace, const ViewOptions& options) {
  ViewFilter filter(options);
  for (const auto& [key, graph] : trace.graphs) filter.define(key, graph);
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
