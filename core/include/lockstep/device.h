// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backends.h>
#include <lockstep/buffer.h>
#include <lockstep/event.h>
#include <lockstep/export.h>
#include <lockstep/graph.h>
#include <lockstep/module.h>
#include <lockstep/stream.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// \file
/// One GPU, or the host as one.
namespace lockstep {

namespace detail {
struct DeviceState;
}

/// Limits a launch must keep; checked before the driver is called.
struct DeviceLimits {
  std::uint32_t max_threads_per_block = 0;
  Dim3 max_block, max_grid;
  std::uint32_t max_shared_per_block = 0;        ///< bytes without opting in
  std::uint32_t max_shared_per_block_optin = 0;  ///< bytes with Kernel::set_max_dynamic_shared
  std::uint64_t max_grid_times_block = 0;        ///< threads in each dimension, 0 = no such limit
};

/// A device of a backend. A cheap shared handle, thread-safe; every object made from it keeps it
/// open. No call depends on, or changes, the calling thread's current device.
class LOCKSTEP_API Device {
 public:
  Device() noexcept = default;
  explicit Device(std::shared_ptr<detail::DeviceState> state) noexcept : state_(std::move(state)) {}

  /// Opens "host", "cuda:0", "hip:1", a backend without ordinal (its first device), or "auto".
  /// An empty text takes LOCKSTEP_DEVICE, and `auto` where that is not set. `auto` takes the
  /// backend of highest priority with a usable real device, never a simulated one, and logs once
  /// what it chose and why; an explicit choice never falls back to another.
  /// \throws Error kUnavailable with the report of every candidate; kInvalidArgument for a text
  ///         that is none of these, listing what there is.
  static Device open(std::string_view which = {});
  /// Every usable device of every backend, best first. Initialises the drivers.
  static std::vector<Device> all();

  const std::string& backend() const;  ///< "host", "cuda", "hip"
  std::int32_t ordinal() const;
  std::string id() const;  ///< "cuda:0", as open() takes it
  const std::string& name() const;
  const std::string& arch() const;
  const std::string& uuid() const;
  const std::string& bus_id() const;
  const std::string& driver() const;
  bool simulated() const;
  std::uint64_t memory_bytes() const;
  struct MemoryInfo {
    std::uint64_t free_bytes, total_bytes;
  };
  MemoryInfo memory_info() const;  ///< legal during capture
  const DeviceLimits& limits() const;
  /// A LOCKSTEP_ATTR_* of lockstep/backend.h; nothing when the device does not have it.
  std::optional<std::int64_t> attribute(std::uint32_t attribute) const;

  Stream create_stream(const StreamOptions& options = {}) const;  ///< legal during capture
  /// The stream that synchronises with all blocking streams; and the calling thread's own one.
  StreamRef legacy_stream() const;
  StreamRef per_thread_stream() const;
  Event create_event(const EventOptions& options = {}) const;  ///< legal during capture

  /// `count` elements of device memory, not initialised. 0 elements make an empty buffer.
  /// Illegal during capture. \throws Error kOutOfMemory with what was asked and what is free.
  template <typename T>
  Buffer<T> allocate(std::size_t count) const {
    return Buffer<T>(allocate_bytes(byte_count(count, sizeof(T)), MemoryKind::kDevice));
  }
  /// Page-locked host memory. Illegal during capture.
  template <typename T>
  Buffer<T> allocate_pinned(std::size_t count) const {
    return Buffer<T>(allocate_bytes(byte_count(count, sizeof(T)), MemoryKind::kPinned));
  }
  /// Stream-ordered: usable by later work of `stream`; freed in the order of that stream when the
  /// last owner goes. A node while `stream` captures, where the device supports it.
  template <typename T>
  Buffer<T> allocate_async(std::size_t count, const StreamRef& stream) const {
    return Buffer<T>(allocate_bytes_async(byte_count(count, sizeof(T)), stream));
  }
  /// Page-locks memory of the caller for as long as the returned buffer (or a view) lives.
  template <typename T>
  Buffer<T> register_host(std::span<T> memory) const {
    return Buffer<T>(register_bytes(memory.data(), memory.size_bytes()));
  }
  struct PointerInfo {
    MemoryKind kind;
    std::int32_t device;
    std::uintptr_t base;
    std::uint64_t bytes;
  };
  PointerInfo pointer_info(const void* pointer) const;  ///< legal during capture

  /// Compiles source for this device. \throws Error kCompilationFailed with the compiler's log.
  Module compile(std::string_view source, const CompileOptions& options) const;
  /// Loads PTX, a cubin, fatbin, code object or bundle. The bytes are copied.
  /// \throws Error kInvalidArgument when they are none of these, or for another architecture.
  Module load_module(std::span<const std::byte> image) const;

  Graph create_graph() const;

  /// Waits for all work of the device. Illegal during capture. \throws Error of that work.
  void synchronize() const;
  bool can_access_peer(const Device& other) const;
  void enable_peer_access(const Device& other) const;  ///< enabling twice is fine
  void* native_handle() const;  ///< CUcontext; hip: the ordinal; null on host
  explicit operator bool() const noexcept { return state_ != nullptr; }
  friend LOCKSTEP_API bool operator==(const Device&, const Device&) noexcept;

  LOCKSTEP_INTERNAL detail::DeviceState& state() const;

 private:
  static std::uint64_t byte_count(std::size_t count, std::size_t size);  // throws on overflow
  detail::AllocationPtr allocate_bytes(std::uint64_t bytes, MemoryKind kind) const;
  detail::AllocationPtr allocate_bytes_async(std::uint64_t bytes, const StreamRef& stream) const;
  detail::AllocationPtr register_bytes(void* memory, std::uint64_t bytes) const;

  std::shared_ptr<detail::DeviceState> state_;
};

}  // namespace lockstep
