// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "handles.h"
#include "kernel_work.h"
#include "transfer.h"

// Slots of graphs and executables.
namespace lockstep::hostrt {
namespace {

lockstep_code graph_create(lockstep_device* device, lockstep_graph** graph, lockstep_error* error) {
  return guarded("hostGraphCreate", error, [&] {
    require_pointer(graph, "graph");
    *graph = new lockstep_graph{std::make_shared<Graph>(object_of(device, "the device"))};
  });
}
lockstep_code graph_clone(lockstep_graph* graph, lockstep_graph** copy, lockstep_error* error) {
  return guarded("hostGraphClone", error, [&] {
    require_pointer(copy, "the copy");
    *copy = new lockstep_graph{object_of(graph, "the graph").clone()};
  });
}
void graph_destroy(lockstep_graph* graph) { release(graph); }
void* no_native_graph(lockstep_graph*) { return nullptr; }
lockstep_code graph_from_native(lockstep_device*, void*, lockstep_graph**, lockstep_error* error) {
  return guarded("hostGraphFromNative", error, [] {
    throw Error(Native::kNotSupported,
                "a host graph has no native handle that could be borrowed; build it or capture it "
                "through lockstep");
  });
}

EventPtr event_of(const lockstep_node_desc& desc, const Device& device) {
  require_pointer(desc.event, "the node's event");
  if (&desc.event->object->device() != &device) {
    throw Error(Native::kInvalidValue, "the node's event belongs to another device");
  }
  return desc.event->object;
}

GraphNode make_node(Device& device, const lockstep_node_desc& desc) {
  GraphNode node;
  node.kind = desc.kind;
  switch (desc.kind) {
    case LOCKSTEP_NODE_KERNEL: {
      const auto launch = read_sized(desc.launch, "the node's launch description");
      require_pointer(launch.kernel, "the node's kernel");
      node.work = make_kernel_work(device, *launch.kernel, launch);
      break;
    }
    case LOCKSTEP_NODE_COPY: {
      CheckedCopy copy = check_copy(device, read_sized(desc.copy, "the node's copy description"));
      if (copy.work == nullptr) {
        throw Error(Native::kInvalidValue, "an empty copy cannot be a node; leave it out");
      }
      node.work = std::move(copy.work);
      break;
    }
    case LOCKSTEP_NODE_SET: {
      CheckedSet set = check_set(device, read_sized(desc.set, "the node's set description"));
      if (set.works.size() != 1) {
        throw Error(Native::kInvalidValue, set.works.empty()
                                               ? "an empty set cannot be a node; leave it out"
                                               : "a set of several planes needs one node a plane");
      }
      node.work = std::move(set.works.front());
      break;
    }
    case LOCKSTEP_NODE_HOST:
      node.work = driver::make_host_work(device, desc.function, desc.user_data);
      break;
    case LOCKSTEP_NODE_EMPTY:
      break;
    case LOCKSTEP_NODE_CHILD_GRAPH:
      require_pointer(desc.child, "the child graph");
      node.child = std::make_shared<lockstep_graph>(lockstep_graph{desc.child->object->clone()});
      break;
    case LOCKSTEP_NODE_EVENT_RECORD:
    case LOCKSTEP_NODE_EVENT_WAIT:
      node.event = event_of(desc, device);
      break;
    case LOCKSTEP_NODE_ALLOC:
    case LOCKSTEP_NODE_FREE:
      throw Error(Native::kNotSupported,
                  "nodes that allocate or free are made by capturing stream-ordered allocation");
    default:
      throw Error(Native::kInvalidValue, "unknown node kind " + std::to_string(desc.kind));
  }
  return node;
}

lockstep_code graph_add_node(lockstep_graph* graph, const lockstep_node_desc* given,
                             const std::uint32_t* dependencies, std::uint32_t dependency_count,
                             std::uint32_t* node, lockstep_error* error) {
  return guarded("hostGraphAddNode", error, [&] {
    Graph& object = object_of(graph, "the graph");
    const auto desc = read_sized(given, "the node description");
    const std::uint32_t ordinal =
        driver::add_node(object, make_node(object.device(), desc), dependencies, dependency_count);
    if (node != nullptr) *node = ordinal;
  });
}

lockstep_code graph_node_count(lockstep_graph* graph, std::uint32_t* count, lockstep_error* error) {
  return guarded("hostGraphGetNodes", error, [&] {
    require_pointer(count, "count");
    *count = object_of(graph, "the graph").node_count();
  });
}

lockstep_code graph_node(lockstep_graph* graph, std::uint32_t ordinal, lockstep_node_info* info,
                         lockstep_error* error) {
  return guarded("hostGraphGetNode", error, [&] {
    const GraphNode& node = object_of(graph, "the graph").node(ordinal);
    lockstep_node_info result{};
    result.kind = node.kind;
    if (node.child != nullptr) {
      result.child = node.child.get();
    } else {
      result.record = &node.record;
    }
    write_sized(info, result, "info");
  });
}

lockstep_code graph_edges(lockstep_graph* graph, lockstep_graph_edge* edges, std::uint32_t capacity,
                          std::uint32_t* count, lockstep_error* error) {
  return guarded("hostGraphGetEdges", error, [&] {
    require_pointer(count, "count");
    const std::vector<lockstep_graph_edge> all = object_of(graph, "the graph").edges();
    if (capacity > 0) require_pointer(edges, "edges");
    std::copy_n(all.begin(), std::min<std::size_t>(capacity, all.size()), edges);
    *count = static_cast<std::uint32_t>(all.size());
  });
}

lockstep_code graph_instantiate(lockstep_graph* graph, lockstep_graph_exec** exec,
                                lockstep_error* error) {
  return guarded("hostGraphInstantiate", error, [&] {
    require_pointer(exec, "exec");
    object_of(graph, "the graph");
    *exec = new lockstep_graph_exec{driver::instantiate(graph->object)};
  });
}
void graph_exec_destroy(lockstep_graph_exec* exec) { release(exec); }
void* no_native_graph_exec(lockstep_graph_exec*) { return nullptr; }

std::uint64_t graph_exec_identity(lockstep_graph_exec* exec, std::uint32_t* version) {
  if (exec == nullptr || !Runtime::usable()) return 0;
  if (version != nullptr) *version = exec->object->version();
  return exec->object->identity();
}

lockstep_code graph_exec_update(lockstep_graph_exec* exec, lockstep_graph* graph,
                                std::uint32_t* result, lockstep_error* error) {
  return guarded("hostGraphExecUpdate", error, [&] {
    require_pointer(result, "result");
    *result = object_of(exec, "the executable").update(object_of(graph, "the graph"));
  });
}
lockstep_code graph_exec_set_enabled(lockstep_graph_exec* exec, std::uint32_t node,
                                     std::uint32_t enabled, lockstep_error* error) {
  return guarded("hostGraphNodeSetEnabled", error,
                 [&] { object_of(exec, "the executable").set_enabled(node, enabled != 0); });
}
lockstep_code graph_exec_launch(lockstep_graph_exec* exec, lockstep_stream* stream,
                                lockstep_error* error) {
  return guarded("hostGraphLaunch", error, [&] {
    object_of(exec, "the executable").launch(object_of(stream, "the stream"));
  });
}

}  // namespace

void fill_graph_slots(lockstep_backend& table) {
  table.graph_create = graph_create;
  table.graph_clone = graph_clone;
  table.graph_destroy = graph_destroy;
  table.graph_native = no_native_graph;
  table.graph_from_native = graph_from_native;
  table.graph_add_node = graph_add_node;
  table.graph_node_count = graph_node_count;
  table.graph_node = graph_node;
  table.graph_edges = graph_edges;
  table.graph_instantiate = graph_instantiate;
  table.graph_exec_destroy = graph_exec_destroy;
  table.graph_exec_native = no_native_graph_exec;
  table.graph_exec_identity = graph_exec_identity;
  table.graph_exec_update = graph_exec_update;
  table.graph_exec_set_enabled = graph_exec_set_enabled;
  table.graph_exec_launch = graph_exec_launch;
}

}  // namespace lockstep::hostrt
