// SPDX-License-Identifier: Apache-2.0
// What kernels compute: indexing, memory spaces, atomics, maths, failures.
#include <atomic>
#include <cfenv>
#include <cmath>
#include <gmock/gmock.h>
#include <limits>
#include <numeric>
#include <thread>

#include "jit_support.h"

namespace lockstep::hostjit::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostjitKernels, SaxpyWithEveryKindOfIndex) {
  const auto module = build(R"(
__global__ void with_int(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void with_unsigned(float a, const float* x, float* y, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = a * x[i] + y[i];
}
template <class Index> __global__ void strided(float a, const float* x, float* y, Index n) {
  for (Index i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = a * x[i] + y[i];
}
)",
                            {"with_int", "with_unsigned", "strided<unsigned long>"});
  constexpr int kCount = 1000;
  for (const Kernel& kernel : module->kernels()) {
    std::vector<float> x(kCount + 24), y(kCount + 24, 1.0f);
    std::iota(x.begin(), x.end(), 0.0f);
    ASSERT_TRUE(run(&kernel, {4, 1, 1}, {256, 1, 1}, 0, 2.0f, x.data(), y.data(),
                    static_cast<unsigned long>(kCount))
                    .ok());
    for (int i = 0; i < kCount; ++i)
      ASSERT_EQ(y[i], 2.0f * static_cast<float>(i) + 1) << kernel.name() << " " << i;
    for (int i = kCount; i < kCount + 24; ++i) ASSERT_EQ(y[i], 1.0f) << kernel.name() << " " << i;
    EXPECT_FALSE(kernel.can_reach_barrier());
  }
}

TEST(Cases, TRC_18_ThreeDimensionalGridsAndDynamicShared) {
  const auto module = build(R"(
__global__ void where(unsigned* out) {
  extern __shared__ unsigned char s[];
  s[1023] = 7;
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * 64 + thread] = block * 1000 + thread + s[1023] - 7;
}
)",
                            {"where"});
  std::vector<unsigned> out(24 * 64, ~0u);
  ASSERT_TRUE(run(module->find_kernel("where"), {2, 3, 4}, {8, 4, 2}, 1024, out.data()).ok());
  for (unsigned i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i / 64 * 1000 + i % 64);
}

