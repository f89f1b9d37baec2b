// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>

#include "call.h"

// Devices and peers.
namespace hip_on_cuda {
namespace {

// A block of AMD's devices may have all of its 64 KiB of shared memory without asking.
constexpr int kSharedPerBlock = 65536;

struct AttributePair {
  int hip;
  CUdevice_attribute cuda;
};
constexpr AttributePair kAttributes[] = {
    {5, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
    {8, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {10, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    {16, CU_DEVICE_ATTRIBUTE_INTEGRATED},
    {19, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {23, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {24, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {26, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
    {27, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
    {28, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z},
    {29, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
    {30, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
    {31, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},
    {56, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {57, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {61, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {63, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {71, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {83, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY},
    {85, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {87, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {88, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
};

int cuda_attribute(int device, CUdevice_attribute attribute) {
  int value = 0;
  return cuda().cuDeviceGetAttribute_(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
}

int shared_per_block(int device) {
  return std::min(kSharedPerBlock,
                  cuda_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
}

std::string architecture(int device) {
  return "sm_" +
         std::to_string(cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) +
         std::to_string(cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
}

hipError_t check_device(int device) {
  return device >= 0 && device < device_count() ? hipSuccess : hipErrorInvalidDevice;
}

// It is none of AMD's, and says so.
hipError_t name_of(int device, char* name, int size) {
  char own[200] = "";
  if (const CUresult result = cuda().cuDeviceGetName_(own, sizeof own, device)) {
    return to_hip(result);
  }
  const char* bare = std::strncmp(own, "SIMULATED ", 10) == 0 ? own + 10 : own;
  std::snprintf(name, static_cast<std::size_t>(size), "SIMULATED AMD GPU (hip_on_cuda, %s)", bare);
  return hipSuccess;
}

// Fills one layout of hipDeviceProp_t: the fields that anybody reads.
hipError_t fill_properties(void* properties, int device,
                           const lockstep::hip::PropertyLayout& layout, std::size_t warp_at,
                           std::size_t processors_at) {
  auto* const bytes = static_cast<char*>(properties);
  std::memset(bytes, 0, layout.size);
  if (const hipError_t failed = name_of(device, bytes, 256)) return failed;
  const int warp = cuda_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  const int processors = cuda_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  std::memcpy(bytes + warp_at, &warp, sizeof warp);
  std::memcpy(bytes + processors_at, &processors, sizeof processors);
  std::snprintf(bytes + layout.architecture, 256, "%s", architecture(device).c_str());
  return hipSuccess;
}

}  // namespace
}  // namespace hip_on_cuda

using namespace hip_on_cuda;

HIP_API hipError_t hipDeviceGetName(char* name, int size, hipDevice_t device) {
  return call("hipDeviceGetName", [&] {
    const hipError_t failed = check_device(device);
    return failed != hipSuccess ? failed : name_of(device, name, size);
  });
}
HIP_API hipError_t hipDeviceTotalMem(std::size_t* bytes, hipDevice_t device) {
  return call("hipDeviceTotalMem", [&] { return cuda().cuDeviceTotalMem_(bytes, device); });
}
HIP_API hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t device) {
  return call("hipDeviceGetUuid", [&] {
    if (cuda().cuDeviceGetUuid_ == nullptr) return hipErrorNotSupported;
    static_assert(sizeof(hipUUID) == sizeof(CUuuid));
    return to_hip(cuda().cuDeviceGetUuid_(reinterpret_cast<CUuuid*>(uuid), device));
  });
}
HIP_API hipError_t hipDeviceGetPCIBusId(char* text, int size, int device) {
  return call("hipDeviceGetPCIBusId", [&] {
    if (cuda().cuDeviceGetPCIBusId_ == nullptr) return hipErrorNotSupported;
    return to_hip(cuda().cuDeviceGetPCIBusId_(text, size, device));
  });
}
HIP_API hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  return call("hipDeviceGetAttribute", [&] {
    if (const hipError_t failed = check_device(device)) return failed;
    if (attribute == hipDeviceAttributeMaxSharedMemoryPerBlock) {
      *value = shared_per_block(device);
      return hipSuccess;
    }
    const auto* found =
        std::find_if(std::begin(kAttributes), std::end(kAttributes),
                     [&](const AttributePair& pair) { return pair.hip == attribute; });
    if (found == std::end(kAttributes)) return hipErrorInvalidValue;
    return to_hip(cuda().cuDeviceGetAttribute_(value, found->cuda, device));
  });
}
HIP_API hipError_t hipGetDevicePropertiesR0600(void* properties, int device) {
  return call("hipGetDevicePropertiesR0600", [&] {
    const hipError_t failed = check_device(device);
    if (failed != hipSuccess) return failed;
    return fill_properties(properties, device, lockstep::hip::kProperties0600, 308, 388);
  });
}
HIP_API hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  return call("hipGetDeviceProperties", [&] {
    const hipError_t failed = check_device(device);
    if (failed != hipSuccess) return failed;
    return fill_properties(properties, device, lockstep::hip::kProperties0000,
                           offsetof(hipDeviceProp_t, warpSize),
                           offsetof(hipDeviceProp_t, multiProcessorCount));
  });
}
HIP_API hipError_t hipDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  return call("hipDeviceGetStreamPriorityRange", [&] {
    *lowest = *highest = 0;
    if (cuda().cuCtxGetStreamPriorityRange_ == nullptr) return hipSuccess;
    return to_hip(cuda().cuCtxGetStreamPriorityRange_(lowest, highest));
  });
}
HIP_API hipError_t hipDeviceCanAccessPeer(int* can, int device, int peer) {
  return call("hipDeviceCanAccessPeer",
              [&] { return cuda().cuDeviceCanAccessPeer_(can, device, peer); });
}
HIP_API hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call("hipDeviceEnablePeerAccess", [&] {
    if (const hipError_t failed = check_device(peer)) return failed;
    return to_hip(cuda().cuCtxEnablePeerAccess_(context_of(peer), flags));
  });
}
