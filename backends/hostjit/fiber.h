// SPDX-License-Identifier: Apache-2.0
#pragma once

// A stack that can be switched to, with what ASan and TSan have to know about it.

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define LOCKSTEP_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOCKSTEP_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define LOCKSTEP_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LOCKSTEP_TSAN 1
#endif
#endif
#ifdef LOCKSTEP_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef LOCKSTEP_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace lockstep::hostjit {

// Bytes of a fiber's stack without large frames: LOCKSTEP_HOST_STACK_KB, else 64 KiB; read once a
// process.
std::size_t fiber_stack_bytes();
std::size_t whole_pages(std::size_t bytes);  // rounded up

// Memory for one fiber with a guard page below, so that an overflow faults. When the process has
// very many (a limit of the kernel on mappings), stacks come without guard pages and a pattern at
// their end is checked at each switch instead: an overflow then aborts with a message.
class FiberStack {
 public:
  FiberStack() = default;
  ~FiberStack();
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;

  bool allocate(std::size_t bytes, std::size_t index);  // false: out of memory
  // Ends the process when the pattern is damaged.
  void check() const {
    if (checked_) check_pattern();
  }
  char* bottom() const { return bottom_; }
  char* top() const { return top_; }

 private:
  void check_pattern() const;

  char* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  char* bottom_ = nullptr;
  char* top_ = nullptr;
  bool guarded_ = false;
  bool checked_ = false;
};

// One switchable context. The context of a thread's own stack is a Fiber without FiberStack.
class Fiber {
 public:
  using Entry = void (*)(void* argument);

  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Gives it a stack on first use and makes it start at `entry`. False: out of memory.
  bool prepare(std::size_t stack_bytes, std::size_t index, Entry entry, void* argument);
  // Makes this the context of the calling thread's own stack.
  void adopt_thread();

  // Asks for what a switch to it will read first.
  void prefetch() const {
    constexpr int kLine = 64;
    const auto* saved = static_cast<const char*>(context_);
    for (int line = 0; line < 4; ++line) __builtin_prefetch(saved + line * kLine, 1);
  }

  // Leaves `from`, which is running, and continues `to`. Returns when something switches back.
  // In line, like its callers: each return above a switch is one that the CPU mispredicts.
  __attribute__((always_inline)) static void switch_to(Fiber& from, Fiber& to);

 private:
  static void arrive(Fiber& self, void* fake_stack);
  friend struct FiberStart;

  void* context_ = nullptr;
  FiberStack stack_;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  // Of the thread's own stack, learnt by the first switch away from it.
  const void* sanitizer_bottom_ = nullptr;
  std::size_t sanitizer_size_ = 0;
  void* sanitizer_fake_stack_ = nullptr;
  void* sanitizer_fiber_ = nullptr;
  Fiber* peer_ = nullptr;  // where a switch went to or came from
};

// On the stack of `self`, right after a switch; `peer_` is what ran before.
inline void Fiber::arrive(Fiber& self, void* fake_stack) {
#ifdef LOCKSTEP_ASAN
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(fake_stack, &bottom, &size);
  Fiber* from = self.peer_;
  if (from->stack_.bottom() == nullptr) {
    from->sanitizer_bottom_ = bottom;
    from->sanitizer_size_ = size;
  }
#else
  (void)self;
  (void)fake_stack;
#endif
}

inline void Fiber::switch_to(Fiber& from, Fiber& to) {
  from.stack_.check();
  from.peer_ = &to;  // how a fiber that starts learns who it is
#ifdef LOCKSTEP_ASAN
  __sanitizer_start_switch_fiber(&from.sanitizer_fake_stack_, to.sanitizer_bottom_,
                                 to.sanitizer_size_);
#endif
#ifdef LOCKSTEP_TSAN
  __tsan_switch_to_fiber(to.sanitizer_fiber_, 0);
#endif
  const boost::context::detail::transfer_t transfer =
      boost::context::detail::jump_fcontext(to.context_, &from);
  // Whoever switched here stored nothing yet: its context is what the jump hands over.
  Fiber& previous = *static_cast<Fiber*>(transfer.data);
  previous.context_ = transfer.fctx;
  from.peer_ = &previous;
  arrive(from, from.sanitizer_fake_stack_);
}

}  // namespace lockstep::hostjit
