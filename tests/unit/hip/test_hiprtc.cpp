// SPDX-License-Identifier: Apache-2.0
// The real hipRTC of this machine, compile-only: no device is needed to make code for a named one.
// (A runtime that is not there: the test says so.)
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/gpu/object_source.h"
#include "backends/hip/code_object.h"
#include "backends/hip/hiprtc.h"
#include "support/temp_folder.h"

namespace {

using namespace lockstep::hip;
using lockstep::gpu::CompiledCode;
using lockstep::gpu::DynamicLibrary;
using lockstep::testing::TempFolder;
using ::testing::HasSubstr;

class HiprtcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("LOCKSTEP_CACHE_DIR", folder_.path().c_str(), 1);
    setenv("AMD_COMGR_CACHE", "0", 1);
    for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
      if (runtime_.open_one(name)) break;
    }
    if (!runtime_.is_open()) GTEST_SKIP() << "no HIP runtime here: " << runtime_.tried();
    int number = 0;
    const auto get = reinterpret_cast<int (*)(int*)>(runtime_.symbol("hipRuntimeGetVersion"));
    ASSERT_EQ(get(&number), 0);
    version_ = Version::from(number);
    Dl_info place{};
    ASSERT_NE(dladdr(reinterpret_cast<void*>(get), &place), 0);
    hiprtc_.set_runtime(&runtime_, version_, place.dli_fname);
    std::string why;
    if (!hiprtc_.available(&why)) GTEST_SKIP() << why;
    std::memset(&error_, 0, sizeof error_);
    error_.struct_size = sizeof error_;
    error_.log = log_;
    error_.log_capacity = sizeof log_;
  }
  void TearDown() override { unsetenv("LOCKSTEP_CACHE_DIR"); }

  lockstep_code compile(const std::string& source, const std::vector<const char*>& kernels,
                        const std::string& architecture,
                        const std::vector<const char*>& options = {}) {
    lockstep_module_desc desc{};
    desc.struct_size = sizeof desc;
    desc.format = LOCKSTEP_MODULE_SOURCE;
    desc.data = source.data();
    desc.bytes = source.size();
    desc.source_name = "kernels.cu";
    desc.kernels = kernels.data();
    desc.kernel_count = static_cast<std::uint32_t>(kernels.size());
    desc.options = options.data();
    desc.option_count = static_cast<std::uint32_t>(options.size());
    code_ = {};
    return hiprtc_.compile(desc, architecture, &code_, &error_);
  }
  std::string said() const { return std::string(error_.message) + "\n" + log_; }

  TempFolder folder_;
  DynamicLibrary runtime_;
  Version version_;
  Hiprtc hiprtc_;
  lockstep_error error_{};
  char log_[16384] = "";
  CompiledCode code_;
};

struct Source {
  const char* file;
  std::vector<const char*> kernels;
};

// Issue 5, acceptance 5: every kernel of the project, for every architecture that this compiler
// can.
TEST_F(HiprtcTest, CompilesEveryKernelOfTheProject) {
  const Source sources[] = {
      {"examples/digits/digits.cu", {"dense<true>", "dense<false>", "argmax"}},
      {"examples/streams/streams.cu", {"ramp", "scale_add", "join"}},
      {"examples/attention/attention.cu", {"attention"}},
      {"examples/reduce/reduce.cu", {"reduce_blocks", "reduce_partials"}},
      {"tests/conformance/kernels.cu",
       {"saxpy", "fill_index", "add_constant<int>", "add_constant<float>", "scale<float, 3>",
        "spin_then_set", "dynamic_reverse", "static_reverse", "block_sum", "all_arguments",
        "record_index", "count_threads", "atomics", "half_sum", "copy_words", "fail_assertion",
        "first_past_the_post", "read_constant"}},
      {"tests/support/tiled_product.cu", {"tiled_product"}}};
  std::size_t compiled = 0, kernels = 0, architectures = 0;
  for (const char* architecture :
       {"gfx906:sramecc+:xnack-", "gfx908:sramecc+:xnack-", "gfx90a:sramecc+:xnack-",
        "gfx942:sramecc+:xnack-", "gfx1030", "gfx1100"}) {
    const std::string base =
        std::string(architecture).substr(0, std::string(architecture).find(':'));
    if (!compiler_knows(base, version_)) continue;
    ++architectures;
    for (const Source& source : sources) {
      const std::string text =
          lockstep::testing::read_file(std::string(LOCKSTEP_TEST_SOURCE_DIR "/") + source.file);
      ASSERT_EQ(compile(text, source.kernels, architecture), LOCKSTEP_OK)
          << source.file << " for " << architecture << ": " << said();
      CodeObject object;
      std::string why;
      ASSERT_TRUE(check_image({code_.code.data(), code_.code.size()}, architecture, version_,
                              &object, &why))
          << why;
      ++compiled;
      for (const auto& [expression, symbol] : code_.lowered_names) {
        const KernelMetadata* kernel = object.find(symbol);
        ASSERT_NE(kernel, nullptr) << symbol;
        EXPECT_EQ(kernel->wavefront_size, base.size() == 7 ? 32U : 64U) << base;
        ++kernels;
      }
    }
  }
  std::cout << "hipRTC of ROCm " << version_.text() << ": " << compiled << " modules, " << kernels
            << " kernels for " << architectures << " architectures\n";
  // gfx942 and gfx1100 are younger than 5.2.
  EXPECT_EQ(architectures, version_.before(5, 7) ? 4U : 6U);
  EXPECT_EQ(compiled, architectures * std::size(sources));
}

