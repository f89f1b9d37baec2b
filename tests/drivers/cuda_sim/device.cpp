// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "call.h"
#include "visible_devices.h"

// Devices, contexts and peers. There are primary contexts only.
namespace cuda_sim {
namespace {

// The calling thread's contexts, the current one last. Nothing to destroy: calls may come when the
// thread's destructors have run already, from handlers of exit().
struct ContextStack {
  static constexpr std::size_t kCapacity = 64;
  CUcontext contexts[kCapacity];
  std::size_t size;

  bool empty() const { return size == 0; }
  CUcontext back() const { return contexts[size - 1]; }
  void pop_back() { --size; }
  void push_back(CUcontext context) {
    if (size == kCapacity) refuse(CUDA_ERROR_OUT_OF_MEMORY, "too many contexts were pushed");
    contexts[size++] = context;
  }
};
constinit thread_local ContextStack t_contexts{};

struct Contexts {
  std::mutex mutex;
  std::map<CUdevice, std::unique_ptr<CUctx_st>> by_device;
};
Contexts& contexts() {
  static auto* const instance = new Contexts;
  return *instance;
}

void check_device(CUdevice device) {
  if (device < 0 || std::cmp_greater_equal(device, visible().devices.size())) {
    refuse(CUDA_ERROR_INVALID_DEVICE, "no such device");
  }
}

std::uint32_t physical(CUdevice device) {
  return visible().devices[static_cast<std::size_t>(device)];
}

// An H200's, as far as they matter to anybody; what the simulation cannot do is 0.
int attribute_of(CUdevice_attribute attribute, CUdevice device) {
  switch (static_cast<int>(attribute)) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return hostrt::kMaxThreadsPerBlock;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return hostrt::kMaxBlockZ;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return hostrt::kMaxGridX;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return hostrt::kMaxGridYZ;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return hostrt::kMaxShared;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return hostrt::kMaxSharedOptIn;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return 228 * 1024;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 1'000'000;
    // Blocks of a cooperative launch have to be resident at once: one is, for certain.
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return 0;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return device + 1;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

CUctx_st& primary_context(CUdevice device) {
  check_device(device);
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  std::unique_ptr<CUctx_st>& context = all.by_device[device];
  if (context == nullptr) {
    context = std::make_unique<CUctx_st>(
        hostrt::Runtime::require().device(static_cast<std::uint32_t>(device)));
    Live<CUctx_st>::all().add(context.get());
  }
  return *context;
}

void refuse_if_lost(const CUctx_st& context) {
  if (const int lost = context.lost.load(std::memory_order_acquire)) {
    refuse(static_cast<CUresult>(lost), "the context is lost");
  }
}

CUctx_st& current_context() {
  if (t_contexts.empty() || t_contexts.back() == nullptr) {
    refuse(CUDA_ERROR_INVALID_CONTEXT, "no context is current");
  }
  CUctx_st& context = *t_contexts.back();
  if (context.retained.load() == 0) refuse(CUDA_ERROR_INVALID_CONTEXT, "it was released");
  refuse_if_lost(context);
  return context;
}

}  // namespace cuda_sim

using namespace cuda_sim;

CUctx_st::CUctx_st(lockstep::hostrt::Device& d)
    : device(d), legacy(std::make_unique<CUstream_st>()) {
  legacy->context = this;
}

CUDA_SIM_API cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", [&] {
    require(count);
    *count = static_cast<int>(visible().devices.size());
  });
}
CUDA_SIM_API cuDeviceGet(CUdevice* device, int ordinal) {
  return call("cuDeviceGet", [&] {
    require(device);
    check_device(ordinal);
    *device = ordinal;
  });
}
CUDA_SIM_API cuDeviceGetName(char* name, int length, CUdevice device) {
  return call("cuDeviceGetName", [&] {
    require(name);
    check_device(device);
    if (length <= 0) refuse(CUDA_ERROR_INVALID_VALUE, "no room for a name");
    std::snprintf(name, static_cast<std::size_t>(length), "SIMULATED NVIDIA GPU");
  });
}
CUDA_SIM_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return call("cuDeviceGetUuid_v2", [&] {
    require(uuid);
    check_device(device);
    std::memcpy(uuid->bytes, uuid_of(physical(device)).data(), sizeof uuid->bytes);
  });
}
CUDA_SIM_API cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  return call("cuDeviceGetPCIBusId", [&] {
    require(id);
    check_device(device);
    if (length < 13) refuse(CUDA_ERROR_INVALID_VALUE, "no room for an id");
    std::snprintf(id, static_cast<std::size_t>(length), "0000:%02X:00.0",
                  (physical(device) + 1) & 0xFFU);
  });
}
CUDA_SIM_API cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  return call("cuDeviceTotalMem_v2", [&] {
    require(bytes);
    check_device(device);
    *bytes = faults().memory_bytes();
  });
}
CUDA_SIM_API cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return call("cuDeviceGetAttribute", [&] {
    require(value);
    check_device(device);
    if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) {
      refuse(CUDA_ERROR_INVALID_VALUE, "unknown attribute");
    }
    *value = attribute_of(attribute, device);
  });
}

