// SPDX-License-Identifier: Apache-2.0
#include "enqueue.h"
#include "stream.h"

namespace lockstep::gpu {

lockstep_code event_create(lockstep_device* device, std::uint32_t flags, lockstep_event** event,
                           lockstep_error* error) {
  if ((flags & ~static_cast<std::uint32_t>(LOCKSTEP_EVENT_TIMING)) != 0) {
    return fail(error, LOCKSTEP_E_NOT_SUPPORTED, "event_create", "an unknown event flag is set");
  }
  ContextScope scope(device->context);
  const bool timing = (flags & LOCKSTEP_EVENT_TIMING) != 0;
  Handle native = nullptr;
  const Result result = driver().event_create(timing, &native);
  if (result != kSuccess) return fail_native(error, Call::kEventCreate, result);
  auto* made = new lockstep_event;
  made->device = device;
  made->native = native;
  made->timing = timing;
  *event = made;
  return LOCKSTEP_OK;
}

lockstep_code event_from_native(lockstep_device* device, void* native, lockstep_event** event,
                                lockstep_error* error) {
  if (native == nullptr) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "event_from_native", "the event is null");
  }
  auto* made = new lockstep_event;
  made->device = device;
  made->native = native;
  made->owned = false;
  made->known_to_others = true;
  made->timing = true;  // not known: the driver will say
  *event = made;
  return LOCKSTEP_OK;
}

void event_destroy(lockstep_event* event) {
  if (event == nullptr) return;
  if (event->owned && usable()) {
    ContextScope scope(event->device->context);
    driver().event_destroy(event->native);
  }
  delete event;
}

lockstep_code event_record(lockstep_event* event, lockstep_stream* stream, lockstep_error* error) {
  ContextScope scope(stream->context);
  const std::uint64_t record_identity = recorder().next_id();
  const Result result = enqueue(
      stream, LOCKSTEP_RECORD_EVENT_RECORD, name_of(Call::kEventRecord), false,
      [&](lockstep_record& record) { record.of.event.event = record_identity; },
      [&] { return driver().event_record(event->native, native_of(stream)); });
  if (result != kSuccess) {
    return fail_native(error, Call::kEventRecord, result, describe(stream));
  }
  event->last_record.store(record_identity, std::memory_order_relaxed);
  if (stream->known_to_others.load(std::memory_order_relaxed)) event->known_to_others = true;
  // Also when no capture is open, if it was recorded in one before.
  if (captures_open() || event->capture_id != 0) note_event_record(event, stream);
  return LOCKSTEP_OK;
}

lockstep_code stream_wait_event(lockstep_stream* stream, lockstep_event* event,
                                lockstep_error* error) {
  ContextScope scope(stream->context);
  if (event->known_to_others.load(std::memory_order_relaxed)) stream->known_to_others = true;
  const Result result = enqueue(
      stream, LOCKSTEP_RECORD_EVENT_WAIT, name_of(Call::kStreamWaitEvent), false,
      [&](lockstep_record& record) {
        record.of.event.event = event->last_record.load(std::memory_order_relaxed);
      },
      [&] { return driver().stream_wait_event(native_of(stream), event->native); });
  if (result != kSuccess) {
    return fail_native(error, Call::kStreamWaitEvent, result, describe(stream));
  }
  if (captures_open()) note_event_wait(stream, event);
  return LOCKSTEP_OK;
}

lockstep_code event_query(lockstep_event* event, lockstep_error* error) {
  ContextScope scope(event->device->context);
  const Result result = driver().event_query(event->native);
  if (result == kSuccess) return LOCKSTEP_OK;
  if (driver().is_not_ready(result)) {
    return fail(error, LOCKSTEP_E_NOT_READY, driver().call_name(Call::kEventQuery),
                "the event has not been reached");
  }
  return fail_native(error, Call::kEventQuery, result);
}

lockstep_code event_synchronize(lockstep_event* event, lockstep_error* error) {
  ContextScope scope(event->device->context);
  const Result result = record_call(
      event->device, 0, LOCKSTEP_RECORD_SYNCHRONIZE, name_of(Call::kEventSynchronize),
      [&](lockstep_record& record) {
        record.of.event.event = event->last_record.load(std::memory_order_relaxed);
      },
      [&] { return driver().event_synchronize(event->native); });
  return result == kSuccess ? LOCKSTEP_OK : fail_native(error, Call::kEventSynchronize, result);
}

lockstep_code event_elapsed(lockstep_event* begin, lockstep_event* end, double* milliseconds,
                            lockstep_error* error) {
  if (!begin->timing || !end->timing) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, driver().call_name(Call::kEventElapsed),
                "both events have to be created with timing");
  }
  ContextScope scope(begin->device->context);
  float value = 0;
  const Result result = driver().event_elapsed(begin->native, end->native, &value);
  if (result == kSuccess) {
    *milliseconds = static_cast<double>(value);
    return LOCKSTEP_OK;
  }
  if (driver().is_not_ready(result)) {
    return fail(error, LOCKSTEP_E_NOT_READY, driver().call_name(Call::kEventElapsed),
                "an event has not been reached");
  }
  return fail_native(error, Call::kEventElapsed, result);
}

}  // namespace lockstep::gpu
