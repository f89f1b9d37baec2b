// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "error.h"

namespace lockstep::hostrt {

// A point in the work of a stream that is reached once. Thread-safe.
class Fence {
 public:
  using Clock = std::chrono::steady_clock;

  bool reached() const noexcept { return reached_.load(std::memory_order_acquire); }
  // `failure`: what had gone wrong on the stream until here; null = nothing.
  void reach(FailurePtr failure);
  // Calls `waiter` once when the fence is reached, on the thread that reaches it; returns false,
  // without a call, when it has been already.
  bool notify(std::function<void()> waiter);
  // Blocks the calling thread.
  void wait();
  // Valid once reached.
  const FailurePtr& failure() const noexcept { return failure_; }
  Clock::time_point time() const noexcept { return time_; }

 private:
  std::atomic<bool> reached_{false};
  std::mutex mutex_;
  std::condition_variable condition_;
  std::vector<std::function<void()>> waiters_;
  FailurePtr failure_;
  Clock::time_point time_;
};
using FencePtr = std::shared_ptr<Fence>;

}  // namespace lockstep::hostrt
