// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <cstdio>
#include <cstring>
#include <vector>

#include "device_scope.h"
#include "refusal.h"

// Devices, memory, streams and events. Launches and copies: enqueue.cpp; modules: module.cpp;
// graphs: graph.cpp; names of calls: call_names.cpp.
namespace lockstep::hip {
namespace {

// "Current" is a device's ordinal here; 0 would be the null context.
gpu::Context context_of(int ordinal) {
  return reinterpret_cast<gpu::Context>(static_cast<std::intptr_t>(ordinal) + 1);
}
int ordinal_of(gpu::Context context) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(context) - 1);
}
hipStream_t to_stream(gpu::Handle stream) { return static_cast<hipStream_t>(stream); }

}  // namespace

HipDriver::HipDriver() {
  traits_.name = "hip";
  traits_.vendor = "AMD";
  traits_.legacy_stream = nullptr;
  traits_.per_thread_stream = hipStreamPerThread;
  // A runtime's capture that fails leaves its streams unusable in 6.4 and 7.2. Ours is kept from
  // failing there; who breaks it all the same is met by a new stream.
  traits_.streams_survive_failed_capture = false;
  traits_.update_trusted = false;
  traits_.events_outlive_streams = false;
  traits_.check_launches_first = true;
  traits_.max_grid_times_block = kMaxGridTimesBlock;
}

lockstep_code HipDriver::start(lockstep_error* error) {
  const lockstep_code code = library_.load(error);
  call_ = library_.call;
  const Version& version = library_.version;
  // 5.2 executes a launch into a capture at once and makes no node of it; what 5.3 to 5.6 do was
  // never seen, their sources capture.
  traits_.captures = !version.before(5, 3);
  captures_.set_release(version);
  // Until 6.4 the getter of a captured copy succeeds and gives garbage.
  traits_.copy_getter_trusted = version.major >= 7;
  hiprtc_.set_runtime(&library_.file, version, library_.path);
  return code;
}

const char* HipDriver::result_name(gpu::Result result) const {
  if (call_.hipGetErrorName_ == nullptr) return "";
  const char* text = call_.hipGetErrorName_(static_cast<hipError_t>(result));
  return text != nullptr ? text : "";
}
const char* HipDriver::result_text(gpu::Result result) const {
  if (call_.hipGetErrorString_ == nullptr) return "";
  const char* text = call_.hipGetErrorString_(static_cast<hipError_t>(result));
  return text != nullptr ? text : "";
}
const char* HipDriver::take_reason() { return hip::take_reason(); }
lockstep_code HipDriver::translate(gpu::Result result) const { return translate_error(result); }

gpu::Result HipDriver::device_count(int* count) {
  const int result = call_.hipGetDeviceCount_(count);
  if (result == hipErrorNoDevice || result == hipErrorInvalidDevice) {
    *count = 0;
    return hipSuccess;
  }
  return result;
}

int HipDriver::attribute(int ordinal, int number, int otherwise) {
  int value = otherwise;
  return call_.hipDeviceGetAttribute_(&value, number, ordinal) == hipSuccess ? value : otherwise;
}

std::string HipDriver::architecture(int ordinal) {
  // Written whole by the runtime, whose structure may be longer than the one that is known here.
  std::vector<char> properties(kPropertyBuffer);
  PropertyLayout layout = kProperties0600;
  int result = 0;
  if (call_.hipGetDevicePropertiesR0600_ != nullptr) {
    result = call_.hipGetDevicePropertiesR0600_(properties.data(), ordinal);
  } else {
    layout = kProperties0000;
    result = call_.hipGetDeviceProperties_(properties.data(), ordinal);
  }
  if (result != hipSuccess) return {};
  properties[layout.architecture + 255] = '\0';
  return properties.data() + layout.architecture;
}

bool HipDriver::has_memory_pools(int ordinal) {
  return call_.hipMallocAsync_ != nullptr && call_.hipFreeAsync_ != nullptr &&
         attribute(ordinal, kAttributeMemoryPools, 0) != 0;
}

