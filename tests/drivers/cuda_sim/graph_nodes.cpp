// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "call.h"
#include "enqueue.h"

// Nodes of graphs: added by hand, and asked for what they are.
namespace cuda_sim {
namespace {

// Adds a node behind others of the same graph.
CUgraphNode add(CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                hostrt::GraphNode node) {
  if (count > 0) require(dependencies);
  std::vector<std::uint32_t> ordinals;
  for (std::size_t i = 0; i < count; ++i) {
    if (live(dependencies[i], CUDA_ERROR_INVALID_VALUE).graph != graph) {
      refuse(CUDA_ERROR_INVALID_VALUE, "a dependency is a node of another graph");
    }
    ordinals.push_back(dependencies[i]->ordinal);
  }
  return node_handle(graph, graph->object->add(std::move(node), std::move(ordinals)));
}

template <typename Make>
CUresult add_call(const char* name, CUgraphNode* node, CUgraph graph,
                  const CUgraphNode* dependencies, std::size_t count, const Make& make) {
  return call(name, [&] {
    require(node);
    const std::lock_guard lock(graphs_mutex());
    live(graph, CUDA_ERROR_INVALID_VALUE);
    *node = add(graph, dependencies, count, make());
  });
}

hostrt::GraphNode with_work(std::shared_ptr<const SimWork> work) {
  hostrt::GraphNode node;
  node.kind = work->node_kind();
  node.work = std::move(work);
  return node;
}

hostrt::GraphNode with_event(std::uint32_t kind, CUevent event) {
  hostrt::GraphNode node;
  node.kind = kind;
  node.event = live(event).object;
  return node;
}

template <typename T>
const T& parameters_of(CUgraphNode node) {
  CUgraphNode_st& of = live(node, CUDA_ERROR_INVALID_VALUE);
  const auto& known = of.graph->object->node(of.ordinal);
  const auto* work = dynamic_cast<const SimWork*>(known.work.get());
  const T* parameters = work == nullptr ? nullptr : std::get_if<T>(&work->parameters());
  if (parameters == nullptr) refuse(CUDA_ERROR_INVALID_VALUE, "a node of another type");
  return *parameters;
}

template <typename Body>
CUresult node_call(const char* name, CUgraphNode node, const Body& body) {
  return call(name, [&] {
    const std::lock_guard lock(graphs_mutex());
    CUgraphNode_st& of = live(node, CUDA_ERROR_INVALID_VALUE);
    body(of, of.graph->object->node(of.ordinal));
  });
}

// Asks a node of one type for what `out` receives.
template <typename Out, typename Body>
CUresult typed_call(const char* name, CUgraphNode node, CUgraphNodeType type, Out* out,
                    const Body& body) {
  return node_call(name, node, [&](auto& of, const auto& known) {
    require(out);
    if (of.type != type) refuse(CUDA_ERROR_INVALID_VALUE, "a node of another type");
    body(of, known);
  });
}

// The parameters that a node was made with.
template <typename Parameters>
CUresult parameters_call(const char* name, CUgraphNode node, Parameters* out) {
  return node_call(name, node, [&](const auto&, const auto&) {
    require(out);
    if constexpr (std::is_same_v<Parameters, CUDA_KERNEL_NODE_PARAMS_v2>) {
      *out = parameters_of<KernelParameters>(node).launch;
    } else {
      *out = parameters_of<Parameters>(node);
    }
  });
}

}  // namespace
}  // namespace cuda_sim

using namespace cuda_sim;

