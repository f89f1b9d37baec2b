// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>

#include <chrono>
#include <memory>

/// \file
/// Points in the work of a stream.
namespace lockstep {

class Device;

namespace detail {
struct EventState;
}

struct EventOptions {
  bool timing = true;  ///< elapsed_since() needs it on both events
};

/// A point that streams record, wait for, and that the host can wait for. A shared handle, made by
/// Device::create_event. Recorded by Stream::record, waited for by Stream::wait. Thread-safe.
class LOCKSTEP_API Event {
 public:
  Event() noexcept = default;
  explicit Event(std::shared_ptr<detail::EventState> state) noexcept : state_(std::move(state)) {}
  /// Borrows a native event of that device (CUevent, hipEvent_t): never destroyed by us.
  static Event from_native(const Device& device, void* native);

  /// True when everything before the latest record is done, or nothing was ever recorded. Does not
  /// wait. Illegal during capture (as the driver rules). \throws Error of the work before it.
  bool query() const;
  /// Waits. Illegal during capture. \throws Error of the work before it.
  void synchronize() const;
  /// Time from `begin` to this event. Both were recorded, with timing, and are done.
  /// \throws Error kNotReady, kInvalidArgument.
  std::chrono::duration<double, std::milli> elapsed_since(const Event& begin) const;
  void* native_handle() const;
  explicit operator bool() const noexcept { return state_ != nullptr; }

  LOCKSTEP_INTERNAL detail::EventState& state() const;

 private:
  std::shared_ptr<detail::EventState> state_;
};

}  // namespace lockstep
