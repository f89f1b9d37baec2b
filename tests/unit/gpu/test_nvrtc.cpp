// SPDX-License-Identifier: Apache-2.0
// The real NVRTC, compile-only: no device is needed to make machine code for sm_90.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/nvrtc.h"
#include "support/temp_folder.h"

namespace {

using lockstep::cuda::Nvrtc;
using lockstep::gpu::CompiledCode;
using lockstep::testing::TempFolder;
using ::testing::HasSubstr;

const char* const kSource = R"(
#include <lockstep/kernel.h>
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
template <class T, int N> __global__ void scale(T* x, unsigned long long n) {
  const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < n) x[i] = T(float(x[i]) * N);
}
namespace ns {
__global__ void tile(float* out) {
  extern __shared__ float shared[];
  shared[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  atomicAdd(out, shared[blockDim.x - 1 - threadIdx.x]);
}
}
)";

class NvrtcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("LOCKSTEP_CACHE_DIR", folder_.path().c_str(), 1);
    nvrtc_.set_driver_version(13000);
    std::string why;
    if (!nvrtc_.available(&why)) GTEST_SKIP() << why;
    std::memset(&error_, 0, sizeof error_);
    error_.struct_size = sizeof error_;
    error_.log = log_;
    error_.log_capacity = sizeof log_;
  }
  void TearDown() override { unsetenv("LOCKSTEP_CACHE_DIR"); }

  lockstep_code compile(const char* source, const std::vector<const char*>& kernels,
                        const std::vector<const char*>& options = {},
                        const std::string& architecture = "sm_90") {
    lockstep_module_desc desc{};
    desc.struct_size = sizeof desc;
    desc.format = LOCKSTEP_MODULE_SOURCE;
    desc.data = source;
    desc.bytes = std::strlen(source);
    desc.source_name = "sample.cu";
    desc.kernels = kernels.data();
    desc.kernel_count = static_cast<std::uint32_t>(kernels.size());
    desc.options = options.data();
    desc.option_count = static_cast<std::uint32_t>(options.size());
    desc.headers = headers_.data();
    desc.header_count = static_cast<std::uint32_t>(headers_.size());
    code_ = {};
    return nvrtc_.compile(desc, architecture, &code_, &error_);
  }
  std::size_t kept() const {
    std::size_t count = 0;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "cuda", none)) {
      if (entry.path().extension() == ".code") ++count;
    }
    return count;
  }

  TempFolder folder_{"nvrtc"};
  Nvrtc nvrtc_;
  lockstep_error error_{};
  char log_[8192] = "";
  std::vector<lockstep_header> headers_;
  CompiledCode code_;
};

TEST_F(NvrtcTest, MakesMachineCodeAndLoweredNames) {
  ASSERT_EQ(compile(kSource, {"saxpy", "scale<lockstep::half, 3>", "scale<float, 2>", "ns::tile"}),
            LOCKSTEP_OK)
      << error_.message << log_;
  ASSERT_GT(code_.code.size(), 64U);
  EXPECT_EQ(std::memcmp(code_.code.data(),
                        "\x7f"
                        "ELF",
                        4),
            0);
  ASSERT_EQ(code_.lowered_names.size(), 4U);
  EXPECT_EQ(code_.lowered_names[0].second, "saxpy");
  EXPECT_EQ(code_.lowered_names[1].second, "_Z5scaleIN8lockstep4halfELi3EEvPT_y");
  EXPECT_EQ(code_.lowered_names[2].second, "_Z5scaleIfLi2EEvPT_y");
  EXPECT_EQ(code_.lowered_names[3].second, "_ZN2ns4tileEPf");
}

TEST_F(NvrtcTest, KernelHeaderCompilesForEverySupportedLanguage) {
  const char* source = R"(
#include "lockstep/kernel.h"
extern "C" __global__ void convert(lockstep::half* h, lockstep::bfloat16* b, float* f) {
  f[0] = float(h[0]) + float(b[0]);
  h[1] = lockstep::half(f[1]);
  b[1] = lockstep::bfloat16(f[1]);
  h[2] += 1.0f;
  b[2] *= 2.0f;
})";
  for (const char* standard : {"--std=c++17", "--std=c++20"}) {
    EXPECT_EQ(compile(source, {"convert"}, {standard}), LOCKSTEP_OK) << standard << log_;
  }
}

