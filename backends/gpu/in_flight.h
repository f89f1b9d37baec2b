// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "objects.h"

// What may still be executing of what went through this plugin, asked before code is unloaded.
// Waiting for a whole context would be simpler, but it invalidates every capture of the process,
// whoever began it and in whatever mode (measured on CUDA). So each stream remembers whether
// kernels were launched into it since it was last waited for, and only such streams are waited for,
// by events, in a thread that is relaxed.
namespace lockstep::gpu {

// After a launch, also of a graph. Before it would be too early: a wait on another thread might
// take the mark away that came before the work.
inline void note_launch(const lockstep_stream* stream) {
  const bool special = stream->origin == lockstep_stream::Origin::kLegacy ||
                       stream->origin == lockstep_stream::Origin::kPerThread;
  std::atomic<bool>& flag = special ? stream->device->special_launched : stream->launched;
  if (!flag.load(std::memory_order_relaxed)) flag.store(true, std::memory_order_release);
}

// Every stream with a handle of ours. One that goes leaves an event behind; a borrowed one, whose
// owner may have destroyed it before, is not touched.
void add_stream(lockstep_stream* stream);
void remove_stream(lockstep_stream* stream);

// Waits until no kernel that was launched through the plugin executes on the device any more. False
// when that cannot be had now without touching what is not ours: a stream that captures, or
// launches on a borrowed stream that nobody waited for. Asks with the device's context current.
bool finish_launches(lockstep_device* device);

// Held while streams are asked or given events for this, and while a capture begins: otherwise one
// could begin in between, and be ended by the question.
std::mutex& streams_asked();

// Around a wait for the whole device, or for one stream, by the user.
class LaunchesWaitedFor {
 public:
  explicit LaunchesWaitedFor(lockstep_device* device);
  explicit LaunchesWaitedFor(lockstep_stream* stream);
  ~LaunchesWaitedFor();  // they may execute still, unless
  void succeeded() { waited_ = true; }
  LaunchesWaitedFor(const LaunchesWaitedFor&) = delete;
  LaunchesWaitedFor& operator=(const LaunchesWaitedFor&) = delete;

 private:
  lockstep_device* const device_;
  std::vector<lockstep_stream*> streams_;
  bool special_ = false, lost_track_ = false, waited_ = false;
};

// Lets the calling thread do what a capture of somebody else's forbids, and breaks none by it.
class RelaxedThread {
 public:
  RelaxedThread() : result_(driver().exchange_capture_mode(&mode_)) {}
  ~RelaxedThread() {
    if (result_ == kSuccess) driver().exchange_capture_mode(&mode_);
  }
  Result result() const { return result_; }
  RelaxedThread(const RelaxedThread&) = delete;
  RelaxedThread& operator=(const RelaxedThread&) = delete;

 private:
  std::uint32_t mode_ = LOCKSTEP_CAPTURE_RELAXED;
  const Result result_;
};

}  // namespace lockstep::gpu
