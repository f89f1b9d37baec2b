// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device.h>
#include <lockstep/error.h>

#include <fmt/format.h>

#include "src/runtime/host_watch.h"
#include "src/runtime/states.h"

namespace lockstep {

using detail::DeviceState;
using runtime::ErrorRecord;

namespace {

void check(DeviceState& state, lockstep_code code, const ErrorRecord& error, const char* function,
           const std::string& subject = {}) {
  if (code != LOCKSTEP_OK) {
    runtime::throw_plugin_error(state.backend, &state, nullptr, code, error, {function, subject});
  }
}

const DeviceState& known(const Device& device) { return device.state(); }

DeviceState& usable(const Device& device) {
  DeviceState& state = device.state();
  state.check_usable();
  return state;
}

}  // namespace

DeviceState& Device::state() const {
  if (state_ == nullptr) runtime::throw_empty_handle("Device");
  return *state_;
}

const std::string& Device::backend() const { return known(*this).backend.name(); }
std::int32_t Device::ordinal() const { return known(*this).info.ordinal; }
std::string Device::id() const { return known(*this).id; }
const std::string& Device::name() const { return known(*this).info.name; }
const std::string& Device::arch() const { return known(*this).info.arch; }
const std::string& Device::uuid() const { return known(*this).info.uuid; }
const std::string& Device::bus_id() const { return known(*this).info.bus_id; }
const std::string& Device::driver() const { return known(*this).info.driver; }
bool Device::simulated() const { return known(*this).info.simulated; }
std::uint64_t Device::memory_bytes() const { return known(*this).info.memory_bytes; }
const DeviceLimits& Device::limits() const { return known(*this).limits; }

bool operator==(const Device& left, const Device& right) noexcept {
  return left.state_ == right.state_;
}

Device::MemoryInfo Device::memory_info() const {
  DeviceState& device = usable(*this);
  MemoryInfo memory = {};
  ErrorRecord error;
  check(device,
        device.backend.table.device_memory(device.handle, &memory.free_bytes, &memory.total_bytes,
                                           &error),
        error, "Device::memory_info");
  return memory;
}

std::optional<std::int64_t> Device::attribute(std::uint32_t attribute) const {
  DeviceState& device = usable(*this);
  std::int64_t value = 0;
  ErrorRecord error;
  const lockstep_code code = device.backend.table.device_attribute(
      static_cast<std::uint32_t>(device.info.ordinal), attribute, &value, &error);
  if (code == LOCKSTEP_E_NOT_SUPPORTED) return std::nullopt;
  check(device, code, error, "Device::attribute", fmt::format("number {}", attribute));
  return value;
}

Stream Device::create_stream(const StreamOptions& options) const {
  DeviceState& device = usable(*this);
  lockstep_stream_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.flags = options.non_blocking ? std::uint32_t{LOCKSTEP_STREAM_NON_BLOCKING} : 0u;
  desc.priority = options.priority;
  lockstep_stream* stream = nullptr;
  ErrorRecord error;
  check(device, device.backend.table.stream_create(device.handle, &desc, &stream, &error), error,
        "Device::create_stream");
  return Stream(std::make_shared<detail::StreamState>(*this, stream));
}

namespace {

StreamRef special_stream(const Device& device, std::uint32_t which, const char* function) {
  DeviceState& state = usable(device);
  lockstep_stream* stream = nullptr;
  ErrorRecord error;
  check(state, state.backend.table.stream_special(state.handle, which, &stream, &error), error,
        function);
  return StreamRef(std::make_shared<detail::StreamState>(device, stream));
}

}  // namespace

StreamRef Device::legacy_stream() const {
  return special_stream(*this, LOCKSTEP_STREAM_LEGACY, "Device::legacy_stream");
}

StreamRef Device::per_thread_stream() const {
  return special_stream(*this, LOCKSTEP_STREAM_PER_THREAD, "Device::per_thread_stream");
}

Event Device::create_event(const EventOptions& options) const {
  DeviceState& device = usable(*this);
  lockstep_event* event = nullptr;
  ErrorRecord error;
  check(device,
        device.backend.table.event_create(
            device.handle, options.timing ? std::uint32_t{LOCKSTEP_EVENT_TIMING} : 0u, &event,
            &error),
        error, "Device::create_event");
  return Event(std::make_shared<detail::EventState>(*this, event));
}

Device::PointerInfo Device::pointer_info(const void* pointer) const {
  DeviceState& device = usable(*this);
  lockstep_pointer_info info = {};
  info.struct_size = sizeof(info);
  ErrorRecord error;
  check(device, device.backend.table.pointer_info(device.handle, pointer, &info, &error), error,
        "Device::pointer_info");
  return {static_cast<MemoryKind>(info.memory_kind), info.device,
          static_cast<std::uintptr_t>(info.base), info.bytes};
}

Graph Device::create_graph() const {
  DeviceState& device = usable(*this);
  auto graph = std::make_shared<detail::GraphState>(*this);
  ErrorRecord error;
  check(device, device.backend.table.graph_create(device.handle, &graph->handle, &error), error,
        "Device::create_graph");
  return Graph(std::move(graph));
}

void Device::synchronize() const {
  DeviceState& device = usable(*this);
  ErrorRecord error;
  check(device, device.backend.table.device_synchronize(device.handle, &error), error,
        "Device::synchronize");
  runtime::HostNotice notice;
  notice.backend = &device.backend;
  notice.device = device.info.ordinal;
  runtime::HostWatch::tell(notice);
  device.backend.reclaimer.collect(device.backend);
  device.backend.host_calls.throw_error();
}

bool Device::can_access_peer(const Device& other) const {
  DeviceState& device = usable(*this);
  DeviceState& peer = usable(other);
  if (&device.backend != &peer.backend) return false;
  std::uint32_t can_access = 0;
  ErrorRecord error;
  check(device, device.backend.table.peer_access(device.handle, peer.handle, &can_access, &error),
        error, "Device::can_access_peer", peer.id);
  return can_access != 0;
}

void Device::enable_peer_access(const Device& other) const {
  DeviceState& device = usable(*this);
  DeviceState& peer = usable(other);
  if (&device.backend != &peer.backend) {
    runtime::throw_invalid(
        fmt::format("peer access from {} to {}: devices of two backends cannot reach each other; "
                    "copy through host memory",
                    device.id, peer.id),
        device.id);
  }
  ErrorRecord error;
  check(device, device.backend.table.peer_enable(device.handle, peer.handle, &error), error,
        "Device::enable_peer_access", peer.id);
}

void* Device::native_handle() const {
  DeviceState& device = usable(*this);
  return device.backend.table.device_native(device.handle);
}

}  // namespace lockstep
