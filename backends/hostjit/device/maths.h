// SPDX-License-Identifier: Apache-2.0
#pragma once
#pragma GCC system_header

// CUDA's maths and integer functions that a C++ library does not have.

#define LOCKSTEP_MATH static inline __attribute__((always_inline))

// Newer C libraries declare these names (glibc 2.41 and 2.42), so they are macros: kernels get the
// same functions, and the same bits, on all.
#define rsqrtf lockstep_rsqrtf
#define rsqrt lockstep_rsqrt
#define sinpif lockstep_sinpif
#define sinpi lockstep_sinpi
#define cospif lockstep_cospif
#define cospi lockstep_cospi

LOCKSTEP_MATH float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
LOCKSTEP_MATH double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
LOCKSTEP_MATH float rsqrt(float x) { return rsqrtf(x); }
LOCKSTEP_MATH float rcbrtf(float x) { return 1.0f / cbrtf(x); }
LOCKSTEP_MATH double rcbrt(double x) { return 1.0 / cbrt(x); }
LOCKSTEP_MATH float fdividef(float x, float y) { return x / y; }
LOCKSTEP_MATH float __fdividef(float x, float y) { return x / y; }
LOCKSTEP_MATH float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
LOCKSTEP_MATH float sinpif(float x) {
  return static_cast<float>(sin(3.14159265358979323846 * fmod(x, 2.0)));
}
LOCKSTEP_MATH float cospif(float x) {
  return static_cast<float>(cos(3.14159265358979323846 * fmod(x, 2.0)));
}
LOCKSTEP_MATH double sinpi(double x) { return sin(3.14159265358979323846 * fmod(x, 2.0)); }
LOCKSTEP_MATH double cospi(double x) { return cos(3.14159265358979323846 * fmod(x, 2.0)); }
LOCKSTEP_MATH float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
LOCKSTEP_MATH double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
LOCKSTEP_MATH float norm3df(float x, float y, float z) {
  return __builtin_sqrtf(x * x + y * y + z * z);
}
LOCKSTEP_MATH double norm3d(double x, double y, double z) {
  return __builtin_sqrt(x * x + y * y + z * z);
}

LOCKSTEP_MATH float lockstep_fast_sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
  return 0;
}
// The C library declares these names itself, so they are macros here.
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __powf powf
#define __sincosf(x, s, c) static_cast<void>(lockstep_fast_sincosf(x, s, c))

LOCKSTEP_MATH float __fadd_rn(float x, float y) { return x + y; }
LOCKSTEP_MATH float __fsub_rn(float x, float y) { return x - y; }
LOCKSTEP_MATH float __fmul_rn(float x, float y) { return x * y; }
LOCKSTEP_MATH float __fdiv_rn(float x, float y) { return x / y; }
LOCKSTEP_MATH float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
LOCKSTEP_MATH float __frcp_rn(float x) { return 1.0f / x; }
LOCKSTEP_MATH float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
LOCKSTEP_MATH float __frsqrt_rn(float x) { return 1.0f / __builtin_sqrtf(x); }
LOCKSTEP_MATH double __dadd_rn(double x, double y) { return x + y; }
LOCKSTEP_MATH double __dsub_rn(double x, double y) { return x - y; }
LOCKSTEP_MATH double __dmul_rn(double x, double y) { return x * y; }
LOCKSTEP_MATH double __ddiv_rn(double x, double y) { return x / y; }
LOCKSTEP_MATH double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
LOCKSTEP_MATH double __drcp_rn(double x) { return 1.0 / x; }
LOCKSTEP_MATH double __dsqrt_rn(double x) { return __builtin_sqrt(x); }

LOCKSTEP_MATH int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
LOCKSTEP_MATH unsigned int __float_as_uint(float x) { return __builtin_bit_cast(unsigned int, x); }
LOCKSTEP_MATH float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
LOCKSTEP_MATH float __uint_as_float(unsigned int x) { return __builtin_bit_cast(float, x); }
LOCKSTEP_MATH long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
LOCKSTEP_MATH double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }

