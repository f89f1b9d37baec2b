// SPDX-License-Identifier: Apache-2.0
// One thread an output value. The sum runs in a fixed order, so that every backend rounds alike.
#include <lockstep/kernel.h>

template <bool Relu>
__global__ void dense(const float* __restrict__ input, const float* __restrict__ weight,
                      const float* __restrict__ bias, float* __restrict__ output, int batch,
                      int inputs, int outputs) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index >= batch * outputs) return;
  const int row = index / outputs;
  const int column = index % outputs;
  float sum = bias[column];
  for (int i = 0; i < inputs; ++i) sum += input[row * inputs + i] * weight[column * inputs + i];
  output[index] = Relu && sum < 0.0f ? 0.0f : sum;
}

// The class of each row: the index of its largest value, the first one of equal values.
__global__ void argmax(const float* __restrict__ values, int* __restrict__ classes, int batch,
                       int count) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= batch) return;
  int best = 0;
  for (int i = 1; i < count; ++i) {
    if (values[row * count + i] > values[row * count + best]) best = i;
  }
  classes[row] = best;
}
