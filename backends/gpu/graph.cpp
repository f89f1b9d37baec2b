// SPDX-License-Identifier: Apache-2.0
#include "graph.h"

#include <algorithm>
#include <map>
#include <string>

#include "device.h"
#include "enqueue.h"
#include "launch.h"

namespace lockstep::gpu {

NativeGraph::~NativeGraph() {
  if (!owned || handle == nullptr || !usable()) return;
  ContextScope scope(context);
  driver().graph_destroy(handle);
}

namespace {

std::shared_ptr<NativeGraph> hold(lockstep_device* device, Handle native) {
  auto held = std::make_shared<NativeGraph>();
  held->handle = native;
  held->context = device->context;
  return held;
}

lockstep_code bad_node(lockstep_error* error, const std::string& what) {
  return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "graph_add_node", what);
}

struct Added {
  Result result = kSuccess;
  Call call = Call::kGraphAddEmpty;
  Handle node = nullptr;
  std::optional<lockstep_record> recorded;
  std::string detail;
};

// What is known of `nodes`, for the copy of their graph that `parent` (a child graph node) holds.
// Where the driver cannot find a node there nothing is known of it: a copy is then opaque.
std::vector<GraphNode> carried_into(Handle parent, const std::vector<GraphNode>& nodes) {
  std::vector<GraphNode> carried;
  NodeFacts facts;
  for (const GraphNode& node : nodes) {
    if (!node.recorded && node.inner.empty()) continue;
    if (facts.child == nullptr &&
        (driver().graph_node_facts(parent, &facts) != kSuccess || facts.child == nullptr)) {
      break;
    }
    GraphNode found{nullptr, node.recorded, {}};
    if (driver().graph_find_in_clone(node.native, facts.child, &found.native) != kSuccess) continue;
    found.inner = carried_into(found.native, node.inner);
    carried.push_back(std::move(found));
  }
  return carried;
}

// The nodes of a graph that becomes a child, taken before its parent is locked: two graphs that are
// locked at once would need an order.
std::vector<GraphNode> nodes_of_child(lockstep_graph* graph, const lockstep_node_desc* desc) {
  if (desc->kind != LOCKSTEP_NODE_CHILD_GRAPH || desc->child == nullptr || desc->child == graph ||
      driver().traits().copy_getter_trusted) {
    return {};
  }
  std::lock_guard lock(desc->child->mutex);
  return desc->child->nodes;
}

lockstep_code add_kernel(lockstep_graph* graph, const lockstep_node_desc* desc,
                         const std::vector<Handle>& after, Added* added, lockstep_error* error) {
  if (desc->launch == nullptr) return bad_node(error, "a kernel node needs a launch description");
  KernelLaunch launch;
  if (const lockstep_code code = plan_launch(desc->launch, &launch, error)) return code;
  added->call = Call::kGraphAddKernel;
  added->result = driver().graph_add_kernel(graph->native->handle, after, launch, &added->node);
  if (added->result != kSuccess) added->detail = explain_launch(desc->launch, graph->device);
  return LOCKSTEP_OK;
}

lockstep_code add_copy(lockstep_graph* graph, const lockstep_node_desc* desc,
                       const std::vector<Handle>& after, Added* added, lockstep_error* error) {
  if (desc->copy == nullptr) return bad_node(error, "a copy node needs a copy description");
  PlannedCopy plan;
  if (const lockstep_code code = plan_copy(desc->copy, true, &plan, error)) return code;
  if (plan.empty) {  // does nothing; kept so that its dependencies hold
    added->result = driver().graph_add_empty(graph->native->handle, after, &added->node);
    return LOCKSTEP_OK;
  }
  added->call = Call::kGraphAddCopy;
  added->result = driver().graph_add_copy(graph->native->handle, after, plan.copy,
                                          graph->device->context, &added->node);
  lockstep_record record;
  init_record(record, LOCKSTEP_RECORD_MEMCPY, name_of(plan.call), graph->device, 0);
  fill_copy(record, plan);
  added->recorded = record;
  return LOCKSTEP_OK;
}

lockstep_code add_set(lockstep_graph* graph, const lockstep_node_desc* desc,
                      const std::vector<Handle>& after, Added* added, lockstep_error* error) {
  if (desc->set == nullptr) return bad_node(error, "a set node needs a set description");
  if (desc->set->depth > 1)
    return bad_node(error, "a set node has one plane: add one node a plane");
  PlannedSet plan;
  if (const lockstep_code code = plan_set(desc->set, &plan, error)) return code;
  if (plan.empty) {
    added->result = driver().graph_add_empty(graph->native->handle, after, &added->node);
    return LOCKSTEP_OK;
  }
  added->call = Call::kGraphAddSet;
  added->result = driver().graph_add_set(graph->native->handle, after, plan.plane,
                                         graph->device->context, &added->node);
  return LOCKSTEP_OK;
}

lockstep_code add_by_kind(lockstep_graph* graph, const lockstep_node_desc* desc,
                          const std::vector<Handle>& after, Added* added, lockstep_error* error) {
  const Handle native = graph->native->handle;
  switch (desc->kind) {
    case LOCKSTEP_NODE_KERNEL:
      return add_kernel(graph, desc, after, added, error);
    case LOCKSTEP_NODE_COPY:
      return add_copy(graph, desc, after, added, error);
    case LOCKSTEP_NODE_SET:
      return add_set(graph, desc, after, added, error);
    case LOCKSTEP_NODE_HOST:
      if (desc->function == nullptr) return bad_node(error, "a host node needs a function");
      added->call = Call::kGraphAddHost;
      added->result =
          driver().graph_add_host(native, after, desc->function, desc->user_data, &added->node);
      return LOCKSTEP_OK;
    case LOCKSTEP_NODE_EMPTY:
      added->result = driver().graph_add_empty(native, after, &added->node);
      return LOCKSTEP_OK;
    case LOCKSTEP_NODE_CHILD_GRAPH:
      if (desc->child == nullptr || desc->child == graph) {
        return bad_node(error, "a child graph node needs another graph");
      }
      added->call = Call::kGraphAddChild;
      added->result =
          driver().graph_add_child(native, after, desc->child->native->handle, &added->node);
      return LOCKSTEP_OK;
    case LOCKSTEP_NODE_EVENT_RECORD:
    case LOCKSTEP_NODE_EVENT_WAIT: {
      if (desc->event == nullptr) return bad_node(error, "an event node needs an event");
      const bool record = desc->kind == LOCKSTEP_NODE_EVENT_RECORD;
      added->call = record ? Call::kGraphAddEventRecord : Call::kGraphAddEventWait;
      added->result =
          record ? driver().graph_add_event_record(native, after, desc->event->native, &added->node)
                 : driver().graph_add_event_wait(native, after, desc->event->native, &added->node);
      return LOCKSTEP_OK;
    }
    default:
      return fail(error, LOCKSTEP_E_NOT_SUPPORTED, "graph_add_node",
                  "nodes of kind " + std::to_string(desc->kind) +
                      " cannot be added by hand: capture a stream-ordered call instead");
  }
}

}  // namespace

