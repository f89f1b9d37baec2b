// SPDX-License-Identifier: Apache-2.0
#include "fence.h"

#include <utility>

namespace lockstep::hostrt {

void Fence::reach(FailurePtr failure) {
  std::vector<std::function<void()>> waiters;
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    time_ = Clock::now();
    reached_.store(true, std::memory_order_release);
    waiters.swap(waiters_);
    // Under the lock: a waiter that sees `reached` may drop the last reference right away.
    condition_.notify_all();
  }
  for (const auto& waiter : waiters) waiter();
}

bool Fence::notify(std::function<void()> waiter) {
  const std::lock_guard lock(mutex_);
  if (reached()) return false;
  waiters_.push_back(std::move(waiter));
  return true;
}

void Fence::wait() {
  std::unique_lock lock(mutex_);
  condition_.wait(lock, [this] { return reached(); });
}

}  // namespace lockstep::hostrt
