// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture_model.h"

namespace lockstep::hip {

// Launches of one executable graph follow each other, as on CUDA; AMD's runtime orders them within
// a stream only. Each launch is followed by a record of the executable's own event, which the next
// launch on another stream waits for. No stream is kept: it may be gone by then, or its handle may
// mean another one.
//
// Thread-safe; what is done with one executable is done by one thread at a time.
class LaunchedGraphs {
 public:
  LaunchedGraphs(const Functions& call, CaptureModel& captures)
      : call_(call), captures_(captures) {}

  void made(gpu::Handle exec);
  void gone(gpu::Handle exec);

  template <class Launch>
  gpu::Result launch(gpu::Handle exec, hipStream_t stream, const Launch& perform) {
    const std::shared_ptr<State> state = state_of(exec);
    const std::lock_guard lock(state->mutex);
    hipEvent_t event = nullptr;
    if (const gpu::Result result = before(*state, stream, &event)) return result;
    if (const gpu::Result result = perform()) return result;
    return after(*state, stream, event);
  }
  template <class Change>
  gpu::Result change(gpu::Handle exec, const Change& perform) {
    const std::shared_ptr<State> state = state_of(exec);
    const std::lock_guard lock(state->mutex);
    return perform();
  }

 private:
  struct State {
    std::mutex mutex;
    std::vector<std::pair<int, hipEvent_t>> events;  // at most one a device
    hipEvent_t done = nullptr;                       // recorded behind the last launch; null: none
    std::uint64_t launched_on = 0;                   // identity of that stream; 0 = made by others
  };
  std::shared_ptr<State> state_of(gpu::Handle exec);
  gpu::Result before(State& state, hipStream_t stream, hipEvent_t* event);
  gpu::Result after(State& state, hipStream_t stream, hipEvent_t event);
  gpu::Result event_here(State& state, hipEvent_t* event);

  const Functions& call_;
  CaptureModel& captures_;
  std::mutex mutex_;  // of what follows
  std::unordered_map<gpu::Handle, std::shared_ptr<State>> states_;
  // Events without an executable, by device. Never destroyed: that may wait for the work before.
  std::vector<std::pair<int, hipEvent_t>> spare_;
};

}  // namespace lockstep::hip
