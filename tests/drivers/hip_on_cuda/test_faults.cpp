// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

#include "drivers/digits_faults.h"
#include "hip_environment.h"
#include "support/temp_folder.h"

// Every call that the digits program makes of the runtime and of its compiler, failed once: a typed
// error or the right result, never a crash, a hang or a wrong answer.
namespace hip_on_cuda {
namespace {

using lockstep::testing::ProcessResult;
using lockstep::testing::run;
using lockstep::testing::TempFolder;

struct Library {
  const char* prefix;  // of its variables
  bool compiles;       // its calls are made only where nothing is in the cache of the plugin
};
// A cache that no other test writes to, for the compiler's calls.
constexpr const char* kSeed = HIP_ON_CUDA_CACHE "-of-compiler-faults";

constexpr Library kRuntime = {"HIP_ON_CUDA", false}, kCompiler = {"HIPRTC_ON_CUDA", true};

// A run of the program. Code for the CPU below the simulated driver stays in its cache.
ProcessResult run_digits(const Library& library, const std::string& what,
                         const std::string& value) {
  const TempFolder folder;
  auto options = simulated({{std::string(library.prefix) + what, value}});
  if (library.compiles) {
    std::filesystem::copy(kSeed, folder / "cache", std::filesystem::copy_options::recursive);
    std::filesystem::remove_all(folder / "cache/hip");
    options.environment["LOCKSTEP_CACHE_DIR"] = folder / "cache";
  }
  return run({program("lockstep-digits"), "--device", "hip:0"}, options);
}

// The calls of an undisturbed run, by name, in their order.
std::vector<std::string> calls_of_digits(const Library& library) {
  const TempFolder folder;
  const ProcessResult result = run_digits(library, "_LOG", folder / "calls");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  return test_drivers::logged_calls(folder / "calls");
}

int plausible_code(const std::string& call) {
  if (call.rfind("hiprtc", 0) == 0) return 6;
  if (call == "hipMalloc" || call == "hipHostMalloc") return 2;
  if (call == "hipModuleLoadData") return 209;
  if (call == "hipModuleLaunchKernel" || call == "hipGraphLaunch") return 719;
  return 999;
}

void fail_every_call_once(const Library& library, std::size_t least, std::size_t sampled) {
  const std::vector<std::string> calls = calls_of_digits(library);
  ASSERT_GT(calls.size(), least);
  test_drivers::fail_each_call_once(
      library.prefix, calls, sampled, plausible_code,
      [&](const std::string& fault) { return run_digits(library, "_FAIL", fault); });
}

TEST(HipFaults, EveryCallOfTheRuntimeFailedOnce) { fail_every_call_once(kRuntime, 5000, 150); }

TEST(HipFaults, EveryCallOfTheCompilerFailedOnce) {
  auto options = simulated();
  options.environment["LOCKSTEP_CACHE_DIR"] = kSeed;
  const ProcessResult first = run({program("lockstep-digits"), "--device", "hip:0"}, options);
  ASSERT_EQ(first.exit_code, 0) << first.out << first.err;
  fail_every_call_once(kCompiler, 10, 12);
}

TEST(HipFaults, AMistypedFaultIsNoRuntimeWithoutFaults) {
  const ProcessResult result = run_digits(kRuntime, "_FAIL", "hipMalloc:2");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("hip_on_cuda: HIP_ON_CUDA_FAIL='hipMalloc:2'"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace hip_on_cuda
