// SPDX-License-Identifier: Apache-2.0
#include "call.h"

// Memory: plain, pinned, stream-ordered; what a pointer is.
namespace hip_on_cuda {
namespace {

// Bits beyond CUDA's three ask for coherence that is always there here.
constexpr unsigned kCommonFlags = 7;

using lockstep::hip::PointerAttributes;

struct Range {
  unsigned type = 0, managed = 0;
  int device = -1;
  CUdeviceptr base = 0, device_pointer = 0;
  std::size_t bytes = 0;
  void* host_pointer = nullptr;
};
CUresult range_of(const void* address, Range* range) {
  CUpointer_attribute which[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
      CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
      CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* answers[] = {&range->type,  &range->managed,        &range->device,      &range->base,
                     &range->bytes, &range->device_pointer, &range->host_pointer};
  return cuda().cuPointerGetAttributes_(7, which, answers, to_cuda(address));
}

}  // namespace
}  // namespace hip_on_cuda

using namespace hip_on_cuda;

HIP_API hipError_t hipMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return call("hipMemGetInfo", [&] { return cuda().cuMemGetInfo_(free_bytes, total_bytes); });
}
HIP_API hipError_t hipMalloc(void** address, std::size_t bytes) {
  return call("hipMalloc", [&] {
    *address = nullptr;
    if (bytes == 0) return CUDA_SUCCESS;
    return cuda().cuMemAlloc_(reinterpret_cast<CUdeviceptr*>(address), bytes);
  });
}
HIP_API hipError_t hipFree(void* address) {
  return call("hipFree", [&] {
    return address != nullptr ? cuda().cuMemFree_(to_cuda(address)) : CUDA_SUCCESS;
  });
}
HIP_API hipError_t hipHostMalloc(void** address, std::size_t bytes, unsigned flags) {
  return call("hipHostMalloc",
              [&] { return cuda().cuMemHostAlloc_(address, bytes, flags & kCommonFlags); });
}
HIP_API hipError_t hipHostFree(void* address) {
  return call("hipHostFree",
              [&] { return address != nullptr ? cuda().cuMemFreeHost_(address) : CUDA_SUCCESS; });
}
HIP_API hipError_t hipHostRegister(void* address, std::size_t bytes, unsigned flags) {
  return call("hipHostRegister",
              [&] { return cuda().cuMemHostRegister_(address, bytes, flags & kCommonFlags); });
}
HIP_API hipError_t hipHostUnregister(void* address) {
  return call("hipHostUnregister", [&] { return cuda().cuMemHostUnregister_(address); });
}
HIP_API hipError_t hipMallocAsync(void** address, std::size_t bytes, hipStream_t stream) {
  return call("hipMallocAsync", [&] {
    if (cuda().cuMemAllocAsync_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return cuda().cuMemAllocAsync_(reinterpret_cast<CUdeviceptr*>(address), bytes, to_cuda(stream));
  });
}
HIP_API hipError_t hipFreeAsync(void* address, hipStream_t stream) {
  return call("hipFreeAsync", [&] {
    if (cuda().cuMemFreeAsync_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return cuda().cuMemFreeAsync_(to_cuda(address), to_cuda(stream));
  });
}
HIP_API hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t* pool, int device) {
  return call("hipDeviceGetDefaultMemPool", [&] {
    if (cuda().cuDeviceGetDefaultMemPool_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return cuda().cuDeviceGetDefaultMemPool_(reinterpret_cast<CUmemoryPool*>(pool), device);
  });
}
// Attributes have the same numbers and types.
HIP_API hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute,
                                          void* value) {
  return call("hipMemPoolGetAttribute", [&] {
    if (cuda().cuMemPoolGetAttribute_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return cuda().cuMemPoolGetAttribute_(reinterpret_cast<CUmemoryPool>(pool),
                                         static_cast<CUmemPool_attribute>(attribute), value);
  });
}
HIP_API hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute,
                                          void* value) {
  return call("hipMemPoolSetAttribute", [&] {
    if (cuda().cuMemPoolSetAttribute_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return cuda().cuMemPoolSetAttribute_(reinterpret_cast<CUmemoryPool>(pool),
                                         static_cast<CUmemPool_attribute>(attribute), value);
  });
}

HIP_API hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* address) {
  return call("hipPointerGetAttributes", [&] {
    Range range;
    const CUresult result = range_of(address, &range);
    if (result != CUDA_SUCCESS) return result;
    auto& to = *reinterpret_cast<PointerAttributes*>(attributes);
    to = {};
    // As 6.0 and later count.
    constexpr int kUnregistered = 0, kHost = 1, kDevice = 2, kManaged = 3;
    to.type = range.managed != 0                   ? kManaged
              : range.type == CU_MEMORYTYPE_HOST   ? kHost
              : range.type == CU_MEMORYTYPE_DEVICE ? kDevice
                                                   : kUnregistered;
    to.is_managed = range.managed != 0 ? 1 : 0;
    if (to.type == kUnregistered) return result;
    to.device = range.device;
    to.device_pointer = reinterpret_cast<void*>(range.device_pointer);
    to.host_pointer = range.host_pointer;
    return result;
  });
}
HIP_API hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, std::size_t* bytes,
                                         hipDeviceptr_t address) {
  return call("hipMemGetAddressRange", [&] {
    Range range;
    if (const CUresult result = range_of(address, &range)) return to_hip(result);
    if (range.type != CU_MEMORYTYPE_DEVICE) return hipErrorNotFound;
    if (base != nullptr) *base = reinterpret_cast<void*>(range.base);
    if (bytes != nullptr) *bytes = range.bytes;
    return hipSuccess;
  });
}