TEST(HostjitKernels, RangesOfBlocksOnSeveralThreads) {
  const auto module = build(
      "__global__ void mark(unsigned char* out) { out[(blockIdx.z * gridDim.y + blockIdx.y) * "
      "gridDim.x + "
      "blockIdx.x] += 1; }",
      {"mark"});
  const Dim3 grid{7, 5, 3};
  std::vector<unsigned char> marks(7 * 5 * 3);
  std::atomic<std::uint64_t> next{0};
  const auto work = [&] {
    unsigned char* data = marks.data();
    void* arguments[] = {&data};
    for (std::uint64_t first; (first = next.fetch_add(4)) < marks.size();) {
      const std::uint64_t count = std::min<std::uint64_t>(4, marks.size() - first);
      module->kernels()[0].run_blocks(first, count, grid, {1, 1, 1}, 0, arguments);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(marks, ::testing::Each(1));
}

TEST(Cases, BIG_01_IndicesBeyondThirtyOneBits) {
  const auto module = build(
      "__global__ void last(unsigned long long* out) { out[0] = blockIdx.x * 1024ull + "
      "threadIdx.x; "
      "out[1] = gridDim.x; out[2] = blockIdx.x * blockDim.x + threadIdx.x; }",
      {"last"});
  unsigned long long out[3] = {};
  unsigned long long* pointer = out;
  void* arguments[] = {&pointer};
  const Dim3 grid{2147483647, 1, 1};
  ASSERT_TRUE(
      module->kernels()[0].run_blocks(2147483646, 1, grid, {1024, 1, 1}, 0, arguments).ok());
  EXPECT_THAT(out, ElementsAre(2147483646ull * 1024 + 1023, 2147483647ull,
                               static_cast<unsigned>(2147483646ull * 1024 + 1023)));
}

TEST(HostjitKernels, AtomicsAsCudaDefinesThem) {
  const auto module = build(R"(
__global__ void many(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  atomicAdd(&i[0], 2); atomicSub(&i[1], 1); atomicMin(&i[2], -(int)threadIdx.x); atomicMax(&i[3], (int)threadIdx.x);
  atomicExch(&i[4], 9); atomicAnd(&i[5], ~(1 << (threadIdx.x % 8))); atomicOr(&i[6], 1 << (threadIdx.x % 8));
  atomicXor(&i[7], 1);
  atomicInc(&u[0], 9u); atomicDec(&u[1], 9u); atomicMax(&u[2], 0xfffffff0u + threadIdx.x % 4); atomicCAS(&u[3], threadIdx.x, threadIdx.x + 1);
  atomicAdd(&l[0], 1ull << 33); atomicMax(&l[1], (unsigned long long)threadIdx.x << 40);
  atomicAdd(f, 0.5f); atomicAdd(d, 0.25); atomicAdd_block(&l[2], 1ull);
}
)",
                            {"many"});
  int i[8] = {0, 0, 5, -5, 0, 255, 0, 0};
  unsigned u[4] = {8, 1, 1, 0};
  unsigned long long l[3] = {};
  float f = 0;
  double d = 0;
  ASSERT_TRUE(
      run(&module->kernels()[0], {2, 1, 1}, {101, 1, 1}, 0, &i[0], &u[0], &l[0], &f, &d).ok());
  EXPECT_THAT(i, ElementsAre(404, -202, -100, 100, 9, 0, 255, 0));
  EXPECT_EQ(u[0], (8u + 202) % 10);
  EXPECT_EQ(u[1], (1u + 10 * 30 - 202) % 10);
  EXPECT_EQ(u[2], 0xfffffff3u);
  EXPECT_EQ(u[3], 101u);
  EXPECT_THAT(l, ElementsAre(202ull << 33, 100ull << 40, 202ull));
  EXPECT_EQ(f, 101.0f);
  EXPECT_EQ(d, 50.5);
}

TEST(HostjitKernels, AtomicsAcrossOsThreads) {
  const auto module = build("__global__ void add(float* f) { atomicAdd(f, 1.0f); }", {"add"});
  float sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      float* pointer = &sum;
      void* arguments[] = {&pointer};
      module->kernels()[0].run_blocks(0, 20, {20, 1, 1}, {100, 1, 1}, 0, arguments);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 8000.0f);
}

// Fast mathematics of kernels is no concern of the program that loads them.
TEST(HostjitKernels, LoadingLeavesTheFloatingPointOfTheThreadAlone) {
  volatile double tiny = 4.9406564584124654e-324;  // flushed, as an operand or as a result, it is 0
  volatile double small = 3e-308;
  ASSERT_NE(tiny * 1.0, 0.0);
  ASSERT_NE(small * 0.25, 0.0);
  std::fesetround(FE_UPWARD);
  for (const char* option : {"-use_fast_math", "-ffast-math"}) {
    const auto module =
        build("__global__ void k(float* p) { p[0] = p[0] / 3.0f; }", {"k"}, {option});
    float value = 6;
    ASSERT_TRUE(run(module->find_kernel("k"), {}, {}, 0, &value).ok());
    EXPECT_NEAR(value, 2, 1e-6);
    EXPECT_NE(tiny * 1.0, 0.0) << option;
    EXPECT_NE(small * 0.25, 0.0) << option;
    EXPECT_EQ(std::fegetround(), FE_UPWARD) << option;
  }
  std::fesetround(FE_TONEAREST);
}

TEST(HostjitKernels, ConversionsOfNanAndOutOfRange) {
  const auto module = build(R"(
__global__ void k(float f, double d, int* i, unsigned* u, long long* l, unsigned long long* w) {
  i[0] = __float2int_rn(f); i[1] = __double2int_rz(d);
  u[0] = __float2uint_rz(f); u[1] = __double2uint_rn(d);
  l[0] = __float2ll_rn(f); l[1] = __double2ll_rd(d);
  w[0] = __float2ull_ru(f); w[1] = __double2ull_rn(d);
}
)",
                            {"k"});
  int i[2] = {};
  unsigned u[2] = {};
  long long l[2] = {};
  unsigned long long w[2] = {};
  const auto convert = [&](double value) {
    return run(&module->kernels()[0], {}, {}, 0, static_cast<float>(value), value, &i[0], &u[0],
               &l[0], &w[0])
        .ok();
  };
  constexpr long long kLowest = std::numeric_limits<long long>::min();
  ASSERT_TRUE(convert(std::nan("")));
  EXPECT_THAT(i, ElementsAre(0, std::numeric_limits<int>::min()));
  EXPECT_THAT(u, ElementsAre(0u, 1u << 31));
  EXPECT_THAT(l, ElementsAre(kLowest, kLowest));
  EXPECT_THAT(w, ElementsAre(1ull << 63, 1ull << 63));
  ASSERT_TRUE(convert(-1e30));
  EXPECT_THAT(i, ::testing::Each(std::numeric_limits<int>::min()));
  EXPECT_THAT(u, ::testing::Each(0u));
  EXPECT_THAT(l, ::testing::Each(kLowest));
  EXPECT_THAT(w, ::testing::Each(0ull));
}