TEST_F(NvrtcTest, CodeIsKeptAndFoundAgain) {
  ASSERT_EQ(compile(kSource, {"saxpy"}), LOCKSTEP_OK) << error_.message;
  EXPECT_EQ(kept(), 1U);
  const CompiledCode first = code_;
  ASSERT_EQ(compile(kSource, {"saxpy"}), LOCKSTEP_OK);
  EXPECT_EQ(kept(), 1U);
  EXPECT_EQ(code_.code, first.code);
  EXPECT_EQ(code_.lowered_names, first.lowered_names);
  ASSERT_EQ(compile(kSource, {"saxpy"}, {"-fmad=true"}), LOCKSTEP_OK);
  EXPECT_EQ(kept(), 2U);
  // Without contraction there is a product and a sum, with it one instruction: other code.
  EXPECT_NE(code_.code, first.code);
}

TEST_F(NvrtcTest, TheCompilersWordsAreGiven) {
  EXPECT_EQ(compile("__global__ void k(int* p) { *p = undeclared; }\n", {"k"}),
            LOCKSTEP_E_COMPILATION_FAILED);
  EXPECT_THAT(std::string(error_.message), HasSubstr("sample.cu(1)"));
  EXPECT_THAT(std::string(error_.message), HasSubstr("undeclared"));
  EXPECT_THAT(std::string(log_), HasSubstr("undeclared"));
  EXPECT_EQ(error_.log_size, std::strlen(log_));
  EXPECT_EQ(kept(), 0U);
}

TEST_F(NvrtcTest, RefusesUnknownOptionsKernelsAndArchitectures) {
  EXPECT_EQ(compile(kSource, {"saxpy"}, {"--no-such-option"}), LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_EQ(compile(kSource, {"no_such_kernel"}), LOCKSTEP_E_COMPILATION_FAILED);
  EXPECT_THAT(std::string(error_.message) + log_, HasSubstr("no_such_kernel"));
  EXPECT_EQ(compile(kSource, {"saxpy"}, {}, "sm_999"), LOCKSTEP_E_NOT_SUPPORTED);
  EXPECT_THAT(std::string(error_.message), HasSubstr("sm_999"));
  EXPECT_EQ(compile(kSource, {"saxpy"}, {"--gpu-architecture=compute_90"}),
            LOCKSTEP_E_COMPILATION_FAILED);  // PTX only
}

TEST_F(NvrtcTest, HeadersOfTheCallerAreThere) {
  headers_.push_back({"mine/factor.h", "#define FACTOR 3.0f\n"});
  EXPECT_EQ(compile("#include <mine/factor.h>\n"
                    "extern \"C\" __global__ void k(float* p) { *p *= FACTOR; }\n",
                    {"k"}),
            LOCKSTEP_OK)
      << log_;
}

TEST(NvrtcSearch, ACompilerNewerThanTheDriverIsNotTaken) {
  Nvrtc nvrtc;
  nvrtc.set_driver_version(12000);
  std::string why;
  // Where only a newer one is installed it is named as missing; where an older one is, it is taken.
  if (!nvrtc.available(&why)) {
    EXPECT_THAT(why, HasSubstr("CUDA 12 or older"));
    EXPECT_THAT(why, HasSubstr("libnvrtc.so.12"));
  } else {
    std::printf("NVRTC 12 or older is installed here\n");
    EXPECT_EQ(why, "");
  }
}

TEST(NvrtcSearch, ANamedLibraryIsTheOnlyOneTried) {
  setenv("LOCKSTEP_NVRTC_LIBRARY", "/nowhere/libnvrtc.so", 1);
  Nvrtc nvrtc;
  nvrtc.set_driver_version(13000);
  std::string why;
  EXPECT_FALSE(nvrtc.available(&why));
  EXPECT_THAT(why, HasSubstr("/nowhere/libnvrtc.so"));
  unsetenv("LOCKSTEP_NVRTC_LIBRARY");
}

}  // namespace
