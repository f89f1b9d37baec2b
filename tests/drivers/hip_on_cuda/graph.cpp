// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "call.h"

// Graphs. Kinds of nodes, results of updates and attributes of kernels have CUDA's numbers since
// 5.3, but for batches of memory operations; structures differ in the order of their fields.
namespace hip_on_cuda {
namespace {

using lockstep::cuda::EdgeData;
using lockstep::hip::MemAllocNodeParams;

CUgraph graph_of(hipGraph_t graph) { return reinterpret_cast<CUgraph>(graph); }
CUgraphExec exec_of(hipGraphExec_t exec) { return reinterpret_cast<CUgraphExec>(exec); }
CUgraphNode node_of(hipGraphNode_t node) { return reinterpret_cast<CUgraphNode>(node); }
CUgraphNode* out_node(hipGraphNode_t* node) { return reinterpret_cast<CUgraphNode*>(node); }
const CUgraphNode* list_of(const hipGraphNode_t* nodes) {
  return reinterpret_cast<const CUgraphNode*>(nodes);
}

hipPitchedPtr pitched(void* pointer, std::size_t pitch, std::size_t width, std::size_t height) {
  hipPitchedPtr result{};
  result.ptr = pointer;
  result.pitch = pitch;
  result.xsize = width;
  result.ysize = height;
  return result;
}

hipMemcpyKind kind_of(const CUDA_MEMCPY3D& copy) {
  if (copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED || copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED) {
    return hipMemcpyDefault;
  }
  const bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool to_host = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
  return static_cast<hipMemcpyKind>((from_host ? 0 : 2) | (to_host ? 0 : 1));
}

}  // namespace
}  // namespace hip_on_cuda

using namespace hip_on_cuda;

HIP_API hipError_t hipGraphCreate(hipGraph_t* graph, unsigned flags) {
  return call("hipGraphCreate",
              [&] { return cuda().cuGraphCreate_(reinterpret_cast<CUgraph*>(graph), flags); });
}
HIP_API hipError_t hipGraphDestroy(hipGraph_t graph) {
  return call("hipGraphDestroy", [&] { return cuda().cuGraphDestroy_(graph_of(graph)); });
}
HIP_API hipError_t hipGraphClone(hipGraph_t* clone, hipGraph_t graph) {
  return call("hipGraphClone", [&] {
    return cuda().cuGraphClone_(reinterpret_cast<CUgraph*>(clone), graph_of(graph));
  });
}
HIP_API hipError_t hipGraphNodeFindInClone(hipGraphNode_t* found, hipGraphNode_t node,
                                           hipGraph_t clone) {
  return call("hipGraphNodeFindInClone", [&] {
    return cuda().cuGraphNodeFindInClone_(out_node(found), node_of(node), graph_of(clone));
  });
}
HIP_API hipError_t hipGraphDestroyNode(hipGraphNode_t node) {
  return call("hipGraphDestroyNode", [&] { return cuda().cuGraphDestroyNode_(node_of(node)); });
}

