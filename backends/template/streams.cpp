// SPDX-License-Identifier: Apache-2.0

// Streams and events. Work is done where it is enqueued, so every order that is asked for holds by
// itself. Host functions need more: one may wait for what the program does later, so that a driver
// calls it on a thread of its own, in the stream's order.

#include <chrono>

#include "plugin.h"

namespace template_plugin {
namespace {

lockstep_code stream_create(lockstep_device* device, const lockstep_stream_desc* desc,
                            lockstep_stream** stream, lockstep_error*) {
  *stream = new lockstep_stream{recorder().next_id()};
  recorder().define_stream((*stream)->identity, 0, device->context,
                           (desc->flags & LOCKSTEP_STREAM_NON_BLOCKING) == 0 ? 1 : 0);
  return LOCKSTEP_OK;
}
void stream_destroy(lockstep_stream* stream) { delete stream; }
std::uint64_t stream_identity(lockstep_stream* stream) { return stream->identity; }
lockstep_code stream_synchronize(lockstep_stream*, lockstep_error*) { return LOCKSTEP_OK; }
lockstep_code stream_query(lockstep_stream*, lockstep_error*) { return LOCKSTEP_OK; }

lockstep_code event_create(lockstep_device*, std::uint32_t flags, lockstep_event** event,
                           lockstep_error*) {
  *event = new lockstep_event{0, (flags & LOCKSTEP_EVENT_TIMING) != 0, 0};
  return LOCKSTEP_OK;
}
void event_destroy(lockstep_event* event) { delete event; }

lockstep_code event_record(lockstep_event* event, lockstep_stream* stream, lockstep_error*) {
  event->record = recorder().next_id();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  event->milliseconds = std::chrono::duration<double, std::milli>(now).count();
  lockstep_record record = new_record(LOCKSTEP_RECORD_EVENT_RECORD, "templateEventRecord", stream);
  record.of.event.event = event->record;
  const Recorded recorded(record);
  return LOCKSTEP_OK;
}

lockstep_code stream_wait_event(lockstep_stream* stream, lockstep_event* event, lockstep_error*) {
  if (event->record == 0) return LOCKSTEP_OK;  // never recorded: nothing to wait for
  lockstep_record record = new_record(LOCKSTEP_RECORD_EVENT_WAIT, "templateEventWait", stream);
  record.of.event.event = event->record;
  const Recorded recorded(record);
  return LOCKSTEP_OK;
}

lockstep_code event_query(lockstep_event*, lockstep_error*) { return LOCKSTEP_OK; }
lockstep_code event_synchronize(lockstep_event*, lockstep_error*) { return LOCKSTEP_OK; }

lockstep_code event_elapsed(lockstep_event* begin, lockstep_event* end, double* milliseconds,
                            lockstep_error* error) {
  if (!begin->timing || !end->timing || begin->record == 0 || end->record == 0) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "event_elapsed",
                "both events have to be made with timing and recorded");
  }
  *milliseconds = end->milliseconds - begin->milliseconds;
  return LOCKSTEP_OK;
}

}  // namespace

void fill_stream_slots(lockstep_backend& table) {
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_identity = stream_identity;
  table.stream_synchronize = stream_synchronize;
  table.stream_query = stream_query;
  table.event_create = event_create;
  table.event_destroy = event_destroy;
  table.event_record = event_record;
  table.event_query = event_query;
  table.event_synchronize = event_synchronize;
  table.event_elapsed = event_elapsed;
  table.stream_wait_event = stream_wait_event;
}

}  // namespace template_plugin
