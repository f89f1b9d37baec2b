// SPDX-License-Identifier: Apache-2.0
// softmax(Q Kᵀ / √d) V: one block a query, one thread a key for the scores, one thread a column of
// V for the result. The block reduces through shared memory.
#include <lockstep/kernel.h>

constexpr int kMaxKeys = 256;

__global__ void attention(const float* __restrict__ query, const float* __restrict__ key,
                          const float* __restrict__ value, float* __restrict__ output, int keys,
                          int width, float scale) {
  extern __shared__ float query_row[];  // width values
  __shared__ float weight[kMaxKeys];
  __shared__ float reduction[kMaxKeys];
  const int row = static_cast<int>(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);  // a power of two, at least `keys`

  for (int i = thread; i < width; i += threads) query_row[i] = query[row * width + i];
  __syncthreads();

  float score = -3.0e38f;
  if (thread < keys) {
    score = 0.0f;
    for (int i = 0; i < width; ++i) score += query_row[i] * key[thread * width + i];
    score *= scale;
  }
  reduction[thread] = score;
  __syncthreads();
  for (int step = threads / 2; step > 0; step /= 2) {
    if (thread < step) reduction[thread] = fmaxf(reduction[thread], reduction[thread + step]);
    __syncthreads();
  }
  const float largest = reduction[0];
  __syncthreads();

  weight[thread] = thread < keys ? expf(score - largest) : 0.0f;
  reduction[thread] = weight[thread];
  __syncthreads();
  for (int step = threads / 2; step > 0; step /= 2) {
    if (thread < step) reduction[thread] += reduction[thread + step];
    __syncthreads();
  }
  const float total = reduction[0];

  for (int column = thread; column < width; column += threads) {
    float sum = 0.0f;
    for (int i = 0; i < keys; ++i) sum += weight[i] * value[i * width + column];
    output[row * width + column] = sum / total;
  }
}