lockstep_graph* adopt_graph(lockstep_device* device, Handle native, std::uint64_t identity,
                            std::vector<GraphNode> nodes) {
  auto made = std::make_unique<lockstep_graph>();
  made->device = device;
  made->native = hold(device, native);
  made->identity = identity != 0 ? identity : recorder().next_id();
  made->nodes = std::move(nodes);
  return made.release();
}

Result list_nodes(Handle graph, const std::vector<GraphNode>& known,
                  std::vector<GraphNode>* nodes) {
  std::vector<Handle> listed;
  if (const Result result = driver().graph_nodes(graph, &listed)) return result;
  std::map<Handle, const GraphNode*> by_handle;
  for (const GraphNode& node : known) by_handle[node.native] = &node;
  nodes->clear();
  for (Handle node : listed) {
    const auto it = by_handle.find(node);
    nodes->push_back(it != by_handle.end() ? *it->second : GraphNode{node, std::nullopt, {}});
  }
  return kSuccess;
}

lockstep_code graph_create(lockstep_device* device, lockstep_graph** graph, lockstep_error* error) {
  *graph = nullptr;
  ContextScope scope(device->context);
  Handle native = nullptr;
  const Result result = driver().graph_create(&native);
  if (result != kSuccess) return fail_native(error, Call::kGraphCreate, result);
  *graph = adopt_graph(device, native, 0, {});
  return LOCKSTEP_OK;
}

lockstep_code graph_clone(lockstep_graph* graph, lockstep_graph** clone, lockstep_error* error) {
  *clone = nullptr;
  ContextScope scope(graph->device->context);
  std::lock_guard lock(graph->mutex);
  Handle native = nullptr;
  const Result result = driver().graph_clone(graph->native->handle, &native);
  if (result != kSuccess) return fail_native(error, Call::kGraphClone, result);
  std::vector<GraphNode> nodes;
  for (const GraphNode& node : graph->nodes) {
    GraphNode found{nullptr, node.recorded, {}};
    const Result looked = driver().graph_find_in_clone(node.native, native, &found.native);
    if (looked != kSuccess) {
      driver().graph_destroy(native);
      return fail_native(error, Call::kGraphClone, looked);
    }
    found.inner = carried_into(found.native, node.inner);
    nodes.push_back(std::move(found));
  }
  *clone = adopt_graph(graph->device, native, 0, std::move(nodes));
  return LOCKSTEP_OK;
}

