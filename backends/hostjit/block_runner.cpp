// SPDX-License-Identifier: Apache-2.0
#include "block_runner.h"

#include <cstdlib>

namespace lockstep::hostjit {
namespace {

constexpr std::size_t kSharedAlignment = 256;

std::string triple(const lockstep_hostjit::Size3& value) {
  return "[" + std::to_string(value.x) + "," + std::to_string(value.y) + "," +
         std::to_string(value.z) + "]";
}

}  // namespace

void BlockRunner::FreeDeleter::operator()(void* memory) const { std::free(memory); }

const lockstep_hostjit::Services BlockRunner::kServices = {
    &BlockRunner::barrier, &BlockRunner::finish_block, &BlockRunner::fail};

BlockRunner& BlockRunner::current() {
  static thread_local BlockRunner runner;
  return runner;
}

bool BlockRunner::reserve_dynamic_shared(std::size_t bytes) {
  if (bytes <= dynamic_shared_bytes_) return true;
  const std::size_t rounded = (bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
  dynamic_shared_.reset(std::aligned_alloc(kSharedAlignment, rounded));
  dynamic_shared_bytes_ = dynamic_shared_ ? rounded : 0;
  return dynamic_shared_ != nullptr;
}

// Stacks of kernels with smaller frames are no use to this one; its own are to all others.
void BlockRunner::reserve_stacks(std::size_t frame_bytes) {
  const std::size_t bytes = whole_pages(fiber_stack_bytes() + frame_bytes);
  if (bytes <= stack_bytes_) return;
  idle_.clear();
  fibers_.clear();
  stack_bytes_ = bytes;
}

RunStatus BlockRunner::run(const lockstep_hostjit::KernelEntry& entry, Launch& launch, bool small,
                           std::size_t dynamic_shared_bytes, std::size_t frame_bytes) {
  if (busy_) return {RunCode::kTrap, "run_blocks was called from within a kernel"};
  // One byte at least, so that the address of an empty array is one too.
  if (!reserve_dynamic_shared(dynamic_shared_bytes + 1)) {
    return {RunCode::kOutOfMemory, "no memory for " + std::to_string(dynamic_shared_bytes) +
                                       " bytes of dynamic shared memory"};
  }
  if (frame_bytes != 0) reserve_stacks(frame_bytes);
  entry_ = &entry;
  launch_ = &launch;
  launch.services = &kServices;
  launch.scheduler = this;
  launch.dynamic_shared = dynamic_shared_.get();
  thread_count_ = launch.block.x * launch.block.y * launch.block.z;
  uses_fibers_ = false;
  busy_ = true;
  // A failed kernel is left by a jump: there is nothing on its stack that needs a destructor.
  if (_setjmp(escape_) == 0) {
    entry.run(&launch, small);
  }
  busy_ = false;
  if (!failed_) return {};
  failed_ = false;
  forget_fibers();
  return std::move(status_);
}

// Fibers in the middle of an abandoned thread start anew when they are needed next.
void BlockRunner::forget_fibers() {
  idle_.clear();
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    // Has its stack: cannot fail.
    fibers_[i]->prepare(stack_bytes_, i, &BlockRunner::fiber_main, this);
    idle_.push_back(fibers_[i].get());
  }
}

void BlockRunner::begin_fibers(unsigned linear_thread) {
  uses_fibers_ = true;
  next_thread_ = linear_thread + 1;
  if (waiting_.size() < thread_count_) {
    waiting_.resize(thread_count_);
    ready_.resize(thread_count_);
  }
  waiting_count_ = 0;
  ready_count_ = 0;
  ready_at_ = 0;
  gathering_ = {0, 0};
  thread_fiber_.adopt_thread();
  running_ = &thread_fiber_;
}

Fiber& BlockRunner::fiber_for_new_thread() {
  if (!idle_.empty()) {
    Fiber& fiber = *idle_.back();
    idle_.pop_back();
    return fiber;
  }
  auto fiber = std::make_unique<Fiber>();
  if (!fiber->prepare(stack_bytes_, fibers_.size(), &BlockRunner::fiber_main, this)) {
    stop(RunCode::kOutOfMemory, "no memory for the stacks of " + std::to_string(thread_count_) +
                                    " threads that wait at a barrier, " +
                                    std::to_string(stack_bytes_ / 1024) +
                                    " KiB each; lower "
                                    "LOCKSTEP_HOST_STACK_KB or raise vm.max_map_count");
    return thread_fiber_;
  }
  fibers_.push_back(std::move(fiber));
  return *fibers_.back();
}

Fiber& BlockRunner::open_barrier() {
  ready_.swap(waiting_);
  ready_count_ = waiting_count_;
  waiting_count_ = 0;
  ready_at_ = 1;
  opened_ = gathering_;
  gathering_ = {0, 0};
  return *ready_.front();
}

// Who runs when the running fiber cannot go on: first those that passed the last barrier, then
// threads that have not started, then, as everyone has arrived, those that wait.
inline Fiber& BlockRunner::next_fiber() {
  if (ready_at_ < ready_count_) [[likely]] {
    Fiber& next = *ready_[ready_at_++];
    // The stacks of a block's threads together do not fit the nearest cache.
    if (ready_at_ < ready_count_) ready_[ready_at_]->prefetch();
    return next;
  }
  if (next_thread_ < thread_count_) return fiber_for_new_thread();
  if (waiting_count_ > 0) return open_barrier();
  return thread_fiber_;  // all have ended; it waits in finish_block
}

// Returns when the fiber that called may go on.
__attribute__((always_inline)) inline void BlockRunner::switch_away() {
  Fiber& from = *running_;
  Fiber& to = next_fiber();
  if (&to != &from) {
    running_ = &to;
    Fiber::switch_to(from, to);
  }
  // A failure on a fiber comes back to the thread's own stack, which leaves the launch.
  if (failed_ && &from == &thread_fiber_) [[unlikely]]
    _longjmp(escape_, 1);
}

void BlockRunner::fiber_main(void* self) {
  auto& runner = *static_cast<BlockRunner*>(self);
  for (;;) {
    while (runner.next_thread_ < runner.thread_count_) {
      runner.entry_->run_thread(runner.launch_, runner.next_thread_++);
    }
    runner.idle_.push_back(runner.running_);
    runner.switch_away();
  }
}

lockstep_hostjit::BarrierVotes BlockRunner::barrier(void* self, unsigned linear_thread, bool votes,
                                                    bool aye) {
  auto& runner = *static_cast<BlockRunner*>(self);
  if (!runner.uses_fibers_) runner.begin_fibers(linear_thread);
  if (votes) {
    runner.gathering_.voters += 1;
    runner.gathering_.ayes += aye ? 1 : 0;
  }
  runner.waiting_[runner.waiting_count_++] = runner.running_;
  runner.switch_away();
  return runner.opened_;
}

void BlockRunner::finish_block(void* self) {
  auto& runner = *static_cast<BlockRunner*>(self);
  // Comes back here only when no other fiber has anything to do.
  runner.switch_away();
  runner.uses_fibers_ = false;
}

void BlockRunner::stop(RunCode code, std::string message) {
  failed_ = true;
  status_.code = code;
  status_.message = std::move(message);
}

void BlockRunner::record_failure(const lockstep_hostjit::Failure& failure) {
  const std::string where =
      "block: " + triple(failure.block) + ", thread: " + triple(failure.thread);
  if (failure.kind == lockstep_hostjit::kFailureAssert) {
    stop(RunCode::kAssert, std::string(failure.file) + ":" + std::to_string(failure.line) + ": " +
                               failure.function + ": " + where + " Assertion `" +
                               failure.expression + "` failed.");
  } else {
    stop(RunCode::kTrap, "__trap() in " + where);
  }
}

// Holds no object with a destructor: it is left by a jump.
void BlockRunner::fail(void* self, const lockstep_hostjit::Failure* failure) {
  auto& runner = *static_cast<BlockRunner*>(self);
  runner.record_failure(*failure);
  if (runner.uses_fibers_ && runner.running_ != &runner.thread_fiber_) {
    Fiber& from = *runner.running_;
    runner.running_ = &runner.thread_fiber_;
    Fiber::switch_to(from, runner.thread_fiber_);
  }
  _longjmp(runner.escape_, 1);
}

}  // namespace lockstep::hostjit
