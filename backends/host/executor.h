// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

namespace lockstep::hostrt {

// Something that is ready to run on a thread of ours.
class Runnable {
 public:
  virtual ~Runnable() = default;
  virtual void run() noexcept = 0;
};

// Threads that run what is ready. What waits for something else is not here and holds no thread;
// what runs may block for as long as it likes (a host function, a kernel that spins), because a
// thread is added whenever none is idle. Threads beyond the idle limit end.
//
// There is one executor a process. It is never destroyed: threads may be inside of it while the
// process exits.
class Executor {
 public:
  static Executor& instance();

  // Makes the first thread, so that later shortages of threads only cost parallelism.
  // Throws std::system_error.
  void start();
  void submit(std::shared_ptr<Runnable> runnable);

 private:
  Executor() = default;
  void add_thread_locked();
  void serve() noexcept;

  std::mutex mutex_;
  std::condition_variable condition_;
  std::deque<std::shared_ptr<Runnable>> ready_;
  std::size_t idle_ = 0;
  std::size_t starting_ = 0;  // made, but not yet at work: each will take something that is ready
  std::size_t threads_ = 0;
};

// Number of hardware threads this process may use, at least 1.
unsigned usable_threads() noexcept;

// Kernels see the default floating-point environment whatever thread runs them: restores the
// thread's own on leaving.
class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint() noexcept;
  ~DefaultFloatingPoint();
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
  alignas(16) unsigned char saved_[32];
};

// Starts a thread that receives no signals of the program's. Throws std::system_error.
void start_thread(void (*body)());

}  // namespace lockstep::hostrt
