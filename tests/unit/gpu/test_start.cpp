// SPDX-License-Identifier: Apache-2.0
// What the cuda plugin says about drivers that are missing, old, stubs, without devices or without
// functions (PLUG-01, PLUG-03): the right code, and both versions in words.
#include <lockstep/backend.h>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/library.h"
#include "support/process.h"

namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string start_with(const std::string& library, const std::string& mode = "") {
  lockstep::testing::ProcessOptions options;
  options.environment["LOCKSTEP_CUDA_LIBRARY"] = library;
  const auto result = lockstep::testing::run(
      {LOCKSTEP_TEST_START_PROBE, LOCKSTEP_TEST_PLUGIN_DIR "/liblockstep_backend_cuda.so", mode},
      options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}
std::string stub(const std::string& name) {
  return std::string(LOCKSTEP_TEST_STUB_DIR) + "/stub_cuda_" + name + ".so";
}
const std::string kUnavailable = std::to_string(LOCKSTEP_E_UNAVAILABLE);
const std::string kNotFound = std::to_string(LOCKSTEP_E_NOT_FOUND);

TEST(CudaStart, NamesWhatWasTriedWhenThereIsNoDriver) {
  const std::string said = start_with("/nowhere/libcuda.so.1");
  EXPECT_THAT(said, HasSubstr("\n" + kUnavailable + "\n"));
  EXPECT_THAT(said, HasSubstr("/nowhere/libcuda.so.1"));
  EXPECT_THAT(said, HasSubstr("LOCKSTEP_CUDA_LIBRARY"));
  EXPECT_THAT(said, HasSubstr("native name []"));  // nothing to warn of
}

TEST(CudaStart, RefusesAnOldDriverWithBothVersions) {
  const std::string said = start_with(stub("old"));
  EXPECT_THAT(said, HasSubstr("\n" + kUnavailable + "\n"));
  EXPECT_THAT(said, HasSubstr("11.4"));
  EXPECT_THAT(said, HasSubstr("12.0 or newer"));
  EXPECT_THAT(said, HasSubstr("native name [CUDA 11.4]"));
  EXPECT_THAT(said, HasSubstr("cuDriverGetVersion"));
}

TEST(CudaStart, KnowsTheToolkitsStubForWhatItIs) {
  const std::string said = start_with(stub("toolkit"));
  EXPECT_THAT(said, HasSubstr("\n" + kUnavailable + "\n34\ncuInit\n"));
  EXPECT_THAT(said, HasSubstr("[CUDA_ERROR_STUB_LIBRARY]"));
  EXPECT_THAT(said, HasSubstr("stub"));
}

TEST(CudaStart, SaysThatThereIsNoDevice) {
  const std::string said = start_with(stub("nodevice"));
  EXPECT_THAT(said, HasSubstr("\n" + kNotFound + "\n100\ncuInit\n"));
  EXPECT_THAT(said, HasSubstr("[CUDA_ERROR_NO_DEVICE]"));
  EXPECT_THAT(said, HasSubstr("no NVIDIA device"));
  EXPECT_THAT(said, HasSubstr("13.0"));
  EXPECT_THAT(said, HasSubstr("CUDA_VISIBLE_DEVICES"));
}

TEST(CudaStart, SaysThatADriverDoesNotStart) {
  const std::string said = start_with(stub("broken"));
  EXPECT_THAT(said, HasSubstr("\n" + kUnavailable + "\n999\ncuInit\n"));
  EXPECT_THAT(said, HasSubstr("nvidia-smi"));
}

TEST(CudaStart, NamesMissingFunctions) {
  const std::string said = start_with(stub("incomplete"));
  EXPECT_THAT(said, HasSubstr("\n" + kUnavailable + "\n"));
  EXPECT_THAT(said, HasSubstr("12.0"));
  EXPECT_THAT(said, HasSubstr("cuMemAlloc_v2"));
  EXPECT_THAT(said, Not(HasSubstr("cuFuncGetName")));  // optional
}

TEST(CudaStart, FailureIsRememberedAndGivenAgain) {
  const std::string said = start_with(stub("nodevice"));
  EXPECT_THAT(said, StartsWith("before " + kUnavailable));
  EXPECT_THAT(said, HasSubstr("again " + kNotFound));
  EXPECT_THAT(said, HasSubstr("count " + kNotFound + " 0"));
  EXPECT_THAT(said, HasSubstr("open " + kNotFound));
}

TEST(CudaStart, OldestDriverStartsWithoutOptionalFunctions) {
  const std::string said = start_with(stub("oldest"));
  EXPECT_THAT(said, HasSubstr("\n0\n0\n"));
  EXPECT_THAT(said, HasSubstr("again 0"));
  EXPECT_THAT(said, HasSubstr("count 0 0"));
  EXPECT_THAT(said, HasSubstr("open " + std::to_string(LOCKSTEP_E_NOT_FOUND)));
}

TEST(CudaStart, RefusesToRunInAForkedChild) {
  const std::string said = start_with(stub("oldest"));
  EXPECT_THAT(said, HasSubstr("forked " + kUnavailable));
  EXPECT_THAT(said, HasSubstr("forked and cannot be used in the child"));
}

TEST(CudaStart, RefusesAHostOfAnotherInterface) {
  const std::string said = start_with(stub("oldest"), "newer-host");
  EXPECT_THAT(said, StartsWith("query " + std::to_string(LOCKSTEP_E_INCOMPATIBLE_PLUGIN)));
  EXPECT_THAT(said, HasSubstr("99000"));
}

TEST(CudaSymbols, EveryNameExistsInTheToolkitsDriver) {
  const std::string file = LOCKSTEP_TEST_CUDA_STUB;
  if (file.empty()) GTEST_SKIP() << "the toolkit's stub libcuda.so was not found";
  void* stub_library = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(stub_library, nullptr) << dlerror();
  const auto list = lockstep::cuda::symbols();
  EXPECT_GT(list.count, 90U);
  for (std::size_t index = 0; index < list.count; ++index) {
    const lockstep::cuda::Symbol& symbol = list.first[index];
    EXPECT_NE(dlsym(stub_library, symbol.exported), nullptr) << symbol.exported;
    EXPECT_THAT(std::string(symbol.exported), StartsWith(symbol.base));
    if (symbol.required) {
      EXPECT_LE(symbol.version, lockstep::cuda::kOldestDriver) << symbol.base;
    }
  }
}

TEST(CudaSymbols, VersionsReadAsPeopleWriteThem) {
  EXPECT_EQ(lockstep::cuda::version_text(12040), "12.4");
  EXPECT_EQ(lockstep::cuda::version_text(13000), "13.0");
  EXPECT_EQ(lockstep::cuda::version_text(11080), "11.8");
}

}  // namespace
