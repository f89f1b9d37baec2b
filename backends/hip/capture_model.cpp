// SPDX-License-Identifier: Apache-2.0
#include "capture_model.h"

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

CaptureModel::StreamState& CaptureModel::state_of(hipStream_t stream) {
  const Key key = key_of(stream);
  {
    const std::lock_guard lock(mutex_);
    const auto known = streams_.find(key);
    if (known != streams_.end()) return *known->second;
  }
  // A stream of the runtime's or of somebody else's.
  unsigned flags = 0;
  const bool borrowed = stream != nullptr && stream != hipStreamPerThread;
  if (borrowed &&
      (captures_natively(stream) || call_.hipStreamGetFlags_(stream, &flags) != hipSuccess)) {
    flags = hipStreamNonBlocking;
  }
  int device = 0;
  if (call_.hipGetDevice_(&device) != hipSuccess) device = 0;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<StreamState>& state = streams_[key];
  if (state == nullptr) {
    state = std::make_unique<StreamState>();
    state->borrowed = borrowed;
    state->identity = next_identity_++;
    state->context = static_cast<std::uint64_t>(device);
    state->blocking = (flags & hipStreamNonBlocking) == 0;
    state->legacy = stream == nullptr;
  }
  return *state;
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
  auto state = std::make_unique<StreamState>();
  state->context = static_cast<std::uint64_t>(device);
  state->blocking = !non_blocking;
  state->borrowed = false;
  {
    const std::lock_guard lock(mutex_);
    state->identity = next_identity_++;
    streams_[key_of(stream)] = std::move(state);
    broken_.erase(stream);
  }
  retired_.sweep();
}

std::uint64_t CaptureModel::lasting_identity(hipStream_t stream) {
  const StreamState& state = state_of(stream);
  return state.borrowed ? 0 : state.identity;
}

gpu::Result CaptureModel::stream_destroy(hipStream_t stream) {
  StreamState& state = state_of(stream);
  const std::shared_ptr<hostrt::Graph> held = rules_.graph_of(state);
  Token* const token = token_of(held);
  if (token != nullptr) about_to_finish(*token);
  rules_.release(state);
  if (token != nullptr && token->origin == stream) {
    hipGraph_t none = nullptr;
    finish(*token, hipErrorStreamCaptureInvalidated, &none);
  }
  {
    const std::lock_guard lock(mutex_);
    drained_.erase(state.identity);
    streams_.erase(key_of(stream));
    broken_.erase(stream);
    if (token != nullptr && !token->finished) {
      // The runtime's notes on the capture hold it by its address.
      token->doomed.push_back(stream);
      return hipSuccess;
    }
  }
  return retired_.destroy(stream);
}

bool CaptureModel::stream_broken(hipStream_t stream) {
  const std::lock_guard lock(mutex_);
  return broken_.count(stream) != 0;
}

gpu::Result CaptureModel::begin(hipStream_t stream, std::uint32_t mode) {
  return guarded([&]() -> gpu::Result {
    const auto token = std::make_shared<Token>();
    StreamState& state = state_of(stream);
    token->origin = stream;
    token->members.push_back(state.identity);
    token->device = static_cast<int>(state.context);
    const std::shared_ptr<hostrt::Graph> held(token, reinterpret_cast<hostrt::Graph*>(token.get()));
    about_to_take_part(state);
    rules_.begin(state, static_cast<hostrt::CaptureMode>(mode), held, "hipStreamBeginCapture");
    note_drained(stream, state);
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
  about_to_finish(*token_of(held));
  const gpu::Result code = guarded([&]() -> gpu::Result {
    rules_.end(state, "hipStreamEndCapture");
    return hipSuccess;
  });
  // Still to be ended, on the stream that it began on.
  if (code == hipErrorStreamCaptureUnmatched) return code;
  return finish(*token_of(held), code, graph);
}

void CaptureModel::about_to_finish(const Token& token) {
  const std::lock_guard lock(mutex_);
  if (token.finished) return;  // by another thread
  closing_.insert(token.members.begin(), token.members.end());
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
  std::vector<hipStream_t> doomed;
  {
    const std::lock_guard lock(mutex_);
    token.finished = true;
    for (const std::uint64_t member : token.members) closing_.erase(member);
    doomed.swap(token.doomed);
    if (ended != hipSuccess) {
      broken_.insert(token.origin);
      for (const auto& [stream, device] : joined) broken_.insert(stream);
    }
  }
  for (hipStream_t stream : doomed) retired_.destroy(stream);
  *graph = nullptr;
  if (ended != hipSuccess) return code != hipSuccess ? code : ended;
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
gpu::Result CaptureModel::check_not_capturing(hipStream_t stream, const char* call) {
  if (rules_.idle()) return hipSuccess;
  return guarded([&]() -> gpu::Result {
    rules_.check_not_capturing(state_of(stream), call, "");
    return hipSuccess;
  });
}

}  // namespace lockstep::hip
