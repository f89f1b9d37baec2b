// SPDX-License-Identifier: Apache-2.0
// Names and parameter layouts. The expected names are what nvcc 13.0 (-arch=sm_90) put into a cubin
// for the same source.
#include <cstring>
#include <gmock/gmock.h>

#include "jit_support.h"

namespace lockstep::hostjit::testing {
namespace {

const char* const kSource = R"(
#include <lockstep/kernel.h>
extern "C" __global__ void saxpy_c(float a, const float* x, float* y, int n) {}
__global__ void saxpy(float a, const float* __restrict__ x, float* __restrict__ y, int n) {}
template <class T, int N> __global__ void scale(T* p, T a, unsigned long long n) {}
namespace ns { __global__ void k(lockstep::half* h, lockstep::bfloat16 b) {} }
struct P { char c; int i; };
struct Empty {};
__global__ void rep19(float* p, unsigned n, unsigned char flag, double x, P s) {}
__global__ void vecs(float3 a, double2 b, bool c, float4* d, dim3 e, char2 f, unsigned long g) {}
__global__ void small(bool a, short b, Empty c, float3 d, double2 e, float f) {}
template <class T> __global__ void tt(T) {}
static __global__ void stat(int* x) {}
__global__ void same_body_a() {}
__global__ void same_body_b() {}
__global__ void __launch_bounds__(192) bounded(int* p) { *p = 1; }
template <int B> __global__ void __launch_bounds__(B * 2, 1) bounded_template(int* p) { *p = B; }
extern "C" __global__ void __launch_bounds__(96) bounded_c() {}
)";

const std::vector<std::string> kKernels = {
    "saxpy_c",     "saxpy",   "scale<float, 3>",      "ns::k",    "rep19",
    "vecs",        "small",   "tt<lockstep::half>",   "stat",     "same_body_a",
    "same_body_b", "bounded", "bounded_template<64>", "bounded_c"};

struct Layout {
  std::uint32_t offset, size;
  bool pointer;
  friend bool operator==(const Layout&, const Layout&) = default;
};
std::vector<Layout> layout_of(const Kernel& kernel) {
  std::vector<Layout> layout;
  for (const Parameter& parameter : kernel.parameters())
    layout.push_back({parameter.offset, parameter.size, parameter.is_pointer});
  return layout;
}

TEST(HostjitNames, AreThoseOfNvcc) {
  const auto module = build(kSource, kKernels);
  std::vector<std::string> names;
  for (const Kernel& kernel : module->kernels()) names.push_back(kernel.name());
  EXPECT_THAT(names,
              ::testing::ElementsAre(
                  "saxpy_c", "_Z5saxpyfPKfPfi", "_Z5scaleIfLi3EEvPT_S0_y",
                  "_ZN2ns1kEPN8lockstep4halfENS0_8bfloat16E", "_Z5rep19Pfjhd1P",
                  "_Z4vecs6float37double2bP6float44dim35char2m", "_Z5smallbs5Empty6float37double2f",
                  "_Z2ttIN8lockstep4halfEEvT_", "_Z4statPi", "_Z11same_body_av", "_Z11same_body_bv",
                  "_Z7boundedPi", "_Z16bounded_templateILi64EEvPi", "bounded_c"));
}

TEST(HostjitNames, AreFoundByExpressionAndByMangledName) {
  const auto module = build(kSource, kKernels);
  const Kernel* scale = module->find_kernel("scale<float,3>");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale, module->find_kernel(" & scale< float, 3 >"));
  EXPECT_EQ(scale, module->find_kernel("_Z5scaleIfLi3EEvPT_S0_y"));
  EXPECT_EQ(module->find_kernel("scale<float, 4>"), nullptr);
  EXPECT_EQ(module->find_kernel(""), nullptr);
}

TEST(HostjitNames, LaunchBoundsAreHonoured) {
  const auto module = build(kSource, kKernels);
  EXPECT_EQ(module->find_kernel("bounded")->max_threads_per_block(), 192u);
  EXPECT_EQ(module->find_kernel("bounded_template<64>")->max_threads_per_block(), 128u);
  EXPECT_EQ(module->find_kernel("bounded_c")->max_threads_per_block(), 96u);
  EXPECT_EQ(module->find_kernel("saxpy")->max_threads_per_block(), 1024u);
}

TEST(Cases, REP_19_ParametersKeepTheirSizeAndAlignment) {
  const auto module = build(kSource, kKernels);
  const Kernel& kernel = *module->find_kernel("rep19");
  EXPECT_THAT(layout_of(kernel),
              ::testing::ElementsAre(Layout{0, 8, true}, Layout{8, 4, false}, Layout{12, 1, false},
                                     Layout{16, 8, false}, Layout{24, 8, false}));
  EXPECT_EQ(kernel.parameter_bytes(), 32u);
  EXPECT_FALSE(kernel.parameters()[3].may_have_padding);
  EXPECT_TRUE(kernel.parameters()[4].may_have_padding);
}

