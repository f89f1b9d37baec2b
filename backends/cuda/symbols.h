// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cuda.h>

// The driver's functions by literal names and our own prototypes: the toolkit's header renames
// functions by macros that change from release to release, the exported symbols do not.
//
//   X(base name, exported symbol, version that introduced this form, (parameters))
//
// cuGetProcAddress is asked for base name and version, dlsym for the exported symbol.
namespace lockstep::cuda {

// The same bytes as CUgraphEdgeData, which only headers from 12.3 on have.
struct EdgeData {
  unsigned char from_port = 0, to_port = 0, type = 0;
  unsigned char reserved[5] = {};
};

// clang-format off
#define LOCKSTEP_CUDA_REQUIRED(X)                                                                  \
  X(cuGetErrorName, cuGetErrorName, 6000, (CUresult, const char**))                                \
  X(cuGetErrorString, cuGetErrorString, 6000, (CUresult, const char**))                            \
  X(cuDeviceGet, cuDeviceGet, 2000, (CUdevice*, int))                                              \
  X(cuDeviceGetCount, cuDeviceGetCount, 2000, (int*))                                              \
  X(cuDeviceGetName, cuDeviceGetName, 2000, (char*, int, CUdevice))                                \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, (std::size_t*, CUdevice))                         \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, (int*, CUdevice_attribute, CUdevice))        \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (CUcontext*, CUdevice))              \
  X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (CUcontext*))                                          \
  X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (CUcontext))                                           \
  X(cuCtxSynchronize, cuCtxSynchronize, 2000, (void))                                              \
  X(cuMemGetInfo, cuMemGetInfo_v2, 3020, (std::size_t*, std::size_t*))                             \
  X(cuMemAlloc, cuMemAlloc_v2, 3020, (CUdeviceptr*, std::size_t))                                  \
  X(cuMemFree, cuMemFree_v2, 3020, (CUdeviceptr))                                                  \
  X(cuMemHostAlloc, cuMemHostAlloc, 2020, (void**, std::size_t, unsigned))                         \
  X(cuMemFreeHost, cuMemFreeHost, 2000, (void*))                                                   \
  X(cuMemHostRegister, cuMemHostRegister_v2, 6050, (void*, std::size_t, unsigned))                 \
  X(cuMemHostUnregister, cuMemHostUnregister, 4000, (void*))                                       \
  X(cuPointerGetAttributes, cuPointerGetAttributes, 7000,                                          \
    (unsigned, CUpointer_attribute*, void**, CUdeviceptr))                                         \
  X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000, (int*, CUdevice, CUdevice))                \
  X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000, (CUcontext, unsigned))                     \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010,                                                  \
    (CUmodule*, const void*, unsigned, CUjit_option*, void**))                                     \
  X(cuModuleUnload, cuModuleUnload, 2000, (CUmodule))                                              \
  X(cuModuleGetFunction, cuModuleGetFunction, 2000, (CUfunction*, CUmodule, const char*))          \
  X(cuModuleGetGlobal, cuModuleGetGlobal_v2, 3020,                                                 \
    (CUdeviceptr*, std::size_t*, CUmodule, const char*))                                           \
  X(cuFuncGetAttribute, cuFuncGetAttribute, 2020, (int*, CUfunction_attribute, CUfunction))        \
  X(cuFuncSetAttribute, cuFuncSetAttribute, 9000, (CUfunction, CUfunction_attribute, int))         \
  X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, (CUstream*, unsigned, int))      \
  X(cuStreamDestroy, cuStreamDestroy_v2, 4000, (CUstream))                                         \
  X(cuStreamSynchronize, cuStreamSynchronize, 2000, (CUstream))                                    \
  X(cuStreamQuery, cuStreamQuery, 2000, (CUstream))                                                \
  X(cuStreamGetCtx, cuStreamGetCtx, 9020, (CUstream, CUcontext*))                                  \
  X(cuStreamGetFlags, cuStreamGetFlags, 5050, (CUstream, unsigned*))                               \
  X(cuStreamWaitEvent, cuStreamWaitEvent, 3020, (CUstream, CUevent, unsigned))                     \
  X(cuEventCreate, cuEventCreate, 2000, (CUevent*, unsigned))                                      \
  X(cuEventDestroy, cuEventDestroy_v2, 4000, (CUevent))                                            \
  X(cuEventRecord, cuEventRecord, 2000, (CUevent, CUstream))                                       \
  X(cuEventQuery, cuEventQuery, 2000, (CUevent))                                                   \
  X(cuEventSynchronize, cuEventSynchronize, 2000, (CUevent))                                       \
  X(cuEventElapsedTime, cuEventElapsedTime, 2000, (float*, CUevent, CUevent))                      \
  X(cuLaunchKernel, cuLaunchKernel, 4000,                                                          \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,   \
     void**, void**))                                                                              \
  X(cuLaunchKernelEx, cuLaunchKernelEx, 11060,                                                     \
    (const CUlaunchConfig*, CUfunction, void**, void**))                                           \
  X(cuLaunchHostFunc, cuLaunchHostFunc, 10000, (CUstream, CUhostFn, void*))                        \
  X(cuMemcpyAsync, cuMemcpyAsync, 4000, (CUdeviceptr, CUdeviceptr, std::size_t, CUstream))         \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020,                                                 \
    (CUdeviceptr, const void*, std::size_t, CUstream))                                             \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020, (void*, CUdeviceptr, std::size_t, CUstream))    \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020,                                                 \
    (CUdeviceptr, CUdeviceptr, std::size_t, CUstream))                                             \
  X(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000,                                                    \
    (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream))                       \
  X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020, (const CUDA_MEMCPY2D*, CUstream))                   \
  X(cuMemcpy3DAsync, cuMemcpy3DAsync_v2, 3020, (const CUDA_MEMCPY3D*, CUstream))                   \
  X(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, 4000, (const CUDA_MEMCPY3D_PEER*, CUstream))         \
  X(cuMemsetD8Async, cuMemsetD8Async, 3020, (CUdeviceptr, unsigned char, std::size_t, CUstream))   \
  X(cuMemsetD16Async, cuMemsetD16Async, 3020,                                                      \
    (CUdeviceptr, unsigned short, std::size_t, CUstream))                                          \
  X(cuMemsetD32Async, cuMemsetD32Async, 3020, (CUdeviceptr, unsigned, std::size_t, CUstream))      \
  X(cuMemsetD2D8Async, cuMemsetD2D8Async, 3020,                                                    \
    (CUdeviceptr, std::size_t, unsigned char, std::size_t, std::size_t, CUstream))                 \
  X(cuMemsetD2D16Async, cuMemsetD2D16Async, 3020,                                                  \
    (CUdeviceptr, std::size_t, unsigned short, std::size_t, std::size_t, CUstream))                \
  X(cuMemsetD2D32Async, cuMemsetD2D32Async, 3020,                                                  \
    (CUdeviceptr, std::size_t, unsigned, std::size_t, std::size_t, CUstream))                      \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010, (CUstream, CUstreamCaptureMode))         \
  X(cuStreamEndCapture, cuStreamEndCapture, 10000, (CUstream, CUgraph*))                           \
  X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, 11030,                                      \
    (CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*, const CUgraphNode**, std::size_t*))  \
  X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010,                   \
    (CUstreamCaptureMode*))                                                                        \
  X(cuGraphCreate, cuGraphCreate, 10000, (CUgraph*, unsigned))                                     \
  X(cuGraphDestroy, cuGraphDestroy, 10000, (CUgraph))                                              \
  X(cuGraphClone, cuGraphClone, 10000, (CUgraph*, CUgraph))                                        \
  X(cuGraphNodeFindInClone, cuGraphNodeFindInClone, 10000, (CUgraphNode*, CUgraphNode, CUgraph))   \
  X(cuGraphDestroyNode, cuGraphDestroyNode, 10000, (CUgraphNode))                                  \
  X(cuGraphAddKernelNode, cuGraphAddKernelNode_v2, 12000,                                          \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_KERNEL_NODE_PARAMS_v2*))   \
  X(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams_v2, 12000,                              \
    (CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2*))                                                    \
  X(cuGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute, 11000,                           \
    (CUgraphNode, CUlaunchAttributeID, CUlaunchAttributeValue*))                                   \
  X(cuGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute, 11000,                           \
    (CUgraphNode, CUlaunchAttributeID, const CUlaunchAttributeValue*))                             \
  X(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode, 10000,                                             \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_MEMCPY3D*, CUcontext))     \
  X(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeGetParams, 10000, (CUgraphNode, CUDA_MEMCPY3D*))  \
  X(cuGraphAddMemsetNode, cuGraphAddMemsetNode, 10000,                                             \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_MEMSET_NODE_PARAMS*,       \
     CUcontext))                                                                                   \
  X(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams, 10000,                                 \
    (CUgraphNode, CUDA_MEMSET_NODE_PARAMS*))                                                       \
  X(cuGraphAddHostNode, cuGraphAddHostNode, 10000,                                                 \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_HOST_NODE_PARAMS*))        \
  X(cuGraphAddEmptyNode, cuGraphAddEmptyNode, 10000,                                               \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t))                                      \
  X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode, 10000,                                     \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUgraph))                             \
  X(cuGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, 10000, (CUgraphNode, CUgraph*))  \
  X(cuGraphAddEventRecordNode, cuGraphAddEventRecordNode, 11010,                                   \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent))                             \
  X(cuGraphAddEventWaitNode, cuGraphAddEventWaitNode, 11010,                                       \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent))                             \
  X(cuGraphGetNodes, cuGraphGetNodes, 10000, (CUgraph, CUgraphNode*, std::size_t*))                \
  X(cuGraphNodeGetType, cuGraphNodeGetType, 10000, (CUgraphNode, CUgraphNodeType*))                \
  X(cuGraphGetEdges, cuGraphGetEdges, 10000, (CUgraph, CUgraphNode*, CUgraphNode*, std::size_t*))  \
  X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040,                               \
    (CUgraphExec*, CUgraph, unsigned long long))                                                   \
  X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, (CUgraphExec))                                  \
  X(cuGraphExecUpdate, cuGraphExecUpdate_v2, 12000,                                                \
    (CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*))                                          \
  X(cuGraphNodeSetEnabled, cuGraphNodeSetEnabled, 11060, (CUgraphExec, CUgraphNode, unsigned))     \
  X(cuGraphLaunch, cuGraphLaunch, 10000, (CUgraphExec, CUstream))

