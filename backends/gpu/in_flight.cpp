// SPDX-License-Identifier: Apache-2.0
#include "in_flight.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "capture.h"

namespace lockstep::gpu {
namespace {

// Leaky. Held while events are recorded, so that no stream goes meanwhile; never while waiting.
struct InFlight {
  std::mutex mutex;
  std::set<lockstep_stream*> streams;
  std::vector<std::pair<lockstep_device*, Handle>> left;  // events of streams that went
};
InFlight& in_flight() {
  static InFlight* const instance = new InFlight;
  return *instance;
}

constexpr std::size_t kManyEvents = 64;

bool captures(Handle stream) {
  CaptureInfo info;
  return driver().capture_info(stream, &info) != kSuccess ||
         info.status != LOCKSTEP_CAPTURE_NOT_CAPTURING;
}

// An event behind everything on the stream; null when there can be none.
Handle event_behind(Handle stream) {
  Handle event = nullptr;
  if (captures(stream) || driver().event_create(false, &event) != kSuccess) return nullptr;
  if (driver().event_record(event, stream) == kSuccess) return event;
  driver().event_destroy(event);
  return nullptr;
}

// Forgets the events that have happened.
void drop_past(std::vector<std::pair<lockstep_device*, Handle>>* events) {
  const RelaxedThread relaxed;
  if (relaxed.result() != kSuccess) return;
  std::erase_if(*events, [](const auto& left) {
    ContextScope scope(left.first->context);
    if (driver().event_query(left.second) != kSuccess) return false;
    driver().event_destroy(left.second);
    return true;
  });
}

// Whether the stream has done all it was given. Not asked of one that captures: that would end its
// capture.
bool is_done(Handle stream) {
  return !captures(stream) && driver().stream_query(stream) == kSuccess;
}

// Events behind all that was launched on the device; false when something has none. Called with the
// mutex held.
bool collect(lockstep_device* device, std::vector<Handle>* events) {
  InFlight& all = in_flight();
  if (captures_open()) return false;
  if (device->lost_track.load(std::memory_order_acquire)) return false;
  for (lockstep_stream* stream : all.streams) {
    if (stream->device != device || !stream->launched.load(std::memory_order_acquire)) continue;
    if (stream->origin != lockstep_stream::Origin::kOwn) return false;
  }
  // The marks go before the events are recorded: what is launched later sets them again.
  const auto behind = [&](Handle stream, std::atomic<bool>& launched) {
    if (!launched.exchange(false, std::memory_order_acq_rel)) return true;
    const Handle event = event_behind(stream);
    if (event == nullptr) {
      launched.store(true, std::memory_order_release);
      return false;
    }
    events->push_back(event);
    return true;
  };
  // Where events may not be waited for once their stream has gone, which it may meanwhile, nothing
  // is waited for: the stream has to be done by now.
  const auto done = [](Handle stream, std::atomic<bool>& launched) {
    if (!launched.exchange(false, std::memory_order_acq_rel) || is_done(stream)) return true;
    launched.store(true, std::memory_order_release);
    return false;
  };
  const bool waits = driver().traits().events_outlive_streams;
  for (lockstep_stream* stream : all.streams) {
    if (stream->device != device) continue;
    if (!(waits ? behind(native_of(stream), stream->launched)
                : done(native_of(stream), stream->launched))) {
      return false;
    }
  }
  // Whatever is enqueued on the legacy stream comes after every thread's per-thread stream.
  if (!behind(driver().traits().legacy_stream, device->special_launched)) return false;
  std::erase_if(all.left, [&](const auto& left) {
    if (left.first == device) events->push_back(left.second);
    return left.first == device;
  });
  return true;
}

}  // namespace

std::mutex& streams_asked() { return in_flight().mutex; }

void add_stream(lockstep_stream* stream) {
  const std::lock_guard lock(in_flight().mutex);
  in_flight().streams.insert(stream);
}

void remove_stream(lockstep_stream* stream) {
  InFlight& all = in_flight();
  const std::lock_guard lock(all.mutex);
  all.streams.erase(stream);
  if (!stream->launched.load(std::memory_order_acquire)) return;
  const bool own = stream->origin == lockstep_stream::Origin::kOwn;
  const bool leaves_event = own && driver().traits().events_outlive_streams;
  if (own && !leaves_event) {
    const RelaxedThread relaxed;
    if (relaxed.result() == kSuccess && is_done(native_of(stream))) return;
  }
  const Handle event = leaves_event ? event_behind(native_of(stream)) : nullptr;
  if (event == nullptr) {
    stream->device->lost_track.store(true, std::memory_order_release);
    return;
  }
  if (all.left.size() >= kManyEvents) drop_past(&all.left);
  all.left.emplace_back(stream->device, event);
}

bool finish_launches(lockstep_device* device) {
  const RelaxedThread relaxed;
  if (relaxed.result() != kSuccess) return false;
  std::vector<Handle> events;
  bool complete = false;
  {
    const std::lock_guard lock(in_flight().mutex);
    complete = collect(device, &events);
  }
  std::vector<std::pair<lockstep_device*, Handle>> unfinished;
  for (const Handle event : events) {
    if (complete) complete = driver().event_synchronize(event) == kSuccess;
    if (complete) {
      driver().event_destroy(event);
    } else {
      unfinished.emplace_back(device, event);  // the marks are gone: the events stand for them
    }
  }
  if (!unfinished.empty()) {
    InFlight& all = in_flight();
    const std::lock_guard lock(all.mutex);
    all.left.insert(all.left.end(), unfinished.begin(), unfinished.end());
  }
  return complete;
}

LaunchesWaitedFor::LaunchesWaitedFor(lockstep_device* device) : device_(device) {
  InFlight& all = in_flight();
  const std::lock_guard lock(all.mutex);
  for (lockstep_stream* stream : all.streams) {
    if (stream->device == device && stream->launched.exchange(false)) streams_.push_back(stream);
  }
  special_ = device->special_launched.exchange(false);
  lost_track_ = device->lost_track.exchange(false);
}

LaunchesWaitedFor::LaunchesWaitedFor(lockstep_stream* stream) : device_(stream->device) {
  if (stream->launched.exchange(false)) streams_.push_back(stream);
}

LaunchesWaitedFor::~LaunchesWaitedFor() {
  if (waited_ || (streams_.empty() && !special_ && !lost_track_)) return;
  InFlight& all = in_flight();
  const std::lock_guard lock(all.mutex);
  for (lockstep_stream* stream : streams_) {
    if (all.streams.contains(stream)) {
      stream->launched.store(true);
    } else {
      lost_track_ = true;  // it went meanwhile, without an event
    }
  }
  if (special_) device_->special_launched.store(true);
  if (lost_track_) device_->lost_track.store(true);
}

}  // namespace lockstep::gpu
