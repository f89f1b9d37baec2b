// SPDX-License-Identifier: Apache-2.0
// Appended to the kernels of the conformance suite and of the host benchmark. n is a multiple
// of 16.
__global__ void tiled_product(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[16][16];
  __shared__ float tile_b[16][16];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * 16 + ty,
            column = static_cast<int>(blockIdx.x) * 16 + tx;
  float sum = 0.0f;
  for (int k = 0; k < n; k += 16) {
    tile_a[ty][tx] = a[row * n + k + tx];
    tile_b[ty][tx] = b[(k + ty) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum += tile_a[ty][j] * tile_b[j][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
