// SPDX-License-Identifier: Apache-2.0
#include "launched_graphs.h"

#include <algorithm>

#include "refusal.h"
#include "types.h"

namespace lockstep::hip {

void LaunchedGraphs::made(gpu::Handle exec) {
  const std::lock_guard lock(mutex_);
  states_[exec] = std::make_shared<State>();
}

void LaunchedGraphs::gone(gpu::Handle exec) {
  const std::lock_guard lock(mutex_);
  const auto known = states_.find(exec);
  if (known == states_.end()) return;
  const auto& events = known->second->events;
  spare_.insert(spare_.end(), events.begin(), events.end());
  states_.erase(known);
}

std::shared_ptr<LaunchedGraphs::State> LaunchedGraphs::state_of(gpu::Handle exec) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<State>& state = states_[exec];
  if (state == nullptr) state = std::make_shared<State>();
  return state;
}

// The executable's event of the current device, which is the stream's: only there it can be
// recorded.
gpu::Result LaunchedGraphs::event_here(State& state, hipEvent_t* event) {
  int device = 0;
  if (const int result = call_.hipGetDevice_(&device)) return result;
  const auto is_here = [&](const auto& one) { return one.first == device; };
  const auto own = std::find_if(state.events.begin(), state.events.end(), is_here);
  if (own != state.events.end()) {
    *event = own->second;
    return hipSuccess;
  }
  {
    const std::lock_guard lock(mutex_);
    const auto spare = std::find_if(spare_.begin(), spare_.end(), is_here);
    if (spare != spare_.end()) {
      *event = spare->second;
      spare_.erase(spare);
    }
  }
  if (*event == nullptr) {
    const int result = call_.hipEventCreateWithFlags_(event, hipEventDisableTiming);
    if (result != hipSuccess) return result;
    captures_.event_made(*event);
  }
  state.events.emplace_back(device, *event);
  return hipSuccess;
}

gpu::Result LaunchedGraphs::before(State& state, hipStream_t stream, hipEvent_t* event) {
  const std::uint64_t on = captures_.lasting_identity(stream);
  if (state.done != nullptr && (on == 0 || on != state.launched_on)) {
    const gpu::Result result = captures_.wait_event(stream, state.done);
    if (result == kErrorNotSupported) {
      return not_supported(
          "the stream of its last launch captures now, so that this launch cannot wait for that "
          "one: launch it on the same stream, or after the capture ended");
    }
    if (result != hipSuccess) return result;
  }
  return event_here(state, event);  // before the launch: without an event nothing is launched
}

gpu::Result LaunchedGraphs::after(State& state, hipStream_t stream, hipEvent_t event) {
  if (captures_.record_event(event, stream) == hipSuccess) {
    state.done = event;
    state.launched_on = captures_.lasting_identity(stream);
    return hipSuccess;
  }
  // It was launched, and no later launch could wait for it: so it is waited for now.
  call_.hipGetLastError_();
  state.done = nullptr;
  return call_.hipStreamSynchronize_(stream);
}

}  // namespace lockstep::hip
