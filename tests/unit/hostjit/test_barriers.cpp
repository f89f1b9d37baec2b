// SPDX-License-Identifier: Apache-2.0
// Barriers and shared memory.
#include <gmock/gmock.h>
#include <numeric>

#include "jit_support.h"

namespace lockstep::hostjit::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// A source of many kernels of which a program asks for one.
TEST(HostjitBarriers, SharedMemoryOfKernelsThatNobodyNamedDoesNotCount) {
  const std::string source = R"(
template <int N> __device__ int use(int* p) {
  __shared__ int own[N];
  own[threadIdx.x] = p[0];
  __syncthreads();
  return own[blockDim.x - 1];
}
__global__ void named(int* p) { __shared__ int s[100]; s[threadIdx.x] = p[0]; __syncthreads(); p[0] = s[0]; }
__global__ void __launch_bounds__(64) big(int* p) { __shared__ int s[9000]; s[threadIdx.x] = p[0]; __syncthreads(); p[0] = s[0]; }
namespace ns { extern "C" __global__ void big_c(int* p) { __shared__ int s[9000]; s[threadIdx.x] = p[0]; __syncthreads(); p[0] = s[0]; } }
template <class T> __global__ void typed(T* p) { __shared__ T s[9000]; s[threadIdx.x] = p[0]; __syncthreads(); p[0] = s[0]; }
template __global__ void typed<float>(float*);
__global__ void helped(int* p) { p[0] = use<10>(p); }
)";
  EXPECT_EQ(build(source, {"named"})->kernels()[0].static_shared_bytes(), 400u + 40u);
  EXPECT_EQ(build(source, {"named"})->kernels()[0].own_shared_bytes(), 400u + 40u);
  const auto two = build(source, {"typed<char>", "big"});
  EXPECT_EQ(two->kernels()[0].static_shared_bytes(), 9000u + 40u);
  EXPECT_EQ(two->kernels()[0].own_shared_bytes(), 9000u);
  EXPECT_EQ(two->kernels()[1].static_shared_bytes(), 36000u + 40u);
}

TEST(HostjitBarriers, TiledProduct) {
  const auto module = build(R"(
template <int T> __global__ void product(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[T][T], tb[T][T];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * T + ty, column = blockIdx.x * T + tx;
  float sum = 0;
  for (int k = 0; k < n; k += T) {
    ta[ty][tx] = row < n && k + tx < n ? a[row * n + k + tx] : 0.0f;
    tb[ty][tx] = column < n && k + ty < n ? b[(k + ty) * n + column] : 0.0f;
    __syncthreads();
    for (int j = 0; j < T; ++j) sum += ta[ty][j] * tb[j][tx];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}
)",
                            {"product<16>", "product<8>"});
  EXPECT_EQ(module->kernels()[0].static_shared_bytes(), 2048u);
  EXPECT_EQ(module->kernels()[1].static_shared_bytes(), 512u);
  for (const Kernel& kernel : module->kernels()) {
    EXPECT_TRUE(kernel.can_reach_barrier());
    const unsigned tile = &kernel == &module->kernels()[0] ? 16 : 8;
    for (const int n : {16, 40, 67}) {
      std::vector<float> a(n * n), b(n * n), c(n * n, -1.0f);
      for (int i = 0; i < n * n; ++i) {
        a[i] = static_cast<float>(i % 7);
        b[i] = static_cast<float>(i % 5);
      }
      const unsigned blocks = (n + tile - 1) / tile;
      ASSERT_TRUE(
          run(&kernel, {blocks, blocks, 1}, {tile, tile, 1}, 0, a.data(), b.data(), c.data(), n)
              .ok());
      for (int row = 0; row < n; ++row) {
        for (int column = 0; column < n; ++column) {
          float sum = 0;
          for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
          ASSERT_EQ(c[row * n + column], sum) << n << ": " << row << ", " << column;
        }
      }
    }
  }
}

TEST(HostjitBarriers, ReductionWithABarrierInADeviceFunction) {
  const auto module = build(R"(
__device__ __noinline__ void step(float* s, unsigned k) {
  if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
  __syncthreads();
}
__global__ void reduce(const float* in, float* out) {
  extern __shared__ __align__(16) float s[];
  s[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned k = blockDim.x / 2; k > 0; k /= 2) step(s, k);
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
__global__ void plain(float* out) { out[0] = 3; }
)",
                            {"reduce", "plain"});
  std::vector<float> in(4096);
  std::iota(in.begin(), in.end(), 0.0f);
  float out[4] = {};
  ASSERT_TRUE(run(&module->kernels()[0], {4, 1, 1}, {1024, 1, 1}, 4096, in.data(), &out[0]).ok());
  EXPECT_THAT(out, ElementsAre(523776, 1572352, 2620928, 3669504));
  EXPECT_TRUE(module->kernels()[0].can_reach_barrier());
}

