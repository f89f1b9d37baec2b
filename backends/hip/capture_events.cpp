// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <thread>

#include "capture_model.h"
#include "refusal.h"

// Events: what the rules say of them, and which of them the runtime may be asked about.
namespace lockstep::hip {
namespace {

constexpr const char* kStreamCapturesNow =
    "the stream that the event was recorded on captures now, and AMD's runtime takes the event for "
    "captured until that is over: wait for it before the capture begins or after it ended";

}  // namespace

// As measured for an event recorded before its stream began to capture: 5.7 and 7.2 answer a query
// rightly, 6.4 invalidates the capture; 7.2 waits on the host, 5.7 refuses, 6.4 invalidates. All of
// them refuse a wait on a stream. Releases that were never seen are taken for the worst.
void CaptureModel::set_release(const Version& version) {
  may_synchronize_ = !version.before(7, 2);
  may_query_ = may_synchronize_ || version.before(6, 0);
  // 5.7 crashes when it looks whether the stream of the event captures, and the stream is gone.
  reads_dropped_streams_ = version.before(6, 0);
  retired_.set_release(version);
}

std::shared_ptr<CaptureModel::EventState> CaptureModel::event_of(hipEvent_t event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  return found == events_.end() ? nullptr : found->second;
}

std::shared_ptr<CaptureModel::EventState> CaptureModel::foreign_event_of(hipEvent_t event,
                                                                         bool make) {
  const std::lock_guard lock(mutex_);
  const auto found = foreign_events_.find(event);
  if (found != foreign_events_.end()) return found->second;
  if (!make) return nullptr;
  auto state = std::make_shared<EventState>();
  state->shared = true;
  foreign_events_.emplace(event, state);
  return state;
}

void CaptureModel::event_made(hipEvent_t event) {
  const std::lock_guard lock(mutex_);
  foreign_events_.erase(event);
  events_[event] = std::make_shared<EventState>();
}
void CaptureModel::event_gone(hipEvent_t event) {
  const std::lock_guard lock(mutex_);
  events_.erase(event);
}

void CaptureModel::event_in_graph(hipEvent_t event) {
  const auto state = event_of(event);
  if (state == nullptr) return;
  rules_.forget_capture(state->capture);
  state->recorded_on = 0;
  state->recorded = true;
}

void CaptureModel::event_shared(hipEvent_t event) {
  if (const auto state = event_of(event)) state->shared = true;
}

void CaptureModel::about_to_take_part(const StreamState& state) {
  const std::lock_guard lock(mutex_);
  drained_.erase(state.identity);
}

// What was recorded on a stream that has nothing to do is reached: that is known as long as the
// stream captures, and the runtime need not be asked.
void CaptureModel::note_drained(hipStream_t stream, const StreamState& state) {
  if (captures_natively(stream)) return;  // begun by others, and not to be harmed by asking
  const int result = call_.hipStreamQuery_(stream);
  if (result != hipSuccess) {
    call_.hipGetLastError_();  // "not ready" is expected; another failure shows where it matters
    return;
  }
  const std::lock_guard lock(mutex_);
  drained_.insert(state.identity);
}

bool CaptureModel::known_done(const EventState& state) {
  if (state.shared) return false;  // it may have been recorded again, elsewhere
  const std::lock_guard lock(mutex_);
  return drained_.count(state.recorded_on) != 0;
}

bool CaptureModel::is_closing(std::uint64_t stream) {
  const std::lock_guard lock(mutex_);
  return closing_.count(stream) != 0;
}

bool CaptureModel::is_dropped(std::uint64_t stream) {
  const std::lock_guard lock(mutex_);
  return std::none_of(streams_.begin(), streams_.end(),
                      [&](const auto& known) { return known.second->identity == stream; });
}

CaptureModel::Reach CaptureModel::reach(const EventState& state) {
  const std::uint64_t on = state.recorded_on;
  if (on == 0 || (!rules_.takes_part(on) && !is_closing(on))) return Reach::kRuntime;
  return known_done(state) ? Reach::kDone : Reach::kUnknown;
}

gpu::Result CaptureModel::check_event_wait(EventState* state, const char* call) {
  return guarded([&]() -> gpu::Result {
    if (state == nullptr) {
      rules_.check_unsafe(call);
      return hipSuccess;
    }
    if (state->shared) rules_.forget_ended_capture(state->capture);
    rules_.check_event_wait(state->capture, call);
    return hipSuccess;
  });
}

gpu::Result CaptureModel::query_event(hipEvent_t event) {
  auto state = event_of(event);
  if (const gpu::Result refused = check_event_wait(state.get(), "hipEventQuery")) return refused;
  if (state == nullptr) state = foreign_event_of(event, false);
  const std::uint64_t on = state != nullptr ? state->recorded_on.load() : 0;
  if (on == 0 || may_query_) return call_.hipEventQuery_(event);
  // Under the rules' lock: who asks again and again would else meet the moment in which the stream
  // begins or ends to capture.
  bool asked = false;
  int result = hipSuccess;
  rules_.unless_taking_part(on, [&] {
    if (is_closing(on)) return;
    asked = true;
    result = call_.hipEventQuery_(event);
  });
  if (asked) return result;
  return known_done(*state) ? hipSuccess : hipErrorNotReady;
}

gpu::Result CaptureModel::synchronize_event(hipEvent_t event) {
  auto state = event_of(event);
  if (const gpu::Result refused = check_event_wait(state.get(), "hipEventSynchronize")) {
    return refused;
  }
  if (state == nullptr) state = foreign_event_of(event, false);
  switch (state != nullptr && !may_synchronize_ ? reach(*state) : Reach::kRuntime) {
    case Reach::kDone:
      return hipSuccess;
    case Reach::kUnknown:
      return not_supported(kStreamCapturesNow);
    case Reach::kRuntime:
      break;
  }
  if (reads_dropped_streams_ && state != nullptr && state->recorded_on != 0 &&
      is_dropped(state->recorded_on)) {
    int result = hipErrorNotReady;
    while ((result = call_.hipEventQuery_(event)) == hipErrorNotReady) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return result;
  }
  return call_.hipEventSynchronize_(event);
}

gpu::Result CaptureModel::record_event(hipEvent_t event, hipStream_t stream) {
  const auto state = event_of(event);
  return guarded([&]() -> gpu::Result {
    StreamState& on = state_of(stream);
    const bool captured = state != nullptr
                              ? rules_.record_event(on, state->capture, "hipEventRecord")
                              : rules_.takes_part(on.identity);
    const int result = call_.hipEventRecord_(event, stream);
    if (result != hipSuccess) return result;
    const auto noted = state != nullptr ? state : foreign_event_of(event, true);
    noted->recorded_on = captured ? 0 : on.identity;
    noted->recorded = true;
    return result;
  });
}

gpu::Result CaptureModel::wait_event(hipStream_t stream, hipEvent_t event) {
  const auto state = event_of(event);
  return guarded([&]() -> gpu::Result {
    Reach reached = Reach::kRuntime;
    if (state != nullptr) {
      if (const auto settled = wait_by_rules(stream, *state, &reached)) return *settled;
    } else if (const auto foreign = foreign_event_of(event, false)) {
      reached = reach(*foreign);
    }
    if (reached == Reach::kDone) return hipSuccess;
    if (reached == Reach::kUnknown) return not_supported(kStreamCapturesNow);
    return call_.hipStreamWaitEvent_(stream, event, 0);
  });
}

// What the rules make of it; throws what they forbid.
std::optional<gpu::Result> CaptureModel::wait_by_rules(hipStream_t stream, EventState& state,
                                                       Reach* reached) {
  StreamState& waiting = state_of(stream);
  if (state.shared) rules_.forget_ended_capture(state.capture);
  // The runtime's graphs are of one device: 5.7 refuses to launch others, 6.4 crashes, 7.2 gives
  // kernels to the wrong device.
  if (const auto origin = rules_.context_of(state.capture);
      origin.has_value() && *origin != waiting.context) {
    return not_supported("AMD's graphs are of one device: a capture cannot fork to another one");
  }
  const bool took_part = rules_.takes_part(waiting.identity);
  if (!took_part && !rules_.idle()) about_to_take_part(waiting);
  switch (rules_.wait_event(waiting, state.capture, state.recorded, "hipStreamWaitEvent")) {
    case hostrt::CaptureRules::Wait::kNothing:
      break;  // not recorded by us: by others, perhaps, which only the runtime knows
    case hostrt::CaptureRules::Wait::kExecute:
      *reached = reach(state);
      break;
    case hostrt::CaptureRules::Wait::kCaptured: {
      if (took_part) break;
      note_drained(stream, waiting);
      const std::shared_ptr<hostrt::Graph> held = rules_.graph_of(waiting);
      if (Token* const token = token_of(held); token != nullptr && token->origin != stream) {
        const std::lock_guard lock(mutex_);
        token->joined.emplace_back(stream, static_cast<int>(waiting.context));
        token->members.push_back(waiting.identity);
      }
      break;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::hip
