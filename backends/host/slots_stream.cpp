// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "handles.h"

// Slots of streams, events, work on streams, and capture.
namespace lockstep::hostrt {
namespace {

[[noreturn]] void refuse_native(const char* what) {
  throw Error(Native::kNotSupported, std::string("a host ") + what +
                                         " has no native handle that could be borrowed; create one "
                                         "through lockstep");
}

lockstep_code stream_create(lockstep_device* device, const lockstep_stream_desc* given,
                            lockstep_stream** stream, lockstep_error* error) {
  return guarded("hostStreamCreate", error, [&] {
    const auto desc = read_sized(given, "the stream description");
    require_pointer(stream, "stream");
    if ((desc.flags & ~std::uint32_t{LOCKSTEP_STREAM_NON_BLOCKING}) != 0) {
      throw Error(Native::kInvalidValue, "unknown stream flags " + std::to_string(desc.flags));
    }
    const bool blocking = (desc.flags & LOCKSTEP_STREAM_NON_BLOCKING) == 0;
    *stream = new lockstep_stream{
        object_of(device, "the device").create_stream(blocking, desc.priority), true};
  });
}

lockstep_code stream_special(lockstep_device* device, std::uint32_t which, lockstep_stream** stream,
                             lockstep_error* error) {
  return guarded("hostStreamSpecial", error, [&] {
    Device& object = object_of(device, "the device");
    require_pointer(stream, "stream");
    switch (which) {
      case LOCKSTEP_STREAM_LEGACY:
        *stream = new lockstep_stream{object.legacy_stream(), false};
        break;
      case LOCKSTEP_STREAM_PER_THREAD:
        *stream = new lockstep_stream{object.per_thread_stream(), false};
        break;
      default:
        throw Error(Native::kInvalidValue, "unknown special stream " + std::to_string(which));
    }
  });
}

lockstep_code stream_from_native(lockstep_device*, void*, lockstep_stream**,
                                 lockstep_error* error) {
  return guarded("hostStreamFromNative", error, [] { refuse_native("stream"); });
}

void stream_destroy(lockstep_stream* stream) {
  if (stream == nullptr || !Runtime::usable()) return;
  if (stream->owned) {
    StreamCapture& capture = stream->object->capture();
    stream->object->device().rules().release(capture);
    stream->object->abandon();
  }
  delete stream;
}

void* no_native_stream(lockstep_stream*) { return nullptr; }

std::uint64_t stream_identity(lockstep_stream* stream) {
  return stream == nullptr ? 0 : stream->object->identity();
}

lockstep_code stream_synchronize(lockstep_stream* stream, lockstep_error* error) {
  return guarded("hostStreamSynchronize", error,
                 [&] { driver::synchronize(object_of(stream, "the stream")); });
}

// Asked in loops: "not ready" is an answer, not an exception.
template <typename Query>
lockstep_code guarded_query(const char* call, lockstep_error* error, const Query& query) {
  bool ready = true;
  const lockstep_code code = guarded(call, error, [&] { ready = query(); });
  if (code != LOCKSTEP_OK || ready) return code;
  return report(error, call, Native::kNotReady, "work is still in progress");
}

lockstep_code stream_query(lockstep_stream* stream, lockstep_error* error) {
  return guarded_query("hostStreamQuery", error,
                       [&] { return driver::query(object_of(stream, "the stream")); });
}

lockstep_code event_create(lockstep_device* device, std::uint32_t flags, lockstep_event** event,
                           lockstep_error* error) {
  return guarded("hostEventCreate", error, [&] {
    require_pointer(event, "event");
    if ((flags & ~std::uint32_t{LOCKSTEP_EVENT_TIMING}) != 0) {
      throw Error(Native::kInvalidValue, "unknown event flags " + std::to_string(flags));
    }
    *event = new lockstep_event{std::make_shared<Event>(object_of(device, "the device"),
                                                        (flags & LOCKSTEP_EVENT_TIMING) != 0)};
  });
}
lockstep_code event_from_native(lockstep_device*, void*, lockstep_event**, lockstep_error* error) {
  return guarded("hostEventFromNative", error, [] { refuse_native("event"); });
}
void event_destroy(lockstep_event* event) { release(event); }
void* no_native_event(lockstep_event*) { return nullptr; }

lockstep_code event_record(lockstep_event* event, lockstep_stream* stream, lockstep_error* error) {
  return guarded("hostEventRecord", error,
                 [&] { object_of(event, "the event").record(object_of(stream, "the stream")); });
}
lockstep_code event_query(lockstep_event* event, lockstep_error* error) {
  return guarded_query("hostEventQuery", error,
                       [&] { return object_of(event, "the event").query(); });
}
lockstep_code event_synchronize(lockstep_event* event, lockstep_error* error) {
  return guarded("hostEventSynchronize", error,
                 [&] { object_of(event, "the event").synchronize(); });
}
lockstep_code event_elapsed(lockstep_event* begin, lockstep_event* end, double* milliseconds,
                            lockstep_error* error) {
  return guarded("hostEventElapsedTime", error, [&] {
    require_pointer(milliseconds, "milliseconds");
    *milliseconds =
        Event::elapsed_ms(object_of(begin, "the first event"), object_of(end, "the last event"));
  });
}
lockstep_code stream_wait_event(lockstep_stream* stream, lockstep_event* event,
                                lockstep_error* error) {
  return guarded("hostStreamWaitEvent", error,
                 [&] { object_of(event, "the event").wait_on(object_of(stream, "the stream")); });
}

lockstep_code launch(lockstep_stream* stream, const lockstep_launch_desc* given,
                     lockstep_error* error) {
  return guarded("hostLaunchKernel", error, [&] {
    const auto desc = read_sized(given, "the launch description");
    require_pointer(desc.kernel, "the kernel");
    driver::launch(object_of(stream, "the stream"), *desc.kernel, desc);
  });
}
lockstep_code copy(lockstep_stream* stream, const lockstep_copy_desc* given,
                   lockstep_error* error) {
  return guarded("hostMemcpyAsync", error, [&] {
    driver::copy(object_of(stream, "the stream"), read_sized(given, "the copy description"));
  });
}
lockstep_code set(lockstep_stream* stream, const lockstep_set_desc* given, lockstep_error* error) {
  return guarded("hostMemsetAsync", error, [&] {
    driver::set(object_of(stream, "the stream"), read_sized(given, "the set description"));
  });
}
lockstep_code host_function(lockstep_stream* stream, lockstep_host_function function,
                            void* user_data, lockstep_error* error) {
  return guarded("hostLaunchHostFunc", error, [&] {
    driver::host_function(object_of(stream, "the stream"), function, user_data);
  });
}

CaptureMode to_mode(std::uint32_t mode) {
  if (mode > LOCKSTEP_CAPTURE_RELAXED) {
    throw Error(Native::kInvalidValue, "unknown capture mode " + std::to_string(mode));
  }
  return static_cast<CaptureMode>(mode);
}

lockstep_code capture_begin(lockstep_stream* stream, std::uint32_t mode, lockstep_error* error) {
  return guarded("hostStreamBeginCapture", error, [&] {
    Stream& object = object_of(stream, "the stream");
    Device& device = object.device();
    device.rules().begin(object.capture(), to_mode(mode), std::make_shared<Graph>(device),
                         "hostStreamBeginCapture");
  });
}
lockstep_code capture_end(lockstep_stream* stream, lockstep_graph** graph, lockstep_error* error) {
  if (graph != nullptr) *graph = nullptr;
  return guarded("hostStreamEndCapture", error, [&] {
    Stream& object = object_of(stream, "the stream");
    std::shared_ptr<Graph> result =
        object.device().rules().end(object.capture(), "hostStreamEndCapture");
    if (graph != nullptr) *graph = new lockstep_graph{std::move(result)};
  });
}
lockstep_code capture_status(lockstep_stream* stream, std::uint32_t* status, std::uint64_t* id,
                             lockstep_error* error) {
  return guarded("hostStreamIsCapturing", error, [&] {
    Stream& object = object_of(stream, "the stream");
    const CaptureStatus found =
        object.device().rules().status(object.capture(), id, "hostStreamIsCapturing");
    if (status != nullptr) *status = static_cast<std::uint32_t>(found);
  });
}
lockstep_code capture_thread_mode(lockstep_device*, std::uint32_t* mode, lockstep_error* error) {
  return guarded("hostThreadExchangeStreamCaptureMode", error, [&] {
    require_pointer(mode, "mode");
    *mode = static_cast<std::uint32_t>(CaptureRules::exchange_thread_mode(to_mode(*mode)));
  });
}

}  // namespace

void fill_stream_slots(lockstep_backend& table) {
  table.stream_create = stream_create;
  table.stream_special = stream_special;
  table.stream_from_native = stream_from_native;
  table.stream_destroy = stream_destroy;
  table.stream_native = no_native_stream;
  table.stream_identity = stream_identity;
  table.stream_synchronize = stream_synchronize;
  table.stream_query = stream_query;
  table.event_create = event_create;
  table.event_from_native = event_from_native;
  table.event_destroy = event_destroy;
  table.event_native = no_native_event;
  table.event_record = event_record;
  table.event_query = event_query;
  table.event_synchronize = event_synchronize;
  table.event_elapsed = event_elapsed;
  table.stream_wait_event = stream_wait_event;
  table.launch = launch;
  table.copy = copy;
  table.set = set;
  table.host_function = host_function;
  table.capture_begin = capture_begin;
  table.capture_end = capture_end;
  table.capture_status = capture_status;
  table.capture_thread_mode = capture_thread_mode;
}

}  // namespace lockstep::hostrt