// What is used where it is there: newer than the oldest driver that is supported, or not offered by
// every device.
#define LOCKSTEP_CUDA_OPTIONAL(X)                                                                  \
  X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, (CUuuid*, CUdevice))                               \
  X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, (char*, int, CUdevice))                        \
  X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050, (int*, int*))                  \
  X(cuMemAllocAsync, cuMemAllocAsync, 11020, (CUdeviceptr*, std::size_t, CUstream))                \
  X(cuMemFreeAsync, cuMemFreeAsync, 11020, (CUdeviceptr, CUstream))                                \
  X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, (CUmemoryPool*, CUdevice))        \
  X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020,                                           \
    (CUmemoryPool, CUmemPool_attribute, void*))                                                    \
  X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020,                                           \
    (CUmemoryPool, CUmemPool_attribute, void*))                                                    \
  X(cuStreamGetId, cuStreamGetId, 12000, (CUstream, unsigned long long*))                          \
  X(cuFuncGetName, cuFuncGetName, 12030, (const char**, CUfunction))                               \
  X(cuFuncGetParamInfo, cuFuncGetParamInfo, 12040,                                                 \
    (CUfunction, std::size_t, std::size_t*, std::size_t*))                                         \
  X(cuFuncLoad, cuFuncLoad, 12040, (CUfunction))                                                   \
  X(cuKernelGetFunction, cuKernelGetFunction, 12000, (CUfunction*, CUkernel))                      \
  X(cuModuleGetFunctionCount, cuModuleGetFunctionCount, 12040, (unsigned*, CUmodule))              \
  X(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 12040,                                 \
    (CUfunction*, unsigned, CUmodule))                                                             \
  X(cuGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams, 11040,                             \
    (CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS*))                                                    \
  X(cuGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, 11040, (CUgraphNode, CUdeviceptr*))

