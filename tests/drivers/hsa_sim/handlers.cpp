// SPDX-License-Identifier: Apache-2.0
#include "handlers.h"

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

namespace hsa_sim {
namespace {

struct Handler {
  Signal* signal;
  hsa_signal_condition_t condition;
  std::int64_t bound;
  hsa_amd_signal_handler function;
  void* argument;
};

class Handlers {
 public:
  void add(const Handler& handler) {
    const std::lock_guard lock(mutex_);
    handler.signal->observers.fetch_add(1);
    handlers_.push_back(handler);
    if (!started_) std::thread([this] { run(); }).detach();
    started_ = true;
    changed_ = true;
    condition_.notify_one();
  }
  void wake() noexcept {
    const std::lock_guard lock(mutex_);
    changed_ = true;
    condition_.notify_one();
  }
  void forget(Signal& signal) {
    const std::lock_guard lock(mutex_);
    handlers_.remove_if([&](const Handler& handler) { return handler.signal == &signal; });
    signal.observers.store(0);
  }

 private:
  [[noreturn]] void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      // Looks by itself now and then: values may be changed through their address.
      condition_.wait_for(lock, std::chrono::milliseconds(2), [&] { return changed_; });
      changed_ = false;
      for (auto at = handlers_.begin(); at != handlers_.end();) {
        const std::int64_t value = at->signal->value().load();
        if (!holds(value, at->condition, at->bound)) {
          ++at;
          continue;
        }
        const Handler handler = *at;
        at->signal->observers.fetch_sub(1);
        handlers_.erase(at);
        // It may enqueue, wait, register and destroy.
        lock.unlock();
        const bool again = handler.function(value, handler.argument);
        lock.lock();
        if (again) {
          handler.signal->observers.fetch_add(1);
          handlers_.push_back(handler);
        }
        at = handlers_.begin();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable condition_;
  std::list<Handler> handlers_;
  bool started_ = false;
  bool changed_ = false;
};

// Never destroyed: its thread runs until the process ends.
Handlers& handlers() {
  static auto* const instance = new Handlers;
  return *instance;
}

}  // namespace

void wake_handlers() noexcept { handlers().wake(); }
void forget_handlers(Signal& signal) { handlers().forget(signal); }

}  // namespace hsa_sim

using namespace hsa_sim;

HSA_SIM_API hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t condition,
                                         hsa_signal_value_t bound, hsa_amd_signal_handler function,
                                         void* argument) {
  return call("hsa_amd_signal_async_handler", [&] {
    require(function != nullptr);
    handlers().add({&signal_of(signal), condition, bound, function, argument});
  });
}
