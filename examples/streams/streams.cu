// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel.h>

__global__ void ramp(float* __restrict__ values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] = static_cast<float>(i % 1000) * 0.5f;
}

__global__ void scale_add(const float* __restrict__ input, float* __restrict__ output, float scale,
                          float offset, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) output[i] = input[i] * scale + offset;
}

__global__ void join(const float* __restrict__ a, const float* __restrict__ b,
                     const float* __restrict__ c, float* __restrict__ sum, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) sum[i] = a[i] + b[i] + c[i];
}
