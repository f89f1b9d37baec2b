// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "capture.h"
#include "fence.h"
#include "stream.h"

namespace lockstep::hostrt {

// A place holder for a point in a stream. Waits bind the record that is the latest when they are
// made. Thread-safe.
class Event {
 public:
  Event(Device& device, bool timing);

  Device& device() const noexcept { return device_; }
  std::uint64_t identity() const noexcept { return identity_; }  // of the event, not of a record

  void record(Stream& stream);
  void wait_on(Stream& stream);
  bool query();
  void synchronize();
  static double elapsed_ms(Event& begin, Event& end);

  // For graph nodes: the latest record (null: never), and a new one made by a graph's launch.
  FencePtr latest();
  void set_latest(FencePtr fence);

 private:
  Device& device_;
  const std::uint64_t identity_;
  const bool timing_;
  std::mutex mutex_;
  FencePtr latest_;
  std::uint64_t latest_id_ = 0;  // identity of the last record, also of a captured one
  EventCapture capture_;
};
using EventPtr = std::shared_ptr<Event>;

}  // namespace lockstep::hostrt
