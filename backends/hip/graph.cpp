// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "driver.h"
#include "refusal.h"

// Capture and graphs; executable ones: graph_exec.cpp.
namespace lockstep::hip {
namespace {

hipGraph_t to_graph(gpu::Handle graph) { return static_cast<hipGraph_t>(graph); }
hipGraphNode_t to_node(gpu::Handle node) { return static_cast<hipGraphNode_t>(node); }
hipGraphNode_t* out_node(gpu::Handle* node) { return reinterpret_cast<hipGraphNode_t*>(node); }
const hipGraphNode_t* list_of(const std::vector<gpu::Handle>& nodes) {
  // Some releases refuse a list that is there and empty.
  return nodes.empty() ? nullptr : reinterpret_cast<const hipGraphNode_t*>(nodes.data());
}

}  // namespace

gpu::Result HipDriver::begin_capture(gpu::Handle stream, std::uint32_t mode) {
  return captures_.begin(static_cast<hipStream_t>(stream), mode);
}
gpu::Result HipDriver::end_capture(gpu::Handle stream, gpu::Handle* graph) {
  hipGraph_t made = nullptr;
  const int result = captures_.end(static_cast<hipStream_t>(stream), &made);
  // After a failure the runtime may leave anything there.
  *graph = result == hipSuccess ? made : nullptr;
  return result;
}

gpu::Result HipDriver::capture_info(gpu::Handle stream, gpu::CaptureInfo* info) {
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  unsigned long long id = 0;
  hipGraph_t graph = nullptr;
  const hipGraphNode_t* dependencies = nullptr;
  std::size_t count = 0;
  const int result = call_.hipStreamGetCaptureInfo_v2_(static_cast<hipStream_t>(stream), &status,
                                                       &id, &graph, &dependencies, &count);
  if (result != hipSuccess) return result;
  info->status = static_cast<std::uint32_t>(status);
  info->id = id;
  info->graph = graph;
  info->dependencies = reinterpret_cast<const gpu::Handle*>(dependencies);
  info->dependency_count = dependencies != nullptr ? count : 0;
  return captures_.correct(static_cast<hipStream_t>(stream), info);
}

gpu::Result HipDriver::exchange_capture_mode(std::uint32_t* mode) {
  auto native = static_cast<hipStreamCaptureMode>(*mode);
  const int result = call_.hipThreadExchangeStreamCaptureMode_(&native);
  if (result == hipSuccess) CaptureModel::exchange_thread_mode(mode);
  return result;
}

gpu::Result HipDriver::graph_create(gpu::Handle* graph) {
  return call_.hipGraphCreate_(reinterpret_cast<hipGraph_t*>(graph), 0);
}
gpu::Result HipDriver::graph_clone(gpu::Handle graph, gpu::Handle* clone) {
  return call_.hipGraphClone_(reinterpret_cast<hipGraph_t*>(clone), to_graph(graph));
}
gpu::Result HipDriver::graph_find_in_clone(gpu::Handle node, gpu::Handle clone,
                                           gpu::Handle* found) {
  return call_.hipGraphNodeFindInClone_(out_node(found), to_node(node), to_graph(clone));
}
gpu::Result HipDriver::graph_destroy(gpu::Handle graph) {
  return call_.hipGraphDestroy_(to_graph(graph));
}

gpu::Result HipDriver::graph_add_kernel(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                        const gpu::KernelLaunch& launch, gpu::Handle* node) {
  if (launch.cluster.x != 0 || launch.has_priority || launch.programmatic) {
    return not_supported("of launch attributes only cooperative is there");
  }
  if (launch.cooperative &&
      (call_.hipGraphKernelNodeSetAttribute_ == nullptr || call_.hipGraphDestroyNode_ == nullptr)) {
    return not_supported("releases before ROCm 5.7 have no cooperative nodes");
  }
  hipKernelNodeParams native;
  std::memset(static_cast<void*>(&native), 0, sizeof native);
  native.func = launch.function;
  native.gridDim = {launch.grid.x, launch.grid.y, launch.grid.z};
  native.blockDim = {launch.block.x, launch.block.y, launch.block.z};
  native.sharedMemBytes = launch.shared_bytes;
  native.kernelParams = launch.arguments;
  int result = call_.hipGraphAddKernelNode_(out_node(node), to_graph(graph), list_of(after),
                                            after.size(), &native);
  if (result != hipSuccess || !launch.cooperative) return result;
  LaunchAttributeValue value;
  const int yes = 1;
  std::memcpy(value.bytes, &yes, sizeof yes);
  result =
      call_.hipGraphKernelNodeSetAttribute_(to_node(*node), kLaunchAttributeCooperative, &value);
  if (result != hipSuccess) call_.hipGraphDestroyNode_(to_node(*node));
  return result;
}

gpu::Result HipDriver::graph_add_copy(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                      const gpu::Copy& copy, gpu::Context, gpu::Handle* node) {
  if (copy.height == 1 && copy.depth == 1) {
    return call_.hipGraphAddMemcpyNode1D_(out_node(node), to_graph(graph), list_of(after),
                                          after.size(), reinterpret_cast<void*>(copy.destination),
                                          reinterpret_cast<const void*>(copy.source), copy.width,
                                          copy_kind(copy.source_side, copy.destination_side));
  }
  const hipMemcpy3DParms native = to_memcpy3d(copy);
  return call_.hipGraphAddMemcpyNode_(out_node(node), to_graph(graph), list_of(after), after.size(),
                                      &native);
}

gpu::Result HipDriver::graph_add_set(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                     const gpu::Set& set, gpu::Context, gpu::Handle* node) {
  gpu::Set wanted = set;
  if (set.height > 1 && set.pitch == set.width * set.value_size) {
    wanted.width *= wanted.height;  // contiguous
    wanted.height = 1;
  }
  if (wanted.height > 1 && wanted.value_size > 1) {
    if (is_byte_pattern(wanted)) {
      wanted.width *= wanted.value_size;
      wanted.value &= 0xFFU;
      wanted.value_size = 1;
    } else if (call_.hipMemsetD2D32Async_ == nullptr) {
      // Without such a call the node, too, sets bytes only.
      return not_supported(
          "releases before ROCm 7.2 have no nodes that set several rows of 16 or 32-bit values: "
          "add one node a row");
    }
  }
  if (wanted.height == 1 && is_broken_set(wanted.destination, wanted.width * wanted.value_size)) {
    return not_supported(
        "ROCm 5.2 writes behind the end of a set that ends before the next multiple of 8 bytes: "
        "copy the values instead");
  }
  const hipMemsetParams native = to_memset(wanted);
  return call_.hipGraphAddMemsetNode_(out_node(node), to_graph(graph), list_of(after), after.size(),
                                      &native);
}

gpu::Result HipDriver::graph_add_host(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                      lockstep_host_function function, void* user,
                                      gpu::Handle* node) {
  hipHostNodeParams native;
  std::memset(&native, 0, sizeof native);
  native.fn = function;
  native.userData = user;
  return call_.hipGraphAddHostNode_(out_node(node), to_graph(graph), list_of(after), after.size(),
                                    &native);
}
gpu::Result HipDriver::graph_add_empty(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                       gpu::Handle* node) {
  return call_.hipGraphAddEmptyNode_(out_node(node), to_graph(graph), list_of(after), after.size());
}
gpu::Result HipDriver::graph_add_child(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                       gpu::Handle child, gpu::Handle* node) {
  return call_.hipGraphAddChildGraphNode_(out_node(node), to_graph(graph), list_of(after),
                                          after.size(), to_graph(child));
}
gpu::Result HipDriver::graph_add_event_record(gpu::Handle graph,
                                              const std::vector<gpu::Handle>& after,
                                              gpu::Handle event, gpu::Handle* node) {
  const int result =
      call_.hipGraphAddEventRecordNode_(out_node(node), to_graph(graph), list_of(after),
                                        after.size(), static_cast<hipEvent_t>(event));
  if (result == hipSuccess) captures_.event_in_graph(static_cast<hipEvent_t>(event));
  return result;
}
gpu::Result HipDriver::graph_add_event_wait(gpu::Handle graph,
                                            const std::vector<gpu::Handle>& after,
                                            gpu::Handle event, gpu::Handle* node) {
  return call_.hipGraphAddEventWaitNode_(out_node(node), to_graph(graph), list_of(after),
                                         after.size(), static_cast<hipEvent_t>(event));
}

gpu::Result HipDriver::graph_node_count(gpu::Handle graph, std::size_t* count) {
  return call_.hipGraphGetNodes_(to_graph(graph), nullptr, count);
}
gpu::Result HipDriver::graph_nodes(gpu::Handle graph, std::vector<gpu::Handle>* nodes) {
  std::size_t count = 0;
  if (const int result = call_.hipGraphGetNodes_(to_graph(graph), nullptr, &count)) return result;
  nodes->assign(count, nullptr);
  if (count == 0) return hipSuccess;
  const int result = call_.hipGraphGetNodes_(
      to_graph(graph), reinterpret_cast<hipGraphNode_t*>(nodes->data()), &count);
  if (count < nodes->size()) nodes->resize(count);
  return result;
}

gpu::Result HipDriver::graph_edges(gpu::Handle graph, std::vector<gpu::Edge>* edges) {
  std::size_t count = 0;
  edges->clear();
  if (const int result = call_.hipGraphGetEdges_(to_graph(graph), nullptr, nullptr, &count)) {
    return result;
  }
  if (count == 0) return hipSuccess;
  std::vector<hipGraphNode_t> from(count), to(count);
  const std::size_t room = count;
  if (const int result = call_.hipGraphGetEdges_(to_graph(graph), from.data(), to.data(), &count)) {
    return result;
  }
  // 5.2 lists an edge twice; who asked leaves out what it knows.
  for (std::size_t index = 0; index < std::min(count, room); ++index) {
    edges->push_back({from[index], to[index], false});
  }
  return hipSuccess;
}

gpu::Result HipDriver::graph_node_facts(gpu::Handle node, gpu::NodeFacts* facts) {
  // The type first, always: getters of older releases crash on nodes of another one.
  hipGraphNodeType type{};
  if (const int result = call_.hipGraphNodeGetType_(to_node(node), &type)) return result;
  facts->kind = node_kind(type, library_.version);
  switch (facts->kind) {
    case LOCKSTEP_NODE_KERNEL: {
      hipKernelNodeParams native;
      std::memset(static_cast<void*>(&native), 0, sizeof native);
      if (const int result = call_.hipGraphKernelNodeGetParams_(to_node(node), &native)) {
        return result;
      }
      gpu::KernelLaunch& kernel = facts->kernel;
      kernel.function = native.func;
      kernel.grid = {native.gridDim.x, native.gridDim.y, native.gridDim.z};
      kernel.block = {native.blockDim.x, native.blockDim.y, native.blockDim.z};
      kernel.shared_bytes = native.sharedMemBytes;
      kernel.arguments = native.kernelParams;
      LaunchAttributeValue value;
      int cooperative = 0;
      if (call_.hipGraphKernelNodeGetAttribute_ != nullptr) {
        if (call_.hipGraphKernelNodeGetAttribute_(to_node(node), kLaunchAttributeCooperative,
                                                  &value) == hipSuccess) {
          std::memcpy(&cooperative, value.bytes, sizeof cooperative);
        } else {
          call_.hipGetLastError_();
        }
      }
      kernel.cooperative = cooperative != 0;
      return hipSuccess;
    }
    case LOCKSTEP_NODE_COPY: {
      if (!traits_.copy_getter_trusted) return hipSuccess;  // what was recorded is taken
      hipMemcpy3DParms native;
      std::memset(static_cast<void*>(&native), 0, sizeof native);
      const int result = call_.hipGraphMemcpyNodeGetParams_(to_node(node), &native);
      facts->copy = from_memcpy3d(native);
      return result;
    }
    case LOCKSTEP_NODE_SET: {
      hipMemsetParams native;
      std::memset(&native, 0, sizeof native);
      const int result = call_.hipGraphMemsetNodeGetParams_(to_node(node), &native);
      facts->set = from_memset(native);
      return result;
    }
    case LOCKSTEP_NODE_CHILD_GRAPH:
      return call_.hipGraphChildGraphNodeGetGraph_(to_node(node),
                                                   reinterpret_cast<hipGraph_t*>(&facts->child));
    case LOCKSTEP_NODE_ALLOC: {
      if (call_.hipGraphMemAllocNodeGetParams_ == nullptr) return hipSuccess;
      MemAllocNodeParams native;
      std::memset(static_cast<void*>(&native), 0, sizeof native);
      const int result = call_.hipGraphMemAllocNodeGetParams_(to_node(node), &native);
      facts->address = reinterpret_cast<std::uintptr_t>(native.address);
      facts->bytes = native.bytes;
      return result;
    }
    case LOCKSTEP_NODE_FREE: {
      if (call_.hipGraphMemFreeNodeGetParams_ == nullptr) return hipSuccess;
      void* address = nullptr;
      const int result = call_.hipGraphMemFreeNodeGetParams_(to_node(node), &address);
      facts->address = reinterpret_cast<std::uintptr_t>(address);
      return result;
    }
    case LOCKSTEP_NODE_OTHER:
      facts->native_kind = node_kind_name(type, library_.version);
      return hipSuccess;
    default:
      return hipSuccess;
  }
}

}  // namespace lockstep::hip
