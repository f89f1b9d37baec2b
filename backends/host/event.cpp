// SPDX-License-Identifier: Apache-2.0
#include "event.h"

#include <chrono>
#include <utility>

#include "device.h"
#include "error.h"
#include "graph.h"
#include "record.h"

namespace lockstep::hostrt {
namespace {

lockstep_record event_record(lockstep_record_kind kind, std::uint32_t name, const Stream& stream,
                             std::uint64_t id) {
  lockstep_record record =
      blank_record(kind, name, stream.device().signed_ordinal(), stream.identity());
  record.of.event.event = id;
  return record;
}

}  // namespace

Event::Event(Device& device, bool timing)
    : device_(device), identity_(next_id()), timing_(timing) {}

void Event::record(Stream& stream) {
  if (&stream.device() != &device_) {
    throw Error(Native::kInvalidValue, "the event belongs to another device than the stream");
  }
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_id();
  Recording recording;
  if (recording_active()) {
    recording.begin(
        event_record(LOCKSTEP_RECORD_EVENT_RECORD, call_names().event_record, stream, id));
  }
  if (device_.rules().record_event(stream.capture(), capture_, "hostEventRecord")) {
    latest_id_ = id;
    const std::shared_ptr<Graph> graph = device_.rules().graph_of(stream.capture());
    recording.done(LOCKSTEP_RECORD_CAPTURED, graph == nullptr ? 0 : graph->identity());
    return;
  }
  auto fence = std::make_shared<Fence>();
  stream.enqueue_signal(fence);
  latest_ = std::move(fence);
  latest_id_ = id;
  recording.done();
}

void Event::wait_on(Stream& stream) {
  const std::lock_guard lock(mutex_);
  const bool recorded = latest_ != nullptr || capture_.capture != nullptr;
  Recording recording;
  if (recorded && recording_active()) {
    recording.begin(
        event_record(LOCKSTEP_RECORD_EVENT_WAIT, call_names().event_wait, stream, latest_id_));
  }
  switch (device_.rules().wait_event(stream.capture(), capture_, recorded, "hostStreamWaitEvent")) {
    case CaptureRules::Wait::kExecute:
      if (!latest_->reached()) stream.enqueue_wait(latest_);
      recording.done();
      break;
    case CaptureRules::Wait::kCaptured: {
      const std::shared_ptr<Graph> graph = device_.rules().graph_of(stream.capture());
      recording.done(LOCKSTEP_RECORD_CAPTURED, graph == nullptr ? 0 : graph->identity());
      break;
    }
    case CaptureRules::Wait::kNothing:
      break;
  }
}

bool Event::query() {
  FencePtr fence;
  {
    const std::lock_guard lock(mutex_);
    device_.rules().check_event_wait(capture_, "hostEventQuery");
    fence = latest_;
  }
  if (fence == nullptr) return true;
  if (!fence->reached()) return false;
  if (const FailurePtr& f = fence->failure()) device_.report(*f);
  return true;
}

void Event::synchronize() {
  FencePtr fence;
  Recording recording;
  {
    const std::lock_guard lock(mutex_);
    if (recording_active()) {
      lockstep_record record = blank_record(
          LOCKSTEP_RECORD_SYNCHRONIZE, call_names().event_synchronize, device_.signed_ordinal(), 0);
      record.of.event.event = latest_ != nullptr ? latest_id_ : 0;
      recording.begin(record);
    }
    device_.rules().check_event_wait(capture_, "hostEventSynchronize");
    fence = latest_;
  }
  if (fence != nullptr) fence->wait();
  recording.done();
  if (fence != nullptr && fence->failure() != nullptr) device_.report(*fence->failure());
}

double Event::elapsed_ms(Event& begin, Event& end) {
  if (!begin.timing_ || !end.timing_) {
    throw Error(Native::kInvalidValue, "an event was created without LOCKSTEP_EVENT_TIMING");
  }
  const FencePtr first = begin.latest();
  const FencePtr last = end.latest();
  if (first == nullptr || last == nullptr) {
    throw Error(Native::kInvalidValue, "an event was never recorded outside of a capture");
  }
  if (!first->reached() || !last->reached()) {
    throw Error(Native::kNotReady, "an event has not been reached yet: synchronize first");
  }
  return std::chrono::duration<double, std::milli>(last->time() - first->time()).count();
}

FencePtr Event::latest() {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void Event::set_latest(FencePtr fence) {
  const std::lock_guard lock(mutex_);
  latest_ = std::move(fence);
  latest_id_ = identity_;
  device_.rules().forget_capture(capture_);
}

}  // namespace lockstep::hostrt