gpu::Result HipDriver::device_info(int ordinal, lockstep_device_info* info) {
  if (const int result =
          call_.hipDeviceGetName_(info->name, static_cast<int>(sizeof info->name), ordinal)) {
    return result;
  }
  info->name[sizeof info->name - 1] = '\0';
  std::size_t bytes = 0;
  if (const int result = call_.hipDeviceTotalMem_(&bytes, ordinal)) return result;
  info->memory_bytes = bytes;
  std::snprintf(info->arch, sizeof info->arch, "%s", architecture(ordinal).c_str());
  std::snprintf(info->driver, sizeof info->driver, "%s", library_.version.text().c_str());
  hipUUID uuid{};
  if (call_.hipDeviceGetUuid_ != nullptr && call_.hipDeviceGetUuid_(&uuid, ordinal) == hipSuccess) {
    char* to = info->uuid;
    to += std::snprintf(to, 5, "GPU-");
    for (const char byte : uuid.bytes) {
      to += std::snprintf(to, 3, "%02x", static_cast<unsigned char>(byte));
    }
  }
  call_.hipDeviceGetPCIBusId_(info->bus_id, static_cast<int>(sizeof info->bus_id), ordinal);
  info->simulated = std::strncmp(info->name, "SIMULATED ", 10) == 0 ? 1 : 0;
  info->integrated = attribute(ordinal, kAttributeIntegrated, 0) != 0 ? 1 : 0;
  return hipSuccess;
}

gpu::Result HipDriver::device_attribute(int ordinal, lockstep_device_attribute which,
                                        std::int64_t* value, bool* known) {
  *known = true;
  int number = -1;
  switch (which) {
    case LOCKSTEP_ATTR_MAX_THREADS_PER_BLOCK:
      number = kAttributeMaxThreadsPerBlock;
      break;
    case LOCKSTEP_ATTR_MAX_BLOCK_X:
    case LOCKSTEP_ATTR_MAX_BLOCK_Y:
    case LOCKSTEP_ATTR_MAX_BLOCK_Z:
    case LOCKSTEP_ATTR_MAX_GRID_X:
    case LOCKSTEP_ATTR_MAX_GRID_Y:
    case LOCKSTEP_ATTR_MAX_GRID_Z:
      // Six consecutive numbers in both lists.
      number = kAttributeMaxBlockX + static_cast<int>(which - LOCKSTEP_ATTR_MAX_BLOCK_X);
      break;
    case LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK:
    case LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK_OPTIN:
      number = kAttributeMaxSharedPerBlock;  // all of it is there without asking
      break;
    case LOCKSTEP_ATTR_WARP_SIZE:
      number = kAttributeWarpSize;
      break;
    case LOCKSTEP_ATTR_MULTIPROCESSOR_COUNT:
      number = kAttributeMultiprocessorCount;
      break;
    case LOCKSTEP_ATTR_STREAM_ORDERED_MEMORY:
      *value = has_memory_pools(ordinal) ? 1 : 0;
      return hipSuccess;
    case LOCKSTEP_ATTR_GRAPH_MEMORY_NODES:
      // Releases differ in what becomes of the memory when the graph goes.
      *value = 0;
      return hipSuccess;
    case LOCKSTEP_ATTR_COOPERATIVE_LAUNCH:
      *value = call_.hipModuleLaunchCooperativeKernel_ != nullptr &&
                       attribute(ordinal, kAttributeCooperativeLaunch, 0) != 0
                   ? 1
                   : 0;
      return hipSuccess;
    case LOCKSTEP_ATTR_CLUSTER_LAUNCH:
      *value = 0;
      return hipSuccess;
    case LOCKSTEP_ATTR_GRAPHS:
      *value = 1;
      return hipSuccess;
    case LOCKSTEP_ATTR_CAPTURE:
      *value = traits_.captures ? 1 : 0;
      return hipSuccess;
    case LOCKSTEP_ATTR_COMPILES_SOURCE:
      *value = compiler_available() ? 1 : 0;
      return hipSuccess;
    case LOCKSTEP_ATTR_LOWEST_STREAM_PRIORITY:
    case LOCKSTEP_ATTR_HIGHEST_STREAM_PRIORITY: {
      const DeviceScope scope(call_, ordinal);
      if (scope.result() != hipSuccess) return scope.result();
      int lowest = 0, highest = 0;
      const int result = call_.hipDeviceGetStreamPriorityRange_(&lowest, &highest);
      *value = which == LOCKSTEP_ATTR_LOWEST_STREAM_PRIORITY ? lowest : highest;
      return result;
    }
    case LOCKSTEP_ATTR_MAX_GRID_TIMES_BLOCK:
      *value = kMaxGridTimesBlock;
      return hipSuccess;
    case LOCKSTEP_ATTR_COMPUTE_CAPABILITY_MAJOR:
      number = kAttributeComputeCapabilityMajor;
      break;
    case LOCKSTEP_ATTR_COMPUTE_CAPABILITY_MINOR:
      number = kAttributeComputeCapabilityMinor;
      break;
    default:
      *known = false;
      return hipSuccess;
  }
  int answer = 0;
  const int result = call_.hipDeviceGetAttribute_(&answer, number, ordinal);
  *value = answer;
  return result;
}

