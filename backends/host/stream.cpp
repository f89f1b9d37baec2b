// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <optional>
#include <utility>

#include "device.h"
#include "graph_run.h"
#include "record.h"

namespace lockstep::hostrt {
namespace {

thread_local bool t_in_host_function = false;

}  // namespace

bool in_host_function() noexcept { return t_in_host_function; }
HostFunctionScope::HostFunctionScope() noexcept { t_in_host_function = true; }
HostFunctionScope::~HostFunctionScope() { t_in_host_function = false; }

Stream::Stream(Device& device, bool blocking, bool legacy, std::int32_t /*priority*/)
    : device_(device) {
  capture_.identity = next_id();
  capture_.context = device.ordinal();
  capture_.blocking = blocking;
  capture_.legacy = legacy;
  define_stream(capture_.identity, device.signed_ordinal(),
                legacy     ? StreamKind::kLegacy
                : blocking ? StreamKind::kBlocking
                           : StreamKind::kNonBlocking);
}

Stream::~Stream() { device_.rules().release(capture_); }

template <typename... Operations>
void Stream::push(Operations... operations) {
  {
    const std::lock_guard lock(mutex_);
    (queue_.push_back(std::move(operations)), ...);
    unfinished_ += sizeof...(operations);
    if (state_ != State::kIdle) return;
    state_ = State::kScheduled;
  }
  Executor::instance().submit(shared_from_this());
}

// The legacy stream waits for all blocking streams, and they wait for it.
void Stream::order() {
  if (!capture_.blocking) return;
  if (!capture_.legacy) {
    Stream* const legacy = device_.legacy_if_used();
    if (legacy == nullptr) return;
    if (FencePtr fence = legacy->tail()) push(Operation(Operation::Kind::kWait, fence));
    return;
  }
  for (const StreamPtr& stream : device_.streams()) {
    if (!stream->blocking() || stream.get() == this) continue;
    if (FencePtr fence = stream->tail()) push(Operation(Operation::Kind::kWait, fence));
  }
}

void Stream::enqueue(WorkPtr work) {
  order();
  Operation operation(Operation::Kind::kWork);
  operation.work = std::move(work);
  push(std::move(operation));
}

void Stream::enqueue_action(std::function<void()> action) {
  order();
  Operation operation(Operation::Kind::kAction);
  operation.action = std::move(action);
  push(std::move(operation));
}

void Stream::enqueue_graph(std::shared_ptr<GraphRun> run, FencePtr after) {
  order();
  Operation start(Operation::Kind::kGraph);
  start.graph = run;
  Operation end(Operation::Kind::kWaitGraph, run->done());
  end.graph = std::move(run);
  if (after == nullptr) {
    push(std::move(start), std::move(end));
  } else {
    push(Operation(Operation::Kind::kWait, std::move(after)), std::move(start), std::move(end));
  }
}

void Stream::enqueue_signal(FencePtr fence) {
  order();
  push(Operation(Operation::Kind::kSignal, std::move(fence)));
}

void Stream::enqueue_wait(FencePtr fence) {
  order();
  push(Operation(Operation::Kind::kWait, std::move(fence)));
}

bool Stream::run_at_once(const Work& work) {
  order();
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kIdle) return false;
    state_ = State::kRunning;
    if (failure_ != nullptr) {
      state_ = State::kIdle;
      return true;
    }
    ++unfinished_;
  }
  if (FailurePtr failure = work.run()) fail(std::move(failure));
  {
    const std::lock_guard lock(mutex_);
    --unfinished_;
  }
  drain(Thread::kLent, nullptr);
  return true;
}

FencePtr Stream::tail() {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) {
    if (state_ == State::kIdle) return nullptr;
    // Something runs at once on a caller's thread: it drains the queue when it is done.
  } else if (queue_.back().kind == Operation::Kind::kSignal) {
    return queue_.back().fence;
  }
  auto fence = std::make_shared<Fence>();
  queue_.emplace_back(Operation::Kind::kSignal, fence);
  ++unfinished_;
  return fence;
}

bool Stream::pending() { return unfinished() > 0; }

std::size_t Stream::unfinished() {
  const std::lock_guard lock(mutex_);
  return unfinished_;
}

FailurePtr Stream::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Stream::fail(FailurePtr failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) return;
    failure_ = failure;
  }
  // Now, as long as the stream certainly is there: whoever finds it gone finds this instead.
  device_.note_failure(std::move(failure));
}

void Stream::synchronize() {
  // Waiting on the legacy stream is an operation on it: it stands behind the blocking streams.
  if (capture_.legacy) order();
  if (const FencePtr fence = tail()) {
    bool lent = false;
    {
      // Not begun yet: quicker to do it here than to wait for a thread to wake up.
      const std::lock_guard lock(mutex_);
      if (state_ == State::kScheduled) {
        state_ = State::kRunning;
        lent = true;
      }
    }
    if (lent) drain(Thread::kLent, fence.get());
    fence->wait();
  }
  if (const FailurePtr f = failure()) device_.report(*f);
}

void Stream::run() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kScheduled) return;  // somebody lent a thread meanwhile
    state_ = State::kRunning;
  }
  drain(Thread::kExecutor, nullptr);
}

void Stream::drain(Thread thread, const Fence* until) noexcept {
  // Nobody else may drop the last reference while we are inside.
  const StreamPtr self = shared_from_this();
  std::unique_lock lock(mutex_);
  while (!queue_.empty()) {
    Operation& operation = queue_.front();  // stays in place: a deque grows at the other end
    const bool skip = failure_ != nullptr;
    const bool ours_only = (operation.work != nullptr && !operation.work->any_thread()) ||
                           (operation.graph != nullptr && !operation.graph->any_thread());
    if (thread == Thread::kLent && (ours_only || until == nullptr || until->reached())) {
      state_ = State::kScheduled;
      lock.unlock();
      Executor::instance().submit(self);
      return;
    }
    lock.unlock();
    if (!execute(operation, skip)) return;
    lock.lock();
    if (operation.kind != Operation::Kind::kSignal) --unfinished_;
    std::optional<Operation> finished = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    finished.reset();  // its end may free memory or run destructors: not under the lock
    lock.lock();
  }
  state_ = State::kIdle;
}

bool Stream::execute(Operation& operation, bool skip) noexcept {
  switch (operation.kind) {
    case Operation::Kind::kWork:
      if (!skip) {
        if (FailurePtr failure = operation.work->run()) fail(std::move(failure));
      }
      return true;
    case Operation::Kind::kAction:
      operation.action();
      return true;
    case Operation::Kind::kGraph:
      operation.graph->start(skip);
      return true;
    case Operation::Kind::kSignal: {
      // Who has waited for it and then queries finds everything done.
      const std::lock_guard lock(mutex_);
      --unfinished_;
    }
      operation.fence->reach(failure());
      return true;
    case Operation::Kind::kWait:
    case Operation::Kind::kWaitGraph:
      break;
  }
  if (!operation.fence->reached()) {
    {
      const std::lock_guard lock(mutex_);
      state_ = State::kSuspended;
    }
    const bool suspended = operation.fence->notify([self = shared_from_this()] {
      {
        const std::lock_guard lock(self->mutex_);
        self->state_ = State::kScheduled;
      }
      Executor::instance().submit(self);
    });
    if (suspended) return false;
    const std::lock_guard lock(mutex_);
    state_ = State::kRunning;
  }
  if (operation.kind == Operation::Kind::kWaitGraph && operation.fence->failure() != nullptr) {
    fail(operation.fence->failure());
  }
  return true;
}

}  // namespace lockstep::hostrt