HIP_API hipError_t hipGraphAddKernelNode(hipGraphNode_t* node, hipGraph_t graph,
                                         const hipGraphNode_t* after, std::size_t count,
                                         const hipKernelNodeParams* kernel) {
  return call("hipGraphAddKernelNode", [&] {
    const dim3& grid = kernel->gridDim;
    const dim3& block = kernel->blockDim;
    if (!fits_in_hip(grid.x, grid.y, grid.z, block.x, block.y, block.z)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_KERNEL_NODE_PARAMS_v2 native;
    std::memset(&native, 0, sizeof native);
    native.func = static_cast<CUfunction>(kernel->func);
    native.gridDimX = grid.x;
    native.gridDimY = grid.y;
    native.gridDimZ = grid.z;
    native.blockDimX = block.x;
    native.blockDimY = block.y;
    native.blockDimZ = block.z;
    native.sharedMemBytes = kernel->sharedMemBytes;
    native.kernelParams = kernel->kernelParams;
    native.extra = kernel->extra;
    return cuda().cuGraphAddKernelNode_(out_node(node), graph_of(graph), list_of(after), count,
                                        &native);
  });
}
HIP_API hipError_t hipGraphKernelNodeGetParams(hipGraphNode_t node, hipKernelNodeParams* kernel) {
  return call("hipGraphKernelNodeGetParams", [&] {
    CUDA_KERNEL_NODE_PARAMS_v2 native;
    std::memset(&native, 0, sizeof native);
    const CUresult result = cuda().cuGraphKernelNodeGetParams_(node_of(node), &native);
    if (result != CUDA_SUCCESS) return result;
    kernel->func = native.func;
    kernel->gridDim = {native.gridDimX, native.gridDimY, native.gridDimZ};
    kernel->blockDim = {native.blockDimX, native.blockDimY, native.blockDimZ};
    kernel->sharedMemBytes = native.sharedMemBytes;
    kernel->kernelParams = native.kernelParams;
    kernel->extra = native.extra;
    return result;
  });
}
HIP_API hipError_t hipGraphKernelNodeGetAttribute(hipGraphNode_t node,
                                                  hipKernelNodeAttrID attribute,
                                                  hipKernelNodeAttrValue* value) {
  return call("hipGraphKernelNodeGetAttribute", [&] {
    return cuda().cuGraphKernelNodeGetAttribute_(node_of(node),
                                                 static_cast<CUlaunchAttributeID>(attribute),
                                                 reinterpret_cast<CUlaunchAttributeValue*>(value));
  });
}
HIP_API hipError_t hipGraphKernelNodeSetAttribute(hipGraphNode_t node,
                                                  hipKernelNodeAttrID attribute,
                                                  const hipKernelNodeAttrValue* value) {
  return call("hipGraphKernelNodeSetAttribute", [&] {
    return cuda().cuGraphKernelNodeSetAttribute_(
        node_of(node), static_cast<CUlaunchAttributeID>(attribute),
        reinterpret_cast<const CUlaunchAttributeValue*>(value));
  });
}

HIP_API hipError_t hipGraphAddMemcpyNode(hipGraphNode_t* node, hipGraph_t graph,
                                         const hipGraphNode_t* after, std::size_t count,
                                         const hipMemcpy3DParms* copy) {
  return call("hipGraphAddMemcpyNode", [&] {
    const CUDA_MEMCPY3D native = to_cuda(*copy);
    return cuda().cuGraphAddMemcpyNode_(out_node(node), graph_of(graph), list_of(after), count,
                                        &native, context_of(thread_device()));
  });
}
HIP_API hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t* node, hipGraph_t graph,
                                           const hipGraphNode_t* after, std::size_t count, void* to,
                                           const void* from, std::size_t bytes,
                                           hipMemcpyKind kind) {
  return call("hipGraphAddMemcpyNode1D", [&] {
    hipMemcpy3DParms copy{};
    copy.srcPtr = pitched(const_cast<void*>(from), bytes, bytes, 1);
    copy.dstPtr = pitched(to, bytes, bytes, 1);
    copy.extent.width = bytes;
    copy.extent.height = copy.extent.depth = 1;
    copy.kind = kind;
    const CUDA_MEMCPY3D native = to_cuda(copy);
    return cuda().cuGraphAddMemcpyNode_(out_node(node), graph_of(graph), list_of(after), count,
                                        &native, context_of(thread_device()));
  });
}
HIP_API hipError_t hipGraphMemcpyNodeGetParams(hipGraphNode_t node, hipMemcpy3DParms* copy) {
  return call("hipGraphMemcpyNodeGetParams", [&] {
    CUDA_MEMCPY3D native;
    std::memset(&native, 0, sizeof native);
    const CUresult result = cuda().cuGraphMemcpyNodeGetParams_(node_of(node), &native);
    if (result != CUDA_SUCCESS) return result;
    const auto place = [](CUmemorytype type, const void* host, CUdeviceptr device) {
      return type == CU_MEMORYTYPE_HOST ? const_cast<void*>(host) : reinterpret_cast<void*>(device);
    };
    *copy = {};
    copy->srcPtr = pitched(place(native.srcMemoryType, native.srcHost, native.srcDevice),
                           native.srcPitch, native.WidthInBytes, native.srcHeight);
    copy->dstPtr = pitched(place(native.dstMemoryType, native.dstHost, native.dstDevice),
                           native.dstPitch, native.WidthInBytes, native.dstHeight);
    copy->srcPos.x = native.srcXInBytes;
    copy->srcPos.y = native.srcY;
    copy->srcPos.z = native.srcZ;
    copy->dstPos.x = native.dstXInBytes;
    copy->dstPos.y = native.dstY;
    copy->dstPos.z = native.dstZ;
    copy->extent.width = native.WidthInBytes;
    copy->extent.height = native.Height;
    copy->extent.depth = native.Depth;
    copy->kind = kind_of(native);
    return result;
  });
}

