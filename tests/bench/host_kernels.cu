// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel.h>

__global__ void nothing() {}

__global__ void saxpy(float a, const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = a * x[i] + y[i];
}