CUDA_SIM_API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call("cuDevicePrimaryCtxRetain", [&] {
    require(context);
    CUctx_st& primary = primary_context(device);
    primary.retained.fetch_add(1);
    *context = &primary;
  });
}
CUDA_SIM_API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return call("cuDevicePrimaryCtxRelease_v2", [&] {
    CUctx_st& primary = primary_context(device);
    if (primary.retained.load() == 0) refuse(CUDA_ERROR_INVALID_CONTEXT, "it is not retained");
    primary.retained.fetch_sub(1);
  });
}
CUDA_SIM_API cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return call("cuDevicePrimaryCtxGetState", [&] {
    require(flags);
    require(active);
    *flags = 0;
    *active = primary_context(device).retained.load() > 0 ? 1 : 0;
  });
}
CUDA_SIM_API cuCtxGetCurrent(CUcontext* context) {
  return call("cuCtxGetCurrent", [&] {
    require(context);
    *context = t_contexts.empty() ? nullptr : t_contexts.back();
  });
}
CUDA_SIM_API cuCtxSetCurrent(CUcontext context) {
  return call("cuCtxSetCurrent", [&] {
    if (context != nullptr) live(context, CUDA_ERROR_INVALID_CONTEXT);
    if (!t_contexts.empty()) t_contexts.pop_back();
    if (context != nullptr) t_contexts.push_back(context);
  });
}
CUDA_SIM_API cuCtxPushCurrent_v2(CUcontext context) {
  return call("cuCtxPushCurrent_v2",
              [&] { t_contexts.push_back(&live(context, CUDA_ERROR_INVALID_CONTEXT)); });
}
CUDA_SIM_API cuCtxPopCurrent_v2(CUcontext* context) {
  return call("cuCtxPopCurrent_v2", [&] {
    if (t_contexts.empty()) refuse(CUDA_ERROR_INVALID_CONTEXT, "no context is current");
    if (context != nullptr) *context = t_contexts.back();
    t_contexts.pop_back();
  });
}
CUDA_SIM_API cuCtxGetDevice(CUdevice* device) {
  return call("cuCtxGetDevice", [&] {
    require(device);
    *device = current_context().device.signed_ordinal();
  });
}
CUDA_SIM_API cuCtxSynchronize(void) {
  return call("cuCtxSynchronize", [&] { hostrt::driver::synchronize(current_context().device); });
}
CUDA_SIM_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return call("cuCtxGetStreamPriorityRange", [&] {
    current_context();
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = hostrt::kHighestPriority;
  });
}

CUDA_SIM_API cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return call("cuDeviceCanAccessPeer", [&] {
    require(can);
    check_device(device);
    check_device(peer);
    *can = device != peer ? 1 : 0;
  });
}
CUDA_SIM_API cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return call("cuCtxEnablePeerAccess", [&] {
    CUctx_st& own = current_context();
    live(peer, CUDA_ERROR_INVALID_CONTEXT);
    if (flags != 0 || peer == &own) refuse(CUDA_ERROR_INVALID_VALUE, "flags, or the same context");
    const std::lock_guard lock(own.mutex);
    if (!own.peers.insert(peer).second) {
      refuse(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "enabled before");
    }
  });
}
CUDA_SIM_API cuCtxDisablePeerAccess(CUcontext peer) {
  return call("cuCtxDisablePeerAccess", [&] {
    CUctx_st& own = current_context();
    const std::lock_guard lock(own.mutex);
    if (own.peers.erase(peer) == 0) refuse(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "not enabled");
  });
}
