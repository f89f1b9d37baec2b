// SPDX-License-Identifier: Apache-2.0
#include "fresh_execs.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

namespace lockstep::hip {
namespace {

// So many that are over are destroyed whatever that waits for: each has queues of its own.
constexpr std::size_t kMany = 64;
// Launches that a thread may be ahead of, for the same reason.
constexpr std::size_t kMost = 256;

// Leaky: the runtime's threads call functions until the process ends.
std::atomic<int>& pending_host_calls() {
  static auto* const count = new std::atomic<int>(0);
  return *count;
}

}  // namespace

void host_call_begins() { pending_host_calls().fetch_add(1); }
void host_call_ended() { pending_host_calls().fetch_sub(1); }

std::shared_ptr<FreshExecs::Model> FreshExecs::find(gpu::Handle exec) {
  const std::lock_guard lock(mutex_);
  const auto known = models_.find(exec);
  return known == models_.end() ? nullptr : known->second;
}

gpu::Result FreshExecs::made(gpu::Handle exec, hipGraph_t graph) {
  auto model = std::make_shared<Model>();
  if (const gpu::Result result = call_.hipGraphClone_(&model->graph, graph)) return result;
  const std::lock_guard lock(mutex_);
  models_[exec] = std::move(model);
  used_.store(true, std::memory_order_release);
  return hipSuccess;
}

bool FreshExecs::gone(gpu::Handle exec) {
  const std::shared_ptr<Model> model = model_of(exec);
  if (model == nullptr) return false;
  call_.hipGraphDestroy_(model->graph);  // what was made from it has its own nodes
  {
    const std::lock_guard lock(mutex_);
    models_.erase(exec);
    past_.push_back({static_cast<hipGraphExec_t>(exec)});
    if (model->ready != nullptr) past_.push_back({model->ready});
  }
  sweep();
  return true;
}

gpu::Result FreshExecs::prepare(Model& model) {
  if (model.ready != nullptr) return hipSuccess;
  while (sweep() >= kMost) std::this_thread::sleep_for(std::chrono::microseconds(100));
  return call_.hipGraphInstantiate_(&model.ready, model.graph, nullptr, nullptr, 0);
}

gpu::Result FreshExecs::launched(Model& model, hipStream_t stream, gpu::Result result) {
  // One whose launch was refused may have been enqueued in part.
  Past past{model.ready};
  model.ready = nullptr;
  mark(&past, stream);
  const std::lock_guard lock(mutex_);
  past_.push_back(past);
  return result;
}

void FreshExecs::updated(Model& model, hipGraph_t copy, gpu::Result result) {
  if (result == hipSuccess) {
    std::swap(model.graph, copy);
  } else {
    // Some of its nodes may have been changed.
    const std::lock_guard lock(mutex_);
    past_.push_back({model.ready});
    model.ready = nullptr;
  }
  call_.hipGraphDestroy_(copy);
}

bool FreshExecs::take_spare(Past* past) {
  const std::lock_guard lock(mutex_);
  const auto spare = std::find_if(spare_.begin(), spare_.end(),
                                  [&](const Past& one) { return one.device == past->device; });
  if (spare == spare_.end()) return false;
  past->behind = spare->behind;
  spare_.erase(spare);
  return true;
}

// Puts an event behind the launch; where there can be none, waits for the launch.
void FreshExecs::mark(Past* past, hipStream_t stream) {
  if (call_.hipGetDevice_(&past->device) == hipSuccess) {
    if (take_spare(past)) {
      if (captures_.record_event(past->behind, stream) == hipSuccess) return;
    } else if (call_.hipEventCreateWithFlags_(&past->behind, hipEventDisableTiming) == hipSuccess) {
      captures_.event_made(past->behind);
      if (captures_.record_event(past->behind, stream) == hipSuccess) return;
    }
  }
  past->behind = nullptr;  // lost, should it exist: to destroy it may wait
  call_.hipGetLastError_();
  call_.hipStreamSynchronize_(stream);
}

bool FreshExecs::is_over(const Past& past) {
  if (past.behind == nullptr) return true;
  const gpu::Result result = captures_.query_event(past.behind);
  if (result != hipSuccess) call_.hipGetLastError_();  // expected: not for whoever asks next
  return result == hipSuccess;
}

std::size_t FreshExecs::sweep() {
  std::vector<Past> taken;
  {
    const std::lock_guard lock(mutex_);
    if (past_.empty()) return 0;
    taken.swap(past_);  // another thread sees each of them once
  }
  const auto open = std::partition(taken.begin(), taken.end(),
                                   [this](const Past& past) { return is_over(past); });
  const auto over = static_cast<std::size_t>(open - taken.begin());
  const bool may_wait = open != taken.end() || pending_host_calls().load() != 0;
  const auto kept = may_wait && over < kMany ? taken.begin() : open;
  for (auto past = taken.begin(); past != kept; ++past) {
    // A failure can only say that the runtime is going down, or what the work came to.
    call_.hipGraphExecDestroy_(past->exec);
  }
  const std::lock_guard lock(mutex_);
  std::copy_if(taken.begin(), kept, std::back_inserter(spare_),
               [](const Past& past) { return past.behind != nullptr; });
  past_.insert(past_.end(), kept, taken.end());
  return past_.size();
}

}  // namespace lockstep::hip
