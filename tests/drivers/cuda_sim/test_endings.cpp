// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim_environment.h"
#include "unit/record/probe_environment.h"

// Programs that end, or fork, with everything alive on the cuda plugin: the ends of
// tests/robust/test_endings.cpp on another backend. ci/gpu-bundle makes the same on a real GPU.
namespace cuda_sim {
namespace {

using lockstep::testing::ProcessOptions;
using lockstep::testing::ProcessResult;
using ::testing::HasSubstr;

ProcessResult robust(const std::vector<std::string>& arguments,
                     std::map<std::string, std::optional<std::string>> more = {}) {
  more["LOCKSTEP_ROBUST_DEVICE"] = "cuda:0";
  // What lives at the end is left to the process: no leak of ours.
  for (const auto& [name, value] : lockstep::testing::probe_environment()) {
    more.emplace(name, value);
  }
  ProcessOptions options = simulated(more);
  options.limit_seconds = 60;
  std::vector<std::string> command = {CUDA_SIM_ROBUST_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return lockstep::testing::run(command, options);
}

struct End {
  const char* how;
  int code;
  bool quiet;
};
void PrintTo(const End& end, std::ostream* out) { *out << end.how; }

class CudaSimEnding : public ::testing::TestWithParam<End> {};

TEST_P(CudaSimEnding, PLUG_05_IsQuietAndHasTheRightCode) {
  const ProcessResult result = robust({"end", GetParam().how});
  ASSERT_FALSE(result.timed_out) << result.err;
  EXPECT_EQ(result.exit_code, GetParam().code) << result.err;
  EXPECT_EQ(result.out, "done\n");
  if (GetParam().quiet) {
    EXPECT_EQ(result.err, "");
  } else {
    EXPECT_THAT(result.err, HasSubstr("nobody catches this"));
  }
}
INSTANTIATE_TEST_SUITE_P(
    Ends, CudaSimEnding,
    ::testing::Values(End{"return", 0, true}, End{"exit", 3, true}, End{"exit-in-thread", 5, true},
                      End{"exit-while-others-launch", 8, true}, End{"exit-in-capture", 9, true},
                      End{"_exit", 4, true}, End{"quick_exit", 6, true},
                      End{"abort", 128 + SIGABRT, true}, End{"throw", 128 + SIGABRT, false}),
    [](const auto& tested) { return "End" + std::to_string(tested.index); });

TEST(CudaSimForks, PLUG_07_BeforeTheFirstUseTheChildWorks) {
  const ProcessResult result = robust({"fork", "before-use"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "child: worked\nparent: child ended with 7, value 101\n");
}

TEST(CudaSimForks, PLUG_07_AfterItTheChildIsToldAndTheParentGoesOn) {
  for (const char* moment : {"after-use", "in-capture"}) {
    const ProcessResult result = robust({"fork", moment});
    EXPECT_EQ(result.exit_code, 0) << moment << result.err;
    EXPECT_EQ(result.out.rfind("child: error 4: ", 0), 0U) << result.out;
    EXPECT_THAT(result.out, HasSubstr("fork"));
    EXPECT_THAT(result.out, HasSubstr("parent: child ended with 7, value 101\n"));
  }
}

TEST(CudaSimStart, PLUG_01_ADriverThatIsNotThereIsNamed) {
  const ProcessResult result =
      lockstep::testing::run({program("lockstep-reduce"), "--device", "cuda:0"}, [] {
        ProcessOptions options = simulated();
        options.environment["LOCKSTEP_CUDA_LIBRARY"] = "/nowhere/libcuda.so.1";
        return options;
      }());
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("/nowhere/libcuda.so.1"));
}

}  // namespace
}  // namespace cuda_sim