// Newer forms of functions above, under another name of ours.
//   X(our name, base name, exported symbol, version, (parameters))
#define LOCKSTEP_CUDA_NEWER(X)                                                                     \
  X(stream_get_capture_info_v3, cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3, 12030,          \
    (CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*, const CUgraphNode**,                 \
     const EdgeData**, std::size_t*))                                                              \
  X(graph_get_edges_v2, cuGraphGetEdges, cuGraphGetEdges_v2, 12030,                                \
    (CUgraph, CUgraphNode*, CUgraphNode*, EdgeData*, std::size_t*))
// clang-format on

// The driver's functions; the optional ones may be null.
struct Functions {
#define LOCKSTEP_CUDA_FIELD(base, exported, version, parameters) \
  CUresult(CUDAAPI* base##_) parameters = nullptr;
#define LOCKSTEP_CUDA_NEWER_FIELD(ours, base, exported, version, parameters) \
  CUresult(CUDAAPI* ours) parameters = nullptr;
  LOCKSTEP_CUDA_REQUIRED(LOCKSTEP_CUDA_FIELD)
  LOCKSTEP_CUDA_OPTIONAL(LOCKSTEP_CUDA_FIELD)
  LOCKSTEP_CUDA_NEWER(LOCKSTEP_CUDA_NEWER_FIELD)
#undef LOCKSTEP_CUDA_FIELD
#undef LOCKSTEP_CUDA_NEWER_FIELD
};

// One row of the lists, for tests and for loading.
struct Symbol {
  const char* base;
  const char* exported;
  int version;
  bool required;
  std::size_t offset;  // of the pointer in Functions
};
struct SymbolList {
  const Symbol* first;
  std::size_t count;
};
SymbolList symbols();

}  // namespace lockstep::cuda
