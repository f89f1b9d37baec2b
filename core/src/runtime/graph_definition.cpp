// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device.h>
#include <lockstep/graph.h>

#include <algorithm>
#include <fmt/format.h>

#include "src/record/host_recorder.h"
#include "src/record/record_entry.h"
#include "src/runtime/states.h"

namespace lockstep {

using detail::GraphState;
using runtime::ErrorRecord;

namespace {

/// Reads nodes and edges of one plugin graph.
class GraphReader {
 public:
  explicit GraphReader(detail::DeviceState& device) : device_(device) {}

  std::uint32_t node_count(lockstep_graph* graph) const {
    std::uint32_t count = 0;
    ErrorRecord error;
    check(table().graph_node_count(graph, &count, &error), error, "Graph::node_count");
    return count;
  }

  lockstep_node_info node(lockstep_graph* graph, std::uint32_t ordinal) const {
    lockstep_node_info info = {};
    info.struct_size = sizeof(info);
    ErrorRecord error;
    check(table().graph_node(graph, ordinal, &info, &error), error, "Graph::nodes");
    return info;
  }

  std::vector<lockstep_graph_edge> edges(lockstep_graph* graph) const {
    std::uint32_t count = 0;
    ErrorRecord error;
    check(table().graph_edges(graph, nullptr, 0, &count, &error), error, "Graph::edges");
    std::vector<lockstep_graph_edge> edges(count);
    if (count != 0) {
      check(table().graph_edges(graph, edges.data(), count, &count, &error), error, "Graph::edges");
    }
    return edges;
  }

 private:
  const lockstep_backend& table() const { return device_.backend.table; }
  void check(lockstep_code code, const ErrorRecord& error, const char* function) const {
    if (code != LOCKSTEP_OK) {
      runtime::throw_plugin_error(device_.backend, &device_, nullptr, code, error, {function});
    }
  }

  detail::DeviceState& device_;
};

LaunchTraceEntry named_entry(const char* name) {
  LaunchTraceEntry entry;
  entry.kind = OperationKind::kMark;
  entry.name = name;
  entry.mark = "point";
  entry.semantic_hash = semantic_hash(entry);
  return entry;
}

LaunchTraceEntry entry_of(const lockstep_node_info& node) {
  if (node.record != nullptr) return entry_from_record(*node.record, recorded_text);
  return named_entry(node.kind == LOCKSTEP_NODE_CHILD_GRAPH ? "child graph"
                     : node.kind == LOCKSTEP_NODE_EMPTY     ? "empty"
                                                            : "other");
}

/// Where the nodes of one listed node went: itself, or the nodes of the child it stands for.
struct Placed {
  std::vector<std::uint32_t> roots, leaves;
};

class Inliner {
 public:
  Inliner(const GraphReader& reader, GraphDefinition& definition)
      : reader_(reader), definition_(definition) {}

  Placed place(lockstep_graph* graph) {
    const std::uint32_t count = reader_.node_count(graph);
    std::vector<Placed> placed(count);
    for (std::uint32_t i = 0; i < count; ++i) placed[i] = place_node(reader_.node(graph, i));
    std::vector<bool> has_before(count, false), has_after(count, false);
    for (const lockstep_graph_edge& edge : reader_.edges(graph)) {
      has_after[edge.from] = has_before[edge.to] = true;
      for (const std::uint32_t from : placed[edge.from].leaves) {
        for (const std::uint32_t to : placed[edge.to].roots) {
          edges_.push_back({from, to, edge.programmatic});
        }
      }
    }
    Placed whole;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Placed& part = placed[i];
      if (!has_before[i])
        whole.roots.insert(whole.roots.end(), part.roots.begin(), part.roots.end());
      if (!has_after[i]) {
        whole.leaves.insert(whole.leaves.end(), part.leaves.begin(), part.leaves.end());
      }
    }
    return whole;
  }

