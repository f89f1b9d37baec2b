// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hip_environment.h"
#include "support/temp_folder.h"

// Traps of HIP's releases: the outcome, and what the runtime was spared.
namespace hip_on_cuda {
namespace {

using lockstep::testing::ProcessResult;
using lockstep::testing::run;
using lockstep::testing::TempFolder;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  std::string out, calls;
};
Outcome outcome_of(const std::string& mode) {
  const TempFolder folder;
  const ProcessResult result =
      run({HIP_TRAPS_PROGRAM, mode}, simulated({{"HIP_ON_CUDA_LOG", folder / "calls"}}));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  return {result.out, lockstep::testing::read_file(folder / "calls")};
}

TEST(HipTraps, BIG_01_ThreadsAreCountedIn32Bits) {
  const Outcome outcome = outcome_of("big");
  const char* const kWords = "4294967296 threads, the device's limit is 4294967295";
  EXPECT_THAT(outcome.out, HasSubstr("eager: invalid argument"));
  EXPECT_THAT(outcome.out, HasSubstr("node: invalid argument"));
  EXPECT_THAT(outcome.out, HasSubstr(kWords));
  EXPECT_THAT(outcome.calls, Not(HasSubstr("hipModuleLaunchKernel")));
  EXPECT_THAT(outcome.calls, Not(HasSubstr("hipGraphAddKernelNode")));
}

TEST(HipTraps, CapturesThatFailLeaveNothingBehind) {
  const Outcome outcome = outcome_of("captures");
  EXPECT_THAT(outcome.out, HasSubstr("unjoined: illegal during capture"));
  EXPECT_THAT(outcome.out, HasSubstr("never joined: stream"));
  EXPECT_THAT(outcome.out, HasSubstr("synchronize: illegal during capture\ninvalidated: capture "
                                     "invalidated"));
  EXPECT_THAT(outcome.out, HasSubstr("by hipDeviceSynchronize"));
  EXPECT_THAT(outcome.out, HasSubstr("begin: ok\nallocate elsewhere: ok\nnodes: 1\n"));
  EXPECT_THAT(outcome.out, HasSubstr("same streams: 1\nvalue: 2\n"));
  // The runtime saw no call that fails; 600 is hipErrorNotReady, the answer while work is pending.
  std::istringstream lines(outcome.calls);
  std::string number, name, code;
  while (lines >> number >> name >> code) {
    EXPECT_TRUE(code == "0" || code == "1" || code == "600") << name << " " << code;
  }
  EXPECT_THAT(outcome.calls, Not(HasSubstr("hipStreamEndCapture 9")));
}

// rocm-systems#10943: memory of a pool that comes back zeroed, with the default threshold.
TEST(HipTraps, PoolsKeepTheirMemory) {
  const Outcome outcome = outcome_of("captures");
  EXPECT_THAT(outcome.calls, HasSubstr("hipMemPoolSetAttribute 0"));
}

}  // namespace
}  // namespace hip_on_cuda