namespace lockstep_hostjit {
// As PTX has it: out of range saturates; a NaN is 0 between 32 bits and 32, else the top bit alone.
template <class To, class From>
LOCKSTEP_MATH To saturating(From x) {
  constexpr bool kSigned = static_cast<To>(-1) < static_cast<To>(0);
  constexpr To kTop = static_cast<To>(static_cast<To>(1) << (sizeof(To) * 8 - 1));
  constexpr To kLow = kSigned ? kTop : To(0);
  constexpr To kHigh = static_cast<To>(~kLow);
  if (x != x) return sizeof(From) == 8 || sizeof(To) == 8 ? kTop : To(0);
  if (x >= static_cast<From>(kHigh)) return kHigh;
  if (x <= static_cast<From>(kLow)) return kLow;
  return static_cast<To>(x);
}
}  // namespace lockstep_hostjit

// Of the source's own type, on which a NaN's result depends; the roundings work in double.
#define LOCKSTEP_CONVERT(from, from_name, to, to_name)                                  \
  LOCKSTEP_MATH to __##from_name##2##to_name##_rn(from x) {                             \
    return lockstep_hostjit::saturating<to>(static_cast<from>(__builtin_nearbyint(x))); \
  }                                                                                     \
  LOCKSTEP_MATH to __##from_name##2##to_name##_rz(from x) {                             \
    return lockstep_hostjit::saturating<to>(x);                                         \
  }                                                                                     \
  LOCKSTEP_MATH to __##from_name##2##to_name##_rd(from x) {                             \
    return lockstep_hostjit::saturating<to>(static_cast<from>(__builtin_floor(x)));     \
  }                                                                                     \
  LOCKSTEP_MATH to __##from_name##2##to_name##_ru(from x) {                             \
    return lockstep_hostjit::saturating<to>(static_cast<from>(__builtin_ceil(x)));      \
  }
LOCKSTEP_CONVERT(float, float, int, int)
LOCKSTEP_CONVERT(float, float, unsigned int, uint)
LOCKSTEP_CONVERT(float, float, long long, ll)
LOCKSTEP_CONVERT(float, float, unsigned long long, ull)
LOCKSTEP_CONVERT(double, double, int, int)
LOCKSTEP_CONVERT(double, double, unsigned int, uint)
LOCKSTEP_CONVERT(double, double, long long, ll)
LOCKSTEP_CONVERT(double, double, unsigned long long, ull)
#undef LOCKSTEP_CONVERT
LOCKSTEP_MATH float __int2float_rn(int x) { return static_cast<float>(x); }
LOCKSTEP_MATH float __uint2float_rn(unsigned int x) { return static_cast<float>(x); }
LOCKSTEP_MATH float __ll2float_rn(long long x) { return static_cast<float>(x); }
LOCKSTEP_MATH float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
LOCKSTEP_MATH float __double2float_rn(double x) { return static_cast<float>(x); }
LOCKSTEP_MATH double __int2double_rn(int x) { return x; }
LOCKSTEP_MATH double __uint2double_rn(unsigned int x) { return x; }
LOCKSTEP_MATH double __ll2double_rn(long long x) { return static_cast<double>(x); }
LOCKSTEP_MATH double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }

