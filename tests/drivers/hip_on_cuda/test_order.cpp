// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "hip_environment.h"
#include "support/temp_folder.h"

// Order among streams, captures and code that is not ours: what comes of it, and which calls the
// runtime sees. The simulated CUDA driver keeps some order of its own where AMD's runtime has none.
namespace hip_on_cuda {
namespace {

using lockstep::testing::ProcessResult;
using lockstep::testing::run;
using lockstep::testing::TempFolder;
using ::testing::Contains;
using ::testing::Not;

using Calls = std::vector<std::string>;  // "NAME RESULT"

Calls calls_of(const std::string& mode,
               std::map<std::string, std::optional<std::string>> environment = {}) {
  const TempFolder folder;
  environment["HIP_ON_CUDA_LOG"] = folder / "calls";
  const ProcessResult result = run({HIP_ORDER_PROGRAM, mode}, simulated(environment));
  EXPECT_EQ(result.out, mode + ": ok\n") << result.err;
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(result.timed_out);
  Calls calls;
  std::istringstream lines(lockstep::testing::read_file(folder / "calls"));
  std::string number, name, code;
  while (lines >> number >> name >> code) calls.push_back(name + " " + code);
  return calls;
}
std::ptrdiff_t count(const Calls& calls, const std::string& call) {
  return std::count(calls.begin(), calls.end(), call);
}
Calls between(const Calls& calls, const std::string& first, const std::string& last) {
  const auto begin = std::find(calls.begin(), calls.end(), first);
  return {begin, std::find(begin, calls.end(), last)};
}

TEST(HipOrder, OthersMayRecordOurEvents) {
  EXPECT_EQ(count(calls_of("foreign_records"), "hipStreamWaitEvent 0"), 1);
  EXPECT_EQ(count(calls_of("foreign_records_after_a_capture"), "hipStreamWaitEvent 0"), 1);
}

TEST(HipOrder, DroppedStreamsAreNotWaitedFor) {
  calls_of("dropped_streams");
  calls_of("event_of_a_dropped_stream");
  calls_of("dropped_streams_of_staged_copies");
  calls_of("dropped_stream_beside_a_host_function");
  calls_of("dropped_stream_of_a_capture");
}

TEST(HipOrder, LaunchesOfOneExecutableFollowEachOther) {
  const Calls calls = calls_of("launches");
  EXPECT_EQ(count(calls, "hipStreamWaitEvent 0"), 1);
  // One event, however often it is launched.
  calls_of("launches_by_threads");
  EXPECT_EQ(count(calls_of("launches_on_per_thread_streams"), "hipStreamWaitEvent 0"), 1);
  // The job's own, the executable's, and one when each of the job's three streams goes.
  EXPECT_EQ(count(calls_of("launches_after_a_borrowed_stream"), "hipEventCreateWithFlags 0"), 5);
}

TEST(HipOrder, ARefusedLaunchForgetsNothing) {
  const Calls calls =
      calls_of("launches_again_after_a_failure", {{"HIP_ON_CUDA_FAIL", "hipGraphLaunch:2:999"}});
  EXPECT_EQ(count(calls, "hipGraphLaunch 0"), 2);
  EXPECT_EQ(count(calls, "hipStreamWaitEvent 0"), 2);
}

// No later launch could wait for it, so it is waited for at once.
TEST(HipOrder, ALaunchWithoutARecordBehindItIsWaitedFor) {
  const Calls calls = calls_of("launches", {{"HIP_ON_CUDA_FAIL", "hipEventRecord:1:999"}});
  const Calls after = between(calls, "hipEventRecord 999", "hipGraphLaunch 0");
  EXPECT_THAT(after, Contains("hipStreamSynchronize 0"));
  EXPECT_EQ(count(calls, "hipGraphLaunch 0"), 2);
}

// Asked about them, releases before 7.2 refuse or invalidate the capture.
TEST(HipOrder, EventsOfAStreamThatCapturesNowAreNotAskedOf) {
  const std::string older = std::to_string(70100000);
  for (const std::string mode : {"recorded_before_a_capture", "pending_before_a_capture"}) {
    const Calls calls = calls_of(mode, {{"HIP_ON_CUDA_VERSION", older}});
    const Calls during = between(calls, "hipStreamBeginCapture 0", "hipStreamEndCapture 0");
    EXPECT_GT(during.size(), 1U);
    for (const char* call : {"hipEventQuery 0", "hipEventQuery 600", "hipEventSynchronize 0",
                             "hipStreamWaitEvent 0"}) {
      EXPECT_THAT(during, Not(Contains(call))) << mode;
    }
    const Calls newer = calls_of(mode);
    const Calls then = between(newer, "hipStreamBeginCapture 0", "hipStreamEndCapture 0");
    EXPECT_THAT(then, Contains("hipEventSynchronize 0")) << mode;
    EXPECT_THAT(then, Not(Contains("hipStreamWaitEvent 0"))) << mode;
  }
  calls_of("polled_while_capturing", {{"HIP_ON_CUDA_VERSION", older}});
  calls_of("polled_while_capturing");
}

TEST(HipOrder, ASetThatEndsBeforeEightBytes) { calls_of("short_set_node"); }

TEST(HipOrder, ADeviceIsItsOrdinal) { calls_of("native_devices", {{"CUDA_SIM_DEVICES", "2"}}); }

}  // namespace
}  // namespace hip_on_cuda