HIP_API hipError_t hipGraphAddMemsetNode(hipGraphNode_t* node, hipGraph_t graph,
                                         const hipGraphNode_t* after, std::size_t count,
                                         const hipMemsetParams* set) {
  return call("hipGraphAddMemsetNode", [&] {
    CUDA_MEMSET_NODE_PARAMS native;
    std::memset(&native, 0, sizeof native);
    native.dst = to_cuda(set->dst);
    native.elementSize = set->elementSize;
    native.height = set->height;
    native.pitch = set->pitch;
    native.value = set->value;
    native.width = set->width;
    return cuda().cuGraphAddMemsetNode_(out_node(node), graph_of(graph), list_of(after), count,
                                        &native, context_of(thread_device()));
  });
}
HIP_API hipError_t hipGraphMemsetNodeGetParams(hipGraphNode_t node, hipMemsetParams* set) {
  return call("hipGraphMemsetNodeGetParams", [&] {
    CUDA_MEMSET_NODE_PARAMS native;
    std::memset(&native, 0, sizeof native);
    const CUresult result = cuda().cuGraphMemsetNodeGetParams_(node_of(node), &native);
    if (result != CUDA_SUCCESS) return result;
    set->dst = reinterpret_cast<void*>(native.dst);
    set->elementSize = native.elementSize;
    set->height = native.height;
    set->pitch = native.pitch;
    set->value = native.value;
    set->width = native.width;
    return result;
  });
}

HIP_API hipError_t hipGraphAddHostNode(hipGraphNode_t* node, hipGraph_t graph,
                                       const hipGraphNode_t* after, std::size_t count,
                                       const hipHostNodeParams* host) {
  return call("hipGraphAddHostNode", [&] {
    CUDA_HOST_NODE_PARAMS native;
    std::memset(&native, 0, sizeof native);
    native.fn = host->fn;
    native.userData = host->userData;
    return cuda().cuGraphAddHostNode_(out_node(node), graph_of(graph), list_of(after), count,
                                      &native);
  });
}
HIP_API hipError_t hipGraphAddEmptyNode(hipGraphNode_t* node, hipGraph_t graph,
                                        const hipGraphNode_t* after, std::size_t count) {
  return call("hipGraphAddEmptyNode", [&] {
    return cuda().cuGraphAddEmptyNode_(out_node(node), graph_of(graph), list_of(after), count);
  });
}
HIP_API hipError_t hipGraphAddChildGraphNode(hipGraphNode_t* node, hipGraph_t graph,
                                             const hipGraphNode_t* after, std::size_t count,
                                             hipGraph_t child) {
  return call("hipGraphAddChildGraphNode", [&] {
    return cuda().cuGraphAddChildGraphNode_(out_node(node), graph_of(graph), list_of(after), count,
                                            graph_of(child));
  });
}
HIP_API hipError_t hipGraphChildGraphNodeGetGraph(hipGraphNode_t node, hipGraph_t* child) {
  return call("hipGraphChildGraphNodeGetGraph", [&] {
    return cuda().cuGraphChildGraphNodeGetGraph_(node_of(node), reinterpret_cast<CUgraph*>(child));
  });
}
HIP_API hipError_t hipGraphAddEventRecordNode(hipGraphNode_t* node, hipGraph_t graph,
                                              const hipGraphNode_t* after, std::size_t count,
                                              hipEvent_t event) {
  return call("hipGraphAddEventRecordNode", [&] {
    return cuda().cuGraphAddEventRecordNode_(out_node(node), graph_of(graph), list_of(after), count,
                                             to_cuda(event));
  });
}
HIP_API hipError_t hipGraphAddEventWaitNode(hipGraphNode_t* node, hipGraph_t graph,
                                            const hipGraphNode_t* after, std::size_t count,
                                            hipEvent_t event) {
  return call("hipGraphAddEventWaitNode", [&] {
    return cuda().cuGraphAddEventWaitNode_(out_node(node), graph_of(graph), list_of(after), count,
                                           to_cuda(event));
  });
}

