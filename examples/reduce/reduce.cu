// SPDX-License-Identifier: Apache-2.0
// Sum, minimum, maximum and a histogram in two stages. Integers only: the order in which atomics
// arrive does not change the result, so that every backend gives the same bits.
#include <lockstep/kernel.h>

constexpr int kThreads = 256;
constexpr int kBins = 16;

__global__ void reduce_blocks(const int* __restrict__ values, int count,
                              long long* __restrict__ partial, int* __restrict__ extremes,
                              unsigned int* __restrict__ histogram) {
  __shared__ long long sums[kThreads];
  __shared__ unsigned int bins[kBins];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kBins) bins[thread] = 0;
  __syncthreads();

  long long sum = 0;
  for (int i = static_cast<int>(blockIdx.x * blockDim.x) + thread; i < count;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    sum += values[i];
    atomicMin(&extremes[0], values[i]);
    atomicMax(&extremes[1], values[i]);
    atomicAdd(&bins[values[i] & (kBins - 1)], 1u);
  }
  sums[thread] = sum;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (thread < step) sums[thread] += sums[thread + step];
    __syncthreads();
  }
  if (thread == 0) partial[blockIdx.x] = sums[0];
  if (thread < kBins) atomicAdd(&histogram[thread], bins[thread]);
}

__global__ void reduce_partials(const long long* __restrict__ partial, int count,
                                long long* __restrict__ total) {
  __shared__ long long sums[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  sums[thread] = thread < count ? partial[thread] : 0;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (thread < step) sums[thread] += sums[thread + step];
    __syncthreads();
  }
  if (thread == 0) *total = sums[0];
}
