// SPDX-License-Identifier: Apache-2.0
#pragma once
#pragma GCC system_header

// Where a thread is, barriers, shared memory and failures.

// Plain thread-local variables whose address nobody takes: the compiler keeps them in registers
// across the loop over the threads of a block and can vectorise that loop.
// The alignment keeps the leak checker of gcc 12 from misreading the size of this block: it crashes
// on one that begins 16 bytes after a page.
static __thread uint3 threadIdx __attribute__((aligned(64)));
static __thread uint3 blockIdx;
static __thread uint3 blockDim;  // dim3 in CUDA; has no constructor here
static __thread uint3 gridDim;
static constexpr int warpSize = LOCKSTEP_HOSTJIT_WARP_SIZE;

namespace lockstep_hostjit {

static __thread const Launch* current_launch;
static __thread void* dynamic_shared_memory;
// Set by a barrier: the library now runs the remaining threads of this block.
static __thread bool barrier_reached;

static inline void* dynamic_shared() { return dynamic_shared_memory; }

// A pointer to dynamic shared memory that was declared at namespace scope.
struct SharedPointer {
  using Set = void (*)(void*);
  explicit SharedPointer(Set setter) : set(setter), next(first()) { first() = this; }
  static SharedPointer*& first() {
    static SharedPointer* list = nullptr;
    return list;
  }
  Set set;
  SharedPointer* next;
};

template <class T>
struct ElementOf {
  static constexpr bool kTrivial = __has_trivial_constructor(T) && __has_trivial_destructor(T);
};
template <class T, decltype(sizeof(0)) kCount>
struct ElementOf<T[kCount]> : ElementOf<T> {};

template <class First, class... Rest>
constexpr unsigned first_bound(First first, Rest...) {
  return static_cast<unsigned>(first);
}

// Marks the place in a section of its own, so that the library knows which kernels can wait.
static inline __attribute__((always_inline)) BarrierVotes wait(bool votes, bool aye) {
  __asm__ volatile(
      "771: .pushsection lockstep_barriers,\"a\"\n"
      ".balign 4\n.long 771b - .\n.popsection" ::);
  const uint3 mine = threadIdx;
  barrier_reached = true;
  const Launch* launch = current_launch;
  const unsigned linear = (mine.z * blockDim.y + mine.y) * blockDim.x + mine.x;
  const BarrierVotes result = launch->services->barrier(launch->scheduler, linear, votes, aye);
  threadIdx = mine;
  return result;
}

[[noreturn]] static __attribute__((noinline, cold)) void fail(unsigned kind, const char* expression,
                                                              const char* file, unsigned line,
                                                              const char* function) {
  const Launch* launch = current_launch;
  const Failure failure = {kind,
                           line,
                           expression,
                           file,
                           function,
                           {blockIdx.x, blockIdx.y, blockIdx.z},
                           {threadIdx.x, threadIdx.y, threadIdx.z}};
  launch->services->fail(launch->scheduler, &failure);
  __builtin_unreachable();
}

}  // namespace lockstep_hostjit

static inline __attribute__((always_inline)) void __syncthreads() {
  lockstep_hostjit::wait(false, false);
}
static inline __attribute__((always_inline)) int __syncthreads_count(int predicate) {
  return static_cast<int>(lockstep_hostjit::wait(true, predicate != 0).ayes);
}
static inline __attribute__((always_inline)) int __syncthreads_and(int predicate) {
  const lockstep_hostjit::BarrierVotes votes = lockstep_hostjit::wait(true, predicate != 0);
  return votes.ayes == votes.voters;
}
static inline __attribute__((always_inline)) int __syncthreads_or(int predicate) {
  return lockstep_hostjit::wait(true, predicate != 0).ayes != 0;
}

// The threads of a block share one OS thread: only the compiler could reorder.
static inline void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// assert() of <assert.h> calls this; hidden, so that only the image's own calls come here.
extern "C" __attribute__((noreturn, visibility("hidden"), used)) void __assert_fail(
    const char* expression, const char* file, unsigned int line, const char* function) noexcept {
  lockstep_hostjit::fail(lockstep_hostjit::kFailureAssert, expression, file, line, function);
}
[[noreturn]] static inline void __trap() {
  lockstep_hostjit::fail(lockstep_hostjit::kFailureTrap, nullptr, nullptr, 0, nullptr);
}
[[noreturn]] static inline void __brkpt() { __trap(); }
static inline void __nanosleep(unsigned) {}
static inline long long clock64() {
#if defined(__x86_64__)
  return static_cast<long long>(__builtin_ia32_rdtsc());
#else
  long long ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}
