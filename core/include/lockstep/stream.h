// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/buffer.h>
#include <lockstep/event.h>
#include <lockstep/export.h>
#include <lockstep/graph.h>
#include <lockstep/launch.h>
#include <lockstep/module.h>
#include <lockstep/region.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// \file
/// In-order queues of device work, and capture.
namespace lockstep {

class Device;

namespace detail {
struct StreamState;
}

struct StreamOptions {
  bool non_blocking = true;   ///< does not synchronise with the legacy stream
  std::int32_t priority = 0;  ///< lower is more urgent; within the device's range
};

/// Which calls a capture forbids: of all threads (kGlobal), of the capturing thread
/// (kThreadLocal), or only those that can never be captured (kRelaxed).
enum class CaptureMode : std::uint32_t { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };
enum class CaptureStatus : std::uint32_t { kNone = 0, kActive = 1, kInvalidated = 2 };

struct CaptureOptions {
  CaptureMode mode = CaptureMode::kThreadLocal;
  /// Host memory that captured copies may write at each replay; without a declaration a captured
  /// copy to pageable host memory is refused.
  std::vector<std::span<std::byte>> host_destinations;
  /// Captured copies from pageable host memory up to this size read a snapshot taken at capture
  /// and owned by the graph; larger ones are refused.
  std::uint64_t snapshot_limit_bytes = std::uint64_t{16} << 20;
};

/// A view of a stream. All work functions enqueue and return; errors of the work surface at the
/// next synchronise and stay. Thread-safe in that calls are ordered one way or the other. Cheap to
/// copy; keeps what it refers to alive. "Captured" below: becomes a node while the stream captures
/// and does not execute.
class LOCKSTEP_API StreamRef {
 public:
  StreamRef() noexcept = default;
  explicit StreamRef(std::shared_ptr<detail::StreamState> state) noexcept
      : state_(std::move(state)) {}
  /// Borrows a native stream (CUstream, hipStream_t) of any context: never destroyed by us.
  static StreamRef from_native(const Device& device, void* native);

  /// Launches a kernel. Captured. Buffers pass their address and are kept alive by a captured
  /// graph; raw pointers pass as they are and are checked against live allocations at each graph
  /// launch; anything else trivially copyable passes by value. Arguments are copied before return.
  /// \throws Error kInvalidArgument: count, size or pointer-ness of an argument does not fit the
  ///         kernel (naming the argument), or a limit of the device is passed (naming it).
  template <typename... Args>
  void launch(const Kernel& kernel, const LaunchConfig& config, const Args&... args) const {
    const detail::ArgumentPack<sizeof...(Args)> pack(args...);
    launch_arguments(kernel, config, pack.arguments());
  }
  /// The same with arguments described at run time.
  void launch_arguments(const Kernel& kernel, const LaunchConfig& config,
                        std::span<const KernelArgument> arguments) const;

  /// Copies of equal element counts. Captured. Host memory must stay valid until the copy is done
  /// (for what a captured copy does with host memory see CaptureOptions and Graph::host_slots).
  /// \throws Error kInvalidArgument when the counts differ or memory is too small.
  template <typename T>
  void copy(const BufferView<T>& destination,
            std::type_identity_t<std::span<const T>> source) const {
    copy_checked(destination.data(), destination.size_bytes(), source.data(), source.size_bytes(),
                 &destination.allocation(), nullptr);
  }
  template <typename T>
  void copy(const Buffer<T>& destination, std::type_identity_t<std::span<const T>> source) const {
    copy(destination.view(), source);
  }
  template <typename T>
  void copy(std::span<T> destination,
            const std::type_identity_t<BufferView<const T>>& source) const {
    copy_checked(destination.data(), destination.size_bytes(), source.data(), source.size_bytes(),
                 nullptr, &source.allocation());
  }
  template <typename T, typename A>
  void copy(std::vector<T, A>& destination,
            const std::type_identity_t<BufferView<const T>>& source) const {
    copy(std::span<T>(destination), source);
  }
  template <typename T>
  void copy(const BufferView<T>& destination,
            const std::type_identity_t<BufferView<const T>>& source) const {
    copy_checked(destination.data(), destination.size_bytes(), source.data(), source.size_bytes(),
                 &destination.allocation(), &source.allocation());
  }
  template <typename T>
  void copy(const Buffer<T>& destination, const Buffer<T>& source) const {
    copy(destination.view(), BufferView<const T>(source));
  }
  void copy(const CopyRegion& region) const;
  /// Enqueues the copy on this stream and waits for it: what it wrote is what the next launch on
  /// any stream reads. Illegal during capture.
  template <typename Destination, typename Source>
  void copy_and_wait(Destination&& destination, Source&& source) const {
    copy(std::forward<Destination>(destination), std::forward<Source>(source));
    synchronize();
  }