TEST(HostjitParameters, FollowCudasBuffer) {
  const auto module = build(kSource, kKernels);
  EXPECT_THAT(
      layout_of(*module->find_kernel("small")),
      ::testing::ElementsAre(Layout{0, 1, false}, Layout{2, 2, false}, Layout{4, 1, false},
                             Layout{8, 12, false}, Layout{32, 16, false}, Layout{48, 4, false}));
  EXPECT_THAT(
      layout_of(*module->find_kernel("vecs")),
      ::testing::ElementsAre(Layout{0, 12, false}, Layout{16, 16, false}, Layout{32, 1, false},
                             Layout{40, 8, true}, Layout{48, 12, false}, Layout{60, 2, false},
                             Layout{64, 8, false}));
  EXPECT_EQ(module->find_kernel("same_body_a")->parameters().size(), 0u);
  EXPECT_EQ(module->find_kernel("same_body_a")->parameter_bytes(), 0u);
}

TEST(HostjitParameters, ArriveAsTheyWerePassed) {
  const auto module = build(R"(
struct P { char c; int i; };
__global__ void take(double* out, unsigned n, unsigned char flag, double x, P s, float3 v) {
  out[0] = n; out[1] = flag; out[2] = x; out[3] = s.c; out[4] = s.i; out[5] = v.z;
}
)",
                            {"take"});
  struct Pair {
    char c;
    int i;
  };
  struct Three {
    float x, y, z;
  };
  double out[6] = {};
  ASSERT_TRUE(run(module->find_kernel("take"), {}, {}, 0, &out[0], 4000000000u,
                  static_cast<unsigned char>(7), 0.25, Pair{'x', -5}, Three{1, 2, 3})
                  .ok());
  EXPECT_THAT(out, ::testing::ElementsAre(4000000000.0, 7, 0.25, 'x', -5, 3));
}

TEST(HostjitModule, FindsVariablesAndEachLoadHasItsOwn) {
  CompileRequest request;
  request.source = R"(
__constant__ float table[4];
static __constant__ int hidden[3];
__device__ int counter = 5;
namespace ns { __device__ double value; static __device__ short quiet; }
__global__ void use(float* out) {
  out[0] = table[1]; out[1] = hidden[2]; out[2] = counter++; out[3] = ns::value; out[4] = ns::quiet;
}
)";
  request.name_expressions = {"use"};
  const CompiledImage image = compile(request);
  const auto first = Module::load(image.read());
  const auto second = Module::load_file(image.path);
  const auto sized = [&](const char* name) { return first->find_global(name)->size; };
  EXPECT_EQ(sized("table"), 16u);
  EXPECT_EQ(sized("hidden"), 12u);
  EXPECT_EQ(sized("counter"), 4u);
  EXPECT_EQ(sized("_ZN2ns5valueE"), 8u);
  EXPECT_EQ(sized("_ZN2ns5quietE"), 2u);
  EXPECT_FALSE(first->find_global("absent").has_value());
  EXPECT_NE(first->find_global("counter")->address, second->find_global("counter")->address);

  const auto set = [&](const char* name, auto value, std::size_t index) {
    auto* array = static_cast<decltype(value)*>(first->find_global(name)->address);
    array[index] = value;
  };
  set("table", 1.5f, 1);
  set("hidden", 42, 2);
  set("_ZN2ns5valueE", 2.5, 0);
  set("_ZN2ns5quietE", static_cast<short>(-3), 0);
  float out[5] = {};
  ASSERT_TRUE(run(first->find_kernel("use"), {}, {}, 0, &out[0]).ok());
  EXPECT_THAT(out, ::testing::ElementsAre(1.5f, 42.f, 5.f, 2.5f, -3.f));
  ASSERT_TRUE(run(first->find_kernel("use"), {}, {}, 0, &out[0]).ok());
  EXPECT_EQ(out[2], 6.f);
  ASSERT_TRUE(run(second->find_kernel("use"), {}, {}, 0, &out[0]).ok());
  EXPECT_THAT(out, ::testing::ElementsAre(0.f, 0.f, 5.f, 0.f, 0.f));
}

TEST(HostjitModule, RefusesWhatIsNoImage) {
  const auto refusal = [](const std::vector<std::byte>& bytes) {
    try {
      Module::load(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadImage);
      return std::string(error.what());
    }
    return std::string("loaded");
  };
  CompileRequest request;
  request.source = "__global__ void k() {}";
  request.name_expressions = {"k"};
  std::vector<std::byte> image = compile(request).read();
  EXPECT_TRUE(Module::is_image(image));
  image[image.size() / 2] ^= std::byte{1};
  EXPECT_THAT(refusal(image), ::testing::HasSubstr("damaged"));
  image.resize(image.size() - 1);
  EXPECT_FALSE(Module::is_image(image));
  EXPECT_THAT(refusal(image), ::testing::HasSubstr("lacks the mark"));
  EXPECT_THAT(refusal({}), ::testing::HasSubstr("lacks the mark"));
}

}  // namespace
}  // namespace lockstep::hostjit::testing
