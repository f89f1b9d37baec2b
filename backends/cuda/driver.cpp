// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <array>
#include <cstdio>
#include <cstring>

// Devices, memory, streams and events. Launches and copies: enqueue.cpp; modules: module.cpp;
// graphs: graph.cpp.
namespace lockstep::cuda {
namespace {

// In the order of gpu::Call.
constexpr std::array<const char*, gpu::kCallCount> kCallNames = {
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuMemGetInfo",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemHostRegister",
    "cuMemHostUnregister",
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuMemPoolSetAttribute",
    "cuPointerGetAttributes",
    "cuDeviceCanAccessPeer",
    "cuCtxEnablePeerAccess",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuModuleGetGlobal",
    "cuFuncLoad",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuStreamCreateWithPriority",
    "cuStreamDestroy",
    "cuStreamSynchronize",
    "cuStreamQuery",
    "cuStreamGetCtx",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuStreamWaitEvent",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuLaunchHostFunc",
    "cuMemcpyHtoDAsync",
    "cuMemcpyDtoHAsync",
    "cuMemcpyDtoDAsync",
    "cuMemcpyAsync",
    "cuMemcpyPeerAsync",
    "cuMemcpy2DAsync",
    "cuMemcpy3DAsync",
    "cuMemcpy3DPeerAsync",
    "cuMemsetD8Async",
    "cuMemsetD16Async",
    "cuMemsetD32Async",
    "cuMemsetD2D8Async",
    "cuMemsetD2D16Async",
    "cuMemsetD2D32Async",
    "cuStreamBeginCapture",
    "cuStreamEndCapture",
    "cuStreamGetCaptureInfo",
    "cuThreadExchangeStreamCaptureMode",
    "cuGraphCreate",
    "cuGraphClone",
    "cuGraphAddKernelNode",
    "cuGraphAddMemcpyNode",
    "cuGraphAddMemsetNode",
    "cuGraphAddHostNode",
    "cuGraphAddEmptyNode",
    "cuGraphAddChildGraphNode",
    "cuGraphAddEventRecordNode",
    "cuGraphAddEventWaitNode",
    "cuGraphGetNodes",
    "cuGraphGetEdges",
    "cuGraphNodeGetParams",
    "cuGraphInstantiate",
    "cuGraphExecUpdate",
    "cuGraphNodeSetEnabled",
    "cuGraphLaunch",
};
static_assert(kCallNames.back() != nullptr, "one name a call");

CUdeviceptr to_device(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }
void* to_pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
CUstream to_stream(gpu::Handle stream) { return static_cast<CUstream>(stream); }
bool is_device_kind(std::uint32_t kind) {
  return kind == LOCKSTEP_MEMORY_DEVICE || kind == LOCKSTEP_MEMORY_MANAGED;
}

gpu::Traits make_traits() {
  gpu::Traits traits;
  traits.name = "cuda";
  traits.vendor = "NVIDIA";
  traits.legacy_stream = CU_STREAM_LEGACY;
  traits.per_thread_stream = CU_STREAM_PER_THREAD;
  traits.failures_lose_the_context = true;
  return traits;
}

}  // namespace

CudaDriver::CudaDriver() : Driver(make_traits()) {}

lockstep_code CudaDriver::start(lockstep_error* error) {
  const lockstep_code code = library_.load(error);
  call_ = library_.call;
  nvrtc_.set_driver_version(library_.version);
  // Measured on 13.0 (docs/cuda-measured.md, row "context"); older ones were not asked.
  traits_.launches_need_context = library_.version < 13000;
  if (!traits_.launches_need_context) {
    // The same calls by untyped handles.
    traits_.plain_launch = reinterpret_cast<gpu::PlainLaunch>(call_.cuLaunchKernel_);
    traits_.plain_graph_launch = reinterpret_cast<gpu::PlainGraphLaunch>(call_.cuGraphLaunch_);
  }
  return code;
}

const char* CudaDriver::call_name(gpu::Call call) const {
  return kCallNames[static_cast<std::size_t>(call)];
}

const char* CudaDriver::result_name(gpu::Result result) const {
  const char* text = nullptr;
  if (call_.cuGetErrorName_ == nullptr) return "";
  call_.cuGetErrorName_(static_cast<CUresult>(result), &text);
  return text != nullptr ? text : "";
}

const char* CudaDriver::result_text(gpu::Result result) const {
  const char* text = nullptr;
  if (call_.cuGetErrorString_ == nullptr) return "";
  call_.cuGetErrorString_(static_cast<CUresult>(result), &text);
  return text != nullptr ? text : "";
}

gpu::Result CudaDriver::device_count(int* count) { return call_.cuDeviceGetCount_(count); }

std::string CudaDriver::architecture(int ordinal) {
  int major = 0, minor = 0;
  call_.cuDeviceGetAttribute_(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal);
  call_.cuDeviceGetAttribute_(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal);
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

bool CudaDriver::has_memory_pools(int ordinal) {
  int value = 0;
  if (call_.cuMemAllocAsync_ == nullptr || call_.cuMemFreeAsync_ == nullptr) return false;
  call_.cuDeviceGetAttribute_(&value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, ordinal);
  return value != 0;
}

gpu::Result CudaDriver::device_info(int ordinal, lockstep_device_info* info) {
  CUdevice device = 0;
  if (const CUresult result = call_.cuDeviceGet_(&device, ordinal)) return result;
  if (const CUresult result =
          call_.cuDeviceGetName_(info->name, static_cast<int>(sizeof info->name), device)) {
    return result;
  }
  std::size_t bytes = 0;
  if (const CUresult result = call_.cuDeviceTotalMem_(&bytes, device)) return result;
  info->memory_bytes = bytes;
  std::snprintf(info->arch, sizeof info->arch, "%s", architecture(ordinal).c_str());
  std::snprintf(info->driver, sizeof info->driver, "%s", version_text(library_.version).c_str());
  CUuuid uuid{};
  if (call_.cuDeviceGetUuid_ != nullptr && call_.cuDeviceGetUuid_(&uuid, device) == CUDA_SUCCESS) {
    char* to = info->uuid;
    to += std::snprintf(to, 5, "GPU-");
    for (int index = 0; index < 16; ++index) {
      const bool dash = index == 4 || index == 6 || index == 8 || index == 10;
      to += std::snprintf(to, 4, dash ? "-%02x" : "%02x",
                          static_cast<unsigned char>(uuid.bytes[index]));
    }
  }
  if (call_.cuDeviceGetPCIBusId_ != nullptr) {
    call_.cuDeviceGetPCIBusId_(info->bus_id, static_cast<int>(sizeof info->bus_id), device);
  }
  info->simulated = std::strncmp(info->name, "SIMULATED ", 10) == 0 ? 1 : 0;
  int integrated = 0;
  call_.cuDeviceGetAttribute_(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, device);
  info->integrated = integrated != 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

gpu::Result CudaDriver::device_attribute(int ordinal, lockstep_device_attribute attribute,
                                         std::int64_t* value, bool* known) {
  *known = true;
  CUdevice_attribute native{};
  switch (attribute) {
    case LOCKSTEP_ATTR_MAX_THREADS_PER_BLOCK:
      native = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
      break;
    case LOCKSTEP_ATTR_MAX_BLOCK_X:
    case LOCKSTEP_ATTR_MAX_BLOCK_Y:
    case LOCKSTEP_ATTR_MAX_BLOCK_Z:
    case LOCKSTEP_ATTR_MAX_GRID_X:
    case LOCKSTEP_ATTR_MAX_GRID_Y:
    case LOCKSTEP_ATTR_MAX_GRID_Z:
      // Six consecutive numbers in both lists.
      native = static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X +
                                               (attribute - LOCKSTEP_ATTR_MAX_BLOCK_X));
      break;
    case LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK:
      native = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK;
      break;
    case LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK_OPTIN:
      native = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
      break;
    case LOCKSTEP_ATTR_WARP_SIZE:
      native = CU_DEVICE_ATTRIBUTE_WARP_SIZE;
      break;
    case LOCKSTEP_ATTR_MULTIPROCESSOR_COUNT:
      native = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
      break;
    case LOCKSTEP_ATTR_STREAM_ORDERED_MEMORY:
    case LOCKSTEP_ATTR_GRAPH_MEMORY_NODES:
      *value = has_memory_pools(ordinal) ? 1 : 0;
      return CUDA_SUCCESS;
    case LOCKSTEP_ATTR_COOPERATIVE_LAUNCH:
      native = CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH;
      break;
    case LOCKSTEP_ATTR_CLUSTER_LAUNCH:
      native = CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH;
      break;
    case LOCKSTEP_ATTR_GRAPHS:
    case LOCKSTEP_ATTR_CAPTURE:
      *value = 1;
      return CUDA_SUCCESS;
    case LOCKSTEP_ATTR_COMPILES_SOURCE:
      *value = compiler_available() ? 1 : 0;
      return CUDA_SUCCESS;
    case LOCKSTEP_ATTR_LOWEST_STREAM_PRIORITY:
    case LOCKSTEP_ATTR_HIGHEST_STREAM_PRIORITY: {
      // The driver tells the current context's range: it is that of every device it supports.
      if (call_.cuCtxGetStreamPriorityRange_ == nullptr) break;
      gpu::Context previous = nullptr, own = nullptr;
      if (const gpu::Result result = context_current(&previous)) return result;
      if (previous == nullptr) {
        if (const gpu::Result result = context_retain(ordinal, &own)) return result;
        if (const gpu::Result result = context_set(own)) return result;
      }
      int lowest = 0, highest = 0;
      const CUresult result = call_.cuCtxGetStreamPriorityRange_(&lowest, &highest);
      if (previous == nullptr) context_set(nullptr);
      *value = attribute == LOCKSTEP_ATTR_LOWEST_STREAM_PRIORITY ? lowest : highest;
      return result;
    }
    case LOCKSTEP_ATTR_COMPUTE_CAPABILITY_MAJOR:
      native = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
      break;
    case LOCKSTEP_ATTR_COMPUTE_CAPABILITY_MINOR:
      native = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
      break;
    default:
      break;
  }
  if (native == CUdevice_attribute{}) {
    *known = false;
    return CUDA_SUCCESS;
  }
  int number = 0;
  const CUresult result = call_.cuDeviceGetAttribute_(&number, native, ordinal);
  *value = number;
  return result;
}

std::string CudaDriver::capabilities(int ordinal) {
  const auto attribute = [&](lockstep_device_attribute which) {
    std::int64_t value = 0;
    bool known = false;
    return device_attribute(ordinal, which, &value, &known) == CUDA_SUCCESS && known && value != 0
               ? "true"
               : "false";
  };
  const auto has = [](bool present) { return present ? "true" : "false"; };
  std::string text = "{\"driver\":\"" + version_text(library_.version) + "\",\"arch\":\"" +
                     architecture(ordinal) + "\",\"capture\":true,\"graphs\":true";
  const auto add = [&](const char* name, const char* value) {
    text += std::string(",\"") + name + "\":" + value;
  };
  add("stream_ordered_memory", attribute(LOCKSTEP_ATTR_STREAM_ORDERED_MEMORY));
  add("graph_memory_nodes", attribute(LOCKSTEP_ATTR_GRAPH_MEMORY_NODES));
  add("cooperative_launch", attribute(LOCKSTEP_ATTR_COOPERATIVE_LAUNCH));
  add("cluster_launch", attribute(LOCKSTEP_ATTR_CLUSTER_LAUNCH));
  add("programmatic_edges", has(call_.graph_get_edges_v2 != nullptr));
  add("kernel_names", has(call_.cuFuncGetName_ != nullptr));
  add("parameter_layout", has(call_.cuFuncGetParamInfo_ != nullptr));
  add("load_all", has(call_.cuModuleEnumerateFunctions_ != nullptr));
  add("stream_ids", has(call_.cuStreamGetId_ != nullptr));
  return text + ",\"graph_getters\":\"trusted\"}";
}

gpu::Result CudaDriver::context_retain(int ordinal, gpu::Context* context) {
  CUdevice device = 0;
  if (const CUresult result = call_.cuDeviceGet_(&device, ordinal)) return result;
  return call_.cuDevicePrimaryCtxRetain_(reinterpret_cast<CUcontext*>(context), device);
}
gpu::Result CudaDriver::context_current(gpu::Context* context) {
  return call_.cuCtxGetCurrent_(reinterpret_cast<CUcontext*>(context));
}
gpu::Result CudaDriver::context_set(gpu::Context context) {
  return call_.cuCtxSetCurrent_(static_cast<CUcontext>(context));
}
gpu::Result CudaDriver::context_synchronize() { return call_.cuCtxSynchronize_(); }

gpu::Result CudaDriver::prepare_device(int ordinal) {
  if (!has_memory_pools(ordinal) || call_.cuDeviceGetDefaultMemPool_ == nullptr ||
      call_.cuMemPoolGetAttribute_ == nullptr || call_.cuMemPoolSetAttribute_ == nullptr) {
    return CUDA_SUCCESS;
  }
  CUmemoryPool pool = nullptr;
  if (const CUresult result = call_.cuDeviceGetDefaultMemPool_(&pool, ordinal)) return result;
  // With the default of 0 the pool gives everything back at each synchronise. A value that somebody
  // chose is left alone.
  cuuint64_t threshold = 0;
  if (const CUresult result =
          call_.cuMemPoolGetAttribute_(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold)) {
    return result;
  }
  if (threshold != 0) return CUDA_SUCCESS;
  threshold = ~cuuint64_t{0};
  return call_.cuMemPoolSetAttribute_(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
}

gpu::Result CudaDriver::memory_info(std::uint64_t* free_bytes, std::uint64_t* total_bytes) {
  std::size_t free_size = 0, total_size = 0;
  const CUresult result = call_.cuMemGetInfo_(&free_size, &total_size);
  *free_bytes = free_size;
  *total_bytes = total_size;
  return result;
}
gpu::Result CudaDriver::memory_allocate(std::uint64_t bytes, void** address) {
  CUdeviceptr made = 0;
  const CUresult result = call_.cuMemAlloc_(&made, bytes);
  *address = to_pointer(made);
  return result;
}
gpu::Result CudaDriver::memory_free(void* address) { return call_.cuMemFree_(to_device(address)); }
gpu::Result CudaDriver::host_allocate(std::uint64_t bytes, void** address) {
  return call_.cuMemHostAlloc_(address, bytes, CU_MEMHOSTALLOC_PORTABLE);
}
gpu::Result CudaDriver::host_free(void* address) { return call_.cuMemFreeHost_(address); }
gpu::Result CudaDriver::host_register(void* address, std::uint64_t bytes) {
  return call_.cuMemHostRegister_(address, bytes, CU_MEMHOSTREGISTER_PORTABLE);
}
gpu::Result CudaDriver::host_unregister(void* address) {
  return call_.cuMemHostUnregister_(address);
}
gpu::Result CudaDriver::memory_allocate_async(std::uint64_t bytes, gpu::Handle stream,
                                              void** address) {
  if (call_.cuMemAllocAsync_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUdeviceptr made = 0;
  const CUresult result = call_.cuMemAllocAsync_(&made, bytes, to_stream(stream));
  *address = to_pointer(made);
  return result;
}
gpu::Result CudaDriver::memory_free_async(void* address, gpu::Handle stream) {
  if (call_.cuMemFreeAsync_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return call_.cuMemFreeAsync_(to_device(address), to_stream(stream));
}

gpu::Result CudaDriver::pointer_facts(const void* address, gpu::PointerFacts* facts) {
  // Asked together, unknown pointers are answered with zeros, not with an error.
  unsigned type = 0, managed = 0;
  int ordinal = -1;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                 CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* answers[] = {&type, &managed, &ordinal, &base, &bytes};
  const CUresult result = call_.cuPointerGetAttributes_(5, which, answers, to_device(address));
  if (result != CUDA_SUCCESS) return result;
  if (managed != 0) {
    facts->memory_kind = LOCKSTEP_MEMORY_MANAGED;
  } else if (type == CU_MEMORYTYPE_HOST) {
    facts->memory_kind = LOCKSTEP_MEMORY_PINNED;
  } else if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY) {
    facts->memory_kind = LOCKSTEP_MEMORY_DEVICE;
  }
  if (is_device_kind(facts->memory_kind)) facts->device = ordinal;
  facts->base = base;
  facts->bytes = bytes;
  return CUDA_SUCCESS;
}

gpu::Result CudaDriver::can_access_peer(int from, int to, bool* can) {
  int value = 0;
  const CUresult result = call_.cuDeviceCanAccessPeer_(&value, from, to);
  *can = value != 0;
  return result;
}
gpu::Result CudaDriver::enable_peer(gpu::Context to) {
  const CUresult result = call_.cuCtxEnablePeerAccess_(static_cast<CUcontext>(to), 0);
  return result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? CUDA_SUCCESS : result;
}

gpu::Result CudaDriver::stream_create(bool non_blocking, std::int32_t priority,
                                      gpu::Handle* stream) {
  return call_.cuStreamCreateWithPriority_(
      reinterpret_cast<CUstream*>(stream),
      non_blocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT, priority);
}
gpu::Result CudaDriver::stream_destroy(gpu::Handle stream) {
  return call_.cuStreamDestroy_(to_stream(stream));
}
gpu::Result CudaDriver::stream_synchronize(gpu::Handle stream) {
  return call_.cuStreamSynchronize_(to_stream(stream));
}
gpu::Result CudaDriver::stream_query(gpu::Handle stream) {
  return call_.cuStreamQuery_(to_stream(stream));
}
gpu::Result CudaDriver::stream_context(gpu::Handle stream, gpu::Context* context) {
  return call_.cuStreamGetCtx_(to_stream(stream), reinterpret_cast<CUcontext*>(context));
}
gpu::Result CudaDriver::stream_is_non_blocking(gpu::Handle stream, bool* non_blocking) {
  unsigned flags = 0;
  const CUresult result = call_.cuStreamGetFlags_(to_stream(stream), &flags);
  *non_blocking = (flags & CU_STREAM_NON_BLOCKING) != 0;
  return result;
}
bool CudaDriver::stream_unique_id(gpu::Handle stream, std::uint64_t* id) {
  unsigned long long number = 0;
  if (call_.cuStreamGetId_ == nullptr ||
      call_.cuStreamGetId_(to_stream(stream), &number) != CUDA_SUCCESS) {
    return false;
  }
  *id = number;
  return true;
}

gpu::Result CudaDriver::event_create(bool timing, gpu::Handle* event) {
  return call_.cuEventCreate_(reinterpret_cast<CUevent*>(event),
                              timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
}
gpu::Result CudaDriver::event_destroy(gpu::Handle event) {
  return call_.cuEventDestroy_(static_cast<CUevent>(event));
}
gpu::Result CudaDriver::event_record(gpu::Handle event, gpu::Handle stream) {
  return call_.cuEventRecord_(static_cast<CUevent>(event), to_stream(stream));
}
gpu::Result CudaDriver::event_query(gpu::Handle event) {
  return call_.cuEventQuery_(static_cast<CUevent>(event));
}
gpu::Result CudaDriver::event_synchronize(gpu::Handle event) {
  return call_.cuEventSynchronize_(static_cast<CUevent>(event));
}
gpu::Result CudaDriver::event_elapsed(gpu::Handle begin, gpu::Handle end, float* milliseconds) {
  return call_.cuEventElapsedTime_(milliseconds, static_cast<CUevent>(begin),
                                   static_cast<CUevent>(end));
}
gpu::Result CudaDriver::stream_wait_event(gpu::Handle stream, gpu::Handle event) {
  return call_.cuStreamWaitEvent_(to_stream(stream), static_cast<CUevent>(event), 0);
}
bool CudaDriver::is_not_ready(gpu::Result result) const { return result == CUDA_ERROR_NOT_READY; }

}  // namespace lockstep::cuda