HIP_API hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t* nodes, std::size_t* count) {
  return call("hipGraphGetNodes",
              [&] { return cuda().cuGraphGetNodes_(graph_of(graph), out_node(nodes), count); });
}
HIP_API hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType* type) {
  return call("hipGraphNodeGetType", [&] {
    constexpr int kBatchMemOp = 14;
    CUgraphNodeType native{};
    const CUresult result = cuda().cuGraphNodeGetType_(node_of(node), &native);
    *type = static_cast<hipGraphNodeType>(
        native == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP ? kBatchMemOp : static_cast<int>(native));
    return result;
  });
}
HIP_API hipError_t hipGraphGetEdges(hipGraph_t graph, hipGraphNode_t* from, hipGraphNode_t* to,
                                    std::size_t* count) {
  return call("hipGraphGetEdges", [&] {
    if (cuda().graph_get_edges_v2 == nullptr) {
      return cuda().cuGraphGetEdges_(graph_of(graph), out_node(from), out_node(to), count);
    }
    std::vector<EdgeData> data(from != nullptr ? *count : 0);
    return cuda().graph_get_edges_v2(graph_of(graph), out_node(from), out_node(to),
                                     from != nullptr ? data.data() : nullptr, count);
  });
}
HIP_API hipError_t hipGraphMemAllocNodeGetParams(hipGraphNode_t node, MemAllocNodeParams* params) {
  return call("hipGraphMemAllocNodeGetParams", [&] {
    if (cuda().cuGraphMemAllocNodeGetParams_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == sizeof(MemAllocNodeParams));
    return cuda().cuGraphMemAllocNodeGetParams_(
        node_of(node), reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(params));
  });
}
HIP_API hipError_t hipGraphMemFreeNodeGetParams(hipGraphNode_t node, void* address) {
  return call("hipGraphMemFreeNodeGetParams", [&] {
    if (cuda().cuGraphMemFreeNodeGetParams_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return cuda().cuGraphMemFreeNodeGetParams_(node_of(node), static_cast<CUdeviceptr*>(address));
  });
}

HIP_API hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph, hipGraphNode_t*,
                                       char*, std::size_t) {
  return call("hipGraphInstantiate", [&] {
    return cuda().cuGraphInstantiateWithFlags_(reinterpret_cast<CUgraphExec*>(exec),
                                               graph_of(graph), 0);
  });
}
HIP_API hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  return call("hipGraphExecDestroy", [&] { return cuda().cuGraphExecDestroy_(exec_of(exec)); });
}
HIP_API hipError_t hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t* node,
                                      hipGraphExecUpdateResult* outcome) {
  return call("hipGraphExecUpdate", [&] {
    CUgraphExecUpdateResultInfo info;
    std::memset(&info, 0, sizeof info);
    const CUresult result = cuda().cuGraphExecUpdate_(exec_of(exec), graph_of(graph), &info);
    *node = reinterpret_cast<hipGraphNode_t>(info.errorNode);
    constexpr int kAttributesChanged = 8, kParametersChanged = 5;
    const int told = info.result;
    *outcome = static_cast<hipGraphExecUpdateResult>(told == kAttributesChanged ? kParametersChanged
                                                                                : told);
    return result;
  });
}
HIP_API hipError_t hipGraphNodeSetEnabled(hipGraphExec_t exec, hipGraphNode_t node,
                                          unsigned enabled) {
  return call("hipGraphNodeSetEnabled",
              [&] { return cuda().cuGraphNodeSetEnabled_(exec_of(exec), node_of(node), enabled); });
}
HIP_API hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  return call("hipGraphLaunch",
              [&] { return cuda().cuGraphLaunch_(exec_of(exec), to_cuda(stream)); });
}
