// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "capture_model.h"

namespace lockstep::hip {

// Executable graphs that call host functions, on releases where such a one is good for one launch.
//
// ROCm 5.2 keeps the command of a host node from the first launch on and enqueues it again. Where
// the first launch is over, the command counts as complete: the function is called at once, by the
// thread that launches, before what precedes its node. Where it is not, the function may not be
// called at all. So the executable that the user holds is never launched here: each launch gets an
// executable of its own, made from a copy of the graph, and destroyed some time after it is over.
//
// Thread-safe; what is done with one executable is done by one thread at a time.
class FreshExecs {
 public:
  FreshExecs(const Functions& call, CaptureModel& captures) : call_(call), captures_(captures) {}

  // From here on each launch of `exec`, which was made from `graph`, gets an executable of its own.
  gpu::Result made(gpu::Handle exec, hipGraph_t graph);
  // False where `exec` is no such executable, which is the caller's to destroy.
  bool gone(gpu::Handle exec);

  // Launches through `perform(executable)`: `exec` itself, or one made for this launch.
  template <class Perform>
  gpu::Result launch(gpu::Handle exec, hipStream_t stream, const Perform& perform) {
    const std::shared_ptr<Model> model = model_of(exec);
    if (model == nullptr) [[likely]]
      return perform(static_cast<hipGraphExec_t>(exec));
    if (const gpu::Result result = prepare(*model)) return result;
    const gpu::Result result = perform(model->ready);
    return launched(*model, stream, result);
  }
  // The same for a change to what `graph` says, which counts where `perform` answers success.
  template <class Perform>
  gpu::Result update(gpu::Handle exec, hipGraph_t graph, const Perform& perform) {
    const std::shared_ptr<Model> model = model_of(exec);
    if (model == nullptr) return perform(static_cast<hipGraphExec_t>(exec));
    hipGraph_t copy = nullptr;
    if (const gpu::Result result = prepare(*model)) return result;
    if (const gpu::Result result = call_.hipGraphClone_(&copy, graph)) return result;
    const gpu::Result result = perform(model->ready);
    updated(*model, copy, result);
    return result;
  }
  // Destroys executables whose launch is over. hipGraphExecDestroy waits for every host function
  // that is pending, whoever's it is: so as long as one of ours is, a few are kept. How many are
  // left.
  std::size_t sweep();

 private:
  // What launches are made from. `ready` was never launched.
  struct Model {
    hipGraph_t graph = nullptr;
    hipGraphExec_t ready = nullptr;
  };
  struct Past {
    hipGraphExec_t exec = nullptr;
    hipEvent_t behind = nullptr;  // null: it is over, or never began
    int device = 0;               // of the event
  };
  std::shared_ptr<Model> model_of(gpu::Handle exec) {
    return used_.load(std::memory_order_acquire) ? find(exec) : nullptr;
  }
  std::shared_ptr<Model> find(gpu::Handle exec);
  gpu::Result prepare(Model& model);
  gpu::Result launched(Model& model, hipStream_t stream, gpu::Result result);
  void updated(Model& model, hipGraph_t copy, gpu::Result result);
  void mark(Past* past, hipStream_t stream);
  bool take_spare(Past* past);
  bool is_over(const Past& past);

  const Functions& call_;
  CaptureModel& captures_;
  std::atomic<bool> used_{false};  // such an executable was made
  std::mutex mutex_;  // of what follows; not held while an executable is made or destroyed
  std::unordered_map<gpu::Handle, std::shared_ptr<Model>> models_;
  std::vector<Past> past_, spare_;  // of the spare ones only the events
};

// Host functions that were put on streams by callbacks and have not returned.
void host_call_begins();
void host_call_ended();

}  // namespace lockstep::hip
