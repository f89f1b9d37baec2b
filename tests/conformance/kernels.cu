// SPDX-License-Identifier: Apache-2.0
// Kernels of the conformance suite: one portable source for every backend.
#include <lockstep/kernel.h>

__constant__ int constant_table[4] = {11, 22, 33, 44};

__global__ void saxpy(float a, const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void fill_index(int* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = i;
}

template <typename T>
__global__ void add_constant(T* values, T constant, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) values[i] += constant;
}

template <typename T, int Factor>
__global__ void scale(T* values, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) values[i] *= static_cast<T>(Factor);
}

// Keeps busy for a while, then writes: late enough to expose an order that nobody made.
__global__ void spin_then_set(int* out, int value, int rounds) {
  unsigned int state = static_cast<unsigned int>(value) | 1u;
  for (int i = 0; i < rounds; ++i) state = state * 1664525u + 1013904223u;
  // The sum depends on the loop, so that it is not thrown away; its lowest bits cancel out.
  *out = value + static_cast<int>((state ^ state) & 1u);
  if (state == 0u) *out = -1;
}

__global__ void dynamic_reverse(int* values, int n) {
  extern __shared__ int staging[];
  const int i = static_cast<int>(threadIdx.x);
  if (i < n) staging[i] = values[i];
  __syncthreads();
  if (i < n) values[i] = staging[n - 1 - i];
}

__global__ void static_reverse(int* values, int n) {
  __shared__ int staging[256];
  const int i = static_cast<int>(threadIdx.x);
  if (i < n) staging[i] = values[i];
  __syncthreads();
  if (i < n) values[i] = staging[n - 1 - i];
}

__global__ void block_sum(const int* values, int* sums, int n) {
  __shared__ int partial[128];
  const int thread = static_cast<int>(threadIdx.x);
  const int i = static_cast<int>(blockIdx.x * blockDim.x) + thread;
  partial[thread] = i < n ? values[i] : 0;
  __syncthreads();
  for (int step = static_cast<int>(blockDim.x) / 2; step > 0; step /= 2) {
    if (thread < step) partial[thread] += partial[thread + step];
    __syncthreads();
  }
  if (thread == 0) sums[blockIdx.x] = partial[0];
}

struct CharAndInt {
  char c;
  int i;
};

// Every size and alignment that has gone wrong somewhere (case REP-19).
__global__ void all_arguments(float* out, unsigned int n, unsigned char flag, double x,
                              CharAndInt pair, bool yes, short small, long long large) {
  out[0] = static_cast<float>(n);
  out[1] = static_cast<float>(flag);
  out[2] = static_cast<float>(x);
  out[3] = static_cast<float>(pair.c);
  out[4] = static_cast<float>(pair.i);
  out[5] = yes ? 1.0f : 0.0f;
  out[6] = static_cast<float>(small);
  out[7] = static_cast<float>(large);
}

// Every thread leaves its coordinates at its linear index: 6 words a thread.
__global__ void record_index(unsigned int* out) {
  const unsigned int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned int* place = out + 6u * (block * blockDim.x * blockDim.y * blockDim.z + thread);
  place[0] = blockIdx.x;
  place[1] = blockIdx.y;
  place[2] = blockIdx.z;
  place[3] = threadIdx.x;
  place[4] = threadIdx.y;
  place[5] = threadIdx.z;
}

__global__ void count_threads(unsigned int* counter) { atomicAdd(counter, 1u); }

__global__ void atomics(int* cells) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&cells[0], i);
  atomicMin(&cells[1], i);
  atomicMax(&cells[2], i);
  atomicCAS(&cells[3], 7, 8);
  if (i == 0) atomicExch(&cells[4], 99);
  atomicOr(reinterpret_cast<unsigned int*>(&cells[5]), 1u << (i & 7));
}

__global__ void half_sum(const lockstep::half* a, const lockstep::bfloat16* b, float* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = static_cast<float>(a[i]) + static_cast<float>(b[i]);
}

__global__ void copy_words(const unsigned int* from, unsigned int* to, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = from[i];
}

__global__ void fail_assertion(int value) {
#if defined(__HIPCC_RTC__) || defined(__HIP__)
  if (value != 0) __builtin_trap();  // older releases of HIP have no __trap
#else
  if (value != 0) __trap();
#endif
}

// Threads leave before a barrier that the others reach: allowed, since they have exited.
__global__ void first_past_the_post(int* out) {
  __shared__ int shared_value;
  if (threadIdx.x >= 48) return;
  if (threadIdx.x == 0) shared_value = 5;
  __syncthreads();
  out[threadIdx.x] = shared_value + static_cast<int>(threadIdx.x);
}

__global__ void read_constant(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < 4) out[i] = constant_table[i];
}
