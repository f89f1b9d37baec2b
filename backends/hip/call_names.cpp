// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "driver.h"

namespace lockstep::hip {
namespace {

// In the order of gpu::Call.
constexpr std::array<const char*, gpu::kCallCount> kCallNames = {
    "hipInit",
    "hipRuntimeGetVersion",
    "hipGetDeviceCount",
    "hipGetDeviceProperties",
    "hipDeviceGetAttribute",
    "hipSetDevice",
    "hipSetDevice",
    "hipDeviceSynchronize",
    "hipMemGetInfo",
    "hipMalloc",
    "hipFree",
    "hipHostMalloc",
    "hipHostFree",
    "hipHostRegister",
    "hipHostUnregister",
    "hipMallocAsync",
    "hipFreeAsync",
    "hipMemPoolSetAttribute",
    "hipPointerGetAttributes",
    "hipDeviceCanAccessPeer",
    "hipDeviceEnablePeerAccess",
    "hipModuleLoadData",
    "hipModuleUnload",
    "hipModuleGetFunction",
    "hipModuleGetGlobal",
    "hipModuleGetFunction",
    "hipFuncGetAttribute",
    "hipFuncGetAttribute",
    "hipStreamCreateWithPriority",
    "hipStreamDestroy",
    "hipStreamSynchronize",
    "hipStreamQuery",
    "hipStreamGetDevice",
    "hipEventCreateWithFlags",
    "hipEventRecord",
    "hipEventQuery",
    "hipEventSynchronize",
    "hipEventElapsedTime",
    "hipStreamWaitEvent",
    "hipModuleLaunchKernel",
    "hipModuleLaunchCooperativeKernel",
    "hipLaunchHostFunc",
    "hipMemcpyHtoDAsync",
    "hipMemcpyDtoHAsync",
    "hipMemcpyDtoDAsync",
    "hipMemcpyAsync",
    "hipMemcpyPeerAsync",
    "hipMemcpy2DAsync",
    "hipMemcpy3DAsync",
    "hipMemcpy3DAsync",
    "hipMemsetD8Async",
    "hipMemsetD16Async",
    "hipMemsetD32Async",
    "hipMemset2DAsync",
    "hipMemsetD2D16Async",
    "hipMemsetD2D32Async",
    "hipStreamBeginCapture",
    "hipStreamEndCapture",
    "hipStreamGetCaptureInfo",
    "hipThreadExchangeStreamCaptureMode",
    "hipGraphCreate",
    "hipGraphClone",
    "hipGraphAddKernelNode",
    "hipGraphAddMemcpyNode",
    "hipGraphAddMemsetNode",
    "hipGraphAddHostNode",
    "hipGraphAddEmptyNode",
    "hipGraphAddChildGraphNode",
    "hipGraphAddEventRecordNode",
    "hipGraphAddEventWaitNode",
    "hipGraphGetNodes",
    "hipGraphGetEdges",
    "hipGraphNodeGetParams",
    "hipGraphInstantiate",
    "hipGraphExecUpdate",
    "hipGraphNodeSetEnabled",
    "hipGraphLaunch",
};
static_assert(kCallNames.back() != nullptr, "one name a call");

}  // namespace

const char* HipDriver::call_name(gpu::Call call) const {
  return kCallNames[static_cast<std::size_t>(call)];
}

}  // namespace lockstep::hip