  void finish() {
    std::sort(edges_.begin(), edges_.end(), [](const auto& left, const auto& right) {
      return std::pair(left.from, left.to) < std::pair(right.from, right.to);
    });
    for (const lockstep_graph_edge& edge : edges_) {
      if (edge.programmatic != 0) {
        definition_.programmatic_edges.push_back(
            static_cast<std::uint32_t>(definition_.edges.size()));
      }
      definition_.edges.emplace_back(edge.from, edge.to);
    }
  }

 private:
  Placed place_node(const lockstep_node_info& node) {
    if (node.kind == LOCKSTEP_NODE_CHILD_GRAPH && node.child != nullptr) {
      Placed inner = place(node.child);
      if (!inner.roots.empty()) return inner;
      // A child without nodes goes on ordering its neighbours.
      return append(named_entry("empty"));
    }
    return append(entry_of(node));
  }

  Placed append(LaunchTraceEntry entry) {
    const auto ordinal = static_cast<std::uint32_t>(definition_.nodes.size());
    entry.node = static_cast<std::int32_t>(ordinal);
    definition_.nodes.push_back(std::move(entry));
    return {{ordinal}, {ordinal}};
  }

  const GraphReader& reader_;
  GraphDefinition& definition_;
  std::vector<lockstep_graph_edge> edges_;
};

GraphState& usable(const Graph& graph) {
  GraphState& state = graph.state();
  state.device_state.check_usable();
  return state;
}

std::string difference(std::size_t node, const LaunchTraceEntry& recorded,
                       const LaunchTraceEntry& listed) {
  return fmt::format("node {}: recorded {}, the graph has {}", node, describe(recorded),
                     describe(listed));
}

bool is_same(const LaunchTraceEntry& recorded, const LaunchTraceEntry& listed) {
  if (recorded.kind != listed.kind) return false;
  return !is_core_kind(recorded.kind) || recorded.semantic_hash == listed.semantic_hash;
}

}  // namespace

std::uint32_t Graph::node_count() const {
  GraphState& graph = usable(*this);
  return GraphReader(graph.device_state).node_count(graph.handle);
}

std::vector<GraphNodeInfo> Graph::nodes() const {
  GraphState& graph = usable(*this);
  const GraphReader reader(graph.device_state);
  const std::uint32_t count = reader.node_count(graph.handle);
  std::vector<GraphNodeInfo> nodes;
  for (std::uint32_t i = 0; i < count; ++i) {
    const lockstep_node_info info = reader.node(graph.handle, i);
    GraphNodeInfo node;
    node.kind = static_cast<NodeKind>(info.kind);
    node.entry = entry_of(info);
    node.entry.node = static_cast<std::int32_t>(i);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> Graph::edges() const {
  GraphState& graph = usable(*this);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (const auto& edge : GraphReader(graph.device_state).edges(graph.handle)) {
    edges.emplace_back(edge.from, edge.to);
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

GraphDefinition Graph::definition() const {
  GraphState& graph = usable(*this);
  const GraphReader reader(graph.device_state);
  GraphDefinition definition;
  Inliner inliner(reader, definition);
  inliner.place(graph.handle);
  inliner.finish();
  return definition;
}

std::vector<std::string> Graph::capture_differences() const {
  GraphState& graph = usable(*this);
  std::vector<std::string> differences;
  if (!graph.contents.captured) return differences;
  const std::vector<LaunchTraceEntry>& recorded = graph.contents.recorded;
  const std::vector<GraphNodeInfo> listed = nodes();
  const std::size_t common = std::min(recorded.size(), listed.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (!is_same(recorded[i], listed[i].entry)) {
      differences.push_back(difference(i, recorded[i], listed[i].entry));
    }
  }
  for (std::size_t i = common; i < recorded.size(); ++i) {
    differences.push_back(
        fmt::format("node {}: recorded {}, the graph has no such node", i, describe(recorded[i])));
  }
  for (std::size_t i = common; i < listed.size(); ++i) {
    differences.push_back(fmt::format("node {}: the graph has {}, which was not recorded", i,
                                      describe(listed[i].entry)));
  }
  return differences;
}

}  // namespace lockstep
