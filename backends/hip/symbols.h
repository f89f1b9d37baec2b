// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "types.h"

// The runtime's functions by literal names and our own prototypes: in newer headers some names are
// macros or inline functions, and in older ones others are overloaded; the exported symbols are
// neither. Results are plain numbers: releases add errors.
//
//   X(exported symbol, result type, (parameters))
namespace lockstep::hip {

// clang-format off
// In every release from 5.2 on.
#define LOCKSTEP_HIP_REQUIRED(X)                                                                   \
  X(hipGetErrorName, const char*, (hipError_t))                                                    \
  X(hipGetErrorString, const char*, (hipError_t))                                                  \
  X(hipGetLastError, int, (void))                                                                  \
  X(hipGetDeviceCount, int, (int*))                                                                \
  X(hipGetDevice, int, (int*))                                                                     \
  X(hipSetDevice, int, (int))                                                                      \
  X(hipDeviceGetName, int, (char*, int, int))                                                      \
  X(hipDeviceTotalMem, int, (std::size_t*, int))                                                   \
  X(hipDeviceGetAttribute, int, (int*, int, int))                                                  \
  X(hipDeviceGetPCIBusId, int, (char*, int, int))                                                  \
  X(hipDeviceSynchronize, int, (void))                                                             \
  X(hipDeviceGetStreamPriorityRange, int, (int*, int*))                                            \
  X(hipDeviceCanAccessPeer, int, (int*, int, int))                                                 \
  X(hipDeviceEnablePeerAccess, int, (int, unsigned))                                               \
  X(hipMemGetInfo, int, (std::size_t*, std::size_t*))                                              \
  X(hipMalloc, int, (void**, std::size_t))                                                         \
  X(hipFree, int, (void*))                                                                         \
  X(hipHostMalloc, int, (void**, std::size_t, unsigned))                                           \
  X(hipHostFree, int, (void*))                                                                     \
  X(hipHostRegister, int, (void*, std::size_t, unsigned))                                          \
  X(hipHostUnregister, int, (void*))                                                               \
  X(hipPointerGetAttributes, int, (PointerAttributes*, const void*))                               \
  X(hipMemGetAddressRange, int, (void**, std::size_t*, void*))                                     \
  X(hipModuleLoadData, int, (hipModule_t*, const void*))                                           \
  X(hipModuleUnload, int, (hipModule_t))                                                           \
  X(hipModuleGetFunction, int, (hipFunction_t*, hipModule_t, const char*))                         \
  X(hipModuleGetGlobal, int, (void**, std::size_t*, hipModule_t, const char*))                     \
  X(hipFuncGetAttribute, int, (int*, int, hipFunction_t))                                          \
  X(hipModuleLaunchKernel, int,                                                                    \
    (hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,          \
     hipStream_t, void**, void**))                                                                 \
  X(hipStreamCreateWithPriority, int, (hipStream_t*, unsigned, int))                               \
  X(hipStreamDestroy, int, (hipStream_t))                                                          \
  X(hipStreamSynchronize, int, (hipStream_t))                                                      \
  X(hipStreamQuery, int, (hipStream_t))                                                            \
  X(hipStreamGetFlags, int, (hipStream_t, unsigned*))                                              \
  X(hipStreamWaitEvent, int, (hipStream_t, hipEvent_t, unsigned))                                  \
  X(hipEventCreateWithFlags, int, (hipEvent_t*, unsigned))                                         \
  X(hipEventDestroy, int, (hipEvent_t))                                                            \
  X(hipEventRecord, int, (hipEvent_t, hipStream_t))                                                \
  X(hipEventQuery, int, (hipEvent_t))                                                              \
  X(hipEventSynchronize, int, (hipEvent_t))                                                        \
  X(hipEventElapsedTime, int, (float*, hipEvent_t, hipEvent_t))                                    \
  X(hipMemcpyAsync, int, (void*, const void*, std::size_t, hipMemcpyKind, hipStream_t))            \
  X(hipMemcpyHtoDAsync, int, (void*, const void*, std::size_t, hipStream_t))                       \
  X(hipMemcpyDtoHAsync, int, (void*, void*, std::size_t, hipStream_t))                             \
  X(hipMemcpyDtoDAsync, int, (void*, void*, std::size_t, hipStream_t))                             \
  X(hipMemcpyPeerAsync, int, (void*, int, const void*, int, std::size_t, hipStream_t))             \
  X(hipMemcpy2DAsync, int,                                                                         \
    (void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, hipMemcpyKind,        \
     hipStream_t))                                                                                 \
  X(hipMemcpy3DAsync, int, (const hipMemcpy3DParms*, hipStream_t))                                 \
  X(hipMemsetD8Async, int, (void*, unsigned char, std::size_t, hipStream_t))                       \
  X(hipMemsetD16Async, int, (void*, unsigned short, std::size_t, hipStream_t))                     \
  X(hipMemsetD32Async, int, (void*, int, std::size_t, hipStream_t))                                \
  X(hipMemset2DAsync, int,                                                                         \
    (void*, std::size_t, int, std::size_t, std::size_t, hipStream_t))                              \
  X(hipStreamBeginCapture, int, (hipStream_t, hipStreamCaptureMode))                               \
  X(hipStreamEndCapture, int, (hipStream_t, hipGraph_t*))                                          \
  X(hipStreamGetCaptureInfo_v2, int,                                                               \
    (hipStream_t, hipStreamCaptureStatus*, unsigned long long*, hipGraph_t*,                       \
     const hipGraphNode_t**, std::size_t*))                                                        \
  X(hipThreadExchangeStreamCaptureMode, int, (hipStreamCaptureMode*))                              \
  X(hipGraphCreate, int, (hipGraph_t*, unsigned))                                                  \
  X(hipGraphDestroy, int, (hipGraph_t))                                                            \
  X(hipGraphClone, int, (hipGraph_t*, hipGraph_t))                                                 \
  X(hipGraphNodeFindInClone, int, (hipGraphNode_t*, hipGraphNode_t, hipGraph_t))                   \
  X(hipGraphAddKernelNode, int,                                                                    \
    (hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, std::size_t, const hipKernelNodeParams*)) \
  X(hipGraphKernelNodeGetParams, int, (hipGraphNode_t, hipKernelNodeParams*))                      \
  X(hipGraphAddMemcpyNode, int,                                                                    \
    (hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, std::size_t, const hipMemcpy3DParms*))    \
  X(hipGraphAddMemcpyNode1D, int,                                                                  \
    (hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, std::size_t, void*, const void*,          \
     std::size_t, hipMemcpyKind))                                                                  \
  X(hipGraphMemcpyNodeGetParams, int, (hipGraphNode_t, hipMemcpy3DParms*))                         \
  X(hipGraphAddMemsetNode, int,                                                                    \
    (hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, std::size_t, const hipMemsetParams*))     \
  X(hipGraphMemsetNodeGetParams, int, (hipGraphNode_t, hipMemsetParams*))                          \
  X(hipGraphAddHostNode, int,                                                                      \
    (hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, std::size_t, const hipHostNodeParams*))   \
  X(hipGraphAddEmptyNode, int,                                                                     \
    (hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, std::size_t))                             \
  X(hipGraphAddChildGraphNode, int,                                                                \
    (hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, std::size_t, hipGraph_t))                 \
  X(hipGraphChildGraphNodeGetGraph, int, (hipGraphNode_t, hipGraph_t*))                            \
  X(hipGraphAddEventRecordNode, int,                                                               \
    (hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, std::size_t, hipEvent_t))                 \
  X(hipGraphAddEventWaitNode, int,                                                                 \
    (hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, std::size_t, hipEvent_t))                 \
  X(hipGraphGetNodes, int, (hipGraph_t, hipGraphNode_t*, std::size_t*))                            \
  X(hipGraphNodeGetType, int, (hipGraphNode_t, hipGraphNodeType*))                                 \
  X(hipGraphGetEdges, int, (hipGraph_t, hipGraphNode_t*, hipGraphNode_t*, std::size_t*))           \
  X(hipGraphInstantiate, int,                                                                      \
    (hipGraphExec_t*, hipGraph_t, hipGraphNode_t*, char*, std::size_t))                            \
  X(hipGraphExecDestroy, int, (hipGraphExec_t))                                                    \
  X(hipGraphExecUpdate, int,                                                                       \
    (hipGraphExec_t, hipGraph_t, hipGraphNode_t*, hipGraphExecUpdateResult*))                      \
  X(hipGraphLaunch, int, (hipGraphExec_t, hipStream_t))

// What is used where it is there; the comment names the first release that was seen with it. No
// release up to 7.2 tells how a function takes its parameters; a runtime over CUDA can.
#define LOCKSTEP_HIP_OPTIONAL(X)                                                                   \
  X(hipGetDevicePropertiesR0600, int, (void*, int))                        /* 6.0 */               \
  X(hipGetDeviceProperties, int, (void*, int))   /* the layout of 5.x, in every release */         \
  X(hipDeviceGetUuid, int, (hipUUID*, int))                                /* 5.2 */               \
  X(hipKernelNameRef, const char*, (hipFunction_t))                               /* 5.2 */        \
  X(hipFuncGetParamInfo, int, (hipFunction_t, std::size_t, std::size_t*, std::size_t*)) /* none */ \
  X(hipStreamAddCallback, int,                                             /* 5.2 */               \
    (hipStream_t, hipStreamCallback_t, void*, unsigned))                                           \
  X(hipLaunchHostFunc, int, (hipStream_t, hipHostFn_t, void*))             /* 5.7 */               \
  X(hipGetStreamDeviceId, int, (hipStream_t))                                     /* 5.2 */        \
  X(hipStreamGetDevice, int, (hipStream_t, int*))                          /* 5.7 */               \
  X(hipStreamGetId, int, (hipStream_t, unsigned long long*))               /* 7.2 */               \
  X(hipMallocAsync, int, (void**, std::size_t, hipStream_t))               /* 5.2 */               \
  X(hipFreeAsync, int, (void*, hipStream_t))                               /* 5.2 */               \
  X(hipDeviceGetDefaultMemPool, int, (hipMemPool_t*, int))                 /* 5.2 */               \
  X(hipMemPoolGetAttribute, int, (hipMemPool_t, hipMemPoolAttr, void*))    /* 5.2 */               \
  X(hipMemPoolSetAttribute, int, (hipMemPool_t, hipMemPoolAttr, void*))    /* 5.2 */               \
  X(hipModuleLaunchCooperativeKernel, int,                                 /* 5.7 */               \
    (hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,          \
     hipStream_t, void**))                                                                         \
  X(hipMemsetD2D8Async, int,                                               /* 7.2 */               \
    (void*, std::size_t, unsigned char, std::size_t, std::size_t, hipStream_t))                    \
  X(hipMemsetD2D16Async, int,                                              /* 7.2 */               \
    (void*, std::size_t, unsigned short, std::size_t, std::size_t, hipStream_t))                   \
  X(hipMemsetD2D32Async, int,                                              /* 7.2 */               \
    (void*, std::size_t, unsigned, std::size_t, std::size_t, hipStream_t))                         \
  X(hipGraphDestroyNode, int, (hipGraphNode_t))                            /* 5.2 */               \
  X(hipGraphNodeSetEnabled, int,                                           /* 5.7 */               \
    (hipGraphExec_t, hipGraphNode_t, unsigned))                                                    \
  X(hipGraphKernelNodeGetAttribute, int, (hipGraphNode_t, int, void*))     /* 5.7 */               \
  X(hipGraphKernelNodeSetAttribute, int, (hipGraphNode_t, int, const void*)) /* 5.7 */             \
  X(hipGraphMemAllocNodeGetParams, int,                                    /* 5.7 */               \
    (hipGraphNode_t, MemAllocNodeParams*))                                                         \
  X(hipGraphMemFreeNodeGetParams, int, (hipGraphNode_t, void*))            /* 5.7 */
// clang-format on

// The runtime's functions; the optional ones may be null.
struct Functions {
#define LOCKSTEP_HIP_FIELD(name, result, parameters) result(*name##_) parameters = nullptr;
  LOCKSTEP_HIP_REQUIRED(LOCKSTEP_HIP_FIELD)
  LOCKSTEP_HIP_OPTIONAL(LOCKSTEP_HIP_FIELD)
#undef LOCKSTEP_HIP_FIELD
};

// One row of the lists, for tests and for loading.
struct Symbol {
  const char* name;
  bool required;
  std::size_t offset;  // of the pointer in Functions
};
struct SymbolList {
  const Symbol* first;
  std::size_t count;
};
SymbolList symbols();

}  // namespace lockstep::hip