TEST(HostjitBarriers, ThreadsThatEndEarlyCountAsArrived) {
  const auto module = build(R"(
__global__ void early(int* out, int n) {
  __shared__ int s[256];
  s[threadIdx.x] = 1;
  if ((int)threadIdx.x >= n) return;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < blockDim.x; ++i) sum += s[i];
  __syncthreads();
  s[threadIdx.x] = 0;
  out[threadIdx.x] = sum;
}
)",
                            {"early"});
  for (const int n : {0, 1, 37, 255, 256}) {
    std::vector<int> out(256, -1);
    ASSERT_TRUE(run(&module->kernels()[0], {}, {256, 1, 1}, 0, out.data(), n).ok());
    for (int i = 0; i < 256; ++i) ASSERT_EQ(out[i], i < n ? 256 : -1) << n << ": " << i;
  }
}

TEST(HostjitBarriers, DivergentBarriersEndAndCount) {
  const auto module = build(R"(
__global__ void divergent(int* out) {
  __shared__ int phase;
  if (threadIdx.x == 0) phase = 0;
  __syncthreads();
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
    atomicAdd(&phase, 1);
    __syncthreads();
  } else {
    __syncthreads();
    __syncthreads();
  }
  out[threadIdx.x] = phase;
}
__global__ void uneven(int* out) {
  for (unsigned i = 0; i < threadIdx.x; ++i) __syncthreads();
  out[threadIdx.x] = threadIdx.x;
}
)",
                            {"divergent", "uneven"});
  std::vector<int> out(64);
  ASSERT_TRUE(run(&module->kernels()[0], {}, {64, 1, 1}, 0, out.data()).ok());
  EXPECT_THAT(out, ::testing::Each(32));
  ASSERT_TRUE(run(&module->kernels()[1], {3, 1, 1}, {64, 1, 1}, 0, out.data()).ok());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], i);
}

TEST(HostjitBarriers, VotesOfABlock) {
  const auto module = build(R"(
__global__ void votes(int* out) {
  int t = threadIdx.x;
  if (t == 99) return;
  int count = __syncthreads_count(t % 3 == 0);
  int all = __syncthreads_and(t < 99);
  int not_all = __syncthreads_and(t != 50);
  int any = __syncthreads_or(t == 98);
  int none = __syncthreads_or(t == 99);
  out[t] = count * 10000 + all * 1000 + not_all * 100 + any * 10 + none;
}
)",
                            {"votes"});
  std::vector<int> out(100, -1);
  ASSERT_TRUE(run(&module->kernels()[0], {}, {100, 1, 1}, 0, out.data()).ok());
  for (int i = 0; i < 99; ++i) ASSERT_EQ(out[i], 331010) << i;
  EXPECT_EQ(out[99], -1);
}

TEST(HostjitBarriers, ThreeDimensionalBlocksKeepTheirIndices) {
  const auto module = build(R"(
__global__ void turn(unsigned* out) {
  __shared__ unsigned s[4 * 6 * 8];
  unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  s[t] = t + blockIdx.y * 1000;
  __syncthreads();
  unsigned after = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[blockIdx.y * 192 + after] = s[191 - after];
}
)",
                            {"turn"});
  std::vector<unsigned> out(2 * 192);
  ASSERT_TRUE(run(&module->kernels()[0], {1, 2, 1}, {4, 6, 8}, 0, out.data()).ok());
  for (unsigned i = 0; i < 384; ++i) ASSERT_EQ(out[i], i / 192 * 1000 + 191 - i % 192);
}