CUDA_SIM_API cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph,
                                     const CUgraphNode* dependencies, std::size_t count,
                                     const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return add_call("cuGraphAddKernelNode_v2", node, graph, dependencies, count, [&] {
    require(params);
    return with_work(make_kernel(*params, nullptr, 0));
  });
}
CUDA_SIM_API cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  std::size_t count, const CUDA_MEMCPY3D* params,
                                  CUcontext context) {
  return add_call("cuGraphAddMemcpyNode", node, graph, dependencies, count, [&] {
    require(params);
    Copy copy = make_copy(live(context, CUDA_ERROR_INVALID_CONTEXT), *params);
    if (copy.work == nullptr) refuse(CUDA_ERROR_INVALID_VALUE, "an empty copy");
    return with_work(std::move(copy.work));
  });
}
CUDA_SIM_API cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  std::size_t count, const CUDA_MEMSET_NODE_PARAMS* params,
                                  CUcontext context) {
  return add_call("cuGraphAddMemsetNode", node, graph, dependencies, count, [&] {
    require(params);
    Set set = make_set(live(context, CUDA_ERROR_INVALID_CONTEXT), *params);
    if (set.work == nullptr) refuse(CUDA_ERROR_INVALID_VALUE, "an empty set");
    return with_work(std::move(set.work));
  });
}
CUDA_SIM_API cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                std::size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  return add_call("cuGraphAddHostNode", node, graph, dependencies, count, [&] {
    require(params);
    return with_work(make_host(*graph->context, *params));
  });
}
CUDA_SIM_API cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 std::size_t count) {
  return add_call("cuGraphAddEmptyNode", node, graph, dependencies, count,
                  [] { return hostrt::GraphNode(); });
}
CUDA_SIM_API cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph,
                                      const CUgraphNode* dependencies, std::size_t count,
                                      CUgraph child) {
  return add_call("cuGraphAddChildGraphNode", node, graph, dependencies, count, [&] {
    hostrt::GraphNode made;
    made.kind = LOCKSTEP_NODE_CHILD_GRAPH;
    made.child = std::make_shared<lockstep_graph>(
        lockstep_graph{live(child, CUDA_ERROR_INVALID_VALUE).object->clone()});
    return made;
  });
}
CUDA_SIM_API cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph,
                                       const CUgraphNode* dependencies, std::size_t count,
                                       CUevent event) {
  return add_call("cuGraphAddEventRecordNode", node, graph, dependencies, count,
                  [&] { return with_event(LOCKSTEP_NODE_EVENT_RECORD, event); });
}
CUDA_SIM_API cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph,
                                     const CUgraphNode* dependencies, std::size_t count,
                                     CUevent event) {
  return add_call("cuGraphAddEventWaitNode", node, graph, dependencies, count,
                  [&] { return with_event(LOCKSTEP_NODE_EVENT_WAIT, event); });
}
CUDA_SIM_API cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph,
                                    const CUgraphNode* dependencies, std::size_t count,
                                    CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return add_call("cuGraphAddMemAllocNode", node, graph, dependencies, count, [&] {
    require(params);
    if (faults().out_of_memory(params->bytesize)) {
      refuse(CUDA_ERROR_OUT_OF_MEMORY, "CUDA_SIM_OOM_BYTES");
    }
    hostrt::Device& device = primary_context(params->poolProps.location.id).device;
    hostrt::GraphNode made;
    made.kind = LOCKSTEP_NODE_ALLOC;
    made.memory = std::make_shared<hostrt::GraphMemory>(device.memory(), device.signed_ordinal(),
                                                        params->bytesize);
    params->dptr = made.memory->allocation().base;
    device.memory().bind_graph_memory(made.memory->allocation().base, made.memory);
    return made;
  });
}
CUDA_SIM_API cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph,
                                   const CUgraphNode* dependencies, std::size_t count,
                                   CUdeviceptr address) {
  return add_call("cuGraphAddMemFreeNode", node, graph, dependencies, count, [&] {
    hostrt::GraphNode made;
    made.kind = LOCKSTEP_NODE_FREE;
    made.memory = graph->object->memory_at(reinterpret_cast<void*>(address));
    if (made.memory == nullptr || graph->object->frees(*made.memory)) {
      refuse(CUDA_ERROR_INVALID_VALUE, "not allocated by this graph, or freed by it already");
    }
    return made;
  });
}

CUDA_SIM_API cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return node_call("cuGraphNodeGetType", node, [&](const auto& of, const auto&) {
    require(type);
    *type = of.type;
  });
}
CUDA_SIM_API cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return parameters_call("cuGraphKernelNodeGetParams_v2", node, params);
}
CUDA_SIM_API cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
  return parameters_call("cuGraphMemcpyNodeGetParams", node, params);
}
CUDA_SIM_API cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
  return parameters_call("cuGraphMemsetNodeGetParams", node, params);
}
CUDA_SIM_API cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params) {
  return parameters_call("cuGraphHostNodeGetParams", node, params);
}
CUDA_SIM_API cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return typed_call("cuGraphChildGraphNodeGetGraph", node, CU_GRAPH_NODE_TYPE_GRAPH, graph,
                    [&](const auto& of, const auto&) { *graph = of.child.get(); });
}
CUDA_SIM_API cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return typed_call("cuGraphMemAllocNodeGetParams", node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params,
                    [&](const auto&, const auto& known) {
                      *params = {};
                      params->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
                      params->poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE,
                                                    known.memory->allocation().device};
                      params->bytesize = known.memory->allocation().bytes;
                      params->dptr = known.memory->allocation().base;
                    });
}
CUDA_SIM_API cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  return typed_call(
      "cuGraphMemFreeNodeGetParams", node, CU_GRAPH_NODE_TYPE_MEM_FREE, address,
      [&](const auto&, const auto& known) { *address = known.memory->allocation().base; });
}
CUDA_SIM_API cuGraphKernelNodeGetAttribute(CUgraphNode node, CUlaunchAttributeID attribute,
                                           CUlaunchAttributeValue* value) {
  return typed_call("cuGraphKernelNodeGetAttribute", node, CU_GRAPH_NODE_TYPE_KERNEL, value,
                    [&](const auto& of, const auto&) {
                      const auto found = of.attributes.find(static_cast<int>(attribute));
                      *value =
                          found == of.attributes.end() ? CUlaunchAttributeValue{} : found->second;
                    });
}
CUDA_SIM_API cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID attribute,
                                           const CUlaunchAttributeValue* value) {
  return typed_call("cuGraphKernelNodeSetAttribute", node, CU_GRAPH_NODE_TYPE_KERNEL, value,
                    [&](auto& of, const auto&) {
                      // What an eager launch refuses is refused here; the launch itself stays as it
                      // is.
                      CUlaunchAttribute given{};
                      given.id = attribute;
                      given.value = *value;
                      CUDA_KERNEL_NODE_PARAMS_v2 launch =
                          parameters_of<KernelParameters>(node).launch;
                      make_kernel(launch, &given, 1);
                      of.attributes[static_cast<int>(attribute)] = *value;
                    });
}
