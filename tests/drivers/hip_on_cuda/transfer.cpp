// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "call.h"

// Copies and sets on streams.
namespace hip_on_cuda {

namespace {

CUmemorytype type_of(hipMemcpyKind kind, bool source) {
  switch (static_cast<int>(kind)) {
    case hipMemcpyHostToHost:
      return CU_MEMORYTYPE_HOST;
    case hipMemcpyHostToDevice:
      return source ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case hipMemcpyDeviceToHost:
      return source ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    case hipMemcpyDeviceToDevice:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return CU_MEMORYTYPE_UNIFIED;  // also HIP's own "without compute units", 1024
  }
}

}  // namespace

CUDA_MEMCPY3D to_cuda(const hipMemcpy3DParms& copy) {
  CUDA_MEMCPY3D native;
  std::memset(&native, 0, sizeof native);
  native.srcMemoryType = type_of(copy.kind, true);
  native.srcHost = copy.srcPtr.ptr;
  native.srcDevice = to_cuda(copy.srcPtr.ptr);
  native.srcPitch = copy.srcPtr.pitch;
  native.srcHeight = copy.srcPtr.ysize;
  native.srcXInBytes = copy.srcPos.x;
  native.srcY = copy.srcPos.y;
  native.srcZ = copy.srcPos.z;
  native.dstMemoryType = type_of(copy.kind, false);
  native.dstHost = copy.dstPtr.ptr;
  native.dstDevice = to_cuda(copy.dstPtr.ptr);
  native.dstPitch = copy.dstPtr.pitch;
  native.dstHeight = copy.dstPtr.ysize;
  native.dstXInBytes = copy.dstPos.x;
  native.dstY = copy.dstPos.y;
  native.dstZ = copy.dstPos.z;
  native.WidthInBytes = copy.extent.width;
  native.Height = copy.extent.height;
  native.Depth = copy.extent.depth;
  return native;
}

}  // namespace hip_on_cuda

using namespace hip_on_cuda;

HIP_API hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind,
                                  hipStream_t stream) {
  return call("hipMemcpyAsync", [&] {
    return cuda().cuMemcpyAsync_(to_cuda(to), to_cuda(from), bytes, to_cuda(stream));
  });
}
HIP_API hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void* from, std::size_t bytes,
                                      hipStream_t stream) {
  return call("hipMemcpyHtoDAsync",
              [&] { return cuda().cuMemcpyHtoDAsync_(to_cuda(to), from, bytes, to_cuda(stream)); });
}
HIP_API hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, std::size_t bytes,
                                      hipStream_t stream) {
  return call("hipMemcpyDtoHAsync",
              [&] { return cuda().cuMemcpyDtoHAsync_(to, to_cuda(from), bytes, to_cuda(stream)); });
}
HIP_API hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, std::size_t bytes,
                                      hipStream_t stream) {
  return call("hipMemcpyDtoDAsync", [&] {
    return cuda().cuMemcpyDtoDAsync_(to_cuda(to), to_cuda(from), bytes, to_cuda(stream));
  });
}
HIP_API hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                      std::size_t bytes, hipStream_t stream) {
  return call("hipMemcpyPeerAsync", [&] {
    if (to_device < 0 || to_device >= device_count() || from_device < 0 ||
        from_device >= device_count()) {
      return hipErrorInvalidDevice;
    }
    return to_hip(cuda().cuMemcpyPeerAsync_(to_cuda(to), context_of(to_device), to_cuda(from),
                                            context_of(from_device), bytes, to_cuda(stream)));
  });
}
HIP_API hipError_t hipMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                    std::size_t from_pitch, std::size_t width, std::size_t height,
                                    hipMemcpyKind kind, hipStream_t stream) {
  return call("hipMemcpy2DAsync", [&] {
    CUDA_MEMCPY2D native;
    std::memset(&native, 0, sizeof native);
    native.srcMemoryType = type_of(kind, true);
    native.srcHost = from;
    native.srcDevice = to_cuda(from);
    native.srcPitch = from_pitch;
    native.dstMemoryType = type_of(kind, false);
    native.dstHost = to;
    native.dstDevice = to_cuda(to);
    native.dstPitch = to_pitch;
    native.WidthInBytes = width;
    native.Height = height;
    return cuda().cuMemcpy2DAsync_(&native, to_cuda(stream));
  });
}
HIP_API hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms* copy, hipStream_t stream) {
  return call("hipMemcpy3DAsync", [&] {
    const CUDA_MEMCPY3D native = to_cuda(*copy);
    return cuda().cuMemcpy3DAsync_(&native, to_cuda(stream));
  });
}

HIP_API hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, std::size_t count,
                                    hipStream_t stream) {
  return call("hipMemsetD8Async",
              [&] { return cuda().cuMemsetD8Async_(to_cuda(to), value, count, to_cuda(stream)); });
}
HIP_API hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, std::size_t count,
                                     hipStream_t stream) {
  return call("hipMemsetD16Async",
              [&] { return cuda().cuMemsetD16Async_(to_cuda(to), value, count, to_cuda(stream)); });
}
HIP_API hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, std::size_t count,
                                     hipStream_t stream) {
  return call("hipMemsetD32Async", [&] {
    return cuda().cuMemsetD32Async_(to_cuda(to), static_cast<unsigned>(value), count,
                                    to_cuda(stream));
  });
}
HIP_API hipError_t hipMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                                    std::size_t height, hipStream_t stream) {
  return call("hipMemset2DAsync", [&] {
    return cuda().cuMemsetD2D8Async_(to_cuda(to), pitch, static_cast<unsigned char>(value), width,
                                     height, to_cuda(stream));
  });
}
// New in 7.2.
HIP_API hipError_t hipMemsetD2D8Async(hipDeviceptr_t to, std::size_t pitch, unsigned char value,
                                      std::size_t width, std::size_t height, hipStream_t stream) {
  return call("hipMemsetD2D8Async", [&] {
    return cuda().cuMemsetD2D8Async_(to_cuda(to), pitch, value, width, height, to_cuda(stream));
  });
}
HIP_API hipError_t hipMemsetD2D16Async(hipDeviceptr_t to, std::size_t pitch, unsigned short value,
                                       std::size_t width, std::size_t height, hipStream_t stream) {
  return call("hipMemsetD2D16Async", [&] {
    return cuda().cuMemsetD2D16Async_(to_cuda(to), pitch, value, width, height, to_cuda(stream));
  });
}
HIP_API hipError_t hipMemsetD2D32Async(hipDeviceptr_t to, std::size_t pitch, unsigned value,
                                       std::size_t width, std::size_t height, hipStream_t stream) {
  return call("hipMemsetD2D32Async", [&] {
    return cuda().cuMemsetD2D32Async_(to_cuda(to), pitch, value, width, height, to_cuda(stream));
  });
}
