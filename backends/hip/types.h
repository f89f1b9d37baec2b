// SPDX-License-Identifier: Apache-2.0
#pragma once

// The names are AMD's.
// NOLINTBEGIN(bugprone-reserved-identifier)
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
// The header's C++ overloads make the address of a function ambiguous.
#ifndef __HIP_DISABLE_CPP_FUNCTIONS__
#define __HIP_DISABLE_CPP_FUNCTIONS__
#endif
// NOLINTEND(bugprone-reserved-identifier)
#include <cstddef>
#include <cstdint>
#include <hip/hip_runtime_api.h>
#include <string>

#include "../gpu/driver.h"

// One binary for ROCm 5.2 to 7: what changed between the releases, and what did not. The headers it
// is built with are those of 5.2; structures and numbers that differ later are declared here.
namespace lockstep::hip {

// ---- Versions: hipRuntimeGetVersion answers major * 10^7 + minor * 10^5 + patch. ----

struct Version {
  int major = 0, minor = 0, patch = 0;
  static Version from(int number) {
    return {number / 10000000, number / 100000 % 100, number % 100000};
  }
  // Compares with a release.
  bool before(int other_major, int other_minor) const {
    return major != other_major ? major < other_major : minor < other_minor;
  }
  std::string text() const {
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  }
};

// ---- Structures that every release has as they are in 5.2 ----

static_assert(sizeof(dim3) == 12);
static_assert(sizeof(hipKernelNodeParams) == 64 && offsetof(hipKernelNodeParams, blockDim) == 0 &&
              offsetof(hipKernelNodeParams, extra) == 16 &&
              offsetof(hipKernelNodeParams, func) == 24 &&
              offsetof(hipKernelNodeParams, gridDim) == 32 &&
              offsetof(hipKernelNodeParams, kernelParams) == 48 &&
              offsetof(hipKernelNodeParams, sharedMemBytes) == 56);
static_assert(sizeof(hipMemsetParams) == 48 && offsetof(hipMemsetParams, dst) == 0 &&
              offsetof(hipMemsetParams, elementSize) == 8 &&
              offsetof(hipMemsetParams, height) == 16 && offsetof(hipMemsetParams, pitch) == 24 &&
              offsetof(hipMemsetParams, value) == 32 && offsetof(hipMemsetParams, width) == 40);
static_assert(sizeof(hipHostNodeParams) == 16 && offsetof(hipHostNodeParams, userData) == 8);
static_assert(sizeof(hipMemcpy3DParms) == 160 && offsetof(hipMemcpy3DParms, srcPos) == 8 &&
              offsetof(hipMemcpy3DParms, srcPtr) == 32 &&
              offsetof(hipMemcpy3DParms, dstArray) == 64 &&
              offsetof(hipMemcpy3DParms, dstPos) == 72 &&
              offsetof(hipMemcpy3DParms, dstPtr) == 96 &&
              offsetof(hipMemcpy3DParms, extent) == 128 && offsetof(hipMemcpy3DParms, kind) == 152);
static_assert(sizeof(hipPitchedPtr) == 32 && sizeof(hipExtent) == 24 && sizeof(hipPos) == 24);
static_assert(sizeof(hipMemPoolProps) == 88);
static_assert(sizeof(hipUUID) == 16);
static_assert(sizeof(hipGraphNodeType) == 4 && sizeof(hipStreamCaptureMode) == 4 &&
              sizeof(hipStreamCaptureStatus) == 4 && sizeof(hipMemcpyKind) == 4 &&
              sizeof(hipError_t) == 4 && sizeof(hipMemPoolAttr) == 4);
static_assert(hipMemcpyHostToHost == 0 && hipMemcpyHostToDevice == 1 &&
              hipMemcpyDeviceToHost == 2 && hipMemcpyDeviceToDevice == 3 && hipMemcpyDefault == 4);
static_assert(hipMemPoolAttrReleaseThreshold == 4);
static_assert(sizeof(void*) == 8);

// The field was renamed and its values changed in 6.0; its place did not.
struct PointerAttributes {
  int type = 0;
  int device = -1;
  void* device_pointer = nullptr;
  void* host_pointer = nullptr;
  int is_managed = 0;
  unsigned flags = 0;
};
static_assert(sizeof(PointerAttributes) == sizeof(hipPointerAttribute_t) &&
              offsetof(PointerAttributes, type) == offsetof(hipPointerAttribute_t, memoryType) &&
              offsetof(PointerAttributes, device) == offsetof(hipPointerAttribute_t, device) &&
              offsetof(PointerAttributes, is_managed) ==
                  offsetof(hipPointerAttribute_t, isManaged));

// Since 5.7.
struct MemAllocNodeParams {
  hipMemPoolProps pool;
  const void* access = nullptr;
  std::size_t access_count = 0;
  std::size_t bytes = 0;
  void* address = nullptr;
};
static_assert(sizeof(MemAllocNodeParams) == 120 && offsetof(MemAllocNodeParams, bytes) == 104 &&
              offsetof(MemAllocNodeParams, address) == 112);

// Large enough for the value of a launch attribute in every release (32 bytes until 6.x, 64 in 7).
struct alignas(8) LaunchAttributeValue {
  unsigned char bytes[128] = {};
};
inline constexpr int kLaunchAttributeCooperative = 2;

// hipDeviceProp_t has two layouts. The symbol hipGetDeviceProperties fills the first one in every
// release, whatever the header of 6.0 and later makes of the name.
struct PropertyLayout {
  std::size_t size, architecture;  // bytes, offset of gcnArchName (256 bytes)
};
inline constexpr PropertyLayout kProperties0000 = {792, 396};
inline constexpr PropertyLayout kProperties0600 = {1472, 1160};
static_assert(sizeof(hipDeviceProp_t) == kProperties0000.size &&
              offsetof(hipDeviceProp_t, gcnArchName) == kProperties0000.architecture);
inline constexpr std::size_t kPropertyBuffer = 8192;  // more than any release writes

// ---- Numbers ----

// Device attributes: no release changed one, newer ones added some.
inline constexpr int kAttributeCooperativeLaunch = 10;
inline constexpr int kAttributeIntegrated = 16;
inline constexpr int kAttributeComputeCapabilityMajor = 23;
inline constexpr int kAttributeMaxBlockX = 26;  // Y and Z follow, then the grid's
inline constexpr int kAttributeMaxGridX = 29;
inline constexpr int kAttributeMaxThreadsPerBlock = 56;
inline constexpr int kAttributeComputeCapabilityMinor = 61;
inline constexpr int kAttributeMultiprocessorCount = 63;
inline constexpr int kAttributeMaxSharedPerBlock = 74;
inline constexpr int kAttributeWarpSize = 87;
inline constexpr int kAttributeMemoryPools = 88;
static_assert(hipDeviceAttributeCooperativeLaunch == kAttributeCooperativeLaunch &&
              hipDeviceAttributeIntegrated == kAttributeIntegrated &&
              hipDeviceAttributeComputeCapabilityMajor == kAttributeComputeCapabilityMajor &&
              hipDeviceAttributeMaxBlockDimX == kAttributeMaxBlockX &&
              hipDeviceAttributeMaxGridDimX == kAttributeMaxGridX &&
              hipDeviceAttributeMaxThreadsPerBlock == kAttributeMaxThreadsPerBlock &&
              hipDeviceAttributeComputeCapabilityMinor == kAttributeComputeCapabilityMinor &&
              hipDeviceAttributeMultiprocessorCount == kAttributeMultiprocessorCount &&
              hipDeviceAttributeMaxSharedMemoryPerBlock == kAttributeMaxSharedPerBlock &&
              hipDeviceAttributeWarpSize == kAttributeWarpSize &&
              hipDeviceAttributeMemoryPoolsSupported == kAttributeMemoryPools);

// Threads of a launch in one dimension are counted in 32 bits.
inline constexpr std::uint64_t kMaxGridTimesBlock = 0xFFFFFFFFU;

inline constexpr int kErrorNotSupported = 801;
inline constexpr int kErrorUpdateFailed = 910;

// LOCKSTEP_NODE_* of hipGraphNodeGetType's answer: shifted by one until 5.2.
std::uint32_t node_kind(int type, const Version& version);
const char* node_kind_name(int type, const Version& version);
// LOCKSTEP_MEMORY_* of hipPointerGetAttributes' answer: other numbers until 5.7.
std::uint32_t memory_kind(const PointerAttributes& attributes, const Version& version);
std::uint32_t update_outcome(int result);
// Where HIP's numbers mean something else than the shared table says; -1 = as the table says.
lockstep_code translate_error(int result);

hipMemcpy3DParms to_memcpy3d(const gpu::Copy& copy);
gpu::Copy from_memcpy3d(const hipMemcpy3DParms& native);
hipMemsetParams to_memset(const gpu::Set& set);
gpu::Set from_memset(const hipMemsetParams& native);
hipMemcpyKind copy_kind(gpu::Side from, gpu::Side to);
// True when a value is one byte repeated, which every release can set in two dimensions.
bool is_byte_pattern(const gpu::Set& set);

}  // namespace lockstep::hip