  /// Sets every element to `value` (1, 2 or 4 bytes wide). Captured.
  template <typename T>
  void fill(const BufferView<T>& destination, std::type_identity_t<T> value) const;
  template <typename T>
  void fill(const Buffer<T>& destination, std::type_identity_t<T> value) const {
    fill(destination.view(), value);
  }
  void fill(const FillRegion& region) const;  ///< Captured, one node a plane.

  /// Calls `function` on a thread of the driver, in stream order. It must not call the device. What
  /// it throws is thrown by a later synchronise as kLaunchFailed. Captured: called once at each
  /// replay, kept alive by the graph. It is destroyed on a thread that calls Lockstep, not there.
  void host_function(std::function<void()> function) const;

  void record(const Event& event) const;  ///< Captured as a point of the capture, no node.
  void wait(const Event& event) const;    ///< Captured: forks into, or joins, a capture.

  /// Waits for everything enqueued so far. Illegal during capture. \throws Error of that work.
  void synchronize() const;
  bool query() const;  ///< done? Does not wait. Illegal during capture.

  /// Runs `function` recording on this stream and returns what it enqueued as a graph. Nothing
  /// executes. Always ends the capture, also when `function` throws. Modules in use are loaded
  /// completely before. \throws Error kIllegalDuringCapture, kCaptureInvalidated naming the call,
  ///         stream and rule; every stream is usable afterwards.
  template <typename Function>
  Graph capture(Function&& function, const CaptureOptions& options = {}) const;
  /// The two halves, for captures that several functions share. end_capture leaves the capture
  /// whatever happens.
  void begin_capture(const CaptureOptions& options = {}) const;
  Graph end_capture() const;
  CaptureStatus capture_status() const;  ///< legal at all times

  const Device& device() const;
  std::uint64_t identity() const;  ///< unique in the process, never reused
  void* native_handle() const;
  explicit operator bool() const noexcept { return state_ != nullptr; }

  LOCKSTEP_INTERNAL detail::StreamState& state() const;

 protected:
  void copy_checked(void* destination, std::uint64_t destination_bytes, const void* source,
                    std::uint64_t source_bytes, const detail::AllocationPtr* destination_owner,
                    const detail::AllocationPtr* source_owner) const;
  void fill_checked(const FillRegion& region, const detail::AllocationPtr* owner) const;

  std::shared_ptr<detail::StreamState> state_;
};

/// Owns a stream: movable, not copyable. Made by Device::create_stream. Destroying it does not
/// wait; what was enqueued is still done. A capture that was begun on it ends with it, without a
/// graph, so that no thread stays restricted by a capture that nobody can end.
class LOCKSTEP_API Stream : public StreamRef {
 public:
  Stream() noexcept = default;
  explicit Stream(std::shared_ptr<detail::StreamState> state) noexcept
      : StreamRef(std::move(state)) {}
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&& other) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  /// As StreamRef::capture; `function` may take a Stream& too.
  template <typename Function>
  Graph capture(Function&& function, const CaptureOptions& options = {});
};

}  // namespace lockstep

#include <lockstep/detail/stream_capture.h>
