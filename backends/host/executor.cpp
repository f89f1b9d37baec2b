// SPDX-License-Identifier: Apache-2.0
#include "executor.h"

#include <algorithm>
#include <cfenv>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <system_error>
#include <thread>
#include <utility>

namespace lockstep::hostrt {
namespace {

constexpr std::size_t kIdleLimit = 8;

}  // namespace

unsigned usable_threads() noexcept {
  static const unsigned count = [] {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
      return std::max(1U, static_cast<unsigned>(CPU_COUNT(&set)));
    }
    return std::max(1U, std::thread::hardware_concurrency());
  }();
  return count;
}

DefaultFloatingPoint::DefaultFloatingPoint() noexcept {
  static_assert(sizeof(std::fenv_t) <= sizeof(saved_));
  auto* environment = new (saved_) std::fenv_t;
  std::fegetenv(environment);
  std::fesetenv(FE_DFL_ENV);
}

DefaultFloatingPoint::~DefaultFloatingPoint() {
  std::fesetenv(std::launder(reinterpret_cast<const std::fenv_t*>(saved_)));
}

void start_thread(void (*body)()) {
  // Signals are the program's business: its handlers must not run on our threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
    sigdelset(&all, fault);
  }
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread(body).detach();
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Executor& Executor::instance() {
  static auto* const executor = new Executor;
  return *executor;
}

void Executor::add_thread_locked() {
  start_thread([] { instance().serve(); });
  ++threads_;
  ++starting_;
}

void Executor::start() {
  const std::lock_guard lock(mutex_);
  if (threads_ == 0) add_thread_locked();
}

void Executor::submit(std::shared_ptr<Runnable> runnable) {
  {
    const std::lock_guard lock(mutex_);
    ready_.push_back(std::move(runnable));
    // On a busy machine a thread may take long to begin: it counts from when it is made, or there
    // would be one more for every submission until then.
    if (ready_.size() > idle_ + starting_) {
      try {
        add_thread_locked();
        return;
      } catch (const std::system_error&) {
        // The system has no more threads: those there are will come to it.
        if (threads_ == 0) throw;
      }
    }
  }
  // Not under the lock, where the woken thread would run into it at once.
  condition_.notify_one();
}

void Executor::serve() noexcept {
  std::fesetenv(FE_DFL_ENV);  // threads inherit that of their maker
  std::unique_lock lock(mutex_);
  --starting_;
  while (true) {
    if (ready_.empty()) {
      if (idle_ >= kIdleLimit) {
        --threads_;
        return;
      }
      ++idle_;
      condition_.wait(lock, [this] { return !ready_.empty(); });
      --idle_;
    }
    std::shared_ptr<Runnable> runnable = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    runnable->run();
    runnable.reset();  // its end may be long, and must not happen under the lock
    lock.lock();
  }
}

}  // namespace lockstep::hostrt
