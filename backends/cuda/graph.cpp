// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "driver.h"

// Capture and graphs.
namespace lockstep::cuda {
namespace {

CUgraph to_graph(gpu::Handle graph) { return static_cast<CUgraph>(graph); }
CUgraphNode to_node(gpu::Handle node) { return static_cast<CUgraphNode>(node); }
CUgraphNode* out_node(gpu::Handle* node) { return reinterpret_cast<CUgraphNode*>(node); }
const CUgraphNode* list_of(const std::vector<gpu::Handle>& nodes) {
  return reinterpret_cast<const CUgraphNode*>(nodes.data());
}

}  // namespace

std::uint32_t node_kind(CUgraphNodeType type) {
  switch (static_cast<int>(type)) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return LOCKSTEP_NODE_KERNEL;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return LOCKSTEP_NODE_COPY;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return LOCKSTEP_NODE_SET;
    case CU_GRAPH_NODE_TYPE_HOST:
      return LOCKSTEP_NODE_HOST;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return LOCKSTEP_NODE_CHILD_GRAPH;
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return LOCKSTEP_NODE_EMPTY;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return LOCKSTEP_NODE_EVENT_WAIT;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return LOCKSTEP_NODE_EVENT_RECORD;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return LOCKSTEP_NODE_ALLOC;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return LOCKSTEP_NODE_FREE;
    default:
      return LOCKSTEP_NODE_OTHER;
  }
}

const char* node_kind_name(CUgraphNodeType type) {
  switch (static_cast<int>(type)) {
    case 8:
    case 9:
      return "external_semaphore";
    case 12:
      return "batch_mem_op";
    case 13:
      return "conditional";
    default:
      return "unknown node";
  }
}

std::uint32_t update_outcome(CUgraphExecUpdateResult result) {
  switch (static_cast<int>(result)) {
    case 0:
      return LOCKSTEP_UPDATE_DONE;
    case 2:
      return LOCKSTEP_UPDATE_TOPOLOGY_CHANGED;
    case 3:
      return LOCKSTEP_UPDATE_NODE_TYPE_CHANGED;
    case 4:
    case 7:  // the new function cannot take the old one's place
      return LOCKSTEP_UPDATE_FUNCTION_CHANGED;
    case 5:
    case 8:  // attributes
      return LOCKSTEP_UPDATE_PARAMETERS_CHANGED;
    default:
      return LOCKSTEP_UPDATE_NOT_SUPPORTED;
  }
}

CUDA_MEMSET_NODE_PARAMS to_memset(const gpu::Set& set) {
  CUDA_MEMSET_NODE_PARAMS native;
  std::memset(&native, 0, sizeof native);
  native.dst = set.destination;
  native.pitch = set.height > 1 ? set.pitch : 0;
  native.value = set.value;
  native.elementSize = set.value_size;
  native.width = set.width;
  native.height = set.height;
  return native;
}

gpu::Set from_memset(const CUDA_MEMSET_NODE_PARAMS& native) {
  gpu::Set set;
  set.destination = native.dst;
  set.value = native.value;
  set.value_size = native.elementSize;
  set.width = native.width;
  set.height = native.height != 0 ? native.height : 1;
  set.pitch = native.pitch != 0 ? native.pitch : native.width * native.elementSize;
  return set;
}

gpu::Result CudaDriver::begin_capture(gpu::Handle stream, std::uint32_t mode) {
  return call_.cuStreamBeginCapture_(static_cast<CUstream>(stream),
                                     static_cast<CUstreamCaptureMode>(mode));
}
gpu::Result CudaDriver::end_capture(gpu::Handle stream, gpu::Handle* graph) {
  return call_.cuStreamEndCapture_(static_cast<CUstream>(stream),
                                   reinterpret_cast<CUgraph*>(graph));
}

gpu::Result CudaDriver::capture_info(gpu::Handle stream, gpu::CaptureInfo* info) {
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  std::size_t count = 0;
  CUresult result = CUDA_SUCCESS;
  if (call_.stream_get_capture_info_v3 != nullptr) {
    // The older form refuses to answer as soon as there is a programmatic edge.
    const EdgeData* edges = nullptr;
    result = call_.stream_get_capture_info_v3(static_cast<CUstream>(stream), &status, &id, &graph,
                                              &dependencies, &edges, &count);
  } else {
    result = call_.cuStreamGetCaptureInfo_(static_cast<CUstream>(stream), &status, &id, &graph,
                                           &dependencies, &count);
  }
  if (result != CUDA_SUCCESS) return result;
  info->status = static_cast<std::uint32_t>(status);
  info->id = id;
  info->graph = graph;
  info->dependencies = reinterpret_cast<const gpu::Handle*>(dependencies);
  info->dependency_count = count;
  return result;
}

