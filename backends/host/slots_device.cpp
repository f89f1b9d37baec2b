// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <sys/utsname.h>

#include "handles.h"

// Slots of devices and memory.
namespace lockstep::hostrt {
namespace {

std::string machine_name() {
  utsname names{};
  return uname(&names) == 0 ? names.machine : "unknown";
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return machine_name() + " processor";
}

void put(char* to, std::size_t capacity, const std::string& text) {
  std::snprintf(to, capacity, "%s", text.c_str());
}

lockstep_code initialize(lockstep_error* error) {
  try {
    Runtime::start();
    return LOCKSTEP_OK;
  } catch (...) {
    return report_current_exception(error, "hostInit");
  }
}

lockstep_code device_count(std::uint32_t* count, lockstep_error* error) {
  return guarded("hostDeviceGetCount", error, [&] {
    require_pointer(count, "count");
    *count = Runtime::require().device_count();
  });
}

lockstep_code device_info(std::uint32_t ordinal, lockstep_device_info* info,
                          lockstep_error* error) {
  return guarded("hostDeviceGetInfo", error, [&] {
    Runtime& runtime = Runtime::require();
    runtime.device(ordinal);
    lockstep_device_info result{};
    put(result.name, sizeof(result.name), processor_name());
    put(result.arch, sizeof(result.arch), machine_name());
    put(result.driver, sizeof(result.driver), "lockstep host " LOCKSTEP_HOST_VERSION);
    result.memory_bytes = runtime.settings().memory_bytes;
    result.integrated = 1;
    write_sized(info, result, "info");
  });
}

std::optional<std::int64_t> attribute_of(lockstep_device_attribute attribute) {
  switch (attribute) {
    case LOCKSTEP_ATTR_MAX_THREADS_PER_BLOCK:
    case LOCKSTEP_ATTR_MAX_BLOCK_X:
    case LOCKSTEP_ATTR_MAX_BLOCK_Y:
      return kMaxThreadsPerBlock;
    case LOCKSTEP_ATTR_MAX_BLOCK_Z:
      return kMaxBlockZ;
    case LOCKSTEP_ATTR_MAX_GRID_X:
      return kMaxGridX;
    case LOCKSTEP_ATTR_MAX_GRID_Y:
    case LOCKSTEP_ATTR_MAX_GRID_Z:
      return kMaxGridYZ;
    case LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK:
      return kMaxShared;
    case LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK_OPTIN:
      return kMaxSharedOptIn;
    case LOCKSTEP_ATTR_WARP_SIZE:
      return kWarpSize;
    case LOCKSTEP_ATTR_MULTIPROCESSOR_COUNT:
      return usable_threads();
    case LOCKSTEP_ATTR_STREAM_ORDERED_MEMORY:
    case LOCKSTEP_ATTR_GRAPHS:
    case LOCKSTEP_ATTR_CAPTURE:
    case LOCKSTEP_ATTR_GRAPH_MEMORY_NODES:
    case LOCKSTEP_ATTR_COMPILES_SOURCE:
      return 1;
    case LOCKSTEP_ATTR_COOPERATIVE_LAUNCH:
    case LOCKSTEP_ATTR_CLUSTER_LAUNCH:
    case LOCKSTEP_ATTR_LOWEST_STREAM_PRIORITY:
      return 0;
    case LOCKSTEP_ATTR_HIGHEST_STREAM_PRIORITY:
      return kHighestPriority;
    default:
      return std::nullopt;
  }
}

lockstep_code device_attribute(std::uint32_t ordinal, lockstep_device_attribute attribute,
                               std::int64_t* value, lockstep_error* error) {
  return guarded("hostDeviceGetAttribute", error, [&] {
    Runtime::require().device(ordinal);
    require_pointer(value, "value");
    const auto found = attribute_of(attribute);
    if (!found) {
      throw Error(Native::kNotSupported,
                  "a host device has no attribute " + std::to_string(attribute));
    }
    *value = *found;
  });
}

const char* capabilities(std::uint32_t /*ordinal*/) {
  static const std::string* const text = new std::string(
      "{\"threads\":" + std::to_string(usable_threads()) +
      ",\"warp_intrinsics\":false,\"cooperative_launch\":false,\"clusters\":false,"
      "\"native_handles\":false,\"ptx\":false,\"graph_memory_nodes\":true,"
      "\"programmatic_serialization\":\"executed as full order\",\"stream_priorities\":\"ignored\","
      "\"peer_access\":true}");
  return text->c_str();
}

lockstep_code device_open(std::uint32_t ordinal, lockstep_device** device, lockstep_error* error) {
  return guarded("hostDeviceOpen", error, [&] {
    require_pointer(device, "device");
    *device = new lockstep_device{&Runtime::require().device(ordinal)};
  });
}
void device_close(lockstep_device* device) { release(device); }

lockstep_code device_memory(lockstep_device* device, std::uint64_t* free, std::uint64_t* total,
                            lockstep_error* error) {
  return guarded("hostMemGetInfo", error, [&] {
    Device& object = object_of(device, "the device");
    std::uint64_t ignored = 0;
    object.memory().usage(object.signed_ordinal(), free != nullptr ? free : &ignored,
                          total != nullptr ? total : &ignored);
  });
}

lockstep_code device_synchronize(lockstep_device* device, lockstep_error* error) {
  return guarded("hostDeviceSynchronize", error,
                 [&] { driver::synchronize(object_of(device, "the device")); });
}

void* no_native_device(lockstep_device*) { return nullptr; }

const char* allocation_call(const lockstep_allocation_desc* desc) {
  if (desc == nullptr || desc->struct_size < sizeof(*desc)) return "hostMemAlloc";
  if (desc->stream != nullptr) return "hostMemAllocAsync";
  return desc->memory_kind == LOCKSTEP_MEMORY_PINNED ? "hostMemHostAlloc" : "hostMemAlloc";
}

lockstep_code memory_allocate(lockstep_device* device, const lockstep_allocation_desc* given,
                              void** pointer, lockstep_error* error) {
  return guarded(allocation_call(given), error, [&] {
    const auto desc = read_sized(given, "the allocation description");
    require_pointer(pointer, "pointer");
    if (desc.attribute_count > 0) {
      throw Error(Native::kNotSupported, "the host backend knows no allocation attributes");
    }
    Stream* const stream = desc.stream == nullptr ? nullptr : desc.stream->object.get();
    *pointer =
        driver::allocate(object_of(device, "the device"), desc.bytes, desc.memory_kind, stream);
  });
}

lockstep_code memory_free(lockstep_device* device, void* pointer, lockstep_stream* stream,
                          lockstep_error* error) {
  return guarded(stream == nullptr ? "hostMemFree" : "hostMemFreeAsync", error, [&] {
    driver::free(object_of(device, "the device"), pointer,
                 stream == nullptr ? nullptr : stream->object.get());
  });
}

lockstep_code memory_register(lockstep_device* device, void* pointer, std::uint64_t bytes,
                              lockstep_error* error) {
  return guarded("hostMemHostRegister", error,
                 [&] { driver::register_memory(object_of(device, "the device"), pointer, bytes); });
}
lockstep_code memory_unregister(lockstep_device* device, void* pointer, lockstep_error* error) {
  return guarded("hostMemHostUnregister", error,
                 [&] { driver::unregister_memory(object_of(device, "the device"), pointer); });
}

lockstep_code pointer_info(lockstep_device* device, const void* pointer,
                           lockstep_pointer_info* info, lockstep_error* error) {
  return guarded("hostPointerGetInfo", error, [&] {
    lockstep_pointer_info result{};
    result.device = -1;
    Allocation allocation;
    if (object_of(device, "the device").memory().find(pointer, &allocation)) {
      result.memory_kind = allocation.kind;
      result.device = allocation.device;
      result.base = allocation.base;
      result.bytes = allocation.bytes;
    }
    write_sized(info, result, "info");
  });
}

// All host devices share one memory.
lockstep_code peer_access(lockstep_device* from, lockstep_device* to, std::uint32_t* can_access,
                          lockstep_error* error) {
  return guarded("hostDeviceCanAccessPeer", error, [&] {
    object_of(from, "the device");
    object_of(to, "the peer device");
    require_pointer(can_access, "can_access");
    *can_access = 1;
  });
}
lockstep_code peer_enable(lockstep_device* from, lockstep_device* to, lockstep_error* error) {
  return guarded("hostDeviceEnablePeerAccess", error, [&] {
    object_of(from, "the device");
    object_of(to, "the peer device");
  });
}

}  // namespace

void check_callable() {
  Runtime::require();
  if (in_host_function()) {
    throw Error(Native::kNotPermitted,
                "called from a host function: those run in the middle of a stream and must not "
                "call the device");
  }
}

void fill_device_slots(lockstep_backend& table) {
  table.initialize = initialize;
  table.device_count = device_count;
  table.device_info = device_info;
  table.device_attribute = device_attribute;
  table.capabilities = capabilities;
  table.device_open = device_open;
  table.device_close = device_close;
  table.device_memory = device_memory;
  table.device_synchronize = device_synchronize;
  table.device_native = no_native_device;
  table.memory_allocate = memory_allocate;
  table.memory_free = memory_free;
  table.memory_register = memory_register;
  table.memory_unregister = memory_unregister;
  table.pointer_info = pointer_info;
  table.peer_access = peer_access;
  table.peer_enable = peer_enable;
}

}  // namespace lockstep::hostrt
