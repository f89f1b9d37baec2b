// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs blocks of a kernel on one OS thread.
//
// The image's own loop runs the threads of a block one after the other on the caller's stack, and a
// kernel that reaches no barrier never leaves it. The first barrier of a block parks that loop and
// the remaining threads start on fibers, of which one runs thread after thread until a thread has
// to wait. A barrier opens when every thread of the block waits or has ended, wherever in the code
// each of them waits: a thread that ended early counts as arrived, and nothing can hang.

#include <cstddef>
#include <memory>
#include <setjmp.h>
#include <string>
#include <vector>

#include "device/abi.h"
#include "fiber.h"
#include "hostjit.h"

namespace lockstep::hostjit {

class BlockRunner {
 public:
  // That of the calling thread.
  static BlockRunner& current();

  RunStatus run(const lockstep_hostjit::KernelEntry& entry, lockstep_hostjit::Launch& launch,
                bool small, std::size_t dynamic_shared_bytes, std::size_t frame_bytes);

 private:
  using Launch = lockstep_hostjit::Launch;
  using BarrierVotes = lockstep_hostjit::BarrierVotes;

  static BarrierVotes barrier(void* self, unsigned linear_thread, bool votes, bool aye);
  static void finish_block(void* self);
  static void fail(void* self, const lockstep_hostjit::Failure* failure);
  static void fiber_main(void* self);
  static const lockstep_hostjit::Services kServices;

  bool reserve_dynamic_shared(std::size_t bytes);
  void begin_fibers(unsigned linear_thread);
  Fiber& next_fiber();
  Fiber& fiber_for_new_thread();
  Fiber& open_barrier();
  void switch_away();
  __attribute__((noinline)) void record_failure(const lockstep_hostjit::Failure& failure);
  void stop(RunCode code, std::string message);
  void forget_fibers();
  void reserve_stacks(std::size_t frame_bytes);

  struct FreeDeleter {
    void operator()(void* memory) const;
  };

  const lockstep_hostjit::KernelEntry* entry_ = nullptr;
  const Launch* launch_ = nullptr;
  std::unique_ptr<void, FreeDeleter> dynamic_shared_;
  std::size_t dynamic_shared_bytes_ = 0;

  Fiber thread_fiber_;                          // the caller's own stack
  std::vector<std::unique_ptr<Fiber>> fibers_;  // all with stacks of this size
  std::size_t stack_bytes_ = fiber_stack_bytes();
  std::vector<Fiber*> idle_;     // wait for a thread to run
  std::vector<Fiber*> waiting_;  // at the barrier that is not open yet
  std::vector<Fiber*> ready_;    // past the barrier that opened last
  // How many of the two are in use, and how many of the ready ones went on. The vectors have room
  // for every thread of a block.
  std::size_t waiting_count_ = 0;
  std::size_t ready_count_ = 0;
  std::size_t ready_at_ = 0;
  Fiber* running_ = nullptr;
  unsigned next_thread_ = 0;
  unsigned thread_count_ = 0;
  bool uses_fibers_ = false;  // in this block
  BarrierVotes gathering_ = {0, 0};
  BarrierVotes opened_ = {0, 0};

  bool busy_ = false;
  bool failed_ = false;
  RunStatus status_;
  jmp_buf escape_;
};

}  // namespace lockstep::hostjit
