// SPDX-License-Identifier: Apache-2.0
#include "call.h"

// Streams, events, host functions and capture. The null stream, the per-thread stream (2), capture
// modes and states have the same numbers.
namespace hip_on_cuda {
namespace {

// Bits beyond CUDA's ask for what the end of a kernel does anyway here.
constexpr unsigned kCommonEventFlags = 7;

bool captures(hipStream_t stream) {
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  return hipStreamGetCaptureInfo_v2(stream, &status, nullptr, nullptr, nullptr, nullptr) !=
             hipSuccess ||
         status != hipStreamCaptureStatusNone;
}

}  // namespace
}  // namespace hip_on_cuda

using namespace hip_on_cuda;

HIP_API hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority) {
  return call("hipStreamCreateWithPriority", [&] {
    return cuda().cuStreamCreateWithPriority_(reinterpret_cast<CUstream*>(stream), flags, priority);
  });
}
HIP_API hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  return hipStreamCreateWithPriority(stream, flags, 0);
}
// AMD's waits for the stream's work, CUDA's does not.
HIP_API hipError_t hipStreamDestroy(hipStream_t stream) {
  return call("hipStreamDestroy", [&] {
    if (!captures(stream)) cuda().cuStreamSynchronize_(to_cuda(stream));
    return cuda().cuStreamDestroy_(to_cuda(stream));
  });
}
HIP_API hipError_t hipStreamSynchronize(hipStream_t stream) {
  return call("hipStreamSynchronize", [&] { return cuda().cuStreamSynchronize_(to_cuda(stream)); });
}
HIP_API hipError_t hipStreamQuery(hipStream_t stream) {
  return call("hipStreamQuery", [&] { return cuda().cuStreamQuery_(to_cuda(stream)); });
}
HIP_API hipError_t hipStreamGetFlags(hipStream_t stream, unsigned* flags) {
  return call("hipStreamGetFlags",
              [&] { return cuda().cuStreamGetFlags_(to_cuda(stream), flags); });
}
HIP_API hipError_t hipStreamGetId(hipStream_t stream, unsigned long long* id) {
  return call("hipStreamGetId", [&] {
    if (cuda().cuStreamGetId_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return cuda().cuStreamGetId_(to_cuda(stream), id);
  });
}
HIP_API hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t* device) {
  return call("hipStreamGetDevice", [&] {
    *device = thread_device();
    if (stream == nullptr || stream == hipStreamPerThread) return hipSuccess;
    CUcontext context = nullptr;
    if (const CUresult result = cuda().cuStreamGetCtx_(to_cuda(stream), &context)) {
      return to_hip(result);
    }
    for (int ordinal = 0; ordinal < device_count(); ++ordinal) {
      if (context_of(ordinal) != context) continue;
      *device = ordinal;
      return hipSuccess;
    }
    return hipErrorInvalidHandle;
  });
}
HIP_API hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return call("hipStreamWaitEvent",
              [&] { return cuda().cuStreamWaitEvent_(to_cuda(stream), to_cuda(event), flags); });
}
HIP_API hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void* data) {
  return call("hipLaunchHostFunc",
              [&] { return cuda().cuLaunchHostFunc_(to_cuda(stream), function, data); });
}

HIP_API hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  return call("hipEventCreateWithFlags", [&] {
    return cuda().cuEventCreate_(reinterpret_cast<CUevent*>(event), flags & kCommonEventFlags);
  });
}
HIP_API hipError_t hipEventDestroy(hipEvent_t event) {
  return call("hipEventDestroy", [&] { return cuda().cuEventDestroy_(to_cuda(event)); });
}
HIP_API hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return call("hipEventRecord",
              [&] { return cuda().cuEventRecord_(to_cuda(event), to_cuda(stream)); });
}
HIP_API hipError_t hipEventQuery(hipEvent_t event) {
  return call("hipEventQuery", [&] { return cuda().cuEventQuery_(to_cuda(event)); });
}
HIP_API hipError_t hipEventSynchronize(hipEvent_t event) {
  return call("hipEventSynchronize", [&] { return cuda().cuEventSynchronize_(to_cuda(event)); });
}
HIP_API hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t begin, hipEvent_t end) {
  return call("hipEventElapsedTime", [&] {
    return cuda().cuEventElapsedTime_(milliseconds, to_cuda(begin), to_cuda(end));
  });
}

HIP_API hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  return call("hipStreamBeginCapture", [&] {
    return cuda().cuStreamBeginCapture_(to_cuda(stream), static_cast<CUstreamCaptureMode>(mode));
  });
}
HIP_API hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  return call("hipStreamEndCapture", [&] {
    return cuda().cuStreamEndCapture_(to_cuda(stream), reinterpret_cast<CUgraph*>(graph));
  });
}
HIP_API hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus* status,
                                              unsigned long long* id, hipGraph_t* graph,
                                              const hipGraphNode_t** dependencies,
                                              std::size_t* count) {
  return call("hipStreamGetCaptureInfo_v2", [&] {
    CUstreamCaptureStatus native{};
    cuuint64_t number = 0;
    CUgraph of = nullptr;
    const CUgraphNode* nodes = nullptr;
    std::size_t nodes_count = 0;
    CUresult result = CUDA_SUCCESS;
    if (cuda().stream_get_capture_info_v3 != nullptr) {
      const lockstep::cuda::EdgeData* edges = nullptr;
      result = cuda().stream_get_capture_info_v3(to_cuda(stream), &native, &number, &of, &nodes,
                                                 &edges, &nodes_count);
    } else {
      result = cuda().cuStreamGetCaptureInfo_(to_cuda(stream), &native, &number, &of, &nodes,
                                              &nodes_count);
    }
    if (result != CUDA_SUCCESS) return result;
    *status = static_cast<hipStreamCaptureStatus>(native);
    if (id != nullptr) *id = number;
    if (graph != nullptr) *graph = reinterpret_cast<hipGraph_t>(of);
    if (dependencies != nullptr) {
      *dependencies = reinterpret_cast<const hipGraphNode_t*>(nodes);
    }
    if (count != nullptr) *count = nodes_count;
    return result;
  });
}
HIP_API hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  return call("hipThreadExchangeStreamCaptureMode", [&] {
    auto native = static_cast<CUstreamCaptureMode>(*mode);
    const CUresult result = cuda().cuThreadExchangeStreamCaptureMode_(&native);
    *mode = static_cast<hipStreamCaptureMode>(native);
    return result;
  });
}
