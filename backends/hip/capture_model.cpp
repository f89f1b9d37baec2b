// SPDX-License-Identifier: Apache-2.0
#include "capture_model.h"

#include <algorithm>

#include "device_scope.h"

namespace lockstep::hip {
namespace {

// Ours, not the runtime's, which counts captures of others.
constexpr std::uint64_t kOwnCapture = std::uint64_t{1} << 63;

}  // namespace

CaptureModel::Key CaptureModel::key_of(hipStream_t stream) {
  if (stream != nullptr && stream != hipStreamPerThread) return {stream, 0, 0};
  int device = 0;
  // Fails when the runtime is going down; then it does not matter whose stream it is.
  if (call_.hipGetDevice_(&device) != hipSuccess) device = 0;
  return {stream, device,
          stream == hipStreamPerThread ? hostrt::CaptureRules::this_thread() : std::uint64_t{0}};
}

hostrt::StreamCapture& CaptureModel::state_of(hipStream_t stream) {
  const Key key = key_of(stream);
  {
    const std::lock_guard lock(mutex_);
    const auto known = streams_.find(key);
    if (known != streams_.end()) return *known->second;
  }
  // A stream of the runtime's or of somebody else's.
  unsigned flags = 0;
  const bool own = stream != nullptr && stream != hipStreamPerThread;
  if (own &&
      (captures_natively(stream) || call_.hipStreamGetFlags_(stream, &flags) != hipSuccess)) {
    flags = hipStreamNonBlocking;
  }
  int device = 0;
  if (call_.hipGetDevice_(&device) != hipSuccess) device = 0;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<hostrt::StreamCapture>& state = streams_[key];
  if (state == nullptr) {
    state = std::make_unique<hostrt::StreamCapture>();
    state->identity = next_identity_++;
    state->context = static_cast<std::uint64_t>(device);
    state->blocking = (flags & hipStreamNonBlocking) == 0;
    state->legacy = stream == nullptr;
  }
  return *state;
}

std::shared_ptr<CaptureModel::EventState> CaptureModel::event_of(hipEvent_t event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  return found == events_.end() ? nullptr : found->second;
}

bool CaptureModel::captures_natively(hipStream_t stream) {
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  return call_.hipStreamGetCaptureInfo_v2_(stream, &status, nullptr, nullptr, nullptr, nullptr) ==
             hipSuccess &&
         status != hipStreamCaptureStatusNone;
}

void CaptureModel::stream_made(hipStream_t stream, bool non_blocking) {
  int device = 0;
  if (call_.hipGetDevice_(&device) != hipSuccess) device = 0;
  auto state = std::make_unique<hostrt::StreamCapture>();
  state->context = static_cast<std::uint64_t>(device);
  state->blocking = !non_blocking;
  const std::lock_guard lock(mutex_);
  state->identity = next_identity_++;
  streams_[key_of(stream)] = std::move(state);
  broken_.erase(stream);
}

gpu::Result CaptureModel::stream_destroy(hipStream_t stream) {
  hostrt::StreamCapture& state = state_of(stream);
  const std::shared_ptr<hostrt::Graph> held = rules_.graph_of(state);
  Token* const token = token_of(held);
  rules_.release(state);
  const bool origin = token != nullptr && token->origin == stream;
  if (origin) {
    hipGraph_t none = nullptr;
    finish(*token, hipErrorStreamCaptureInvalidated, &none);
  }
  const std::lock_guard lock(mutex_);
  streams_.erase(key_of(stream));
  broken_.erase(stream);
  if (token == nullptr || origin) return call_.hipStreamDestroy_(stream);
  // The runtime's notes on the capture hold it by its address.
  token->doomed.push_back(stream);
  return hipSuccess;
}

bool CaptureModel::stream_broken(hipStream_t stream) {
  const std::lock_guard lock(mutex_);
  return broken_.count(stream) != 0;
}

void CaptureModel::event_made(hipEvent_t event) {
  const std::lock_guard lock(mutex_);
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
  state->recorded = true;
}

gpu::Result CaptureModel::begin(hipStream_t stream, std::uint32_t mode) {
  return guarded([&]() -> gpu::Result {
    const auto token = std::make_shared<Token>();
    hostrt::StreamCapture& state = state_of(stream);
    token->origin = stream;
    token->device = static_cast<int>(state.context);
    const std::shared_ptr<hostrt::Graph> held(token, reinterpret_cast<hostrt::Graph*>(token.get()));
    rules_.begin(state, static_cast<hostrt::CaptureMode>(mode), held, "hipStreamBeginCapture");
    const int result = call_.hipStreamBeginCapture_(stream, hipStreamCaptureModeRelaxed);
    if (result != hipSuccess) rules_.release(state);
    return result;
  });
}

gpu::Result CaptureModel::end(hipStream_t stream, hipGraph_t* graph) {
  hostrt::StreamCapture& state = state_of(stream);
  const std::shared_ptr<hostrt::Graph> held = rules_.graph_of(state);
  // Nobody's, or begun by others.
  if (held == nullptr) return call_.hipStreamEndCapture_(stream, graph);
  const gpu::Result code = guarded([&]() -> gpu::Result {
    rules_.end(state, "hipStreamEndCapture");
    return hipSuccess;
  });
  // Still to be ended, on the stream that it began on.
  if (code == hipErrorStreamCaptureUnmatched) return code;
  return finish(*token_of(held), code, graph);
}

// Ends the runtime's capture, which is to succeed whatever ours came to: it never sees a fork that
// was not joined.
gpu::Result CaptureModel::finish(Token& token, gpu::Result code, hipGraph_t* graph) {
  std::vector<std::pair<hipStream_t, int>> joined;
  {
    const std::lock_guard lock(mutex_);
    joined = token.joined;
  }
  std::vector<hipEvent_t> events;
  for (const auto& [stream, device] : joined) {
    if (code == hipSuccess || !captures_natively(stream)) continue;
    const DeviceScope scope(call_, device);
    hipEvent_t event = nullptr;
    if (call_.hipEventCreateWithFlags_(&event, hipEventDisableTiming) != hipSuccess) continue;
    events.push_back(event);
    if (call_.hipEventRecord_(event, stream) == hipSuccess) {
      call_.hipStreamWaitEvent_(token.origin, event, 0);
    }
  }
  hipGraph_t made = nullptr;
  const int ended = call_.hipStreamEndCapture_(token.origin, &made);
  for (hipEvent_t event : events) call_.hipEventDestroy_(event);
  const std::lock_guard lock(mutex_);
  for (hipStream_t stream : token.doomed) call_.hipStreamDestroy_(stream);
  token.doomed.clear();
  *graph = nullptr;
  if (ended != hipSuccess) {
    broken_.insert(token.origin);
    for (const auto& [stream, device] : joined) broken_.insert(stream);
    return code != hipSuccess ? code : ended;
  }
  if (code == hipSuccess) {
    *graph = made;
  } else if (made != nullptr) {
    call_.hipGraphDestroy_(made);
  }
  return code;
}

gpu::Result CaptureModel::correct(hipStream_t stream, gpu::CaptureInfo* info) {
  if (rules_.idle()) return hipSuccess;
  return guarded([&]() -> gpu::Result {
    std::uint64_t id = 0;
    const hostrt::CaptureStatus status =
        rules_.status(state_of(stream), &id, "hipStreamGetCaptureInfo");
    if (status == hostrt::CaptureStatus::kNone) return hipSuccess;
    info->status = static_cast<std::uint32_t>(status);
    info->id = id | kOwnCapture;
    return hipSuccess;
  });
}

void CaptureModel::exchange_thread_mode(std::uint32_t* mode) {
  *mode = static_cast<std::uint32_t>(
      hostrt::CaptureRules::exchange_thread_mode(static_cast<hostrt::CaptureMode>(*mode)));
}

gpu::Result CaptureModel::check_unsafe(const char* call) {
  if (rules_.idle()) return hipSuccess;
  return guarded([&]() -> gpu::Result {
    rules_.check_unsafe(call);
    return hipSuccess;
  });
}
gpu::Result CaptureModel::check_device_wait(const char* call) {
  if (rules_.idle()) return hipSuccess;
  return guarded([&]() -> gpu::Result {
    int device = 0;
    if (const int result = call_.hipGetDevice_(&device)) return result;
    rules_.check_context_wait(static_cast<std::uint64_t>(device), call);
    return hipSuccess;
  });
}
gpu::Result CaptureModel::check_stream_wait(hipStream_t stream, const char* call) {
  if (rules_.idle()) return hipSuccess;
  return guarded([&]() -> gpu::Result {
    rules_.check_stream_wait(state_of(stream), call);
    return hipSuccess;
  });
}
gpu::Result CaptureModel::check_event_wait(hipEvent_t event, const char* call) {
  return guarded([&]() -> gpu::Result {
    const auto state = event_of(event);
    if (state == nullptr) {
      rules_.check_unsafe(call);
    } else {
      rules_.check_event_wait(state->capture, call);
    }
    return hipSuccess;
  });
}
gpu::Result CaptureModel::check_not_capturing(hipStream_t stream, const char* call) {
  if (rules_.idle()) return hipSuccess;
  return guarded([&]() -> gpu::Result {
    rules_.check_not_capturing(state_of(stream), call, "");
    return hipSuccess;
  });
}

gpu::Result CaptureModel::record_event(hipEvent_t event, hipStream_t stream) {
  const auto state = event_of(event);
  return guarded([&]() -> gpu::Result {
    if (state != nullptr) {
      rules_.record_event(state_of(stream), state->capture, "hipEventRecord");
    }
    const int result = call_.hipEventRecord_(event, stream);
    if (result == hipSuccess && state != nullptr) state->recorded = true;
    return result;
  });
}

gpu::Result CaptureModel::wait_event(hipStream_t stream, hipEvent_t event) {
  const auto state = event_of(event);
  if (state == nullptr) return call_.hipStreamWaitEvent_(stream, event, 0);
  return guarded([&]() -> gpu::Result {
    hostrt::StreamCapture& waiting = state_of(stream);
    // The runtime's graphs are of one device: 5.7 refuses to launch others, 6.4 crashes, 7.2 gives
    // kernels to the wrong device.
    if (const auto origin = rules_.context_of(state->capture);
        origin.has_value() && *origin != waiting.context) {
      return kErrorNotSupported;
    }
    const auto wait =
        rules_.wait_event(waiting, state->capture, state->recorded, "hipStreamWaitEvent");
    if (wait == hostrt::CaptureRules::Wait::kNothing) return hipSuccess;  // never recorded
    if (wait == hostrt::CaptureRules::Wait::kCaptured) {
      const std::shared_ptr<hostrt::Graph> held = rules_.graph_of(waiting);
      if (Token* const token = token_of(held); token != nullptr && token->origin != stream) {
        const std::lock_guard lock(mutex_);
        const bool known = std::any_of(token->joined.begin(), token->joined.end(),
                                       [&](const auto& member) { return member.first == stream; });
        if (!known) token->joined.emplace_back(stream, static_cast<int>(waiting.context));
      }
    }
    return call_.hipStreamWaitEvent_(stream, event, 0);
  });
}

}  // namespace lockstep::hip