gpu::Result CudaDriver::exchange_capture_mode(std::uint32_t* mode) {
  auto native = static_cast<CUstreamCaptureMode>(*mode);
  const CUresult result = call_.cuThreadExchangeStreamCaptureMode_(&native);
  *mode = static_cast<std::uint32_t>(native);
  return result;
}

gpu::Result CudaDriver::graph_create(gpu::Handle* graph) {
  return call_.cuGraphCreate_(reinterpret_cast<CUgraph*>(graph), 0);
}
gpu::Result CudaDriver::graph_clone(gpu::Handle graph, gpu::Handle* clone) {
  return call_.cuGraphClone_(reinterpret_cast<CUgraph*>(clone), to_graph(graph));
}
gpu::Result CudaDriver::graph_find_in_clone(gpu::Handle node, gpu::Handle clone,
                                            gpu::Handle* found) {
  return call_.cuGraphNodeFindInClone_(out_node(found), to_node(node), to_graph(clone));
}
gpu::Result CudaDriver::graph_destroy(gpu::Handle graph) {
  return call_.cuGraphDestroy_(to_graph(graph));
}

gpu::Result CudaDriver::graph_add_kernel(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                         const gpu::KernelLaunch& launch, gpu::Handle* node) {
  CUDA_KERNEL_NODE_PARAMS_v2 native;
  std::memset(&native, 0, sizeof native);
  native.func = static_cast<CUfunction>(launch.function);
  native.gridDimX = launch.grid.x;
  native.gridDimY = launch.grid.y;
  native.gridDimZ = launch.grid.z;
  native.blockDimX = launch.block.x;
  native.blockDimY = launch.block.y;
  native.blockDimZ = launch.block.z;
  native.sharedMemBytes = launch.shared_bytes;
  native.kernelParams = launch.arguments;
  CUresult result = call_.cuGraphAddKernelNode_(out_node(node), to_graph(graph), list_of(after),
                                                after.size(), &native);
  if (result != CUDA_SUCCESS) return result;
  const auto give = [&](CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
    if (result == CUDA_SUCCESS) {
      result = call_.cuGraphKernelNodeSetAttribute_(to_node(*node), id, &value);
    }
  };
  CUlaunchAttributeValue value;
  std::memset(&value, 0, sizeof value);
  if (launch.cluster.x != 0) {
    value.clusterDim.x = launch.cluster.x;
    value.clusterDim.y = launch.cluster.y;
    value.clusterDim.z = launch.cluster.z;
    give(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value);
  }
  std::memset(&value, 0, sizeof value);
  if (launch.cooperative) {
    value.cooperative = 1;
    give(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value);
  }
  std::memset(&value, 0, sizeof value);
  if (launch.has_priority) {
    value.priority = launch.priority;
    give(CU_LAUNCH_ATTRIBUTE_PRIORITY, value);
  }
  // Programmatic dependencies of graphs are edges, not attributes of a node.
  if (launch.programmatic && result == CUDA_SUCCESS) result = CUDA_ERROR_NOT_SUPPORTED;
  if (result != CUDA_SUCCESS) call_.cuGraphDestroyNode_(to_node(*node));
  return result;
}