lockstep_code graph_from_native(lockstep_device* device, void* native, lockstep_graph** graph,
                                lockstep_error* error) {
  *graph = nullptr;
  if (native == nullptr) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "graph_from_native", "the graph is null");
  }
  ContextScope scope(device->context);
  std::vector<GraphNode> nodes;
  const Result result = list_nodes(native, {}, &nodes);
  if (result != kSuccess) return fail_native(error, Call::kGraphNodes, result);
  *graph = adopt_graph(device, native, 0, std::move(nodes));
  (*graph)->native->owned = false;
  return LOCKSTEP_OK;
}

void graph_destroy(lockstep_graph* graph) { delete graph; }

lockstep_code graph_add_node(lockstep_graph* graph, const lockstep_node_desc* desc,
                             const std::uint32_t* dependencies, std::uint32_t dependency_count,
                             std::uint32_t* node, lockstep_error* error) {
  ContextScope scope(graph->device->context);
  const std::vector<GraphNode> of_child = nodes_of_child(graph, desc);
  std::lock_guard lock(graph->mutex);
  std::vector<Handle> after;
  for (std::uint32_t index = 0; index < dependency_count; ++index) {
    if (dependencies[index] >= graph->nodes.size()) {
      return bad_node(error, "dependency " + std::to_string(dependencies[index]) +
                                 " is no node of the graph, which has " +
                                 std::to_string(graph->nodes.size()));
    }
    const Handle native = graph->nodes[dependencies[index]].native;
    if (std::find(after.begin(), after.end(), native) == after.end()) after.push_back(native);
  }
  Added added;
  if (const lockstep_code code = add_by_kind(graph, desc, after, &added, error)) return code;
  if (added.result != kSuccess) return fail_native(error, added.call, added.result, added.detail);
  graph->listing.reset();
  *node = static_cast<std::uint32_t>(graph->nodes.size());
  graph->nodes.push_back({added.node, added.recorded, carried_into(added.node, of_child)});
  return LOCKSTEP_OK;
}

lockstep_code graph_node_count(lockstep_graph* graph, std::uint32_t* count, lockstep_error*) {
  std::lock_guard lock(graph->mutex);
  *count = static_cast<std::uint32_t>(graph->nodes.size());
  return LOCKSTEP_OK;
}

lockstep_code graph_node(lockstep_graph* graph, std::uint32_t node, lockstep_node_info* info,
                         lockstep_error* error) {
  ContextScope scope(graph->device->context);
  std::lock_guard lock(graph->mutex);
  if (node >= graph->nodes.size()) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "graph_node",
                "there is no node " + std::to_string(node) + ": the graph has " +
                    std::to_string(graph->nodes.size()));
  }
  if (graph->listing == nullptr) {
    auto listing = std::make_unique<GraphDefinition>(graph->device);
    const Result result = listing->list(graph->nodes);
    if (result != kSuccess) return fail_native(error, listing->failed_call(), result);
    graph->listing = std::move(listing);
  }
  const GraphDefinition& listing = *graph->listing;
  info->kind = listing.kinds()[node];
  info->record = &listing.records()[node];
  info->child = nullptr;
  if (info->kind != LOCKSTEP_NODE_CHILD_GRAPH) return LOCKSTEP_OK;
  info->record = nullptr;
  std::unique_ptr<lockstep_graph>& child = graph->children[node];
  if (child == nullptr) {
    const Handle native = listing.children()[node];
    std::vector<GraphNode> nodes;
    const Result result = list_nodes(native, graph->nodes[node].inner, &nodes);
    if (result != kSuccess) return fail_native(error, Call::kGraphNodes, result);
    child.reset(adopt_graph(graph->device, native, 0, std::move(nodes)));
    child->native->owned = false;  // lives in its parent
  }
  info->child = child.get();
  return LOCKSTEP_OK;
}

lockstep_code graph_edges(lockstep_graph* graph, lockstep_graph_edge* edges, std::uint32_t capacity,
                          std::uint32_t* count, lockstep_error* error) {
  ContextScope scope(graph->device->context);
  std::lock_guard lock(graph->mutex);
  std::vector<lockstep_graph_edge> all;
  const Result result = edges_between(graph->native->handle, graph->nodes, &all);
  if (result != kSuccess) return fail_native(error, Call::kGraphEdges, result);
  *count = static_cast<std::uint32_t>(all.size());
  std::copy_n(all.begin(), std::min<std::size_t>(capacity, all.size()), edges);
  return LOCKSTEP_OK;
}

}  // namespace lockstep::gpu

lockstep_graph::~lockstep_graph() = default;
