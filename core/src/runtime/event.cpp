// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device.h>
#include <lockstep/error.h>
#include <lockstep/event.h>

#include "src/runtime/host_watch.h"
#include "src/runtime/states.h"

namespace lockstep {

using detail::EventState;
using runtime::ErrorRecord;

namespace {

void check(EventState& event, lockstep_code code, const ErrorRecord& error, const char* function) {
  if (code != LOCKSTEP_OK) {
    runtime::throw_plugin_error(event.device_state.backend, &event.device_state, nullptr, code,
                                error, {function});
  }
}

void tell(const EventState& event, runtime::HostNotice::Kind kind) {
  runtime::HostNotice notice;
  notice.kind = kind;
  notice.backend = &event.device_state.backend;
  notice.device = event.device_state.info.ordinal;
  notice.event = &event;
  runtime::HostWatch::tell(notice);
}

EventState& usable(const Event& event) {
  EventState& state = event.state();
  state.device_state.check_usable();
  return state;
}

}  // namespace

EventState& Event::state() const {
  if (state_ == nullptr) runtime::throw_empty_handle("Event");
  return *state_;
}

Event Event::from_native(const Device& device, void* native) {
  detail::DeviceState& state = device.state();
  state.check_usable();
  lockstep_event* event = nullptr;
  ErrorRecord error;
  const lockstep_code code =
      state.backend.table.event_from_native(state.handle, native, &event, &error);
  if (code != LOCKSTEP_OK) {
    runtime::throw_plugin_error(state.backend, &state, nullptr, code, error,
                                {"Event::from_native"});
  }
  return Event(std::make_shared<EventState>(device, event));
}

bool Event::query() const {
  EventState& event = usable(*this);
  ErrorRecord error;
  const lockstep_code code = event.device_state.backend.table.event_query(event.handle, &error);
  if (code == LOCKSTEP_E_NOT_READY) return false;
  check(event, code, error, "Event::query");
  tell(event, runtime::HostNotice::Kind::kQuery);
  return true;
}

void Event::synchronize() const {
  EventState& event = usable(*this);
  ErrorRecord error;
  check(event, event.device_state.backend.table.event_synchronize(event.handle, &error), error,
        "Event::synchronize");
  tell(event, runtime::HostNotice::Kind::kWait);
}

std::chrono::duration<double, std::milli> Event::elapsed_since(const Event& begin) const {
  EventState& end_state = usable(*this);
  EventState& begin_state = usable(begin);
  if (&begin_state.device_state.backend != &end_state.device_state.backend) {
    runtime::throw_invalid("Event::elapsed_since: the two events belong to different backends",
                           end_state.device_state.id);
  }
  double milliseconds = 0;
  ErrorRecord error;
  check(end_state,
        end_state.device_state.backend.table.event_elapsed(begin_state.handle, end_state.handle,
                                                           &milliseconds, &error),
        error, "Event::elapsed_since");
  return std::chrono::duration<double, std::milli>(milliseconds);
}

void* Event::native_handle() const {
  EventState& event = usable(*this);
  return event.device_state.backend.table.event_native(event.handle);
}

}  // namespace lockstep