LOCKSTEP_MATH int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
LOCKSTEP_MATH int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
LOCKSTEP_MATH int __ffs(int x) { return __builtin_ffs(x); }
LOCKSTEP_MATH int __ffsll(long long x) { return __builtin_ffsll(x); }
LOCKSTEP_MATH int __popc(unsigned int x) { return __builtin_popcount(x); }
LOCKSTEP_MATH int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
LOCKSTEP_MATH unsigned int __brev(unsigned int x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
LOCKSTEP_MATH unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
LOCKSTEP_MATH unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
  const unsigned long long both = static_cast<unsigned long long>(y) << 32 | x;
  unsigned int result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(both >> ((selector >> (4 * i) & 7u) * 8) & 0xffu) << (8 * i);
  return result;
}
LOCKSTEP_MATH unsigned int __funnelshift_l(unsigned int low, unsigned int high,
                                           unsigned int shift) {
  return static_cast<unsigned>(
      (static_cast<unsigned long long>(high) << 32 | low) << (shift & 31u) >> 32);
}
LOCKSTEP_MATH unsigned int __funnelshift_r(unsigned int low, unsigned int high,
                                           unsigned int shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >>
                               (shift & 31u));
}
LOCKSTEP_MATH int __mul24(int x, int y) { return ((x << 8) >> 8) * ((y << 8) >> 8); }
LOCKSTEP_MATH unsigned int __umul24(unsigned int x, unsigned int y) {
  return (x & 0xffffffu) * (y & 0xffffffu);
}
LOCKSTEP_MATH int __mulhi(int x, int y) {
  return static_cast<int>(static_cast<long long>(x) * y >> 32);
}
LOCKSTEP_MATH unsigned int __umulhi(unsigned int x, unsigned int y) {
  return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32);
}
LOCKSTEP_MATH long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
LOCKSTEP_MATH unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}

template <class T>
LOCKSTEP_MATH T __ldg(const T* p) {
  return *p;
}
template <class T>
LOCKSTEP_MATH T __ldca(const T* p) {
  return *p;
}
template <class T>
LOCKSTEP_MATH T __ldcg(const T* p) {
  return *p;
}
template <class T>
LOCKSTEP_MATH T __ldcs(const T* p) {
  return *p;
}
template <class T>
LOCKSTEP_MATH void __stcg(T* p, T v) {
  *p = v;
}
template <class T>
LOCKSTEP_MATH void __stcs(T* p, T v) {
  *p = v;
}
template <class T>
LOCKSTEP_MATH void __stwt(T* p, T v) {
  *p = v;
}

#define LOCKSTEP_MIN_MAX(R, A, B)                                  \
  LOCKSTEP_MATH constexpr R min(A first, B second) {               \
    const R a = static_cast<R>(first), b = static_cast<R>(second); \
    return b < a ? b : a;                                          \
  }                                                                \
  LOCKSTEP_MATH constexpr R max(A first, B second) {               \
    const R a = static_cast<R>(first), b = static_cast<R>(second); \
    return a < b ? b : a;                                          \
  }
LOCKSTEP_MIN_MAX(int, int, int)
LOCKSTEP_MIN_MAX(unsigned int, unsigned int, unsigned int)
LOCKSTEP_MIN_MAX(unsigned int, int, unsigned int)
LOCKSTEP_MIN_MAX(unsigned int, unsigned int, int)
LOCKSTEP_MIN_MAX(long, long, long)
LOCKSTEP_MIN_MAX(unsigned long, unsigned long, unsigned long)
LOCKSTEP_MIN_MAX(unsigned long, long, unsigned long)
LOCKSTEP_MIN_MAX(unsigned long, unsigned long, long)
LOCKSTEP_MIN_MAX(long long, long long, long long)
LOCKSTEP_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
LOCKSTEP_MIN_MAX(unsigned long long, long long, unsigned long long)
LOCKSTEP_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef LOCKSTEP_MIN_MAX
// As fminf and fmaxf: a NaN loses.
LOCKSTEP_MATH float min(float a, float b) { return __builtin_fminf(a, b); }
LOCKSTEP_MATH float max(float a, float b) { return __builtin_fmaxf(a, b); }
LOCKSTEP_MATH double min(double a, double b) { return __builtin_fmin(a, b); }
LOCKSTEP_MATH double max(double a, double b) { return __builtin_fmax(a, b); }
LOCKSTEP_MATH double min(float a, double b) { return __builtin_fmin(a, b); }
LOCKSTEP_MATH double max(float a, double b) { return __builtin_fmax(a, b); }
LOCKSTEP_MATH double min(double a, float b) { return __builtin_fmin(a, b); }
LOCKSTEP_MATH double max(double a, float b) { return __builtin_fmax(a, b); }
#undef LOCKSTEP_MATH
