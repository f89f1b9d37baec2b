// SPDX-License-Identifier: Apache-2.0
#pragma once
#pragma GCC system_header

// CUDA's atomic functions: relaxed, on global and shared memory alike.

namespace lockstep_hostjit {

// Any update of a value of 4 or 8 bytes; returns the old value.
template <class T, class Update>
inline T atomic_update(T* address, Update update) {
  T old;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  for (;;) {
    T desired = update(old);
    if (__atomic_compare_exchange(address, &old, &desired, true, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED))
      return old;
  }
}

}  // namespace lockstep_hostjit

#define LOCKSTEP_ATOMIC_INTEGER(T)                                                              \
  static inline T atomicAdd(T* p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }   \
  static inline T atomicExch(T* p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_RELAXED); } \
  static inline T atomicAnd(T* p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }   \
  static inline T atomicOr(T* p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }     \
  static inline T atomicXor(T* p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); }   \
  static inline T atomicCAS(T* p, T expected, T v) {                                            \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);    \
    return expected;                                                                            \
  }                                                                                             \
  static inline T atomicMin(T* p, T v) {                                                        \
    return lockstep_hostjit::atomic_update(p, [v](T old) { return old < v ? old : v; });        \
  }                                                                                             \
  static inline T atomicMax(T* p, T v) {                                                        \
    return lockstep_hostjit::atomic_update(p, [v](T old) { return old < v ? v : old; });        \
  }

LOCKSTEP_ATOMIC_INTEGER(int)
LOCKSTEP_ATOMIC_INTEGER(unsigned int)
LOCKSTEP_ATOMIC_INTEGER(long long)
LOCKSTEP_ATOMIC_INTEGER(unsigned long long)
#undef LOCKSTEP_ATOMIC_INTEGER

static inline int atomicSub(int* p, int v) { return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED); }
static inline unsigned int atomicSub(unsigned int* p, unsigned int v) {
  return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED);
}
static inline unsigned int atomicInc(unsigned int* p, unsigned int limit) {
  return lockstep_hostjit::atomic_update(
      p, [limit](unsigned int old) { return old >= limit ? 0u : old + 1u; });
}
static inline unsigned int atomicDec(unsigned int* p, unsigned int limit) {
  return lockstep_hostjit::atomic_update(
      p, [limit](unsigned int old) { return old == 0u || old > limit ? limit : old - 1u; });
}
static inline float atomicAdd(float* p, float v) {
  return lockstep_hostjit::atomic_update(p, [v](float old) { return old + v; });
}
static inline double atomicAdd(double* p, double v) {
  return lockstep_hostjit::atomic_update(p, [v](double old) { return old + v; });
}
static inline float atomicExch(float* p, float v) {
  float old;
  __atomic_exchange(p, &v, &old, __ATOMIC_RELAXED);
  return old;
}
static inline unsigned short atomicCAS(unsigned short* p, unsigned short expected,
                                       unsigned short v) {
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

// The scopes differ only in how far the update must be seen; here all see it.
#define LOCKSTEP_ATOMIC_SCOPES(name)                                                       \
  template <class... Arguments>                                                            \
  static inline auto name##_block(Arguments... arguments)->decltype(name(arguments...)) {  \
    return name(arguments...);                                                             \
  }                                                                                        \
  template <class... Arguments>                                                            \
  static inline auto name##_system(Arguments... arguments)->decltype(name(arguments...)) { \
    return name(arguments...);                                                             \
  }
LOCKSTEP_ATOMIC_SCOPES(atomicAdd)
LOCKSTEP_ATOMIC_SCOPES(atomicSub)
LOCKSTEP_ATOMIC_SCOPES(atomicExch)
LOCKSTEP_ATOMIC_SCOPES(atomicMin)
LOCKSTEP_ATOMIC_SCOPES(atomicMax)
LOCKSTEP_ATOMIC_SCOPES(atomicInc)
LOCKSTEP_ATOMIC_SCOPES(atomicDec)
LOCKSTEP_ATOMIC_SCOPES(atomicCAS)
LOCKSTEP_ATOMIC_SCOPES(atomicAnd)
LOCKSTEP_ATOMIC_SCOPES(atomicOr)
LOCKSTEP_ATOMIC_SCOPES(atomicXor)
#undef LOCKSTEP_ATOMIC_SCOPES