TEST(HostjitBarriers, DynamicSharedInItsManyForms) {
  const auto module = build(R"(
extern __shared__ float global_scope[];
namespace deep { extern __shared__ alignas(8) double inner[]; }
template <class T> __global__ void typed(T* out) {
  extern __shared__ __align__(sizeof(T)) T values[];
  values[threadIdx.x] = static_cast<T>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}
__global__ void matrix(float* out) {
  extern __shared__ float rows[][4];
  rows[threadIdx.x][1] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = rows[(threadIdx.x + 1) % blockDim.x][1] + global_scope[1];
}
__device__ double peek() { return deep::inner[0]; }
__global__ void whole(double* out) {
  global_scope[0] = 0.0f;
  deep::inner[threadIdx.x] = 2.5;
  __syncthreads();
  out[threadIdx.x] = peek();
}
)",
                            {"typed<double>", "typed<unsigned char>", "matrix", "whole"});
  // The pointers that stand for them are no shared memory.
  for (const Kernel& kernel : module->kernels()) EXPECT_EQ(kernel.static_shared_bytes(), 0u);
  double doubles[4] = {};
  ASSERT_TRUE(run(&module->kernels()[0], {}, {4, 1, 1}, 32, &doubles[0]).ok());
  EXPECT_THAT(doubles, ElementsAre(3, 2, 1, 0));
  unsigned char bytes[4] = {};
  ASSERT_TRUE(run(&module->kernels()[1], {}, {4, 1, 1}, 4, &bytes[0]).ok());
  EXPECT_THAT(bytes, ElementsAre(3, 2, 1, 0));
  float floats[4] = {};
  ASSERT_TRUE(run(&module->kernels()[2], {}, {4, 1, 1}, 64, &floats[0]).ok());
  EXPECT_THAT(floats, ElementsAre(1, 2, 3, 0));
  ASSERT_TRUE(run(&module->kernels()[3], {}, {4, 1, 1}, 64, &doubles[0]).ok());
  EXPECT_THAT(doubles, ElementsAre(2.5, 2.5, 2.5, 2.5));
}

TEST(HostjitBarriers, LargeLocalArraysHaveRoom) {
  // More than the stack that every waiting thread has, in the kernel and in what it calls.
  const auto module = build(R"(
__device__ __noinline__ int inner(int seed) {
  volatile int local[25000];
  for (int i = 0; i < 25000; ++i) local[i] = i + seed;
  __syncthreads();
  return local[24999];
}
__global__ void large(int* out) {
  volatile int local[50000];
  for (int i = 0; i < 50000; ++i) local[i] = i;
  __syncthreads();
  out[threadIdx.x] = inner(threadIdx.x) + local[49999];
}
__global__ void small(int* out) { __syncthreads(); out[threadIdx.x] = 1; }
)",
                            {"small", "large"});
  EXPECT_GE(module->kernels()[1].stack_bytes(), 300000u);
  EXPECT_LT(module->kernels()[1].stack_bytes(), 1500000u);
  std::vector<int> out(70);
  for (const unsigned threads : {3u, 70u}) {
    ASSERT_TRUE(run(&module->kernels()[0], {}, {threads, 1, 1}, 0, out.data()).ok());
    ASSERT_TRUE(run(&module->kernels()[1], {}, {threads, 1, 1}, 0, out.data()).ok());
    for (int i = 0; i < static_cast<int>(threads); ++i) EXPECT_EQ(out[i], 49999 + 24999 + i);
  }
}

TEST(HostjitBarriers, ManySmallFramesHaveRoom) {
  // A chain of calls none of whose frames is large, together more than the stack of a thread.
  const auto module = build(R"(
template <int N>
__device__ __noinline__ int deep(int seed) {
  volatile char frame[900];
  frame[seed] = 1;
  if constexpr (N == 0) {
    __syncthreads();
    return frame[seed];
  } else {
    return frame[seed] + deep<N - 1>(seed);
  }
}
__global__ void chain(int* out) { out[threadIdx.x] = deep<149>(threadIdx.x); }
)",
                            {"chain"});
  EXPECT_GE(module->kernels()[0].stack_bytes(), 150u * 900);
  std::vector<int> out(8);
  ASSERT_TRUE(run(&module->kernels()[0], {}, {8, 1, 1}, 0, out.data()).ok());
  EXPECT_THAT(out, Each(150));
}

TEST(HostjitBarriersDeathTest, AnOverflowOfAFiberEndsTheProcess) {
  const auto module = build(R"(
__device__ __noinline__ int deep(volatile int* p, int n) {
  volatile char frame[4096];
  frame[n % 4096] = n;
  return n == 0 ? p[0] : deep(p, n - 1) + frame[n % 4096];
}
__global__ void overflow(int* p) {
  __syncthreads();
  if (threadIdx.x == 1) p[1] = deep(p, 200);
}
)",
                            {"overflow"});
  int values[2] = {};
  EXPECT_DEATH(run(&module->kernels()[0], {}, {2, 1, 1}, 0, &values[0]), "");
}

}  // namespace
}  // namespace lockstep::hostjit::testing