TEST(HostjitKernels, Maths) {
  const auto module = build(R"(
__global__ void maths(float x, float* out, int* n) {
  int i = 0;
  out[i++] = expf(x); out[i++] = __expf(x); out[i++] = rsqrtf(x); out[i++] = fmaf(x, x, 1.0f);
  out[i++] = __fdividef(x, 3.0f); out[i++] = fmaxf(x, 4.0f); out[i++] = tanhf(x); out[i++] = erff(x);
  out[i++] = min(x, 1.0f); out[i++] = max(2, 3); out[i++] = exp(x); out[i++] = abs(-x); out[i++] = powf(x, 3);
  out[i++] = __saturatef(x); out[i++] = fabsf(-x); out[i++] = sqrtf(x); out[i++] = __logf(x); out[i++] = max(x, 9.0);
  n[0] = __float2int_rn(2.5f); n[1] = __float2int_rz(-2.9f); n[2] = __float2int_rn(1e20f); n[3] = __clz(1);
  n[4] = __popc(255u); n[5] = __ffs(8); n[6] = (int)__brev(1u) < 0; n[7] = __float_as_int(1.0f);
  n[8] = (int)min(5u, 7); n[9] = __mulhi(1 << 30, 8); n[10] = (int)__umulhi(1u << 31, 4u); n[11] = (int)__byte_perm(0x03020100u, 0x07060504u, 0x7410u);
}
)",
                            {"maths"});
  float out[18] = {};
  int n[12] = {};
  ASSERT_TRUE(run(&module->kernels()[0], {}, {}, 0, 2.0f, &out[0], &n[0]).ok());
  const double expected[18] = {std::exp(2.0),
                               std::exp(2.0),
                               1 / std::sqrt(2.0),
                               5,
                               2.0 / 3,
                               4,
                               std::tanh(2.0),
                               std::erf(2.0),
                               1,
                               3,
                               std::exp(2.0),
                               2,
                               8,
                               1,
                               2,
                               std::sqrt(2.0),
                               std::log(2.0),
                               9};
  for (int i = 0; i < 18; ++i) EXPECT_NEAR(out[i], expected[i], 1e-5) << i;
  EXPECT_THAT(n, ElementsAre(2, -2, 2147483647, 31, 8, 4, 1, 0x3f800000, 5, 2, 2, 0x07040100));
}

TEST(HostjitKernels, VectorTypes) {
  const auto module = build(R"(
static_assert(sizeof(float3) == 12 && alignof(float3) == 4 && alignof(float4) == 16 && alignof(float2) == 8, "");
static_assert(sizeof(double3) == 24 && alignof(double2) == 16 && alignof(double4) == 16 && sizeof(long2) == 16, "");
static_assert(sizeof(uchar4) == 4 && alignof(uchar4) == 4 && sizeof(short3) == 6 && alignof(char2) == 2, "");
__global__ void copy(const float4* in, float4* out) {
  float4 v = in[threadIdx.x];
  dim3 d(2, 3);
  uint3 u = d;
  out[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x + u.x * u.y * u.z);
}
)",
                            {"copy"});
  alignas(16) float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {};
  ASSERT_TRUE(run(&module->kernels()[0], {}, {2, 1, 1}, 0, &in[0], &out[0]).ok());
  EXPECT_THAT(out, ElementsAre(4, 3, 2, 7, 8, 7, 6, 11));
}

