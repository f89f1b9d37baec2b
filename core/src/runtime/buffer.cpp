// SPDX-License-Identifier: Apache-2.0
#include <lockstep/buffer.h>
#include <lockstep/device.h>
#include <lockstep/error.h>

#include <fmt/format.h>

#include "src/runtime/states.h"

namespace lockstep {

using detail::Allocation;
using detail::AllocationPtr;
using runtime::ErrorRecord;

namespace detail {

void* allocation_address(const Allocation& allocation) noexcept { return allocation.address; }
std::uint64_t allocation_bytes(const Allocation& allocation) noexcept { return allocation.bytes; }
MemoryKind allocation_kind(const Allocation& allocation) noexcept { return allocation.kind; }
Device allocation_device(const Allocation& allocation) { return allocation.device; }

void throw_view_out_of_range(std::size_t first, std::size_t count, std::size_t size) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("elements {} to {} + {} do not lie in a view of {} elements", first,
                          first, count, size));
}

void throw_not_host_memory() {
  throw Error(ErrorCode::kInvalidArgument,
              "span() of device memory: the host reads and writes pinned buffers only; copy device "
              "memory with Stream::copy");
}

}  // namespace detail

namespace {

std::string_view kind_words(MemoryKind kind) {
  return kind == MemoryKind::kPinned ? "pinned host memory" : "device memory";
}

[[noreturn]] void throw_allocation_error(detail::DeviceState& device,
                                         const detail::StreamState* stream, lockstep_code code,
                                         const ErrorRecord& error, const char* function,
                                         std::uint64_t bytes, MemoryKind kind) {
  std::string subject = fmt::format("{} bytes of {}", bytes, kind_words(kind));
  if (code == LOCKSTEP_E_OUT_OF_MEMORY && kind == MemoryKind::kDevice) {
    std::uint64_t free_bytes = 0, total_bytes = 0;
    ErrorRecord ignored;
    if (device.backend.table.device_memory(device.handle, &free_bytes, &total_bytes, &ignored) ==
        LOCKSTEP_OK) {
      subject += fmt::format(" ({} of {} bytes are free)", free_bytes, total_bytes);
    }
  }
  runtime::throw_plugin_error(device.backend, &device, stream, code, error, {function, subject});
}

void* allocate_memory(detail::DeviceState& device, const detail::StreamState* stream,
                      std::uint64_t bytes, MemoryKind kind, const char* function) {
  device.check_usable();
  lockstep_allocation_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.bytes = bytes;
  desc.memory_kind = static_cast<std::uint32_t>(kind);
  desc.stream = stream == nullptr ? nullptr : stream->handle;
  void* address = nullptr;
  ErrorRecord error;
  const lockstep_code code =
      device.backend.table.memory_allocate(device.handle, &desc, &address, &error);
  if (code != LOCKSTEP_OK) {
    throw_allocation_error(device, stream, code, error, function, bytes, kind);
  }
  return address;
}

}  // namespace

std::uint64_t Device::byte_count(std::size_t count, std::size_t size) {
  if (count > SIZE_MAX / size) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} elements of {} bytes are more than can be addressed", count, size));
  }
  return static_cast<std::uint64_t>(count) * size;
}

AllocationPtr Device::allocate_bytes(std::uint64_t bytes, MemoryKind kind) const {
  detail::DeviceState& device = state();
  if (bytes == 0) return nullptr;
  const char* function =
      kind == MemoryKind::kPinned ? "Device::allocate_pinned" : "Device::allocate";
  void* address = allocate_memory(device, nullptr, bytes, kind, function);
  return std::make_shared<Allocation>(*this, address, bytes, kind, Allocation::Origin::kAllocated,
                                      nullptr, 0);
}

AllocationPtr Device::allocate_bytes_async(std::uint64_t bytes, const StreamRef& stream) const {
  detail::DeviceState& device = state();
  detail::StreamState& on = stream.state();
  if (&on.device_state != &device) {
    runtime::throw_invalid(fmt::format("Device::allocate_async of {} on a stream of {}", device.id,
                                       on.device_state.id),
                           device.id);
  }
  if (bytes == 0) return nullptr;
  const auto capture = device.backend.captures.of(device.backend, on);
  void* address =
      allocate_memory(device, &on, bytes, MemoryKind::kDevice, "Device::allocate_async");
  if (capture != nullptr) {
    const std::lock_guard lock(capture->mutex);
    capture->contents.add_node(OperationKind::kAlloc);
  }
  return std::make_shared<Allocation>(*this, address, bytes, MemoryKind::kDevice,
                                      Allocation::Origin::kStreamOrdered, on.shared_from_this(),
                                      capture == nullptr ? 0 : capture->id);
}

AllocationPtr Device::register_bytes(void* memory, std::uint64_t bytes) const {
  detail::DeviceState& device = state();
  device.check_usable();
  if (bytes == 0) return nullptr;
  ErrorRecord error;
  const lockstep_code code =
      device.backend.table.memory_register(device.handle, memory, bytes, &error);
  if (code != LOCKSTEP_OK) {
    throw_allocation_error(device, nullptr, code, error, "Device::register_host", bytes,
                           MemoryKind::kPinned);
  }
  return std::make_shared<Allocation>(*this, memory, bytes, MemoryKind::kPinned,
                                      Allocation::Origin::kRegistered, nullptr, 0);
}

}  // namespace lockstep