gpu::Result CudaDriver::graph_add_copy(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                       const gpu::Copy& copy, gpu::Context context,
                                       gpu::Handle* node) {
  const CUDA_MEMCPY3D native = to_memcpy3d(copy);
  return call_.cuGraphAddMemcpyNode_(out_node(node), to_graph(graph), list_of(after), after.size(),
                                     &native, static_cast<CUcontext>(context));
}
gpu::Result CudaDriver::graph_add_set(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                      const gpu::Set& set, gpu::Context context,
                                      gpu::Handle* node) {
  const CUDA_MEMSET_NODE_PARAMS native = to_memset(set);
  return call_.cuGraphAddMemsetNode_(out_node(node), to_graph(graph), list_of(after), after.size(),
                                     &native, static_cast<CUcontext>(context));
}
gpu::Result CudaDriver::graph_add_host(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                       lockstep_host_function function, void* user,
                                       gpu::Handle* node) {
  CUDA_HOST_NODE_PARAMS native;
  std::memset(&native, 0, sizeof native);
  native.fn = function;
  native.userData = user;
  return call_.cuGraphAddHostNode_(out_node(node), to_graph(graph), list_of(after), after.size(),
                                   &native);
}
gpu::Result CudaDriver::graph_add_empty(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                        gpu::Handle* node) {
  return call_.cuGraphAddEmptyNode_(out_node(node), to_graph(graph), list_of(after), after.size());
}
gpu::Result CudaDriver::graph_add_child(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                        gpu::Handle child, gpu::Handle* node) {
  return call_.cuGraphAddChildGraphNode_(out_node(node), to_graph(graph), list_of(after),
                                         after.size(), to_graph(child));
}
gpu::Result CudaDriver::graph_add_event_record(gpu::Handle graph,
                                               const std::vector<gpu::Handle>& after,
                                               gpu::Handle event, gpu::Handle* node) {
  return call_.cuGraphAddEventRecordNode_(out_node(node), to_graph(graph), list_of(after),
                                          after.size(), static_cast<CUevent>(event));
}
gpu::Result CudaDriver::graph_add_event_wait(gpu::Handle graph,
                                             const std::vector<gpu::Handle>& after,
                                             gpu::Handle event, gpu::Handle* node) {
  return call_.cuGraphAddEventWaitNode_(out_node(node), to_graph(graph), list_of(after),
                                        after.size(), static_cast<CUevent>(event));
}

gpu::Result CudaDriver::graph_node_count(gpu::Handle graph, std::size_t* count) {
  return call_.cuGraphGetNodes_(to_graph(graph), nullptr, count);
}
gpu::Result CudaDriver::graph_nodes(gpu::Handle graph, std::vector<gpu::Handle>* nodes) {
  std::size_t count = 0;
  if (const CUresult result = call_.cuGraphGetNodes_(to_graph(graph), nullptr, &count)) {
    return result;
  }
  nodes->resize(count);
  if (count == 0) return CUDA_SUCCESS;
  const CUresult result = call_.cuGraphGetNodes_(
      to_graph(graph), reinterpret_cast<CUgraphNode*>(nodes->data()), &count);
  nodes->resize(count);
  return result;
}

gpu::Result CudaDriver::graph_edges(gpu::Handle graph, std::vector<gpu::Edge>* edges) {
  const auto get = [&](CUgraphNode* from, CUgraphNode* to, EdgeData* data, std::size_t* count) {
    if (call_.graph_get_edges_v2 != nullptr) {
      return call_.graph_get_edges_v2(to_graph(graph), from, to, data, count);
    }
    return call_.cuGraphGetEdges_(to_graph(graph), from, to, count);
  };
  std::size_t count = 0;
  if (const CUresult result = get(nullptr, nullptr, nullptr, &count)) return result;
  edges->clear();
  if (count == 0) return CUDA_SUCCESS;
  std::vector<CUgraphNode> from(count), to(count);
  std::vector<EdgeData> data(count);
  if (const CUresult result = get(from.data(), to.data(), data.data(), &count)) return result;
  for (std::size_t index = 0; index < count; ++index) {
    edges->push_back({from[index], to[index], data[index].type != 0});
  }
  return CUDA_SUCCESS;
}