TEST_F(HiprtcTest, KeepsTheSourceBesideTheObject) {
  const std::string source =
      "#include <lockstep/kernel.h>\n"
      "__global__ void keep(lockstep::half* x, int n) { if (n > 0) x[0] += 1.0f; }\n";
  ASSERT_EQ(compile(source, {"keep"}, "gfx90a:sramecc+:xnack-", {"-DKEPT=1"}), LOCKSTEP_OK)
      << said();
  const auto found =
      lockstep::gpu::find_object_source(folder_ / "hip", {code_.code.data(), code_.code.size()});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->source, source);
  EXPECT_EQ(found->kernels, std::vector<std::string>{"keep"});
  EXPECT_THAT(found->options, ::testing::Contains("-DKEPT=1"));
  ASSERT_EQ(found->headers.size(), 1U);
  EXPECT_EQ(found->headers[0].first, "lockstep/kernel.h");
  EXPECT_EQ(found->lowered_names, code_.lowered_names);
  // A hit of the cache, whose source somebody removed.
  const std::string file =
      folder_ / ("hip/" + lockstep::gpu::object_file_name({code_.code.data(), code_.code.size()}));
  std::filesystem::remove(file);
  ASSERT_EQ(compile(source, {"keep"}, "gfx90a:sramecc+:xnack-", {"-DKEPT=1"}), LOCKSTEP_OK);
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(HiprtcTest, ErrorsHaveFileAndLine) {
  ASSERT_EQ(compile("__global__ void bad(int* x) {\n  *x = nothing;\n}\n", {}, "gfx90a"),
            LOCKSTEP_E_COMPILATION_FAILED);
  EXPECT_THAT(said(), HasSubstr("kernels.cu:2"));
  EXPECT_THAT(said(), HasSubstr("nothing"));
  EXPECT_STREQ(error_.call, "hiprtcCompileProgram");
}

// Each of these ends the process when 5.2 to 6.4 are asked.
TEST_F(HiprtcTest, IsNeverAskedForWhatItDoesNotKnow) {
  for (const char* architecture : {"bogus", "gfx9-generic:xnack", "gfx99999"}) {
    if (version_.major >= 7 && std::string(architecture) == "gfx99999") continue;
    EXPECT_EQ(compile("__global__ void k() {}", {"k"}, architecture), LOCKSTEP_E_NOT_SUPPORTED)
        << architecture;
    EXPECT_THAT(std::string(error_.message), HasSubstr("would end the process"));
  }
  EXPECT_EQ(compile("__global__ void k() {}", {"k"}, "gfx90a", {"--offload-arch=gfx1030"}),
            LOCKSTEP_E_INVALID_ARGUMENT);
}

TEST_F(HiprtcTest, AnotherMajorVersionIsRefused) {
  const std::string other = "/nowhere/libhiprtc.so." + std::to_string(version_.major == 5 ? 6 : 5);
  setenv("LOCKSTEP_HIPRTC_LIBRARY", other.c_str(), 1);
  Hiprtc mixed;
  mixed.set_runtime(&runtime_, version_, "");
  std::string why;
  EXPECT_FALSE(mixed.available(&why));
  unsetenv("LOCKSTEP_HIPRTC_LIBRARY");
  EXPECT_THAT(why, HasSubstr("of one major version"));
  EXPECT_THAT(why, HasSubstr(other));
}

}  // namespace