TEST(HostjitKernels, HalfTypesInKernels) {
  const auto module = build(R"(
#include <lockstep/kernel.h>
template <class T> __global__ void scale(T* p, float a) { __shared__ T s[4]; s[threadIdx.x] = p[threadIdx.x]; p[threadIdx.x] = s[threadIdx.x] * a; p[threadIdx.x] += 1.0f; }
)",
                            {"scale<lockstep::half>", "scale<lockstep::bfloat16>"});
  unsigned short h[4] = {0x3c00, 0x4000, 0xc200, 0x0001};
  ASSERT_TRUE(run(&module->kernels()[0], {}, {4, 1, 1}, 0, &h[0], 2.0f).ok());
  EXPECT_THAT(h, ElementsAre(0x4200, 0x4500, 0xc500, 0x3c00));
  unsigned short b[4] = {0x3f80, 0x4000, 0xc040, 0x0000};
  ASSERT_TRUE(run(&module->kernels()[1], {}, {4, 1, 1}, 0, &b[0], 2.0f).ok());
  EXPECT_THAT(b, ElementsAre(0x4040, 0x40a0, 0xc0a0, 0x3f80));
}

TEST(HostjitKernels, FailuresBecomeResults) {
  const auto module = build(R"(
__global__ void check(int* p) { assert(p[threadIdx.x] > 0 && "positive"); p[threadIdx.x] = 0; }
__global__ void late(int* p) { __syncthreads(); assert(threadIdx.x != 5); __syncthreads(); p[0] += 1; }
__global__ void trap(int* p) { if (threadIdx.x == 1) __trap(); p[0] += 1; }
__global__ void good(int* p) { __syncthreads(); atomicAdd(p, 1); }
)",
                            {"check", "late", "trap", "good"});
  int values[3] = {1, 0, 1};
  RunStatus status = run(module->find_kernel("check"), {}, {3, 1, 1}, 0, &values[0]);
  EXPECT_EQ(status.code, RunCode::kAssert);
  EXPECT_THAT(status.message, HasSubstr("kernel.cu:2: void check(int"));
  EXPECT_THAT(status.message, HasSubstr("): block: [0,0,0], thread: [1,0,0] Assertion "
                                        "`p[threadIdx.x] > 0 && \"positive\"` failed."));
  EXPECT_THAT(values, ElementsAre(0, 0, 1));
  for (int round = 0; round < 3; ++round) {
    int count = 0;
    status = run(module->find_kernel("late"), {2, 1, 1}, {32, 1, 1}, 0, &count);
    EXPECT_EQ(status.code, RunCode::kAssert);
    EXPECT_THAT(status.message, HasSubstr("thread: [5,0,0]"));
    EXPECT_EQ(count, 0);
    status = run(module->find_kernel("trap"), {}, {2, 1, 1}, 0, &count);
    EXPECT_EQ(status.code, RunCode::kTrap);
    EXPECT_EQ(count, 1);
    ASSERT_TRUE(run(module->find_kernel("good"), {2, 1, 1}, {64, 1, 1}, 0, &count).ok());
    EXPECT_EQ(count, 129);
  }
}

TEST(HostjitKernels, NothingToDo) {
  const auto module = build("__global__ void k(int* p) { p[0] = 1; }", {"k"});
  int value = 0;
  EXPECT_TRUE(run(&module->kernels()[0], {0, 1, 1}, {1, 1, 1}, 0, &value).ok());
  EXPECT_TRUE(run(&module->kernels()[0], {1, 1, 1}, {1, 0, 1}, 0, &value).ok());
  EXPECT_EQ(value, 0);
}

TEST(HostjitKernels, ManyModulesAtOnce) {
  CompileRequest request;
  request.source =
      "__global__ void k(int* p) { __shared__ int s[4096]; s[threadIdx.x] = 1; p[0] += "
      "s[threadIdx.x]; }";
  request.name_expressions = {"k"};
  const std::vector<std::byte> image = compile(request).read();
  std::vector<std::shared_ptr<Module>> modules;
  int sum = 0;
  for (int i = 0; i < 100; ++i) {
    modules.push_back(Module::load(image));
    ASSERT_TRUE(run(&modules.back()->kernels()[0], {}, {4, 1, 1}, 0, &sum).ok());
  }
  EXPECT_EQ(sum, 400);
}

}  // namespace
}  // namespace lockstep::hostjit::testing