gpu::Result CudaDriver::graph_node_facts(gpu::Handle node, gpu::NodeFacts* facts) {
  CUgraphNodeType type{};
  if (const CUresult result = call_.cuGraphNodeGetType_(to_node(node), &type)) return result;
  facts->kind = node_kind(type);
  switch (facts->kind) {
    case LOCKSTEP_NODE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS_v2 native;
      std::memset(&native, 0, sizeof native);
      if (const CUresult result = call_.cuGraphKernelNodeGetParams_(to_node(node), &native)) {
        return result;
      }
      gpu::KernelLaunch& kernel = facts->kernel;
      CUfunction function = native.func;
      if (function == nullptr && native.kern != nullptr && call_.cuKernelGetFunction_ != nullptr) {
        call_.cuKernelGetFunction_(&function, native.kern);
      }
      kernel.function = function;
      kernel.grid = {native.gridDimX, native.gridDimY, native.gridDimZ};
      kernel.block = {native.blockDimX, native.blockDimY, native.blockDimZ};
      kernel.shared_bytes = native.sharedMemBytes;
      kernel.arguments = native.kernelParams;
      CUlaunchAttributeValue value;
      const auto attribute = [&](CUlaunchAttributeID id) {
        std::memset(&value, 0, sizeof value);
        return call_.cuGraphKernelNodeGetAttribute_(to_node(node), id, &value) == CUDA_SUCCESS;
      };
      if (attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) &&
          value.clusterDim.x * value.clusterDim.y * value.clusterDim.z > 1) {
        kernel.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
      }
      if (attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE)) kernel.cooperative = value.cooperative != 0;
      if (attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY) && value.priority != 0) {
        kernel.has_priority = true;
        kernel.priority = value.priority;
      }
      return CUDA_SUCCESS;
    }
    case LOCKSTEP_NODE_COPY: {
      CUDA_MEMCPY3D native;
      std::memset(&native, 0, sizeof native);
      const CUresult result = call_.cuGraphMemcpyNodeGetParams_(to_node(node), &native);
      facts->copy = from_memcpy3d(native);
      return result;
    }
    case LOCKSTEP_NODE_SET: {
      CUDA_MEMSET_NODE_PARAMS native;
      std::memset(&native, 0, sizeof native);
      const CUresult result = call_.cuGraphMemsetNodeGetParams_(to_node(node), &native);
      facts->set = from_memset(native);
      return result;
    }
    case LOCKSTEP_NODE_CHILD_GRAPH:
      return call_.cuGraphChildGraphNodeGetGraph_(to_node(node),
                                                  reinterpret_cast<CUgraph*>(&facts->child));
    case LOCKSTEP_NODE_ALLOC: {
      if (call_.cuGraphMemAllocNodeGetParams_ == nullptr) return CUDA_SUCCESS;
      CUDA_MEM_ALLOC_NODE_PARAMS native;
      std::memset(&native, 0, sizeof native);
      const CUresult result = call_.cuGraphMemAllocNodeGetParams_(to_node(node), &native);
      facts->address = native.dptr;
      facts->bytes = native.bytesize;
      return result;
    }
    case LOCKSTEP_NODE_FREE: {
      if (call_.cuGraphMemFreeNodeGetParams_ == nullptr) return CUDA_SUCCESS;
      CUdeviceptr address = 0;
      const CUresult result = call_.cuGraphMemFreeNodeGetParams_(to_node(node), &address);
      facts->address = address;
      return result;
    }
    case LOCKSTEP_NODE_OTHER:
      facts->native_kind = node_kind_name(type);
      return CUDA_SUCCESS;
    default:
      return CUDA_SUCCESS;
  }
}

gpu::Result CudaDriver::graph_instantiate(gpu::Handle graph, gpu::Handle* exec) {
  return call_.cuGraphInstantiateWithFlags_(reinterpret_cast<CUgraphExec*>(exec), to_graph(graph),
                                            0);
}
gpu::Result CudaDriver::graph_exec_destroy(gpu::Handle exec) {
  return call_.cuGraphExecDestroy_(static_cast<CUgraphExec>(exec));
}

gpu::Result CudaDriver::graph_exec_update(gpu::Handle exec, gpu::Handle graph,
                                          std::uint32_t* outcome) {
  CUgraphExecUpdateResultInfo info;
  std::memset(&info, 0, sizeof info);
  const CUresult result =
      call_.cuGraphExecUpdate_(static_cast<CUgraphExec>(exec), to_graph(graph), &info);
  *outcome = update_outcome(info.result);
  // The driver API keeps no last error, so that nothing is left behind.
  return result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? CUDA_SUCCESS : result;
}
gpu::Result CudaDriver::graph_exec_set_enabled(gpu::Handle exec, gpu::Handle node, bool enabled) {
  return call_.cuGraphNodeSetEnabled_(static_cast<CUgraphExec>(exec), to_node(node),
                                      enabled ? 1 : 0);
}
gpu::Result CudaDriver::graph_launch(gpu::Handle exec, gpu::Handle stream) {
  return call_.cuGraphLaunch_(static_cast<CUgraphExec>(exec), static_cast<CUstream>(stream));
}

}  // namespace lockstep::cuda
