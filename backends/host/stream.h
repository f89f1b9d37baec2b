// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "capture.h"
#include "executor.h"
#include "fence.h"
#include "work.h"

namespace lockstep::hostrt {

class Device;
class GraphRun;

// A queue of operations that are executed in order, beside other streams. A stream runs on a thread
// of the executor while it has something to do; while it waits for a fence it is on none.
//
// Errors: the first operation that fails makes the stream failed. What comes after is not executed
// (fences are still reached), and every synchronise reports it. When the stream is destroyed before
// anybody was told, the next synchronise of the device is.
class Stream final : public Runnable, public std::enable_shared_from_this<Stream> {
 public:
  Stream(Device& device, bool blocking, bool legacy, std::int32_t priority);
  ~Stream() override;

  Device& device() const noexcept { return device_; }
  std::uint64_t identity() const noexcept { return capture_.identity; }
  bool blocking() const noexcept { return capture_.blocking; }
  bool legacy() const noexcept { return capture_.legacy; }
  StreamCapture& capture() noexcept { return capture_; }

  // Each enqueues, after what legacy-stream semantics ask for. Thread-safe.
  void enqueue(WorkPtr work);
  void enqueue_action(std::function<void()> action);  // cannot fail; runs also on a failed stream
  void enqueue_graph(std::shared_ptr<GraphRun> run, FencePtr after);
  void enqueue_signal(FencePtr fence);
  void enqueue_wait(FencePtr fence);

  // Executes `work` here and now when nothing is before it; false, and nothing done, otherwise.
  bool run_at_once(const Work& work);

  // Reached when everything that is enqueued now is done; null when nothing is pending.
  FencePtr tail();
  bool pending();
  // Operations that are enqueued and not done.
  std::size_t unfinished();
  // Waits for all enqueued work, lending the calling thread to it. Throws the stream's failure.
  void synchronize();
  FailurePtr failure();
  // Its handle was destroyed: what is enqueued is finished, but nobody can ask it any more.
  void abandon() noexcept { abandoned_.store(true, std::memory_order_release); }
  bool abandoned() const noexcept { return abandoned_.load(std::memory_order_acquire); }

  void run() noexcept override;  // the executor's entry

 private:
  enum class State { kIdle, kScheduled, kRunning, kSuspended };
  struct Operation {
    enum class Kind { kWork, kAction, kGraph, kSignal, kWait, kWaitGraph };
    explicit Operation(Kind k, FencePtr f = nullptr) : kind(k), fence(std::move(f)) {}
    Kind kind;
    WorkPtr work;
    std::function<void()> action;
    std::shared_ptr<GraphRun> graph;
    FencePtr fence;
  };

  void order();
  // Nothing of another thread's comes between what is pushed together.
  template <typename... Operations>
  void push(Operations... operations);
  // In state kRunning. Returns when nothing is left, it suspends, or it has handed what is left to
  // the executor. A lent thread must not get caught in more than its caller waits for: it hands
  // over once `until` is reached (null: at once), and what has to run on a thread of ours.
  enum class Thread { kExecutor, kLent };
  void drain(Thread thread, const Fence* until) noexcept;
  bool execute(Operation& operation, bool skip) noexcept;  // false: suspended
  void fail(FailurePtr failure);

  Device& device_;
  StreamCapture capture_;
  std::atomic<bool> abandoned_{false};
  std::mutex mutex_;
  State state_ = State::kIdle;
  std::deque<Operation> queue_;  // the front stays until it is done
  std::size_t unfinished_ = 0;   // what a query counts; a signal is finished before it is seen
  FailurePtr failure_;
};
using StreamPtr = std::shared_ptr<Stream>;

// True on a thread that executes a host function: the device must not be called there.
bool in_host_function() noexcept;
class HostFunctionScope {
 public:
  HostFunctionScope() noexcept;
  ~HostFunctionScope();
  HostFunctionScope(const HostFunctionScope&) = delete;
  HostFunctionScope& operator=(const HostFunctionScope&) = delete;
};

}  // namespace lockstep::hostrt
