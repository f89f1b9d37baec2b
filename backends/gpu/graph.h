// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "objects.h"

namespace lockstep::gpu {

// Takes over a native graph with its nodes in creation order.
lockstep_graph* adopt_graph(lockstep_device* device, Handle native, std::uint64_t identity,
                            std::vector<GraphNode> nodes);
// The nodes as the driver lists them, which is taken as creation order, each with what `known` has
// of it.
Result list_nodes(Handle graph, const std::vector<GraphNode>& known, std::vector<GraphNode>* nodes);

lockstep_code graph_create(lockstep_device* device, lockstep_graph** graph, lockstep_error* error);
lockstep_code graph_clone(lockstep_graph* graph, lockstep_graph** clone, lockstep_error* error);
// The native graph stays its owner's.
lockstep_code graph_from_native(lockstep_device* device, void* native, lockstep_graph** graph,
                                lockstep_error* error);
void graph_destroy(lockstep_graph* graph);
lockstep_code graph_add_node(lockstep_graph* graph, const lockstep_node_desc* desc,
                             const std::uint32_t* dependencies, std::uint32_t dependency_count,
                             std::uint32_t* node, lockstep_error* error);
lockstep_code graph_node_count(lockstep_graph* graph, std::uint32_t* count, lockstep_error* error);
lockstep_code graph_node(lockstep_graph* graph, std::uint32_t node, lockstep_node_info* info,
                         lockstep_error* error);
lockstep_code graph_edges(lockstep_graph* graph, lockstep_graph_edge* edges, std::uint32_t capacity,
                          std::uint32_t* count, lockstep_error* error);

lockstep_code graph_instantiate(lockstep_graph* graph, lockstep_graph_exec** exec,
                                lockstep_error* error);
void graph_exec_destroy(lockstep_graph_exec* exec);
std::uint64_t graph_exec_identity(lockstep_graph_exec* exec, std::uint32_t* version);
lockstep_code graph_exec_update(lockstep_graph_exec* exec, lockstep_graph* graph,
                                std::uint32_t* result, lockstep_error* error);
lockstep_code graph_exec_set_enabled(lockstep_graph_exec* exec, std::uint32_t node,
                                     std::uint32_t enabled, lockstep_error* error);
lockstep_code graph_exec_launch(lockstep_graph_exec* exec, lockstep_stream* stream,
                                lockstep_error* error);

// Nodes of a graph as records, by the driver's getters (or by what was recorded, where those are
// not to be trusted), with everything the records point to.
class GraphDefinition {
 public:
  explicit GraphDefinition(const lockstep_device* device) : device_(device) {}

  // One level, for listing: child graphs are one record of kind MARK.
  Result list(const std::vector<GraphNode>& nodes);
  // Everything, for define_graph: child graphs inlined, disabled nodes flagged.
  Result flatten(Handle graph, const std::vector<GraphNode>& nodes,
                 const std::vector<bool>& disabled);

  const std::vector<lockstep_record>& records() const { return records_; }
  const std::vector<std::uint32_t>& kinds() const { return kinds_; }  // list() only
  const std::vector<Handle>& children() const { return children_; }   // list() only
  const std::vector<lockstep_graph_edge>& edges() const { return edges_; }
  Call failed_call() const { return failed_call_; }

 private:
  struct Span {
    std::vector<std::uint32_t> sources, sinks;
  };
  Result add_level(Handle graph, const std::vector<GraphNode>& nodes,
                   const std::vector<bool>& disabled, Span* whole);
  Result to_record(const GraphNode& node, NodeFacts* facts, lockstep_record* record);
  void kernel_record(const NodeFacts& facts, lockstep_record* record);
  void copy_record(const NodeFacts& facts, lockstep_record* record);

  const lockstep_device* device_;
  std::vector<lockstep_record> records_;
  std::vector<std::uint32_t> kinds_;
  std::vector<Handle> children_;
  std::vector<lockstep_graph_edge> edges_;
  std::deque<std::vector<lockstep_parameter>> layouts_;  // of functions that are not ours
  Call failed_call_ = Call::kGraphNodes;
};

// Edges between the nodes given, as ordinals sorted by (from, to), each pair once.
Result edges_between(Handle graph, const std::vector<GraphNode>& nodes,
                     std::vector<lockstep_graph_edge>* edges);

}  // namespace lockstep::gpu