std::string HipDriver::capabilities(int ordinal) {
  const Version& version = library_.version;
  std::string text = "{\"runtime\":\"" + version.text() + "\",\"library\":\"" +
                     library_.file.name() + "\",\"arch\":\"" + architecture(ordinal) + "\"";
  const auto add = [&](const char* name, bool value) {
    text += std::string(",\"") + name + "\":" + (value ? "true" : "false");
  };
  const auto say = [&](const char* name, const std::string& value) {
    text += std::string(",\"") + name + "\":\"" + value + "\"";
  };
  const auto has = [&](lockstep_device_attribute which) {
    std::int64_t value = 0;
    bool known = false;
    return device_attribute(ordinal, which, &value, &known) == hipSuccess && known && value != 0;
  };
  add("graphs", true);
  add("capture", traits_.captures);
  if (!traits_.captures) say("capture_why_not", "launches are not captured before ROCm 5.3");
  add("stream_ordered_memory", has(LOCKSTEP_ATTR_STREAM_ORDERED_MEMORY));
  add("graph_memory_nodes", false);
  add("cooperative_launch", has(LOCKSTEP_ATTR_COOPERATIVE_LAUNCH));
  add("cluster_launch", false);
  add("graph_node_enabling", call_.hipGraphNodeSetEnabled_ != nullptr);
  add("kernel_names", call_.hipKernelNameRef_ != nullptr);
  say("parameter_layout", call_.hipFuncGetParamInfo_ != nullptr
                              ? "code object metadata, hipFuncGetParamInfo"
                              : "code object metadata");
  say("host_functions",
      call_.hipLaunchHostFunc_ != nullptr ? "hipLaunchHostFunc" : "hipStreamAddCallback");
  say("pitched_sets",
      call_.hipMemsetD2D32Async_ != nullptr ? "8, 16 and 32 bits" : "8 bits, others row by row");
  add("stream_ids", call_.hipStreamGetId_ != nullptr);
  say("properties", call_.hipGetDevicePropertiesR0600_ != nullptr ? "R0600" : "R0000");
  say("graph_node_types", version.before(5, 3) ? "5.2" : "5.3");
  say("memory_types", version.major < 6 ? "5" : "6");
  say("graph_getters", traits_.copy_getter_trusted ? "trusted" : "copies as recorded");
  std::string why;
  const std::string compiler = hiprtc_.available(&why) ? hiprtc_.description() : "none";
  say("compiler", compiler);
  return text + "}";
}

gpu::Result HipDriver::context_retain(int ordinal, gpu::Context* context) {
  const DeviceScope scope(call_, ordinal);  // that it can be made current
  *context = context_of(ordinal);
  return scope.result();
}
gpu::Result HipDriver::context_current(gpu::Context* context) {
  int ordinal = 0;
  const int result = call_.hipGetDevice_(&ordinal);
  *context = context_of(ordinal);
  return result;
}
gpu::Result HipDriver::context_set(gpu::Context context) {
  return call_.hipSetDevice_(ordinal_of(context));
}
void* HipDriver::device_native(int ordinal, gpu::Context) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(ordinal));
}
gpu::Result HipDriver::context_synchronize() {
  if (const gpu::Result refused = captures_.check_device_wait("hipDeviceSynchronize")) {
    return refused;
  }
  const int result = call_.hipDeviceSynchronize_();
  captures_.sweep_streams();
  fresh_.sweep();
  return result;
}

gpu::Result HipDriver::prepare_device(int ordinal) {
  if (!has_memory_pools(ordinal) || call_.hipDeviceGetDefaultMemPool_ == nullptr ||
      call_.hipMemPoolGetAttribute_ == nullptr || call_.hipMemPoolSetAttribute_ == nullptr) {
    return hipSuccess;
  }
  hipMemPool_t pool = nullptr;
  if (const int result = call_.hipDeviceGetDefaultMemPool_(&pool, ordinal)) return result;
  // With the default of 0 the pool gives everything back at each synchronise, and on some devices
  // hands out memory that was not written yet. A value that somebody chose is left alone.
  std::uint64_t threshold = 0;
  if (const int result =
          call_.hipMemPoolGetAttribute_(pool, hipMemPoolAttrReleaseThreshold, &threshold)) {
    return result;
  }
  if (threshold != 0) return hipSuccess;
  threshold = ~std::uint64_t{0};
  return call_.hipMemPoolSetAttribute_(pool, hipMemPoolAttrReleaseThreshold, &threshold);
}

