// SPDX-License-Identifier: Apache-2.0
#pragma once

// Device-side header: what one kernel source may use on every compiler, that is nvcc, NVRTC, hipcc,
// hipRTC, the host backend's compiler and (for host code that fills buffers) any C++17 compiler. It
// includes nothing, since run-time compilers have no system headers.
//
// lockstep::half and lockstep::bfloat16 are storage types of 16 bits with arithmetic in float. They
// have the same mangled names (N8lockstep4halfE, N8lockstep8bfloat16E), size, alignment and bits on
// every compiler, unlike the vendors' own types, so kernels that take them compare across vendors.
// Conversions from float round to nearest, ties to even, keep subnormals, infinities and the sign
// of zero, and turn a signalling NaN into a quiet one with its upper payload bits.
//
// Both are trivial types: a default constructed one is not initialised, so __shared__ arrays work.

#if defined(__CUDACC__) || defined(__HIPCC__) || defined(__CUDACC_RTC__) || \
    defined(__HIPCC_RTC__) || defined(__LOCKSTEP_HOSTJIT__)
#define LOCKSTEP_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define LOCKSTEP_HOST_DEVICE inline
#endif

#if (defined(__HIPCC__) || defined(__HIPCC_RTC__)) && !defined(__CUDACC__) && !defined(__trap)
// CUDA's name for ending a kernel with an error, which HIP does not have.
#define __trap() __builtin_trap()
#endif

namespace lockstep {

namespace kernel_detail {

LOCKSTEP_HOST_DEVICE unsigned int float_bits(float value) {
  union {
    float value;
    unsigned int bits;
  } pun;
  pun.value = value;
  return pun.bits;
}

LOCKSTEP_HOST_DEVICE float bits_float(unsigned int bits) {
  union {
    unsigned int bits;
    float value;
  } pun;
  pun.bits = bits;
  return pun.value;
}

LOCKSTEP_HOST_DEVICE unsigned short half_bits_from_float(float value) {
  const unsigned int bits = float_bits(value);
  const unsigned int sign = (bits >> 16) & 0x8000u;
  const unsigned int magnitude = bits & 0x7fffffffu;
  unsigned int result;
  if (magnitude > 0x7f800000u) {
    result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 65536 and above, and infinity
    result = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // a normal half; a carry may make it infinity
    result = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  } else if (magnitude >= 0x33000000u) {  // a subnormal half, or what rounds to one
    const unsigned int shift = 126u - (magnitude >> 23);
    const unsigned int mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const unsigned int kept = mantissa >> shift;
    const unsigned int rest = mantissa & ((1u << shift) - 1u);
    const unsigned int middle = 1u << (shift - 1u);
    result = kept + ((rest > middle || (rest == middle && (kept & 1u))) ? 1u : 0u);
  } else {
    result = 0u;
  }
  return static_cast<unsigned short>(sign | result);
}

LOCKSTEP_HOST_DEVICE float float_from_half_bits(unsigned short half_bits) {
  const unsigned int sign = static_cast<unsigned int>(half_bits & 0x8000u) << 16;
  const unsigned int magnitude = half_bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity; a NaN becomes quiet
    const unsigned int quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return bits_float(sign | 0x7f800000u | quiet | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude >= 0x400u) return bits_float(sign | ((magnitude << 13) + 0x38000000u));
  const float value = static_cast<float>(magnitude) * 5.9604644775390625e-8f;  // 2^-24, exact
  return bits_float(sign | float_bits(value));
}

LOCKSTEP_HOST_DEVICE unsigned short bfloat16_bits_from_float(float value) {
  const unsigned int bits = float_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<unsigned short>((bits >> 16) | 0x40u);
  return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

LOCKSTEP_HOST_DEVICE float float_from_bfloat16_bits(unsigned short bits) {
  return bits_float(static_cast<unsigned int>(bits) << 16);
}

}  // namespace kernel_detail

// IEEE 754 binary16.
struct half {
  unsigned short bits;

  half() = default;
  LOCKSTEP_HOST_DEVICE half(float value) : bits(kernel_detail::half_bits_from_float(value)) {}
  LOCKSTEP_HOST_DEVICE operator float() const { return kernel_detail::float_from_half_bits(bits); }
  LOCKSTEP_HOST_DEVICE static half from_bits(unsigned short bits) {
    half result;
    result.bits = bits;
    return result;
  }
  LOCKSTEP_HOST_DEVICE half& operator+=(float other) { return *this = half(float(*this) + other); }
  LOCKSTEP_HOST_DEVICE half& operator-=(float other) { return *this = half(float(*this) - other); }
  LOCKSTEP_HOST_DEVICE half& operator*=(float other) { return *this = half(float(*this) * other); }
  LOCKSTEP_HOST_DEVICE half& operator/=(float other) { return *this = half(float(*this) / other); }
};

// The upper half of a binary32.
struct bfloat16 {
  unsigned short bits;

  bfloat16() = default;
  LOCKSTEP_HOST_DEVICE bfloat16(float value)
      : bits(kernel_detail::bfloat16_bits_from_float(value)) {}
  LOCKSTEP_HOST_DEVICE operator float() const {
    return kernel_detail::float_from_bfloat16_bits(bits);
  }
  LOCKSTEP_HOST_DEVICE static bfloat16 from_bits(unsigned short bits) {
    bfloat16 result;
    result.bits = bits;
    return result;
  }
  LOCKSTEP_HOST_DEVICE bfloat16& operator+=(float other) {
    return *this = bfloat16(float(*this) + other);
  }
  LOCKSTEP_HOST_DEVICE bfloat16& operator-=(float other) {
    return *this = bfloat16(float(*this) - other);
  }
  LOCKSTEP_HOST_DEVICE bfloat16& operator*=(float other) {
    return *this = bfloat16(float(*this) * other);
  }
  LOCKSTEP_HOST_DEVICE bfloat16& operator/=(float other) {
    return *this = bfloat16(float(*this) / other);
  }
};

static_assert(sizeof(half) == 2 && alignof(half) == 2, "half is 16 bits on every compiler");
static_assert(sizeof(bfloat16) == 2 && alignof(bfloat16) == 2, "bfloat16 is 16 bits everywhere");

}  // namespace lockstep
