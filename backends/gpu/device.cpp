// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "enqueue.h"
#include "module.h"

namespace lockstep::gpu {
namespace {

// Devices live as long as the process, and so do their primary contexts: a context that is released
// and retained again would be another one under the feet of everybody else who uses it.
struct Devices {
  std::mutex mutex;
  std::map<std::uint32_t, lockstep_device*> opened;
  std::map<std::uint32_t, std::string> capabilities;
};
Devices& devices() {
  static Devices* const instance = new Devices;
  return *instance;
}

lockstep_code check_ordinal(std::uint32_t ordinal, lockstep_error* error) {
  int count = 0;
  const Result result = driver().device_count(&count);
  if (result != kSuccess) return fail_native(error, Call::kDeviceCount, result);
  if (ordinal < static_cast<std::uint32_t>(count)) return LOCKSTEP_OK;
  return fail(error, LOCKSTEP_E_NOT_FOUND, driver().call_name(Call::kDeviceInfo),
              "there is no device " + std::to_string(ordinal) + ": the driver reports " +
                  std::to_string(count) + (count == 1 ? " device" : " devices"));
}

std::int64_t limit(int ordinal, lockstep_device_attribute attribute) {
  std::int64_t value = 0;
  bool known = false;
  const Result result = driver().device_attribute(ordinal, attribute, &value, &known);
  return result == kSuccess && known ? value : 0;
}

}  // namespace

lockstep_code device_count(std::uint32_t* count, lockstep_error* error) {
  int found = 0;
  const Result result = driver().device_count(&found);
  if (result != kSuccess) return fail_native(error, Call::kDeviceCount, result);
  *count = static_cast<std::uint32_t>(found);
  return LOCKSTEP_OK;
}

lockstep_code device_info(std::uint32_t ordinal, lockstep_device_info* info,
                          lockstep_error* error) {
  if (const lockstep_code code = check_ordinal(ordinal, error)) return code;
  lockstep_device_info full;
  std::memset(&full, 0, sizeof full);
  const Result result = driver().device_info(static_cast<int>(ordinal), &full);
  if (result != kSuccess) return fail_native(error, Call::kDeviceInfo, result);
  const std::size_t size = std::min(info->struct_size, sizeof full);
  full.struct_size = info->struct_size;
  std::memcpy(info, &full, size);
  return LOCKSTEP_OK;
}

lockstep_code device_attribute(std::uint32_t ordinal, lockstep_device_attribute attribute,
                               std::int64_t* value, lockstep_error* error) {
  if (const lockstep_code code = check_ordinal(ordinal, error)) return code;
  bool known = false;
  const Result result =
      driver().device_attribute(static_cast<int>(ordinal), attribute, value, &known);
  if (result != kSuccess) return fail_native(error, Call::kDeviceAttribute, result);
  if (known) return LOCKSTEP_OK;
  return fail(error, LOCKSTEP_E_NOT_SUPPORTED, driver().call_name(Call::kDeviceAttribute),
              "this device has no attribute " + std::to_string(attribute));
}

const char* capabilities(std::uint32_t ordinal) {
  if (!usable()) return "{}";
  Devices& all = devices();
  std::lock_guard lock(all.mutex);
  auto [it, added] = all.capabilities.try_emplace(ordinal);
  if (added) it->second = driver().capabilities(static_cast<int>(ordinal));
  return it->second.c_str();
}

lockstep_code device_open(std::uint32_t ordinal, lockstep_device** device, lockstep_error* error) {
  if (const lockstep_code code = check_ordinal(ordinal, error)) return code;
  Devices& all = devices();
  std::lock_guard lock(all.mutex);
  auto it = all.opened.find(ordinal);
  if (it == all.opened.end()) {
    const int number = static_cast<int>(ordinal);
    Context context = nullptr;
    const Result retained = driver().context_retain(number, &context);
    if (retained != kSuccess) return fail_native(error, Call::kContextRetain, retained);
    ContextScope scope(context);
    if (scope.result() != kSuccess) return fail_native(error, Call::kContextSet, scope.result());
    const Result prepared = driver().prepare_device(number);
    if (prepared != kSuccess) return fail_native(error, Call::kPoolSetup, prepared);
    lockstep_device_info info;
    std::memset(&info, 0, sizeof info);
    const Result described = driver().device_info(number, &info);
    if (described != kSuccess) return fail_native(error, Call::kDeviceInfo, described);
    auto* made = new lockstep_device;
    made->ordinal = number;
    made->context = context;
    made->arch = info.arch;
    for (std::uint32_t axis = 0; axis < 3; ++axis) {
      made->max_grid[axis] = limit(number, LOCKSTEP_ATTR_MAX_GRID_X + axis);
      made->max_block[axis] = limit(number, LOCKSTEP_ATTR_MAX_BLOCK_X + axis);
    }
    made->max_threads = limit(number, LOCKSTEP_ATTR_MAX_THREADS_PER_BLOCK);
    it = all.opened.emplace(ordinal, made).first;
  }
  it->second->opens.fetch_add(1);
  *device = it->second;
  return LOCKSTEP_OK;
}

void device_close(lockstep_device* device) {
  if (device != nullptr) device->opens.fetch_sub(1);
}

Context context_of(int ordinal) {
  Devices& all = devices();
  std::lock_guard lock(all.mutex);
  const auto it = all.opened.find(static_cast<std::uint32_t>(ordinal));
  return it == all.opened.end() ? nullptr : it->second->context;
}

lockstep_code device_memory(lockstep_device* device, std::uint64_t* free_bytes,
                            std::uint64_t* total_bytes, lockstep_error* error) {
  ContextScope scope(device->context);
  const Result result = driver().memory_info(free_bytes, total_bytes);
  return result == kSuccess ? LOCKSTEP_OK : fail_native(error, Call::kMemGetInfo, result);
}

lockstep_code device_synchronize(lockstep_device* device, lockstep_error* error) {
  ContextScope scope(device->context);
  {
    LaunchesWaitedFor launches(device);
    const Result result = record_call(
        device, 0, LOCKSTEP_RECORD_SYNCHRONIZE, name_of(Call::kContextSynchronize),
        [](lockstep_record&) {}, [] { return driver().context_synchronize(); });
    if (result != kSuccess) return fail_native(error, Call::kContextSynchronize, result);
    launches.succeeded();
  }
  unload_dead_modules();
  return LOCKSTEP_OK;
}

lockstep_code peer_access(lockstep_device* from, lockstep_device* to, std::uint32_t* can,
                          lockstep_error* error) {
  if (from == to) {
    *can = 1;
    return LOCKSTEP_OK;
  }
  bool possible = false;
  const Result result = driver().can_access_peer(from->ordinal, to->ordinal, &possible);
  if (result != kSuccess) return fail_native(error, Call::kCanAccessPeer, result);
  *can = possible ? 1 : 0;
  return LOCKSTEP_OK;
}

lockstep_code peer_enable(lockstep_device* from, lockstep_device* to, lockstep_error* error) {
  if (from == to) return LOCKSTEP_OK;
  std::uint32_t can = 0;
  if (const lockstep_code code = peer_access(from, to, &can, error)) return code;
  if (can == 0) {
    return fail(error, LOCKSTEP_E_NOT_SUPPORTED, driver().call_name(Call::kEnablePeer),
                "device " + std::to_string(from->ordinal) + " cannot reach the memory of device " +
                    std::to_string(to->ordinal));
  }
  ContextScope scope(from->context);
  const Result result = driver().enable_peer(to->context);
  return result == kSuccess ? LOCKSTEP_OK : fail_native(error, Call::kEnablePeer, result);
}

}  // namespace lockstep::gpu