gpu::Result HipDriver::memory_info(std::uint64_t* free_bytes, std::uint64_t* total_bytes) {
  std::size_t free_size = 0, total_size = 0;
  const int result = call_.hipMemGetInfo_(&free_size, &total_size);
  *free_bytes = free_size;
  *total_bytes = total_size;
  return result;
}
gpu::Result HipDriver::memory_allocate(std::uint64_t bytes, void** address) {
  if (const gpu::Result refused = captures_.check_unsafe("hipMalloc")) return refused;
  return call_.hipMalloc_(address, bytes);
}
gpu::Result HipDriver::memory_free(void* address) {
  if (const gpu::Result refused = captures_.check_unsafe("hipFree")) return refused;
  return call_.hipFree_(address);
}
gpu::Result HipDriver::host_allocate(std::uint64_t bytes, void** address) {
  if (const gpu::Result refused = captures_.check_unsafe("hipHostMalloc")) return refused;
  return call_.hipHostMalloc_(address, bytes, hipHostMallocPortable);
}
gpu::Result HipDriver::host_free(void* address) {
  if (const gpu::Result refused = captures_.check_unsafe("hipHostFree")) return refused;
  return call_.hipHostFree_(address);
}
gpu::Result HipDriver::host_register(void* address, std::uint64_t bytes) {
  if (library_.version.before(5, 3)) {
    return not_supported(
        "ROCm 5.2 ends the process when memory is given back that the device sees at the host's "
        "address");
  }
  if (const gpu::Result refused = captures_.check_unsafe("hipHostRegister")) return refused;
  return call_.hipHostRegister_(address, bytes, hipHostRegisterPortable);
}
gpu::Result HipDriver::host_unregister(void* address) {
  if (const gpu::Result refused = captures_.check_unsafe("hipHostUnregister")) return refused;
  return call_.hipHostUnregister_(address);
}
gpu::Result HipDriver::memory_allocate_async(std::uint64_t bytes, gpu::Handle stream,
                                             void** address) {
  if (call_.hipMallocAsync_ == nullptr || library_.version.before(5, 3)) {
    return not_supported("ROCm 5.2 never ends destroying a stream whose memory was freed on it");
  }
  return captures_.enqueue(to_stream(stream), "hipMallocAsync", [&] {
    return call_.hipMallocAsync_(address, bytes, to_stream(stream));
  });
}
gpu::Result HipDriver::memory_free_async(void* address, gpu::Handle stream) {
  if (call_.hipFreeAsync_ == nullptr) return not_supported("this release has no hipFreeAsync");
  return captures_.enqueue(to_stream(stream), "hipFreeAsync",
                           [&] { return call_.hipFreeAsync_(address, to_stream(stream)); });
}

gpu::Result HipDriver::pointer_facts(const void* address, gpu::PointerFacts* facts) {
  PointerAttributes attributes;
  const int result = call_.hipPointerGetAttributes_(&attributes, address);
  if (result != hipSuccess) {
    // 5.x says "invalid value" of pageable memory, where 6.0 and later say "not registered"; the
    // thread's last error is not to hold what was expected.
    call_.hipGetLastError_();
    return result == hipErrorInvalidValue ? static_cast<int>(hipSuccess) : result;
  }
  facts->memory_kind = memory_kind(attributes, library_.version);
  if (facts->memory_kind == LOCKSTEP_MEMORY_UNKNOWN) return hipSuccess;
  if (facts->memory_kind != LOCKSTEP_MEMORY_PINNED) facts->device = attributes.device;
  void* base = nullptr;
  std::size_t bytes = 0;
  if (call_.hipMemGetAddressRange_(&base, &bytes, const_cast<void*>(address)) == hipSuccess) {
    facts->base = reinterpret_cast<std::uintptr_t>(base);
    facts->bytes = bytes;
  } else {
    call_.hipGetLastError_();  // it does not know host memory
  }
  return hipSuccess;
}

gpu::Result HipDriver::can_access_peer(int from, int to, bool* can) {
  int value = 0;
  const int result = call_.hipDeviceCanAccessPeer_(&value, from, to);
  *can = value != 0;
  return result;
}
gpu::Result HipDriver::enable_peer(gpu::Context to) {
  const int result = call_.hipDeviceEnablePeerAccess_(ordinal_of(to), 0);
  if (result != hipErrorPeerAccessAlreadyEnabled) return result;
  call_.hipGetLastError_();
  return hipSuccess;
}

