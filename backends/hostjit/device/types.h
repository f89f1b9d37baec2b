// SPDX-License-Identifier: Apache-2.0
#pragma once
#pragma GCC system_header

// CUDA's built-in types with CUDA's sizes, alignments and mangled names.

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#ifndef __restrict__
#define __restrict__ __restrict
#endif
#define __align__(bytes) __attribute__((aligned(bytes)))
// The bound reaches the library through a constant that the rewriter puts into the kernel's body.
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__
// A block stays on one OS thread. The rewriter adds a check that the type needs no constructor.
#define __shared__ static __thread
// `used`: the host writes these, so the compiler may not take their initial value for constant.
#define __constant__ __attribute__((used))
#define __lockstep_variable__ __attribute__((used))
#define __managed__ __attribute__((used))

#define LOCKSTEP_VECTOR(name, type, align2, align4)                                  \
  struct name##1 {                                                                   \
    type x;                                                                          \
  };                                                                                 \
  struct __attribute__((aligned(align2))) name##2 {                                  \
    type x, y;                                                                       \
  };                                                                                 \
  struct name##3 {                                                                   \
    type x, y, z;                                                                    \
  };                                                                                 \
  struct __attribute__((aligned(align4))) name##4 {                                  \
    type x, y, z, w;                                                                 \
  };                                                                                 \
  static inline name##1 make_##name##1(type x) { return {x}; }                       \
  static inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

LOCKSTEP_VECTOR(char, signed char, 2, 4)
LOCKSTEP_VECTOR(uchar, unsigned char, 2, 4)
LOCKSTEP_VECTOR(short, short, 4, 8)
LOCKSTEP_VECTOR(ushort, unsigned short, 4, 8)
LOCKSTEP_VECTOR(int, int, 8, 16)
LOCKSTEP_VECTOR(uint, unsigned int, 8, 16)
LOCKSTEP_VECTOR(long, long, 16, 16)
LOCKSTEP_VECTOR(ulong, unsigned long, 16, 16)
LOCKSTEP_VECTOR(longlong, long long, 16, 16)
LOCKSTEP_VECTOR(ulonglong, unsigned long long, 16, 16)
LOCKSTEP_VECTOR(float, float, 8, 16)
LOCKSTEP_VECTOR(double, double, 16, 16)
#undef LOCKSTEP_VECTOR

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
      : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