gpu::Result HipDriver::stream_create(bool non_blocking, std::int32_t priority,
                                     gpu::Handle* stream) {
  const int result = call_.hipStreamCreateWithPriority_(
      reinterpret_cast<hipStream_t*>(stream),
      non_blocking ? hipStreamNonBlocking : hipStreamDefault, priority);
  if (result == hipSuccess) captures_.stream_made(to_stream(*stream), non_blocking);
  return result;
}
gpu::Result HipDriver::stream_destroy(gpu::Handle stream) {
  return captures_.stream_destroy(to_stream(stream));
}
bool HipDriver::stream_broken(gpu::Handle stream) {
  return captures_.stream_broken(to_stream(stream));
}
gpu::Result HipDriver::stream_synchronize(gpu::Handle stream) {
  const hipStream_t native = to_stream(stream);
  const gpu::Result refused = captures_.check_stream_wait(native, "hipStreamSynchronize");
  return refused != gpu::kSuccess ? refused : call_.hipStreamSynchronize_(native);
}
gpu::Result HipDriver::stream_query(gpu::Handle stream) {
  const hipStream_t native = to_stream(stream);
  const gpu::Result refused = captures_.check_stream_wait(native, "hipStreamQuery");
  return refused != gpu::kSuccess ? refused : call_.hipStreamQuery_(native);
}
gpu::Result HipDriver::stream_context(gpu::Handle stream, gpu::Context* context) {
  int ordinal = 0;
  if (call_.hipStreamGetDevice_ != nullptr) {
    const int result = call_.hipStreamGetDevice_(to_stream(stream), &ordinal);
    *context = context_of(ordinal);
    return result;
  }
  if (call_.hipGetStreamDeviceId_ == nullptr) return context_current(context);
  ordinal = call_.hipGetStreamDeviceId_(to_stream(stream));
  *context = context_of(ordinal);
  return ordinal >= 0 ? hipSuccess : hipErrorInvalidHandle;
}
gpu::Result HipDriver::stream_is_non_blocking(gpu::Handle stream, bool* non_blocking) {
  unsigned flags = 0;
  const int result = call_.hipStreamGetFlags_(to_stream(stream), &flags);
  *non_blocking = (flags & hipStreamNonBlocking) != 0;
  return result;
}
bool HipDriver::stream_unique_id(gpu::Handle stream, std::uint64_t* id) {
  unsigned long long number = 0;
  if (call_.hipStreamGetId_ == nullptr ||
      call_.hipStreamGetId_(to_stream(stream), &number) != hipSuccess) {
    return false;
  }
  *id = number;
  return true;
}

gpu::Result HipDriver::event_create(bool timing, gpu::Handle* event) {
  const int result = call_.hipEventCreateWithFlags_(
      reinterpret_cast<hipEvent_t*>(event), timing ? hipEventDefault : hipEventDisableTiming);
  if (result == hipSuccess) captures_.event_made(static_cast<hipEvent_t>(*event));
  return result;
}
gpu::Result HipDriver::event_destroy(gpu::Handle event) {
  captures_.event_gone(static_cast<hipEvent_t>(event));
  return call_.hipEventDestroy_(static_cast<hipEvent_t>(event));
}
void HipDriver::event_shared(gpu::Handle event) {
  captures_.event_shared(static_cast<hipEvent_t>(event));
}
gpu::Result HipDriver::event_record(gpu::Handle event, gpu::Handle stream) {
  return captures_.record_event(static_cast<hipEvent_t>(event), to_stream(stream));
}
gpu::Result HipDriver::event_query(gpu::Handle event) {
  return captures_.query_event(static_cast<hipEvent_t>(event));
}
gpu::Result HipDriver::event_synchronize(gpu::Handle event) {
  return captures_.synchronize_event(static_cast<hipEvent_t>(event));
}
gpu::Result HipDriver::event_elapsed(gpu::Handle begin, gpu::Handle end, float* milliseconds) {
  return call_.hipEventElapsedTime_(milliseconds, static_cast<hipEvent_t>(begin),
                                    static_cast<hipEvent_t>(end));
}
gpu::Result HipDriver::stream_wait_event(gpu::Handle stream, gpu::Handle event) {
  return captures_.wait_event(to_stream(stream), static_cast<hipEvent_t>(event));
}
bool HipDriver::is_not_ready(gpu::Result result) const { return result == hipErrorNotReady; }

}  // namespace lockstep::hip
