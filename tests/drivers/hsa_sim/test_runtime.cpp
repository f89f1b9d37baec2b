// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <gtest/gtest.h>
#include <sstream>

#include "sim_environment.h"
#include "support/temp_folder.h"

// AMD's own runtime on the simulated layer, without any part of Lockstep between.
namespace hsa_sim {
namespace {

using lockstep::testing::ProcessResult;
using lockstep::testing::run;
using lockstep::testing::TempFolder;

ProcessResult run_mode(const std::vector<std::string>& mode, const Environment& faults = {}) {
  std::vector<std::string> command = {HSA_SIM_PROGRAM};
  command.insert(command.end(), mode.begin(), mode.end());
  return run(command, simulated(faults));
}
std::string out_of(const std::vector<std::string>& mode, const Environment& faults = {}) {
  const ProcessResult result = run_mode(mode, faults);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  return result.out;
}

class HsaSimRuntime : public ::testing::TestWithParam<const char*> {};
TEST_P(HsaSimRuntime, DoesWhatAGpuDoes) {
  const std::string out = out_of({GetParam()});
  EXPECT_NE(out.find(std::string(GetParam()) + ": ok\n"), std::string::npos) << out;
}
INSTANTIATE_TEST_SUITE_P(Modes, HsaSimRuntime,
                         ::testing::Values("copies", "staged", "rows", "sets", "kernels", "events",
                                           "graphs", "host_nodes", "pools"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST(HsaSimDevices, AreWhatTheEnvironmentSays) {
  EXPECT_EQ(out_of({"devices"}, {{"HSA_SIM_DEVICES", "2"},
                                 {"HSA_SIM_ISA", "gfx90a,gfx1030"},
                                 {"HSA_SIM_MEMORY_MB", "256"}}),
            "2 devices\n0: SIMULATED AMD GPU, waves of 64, 256 MiB\n"
            "1: SIMULATED AMD GPU, waves of 32, 256 MiB\ndevices: ok\n");
}
TEST(HsaSimDevices, WavesOf32) {
  EXPECT_EQ(out_of({"kernels"}, {{"HSA_SIM_ISA", "gfx1030"}}), "kernels: ok\n");
}
TEST(HsaSimDevices, CopyToEachOther) {
  EXPECT_EQ(out_of({"two"}, {{"HSA_SIM_DEVICES", "2"}}), "two: ok\n");
}
TEST(HsaSimDevices, NoneIsNoDevice) {
  const ProcessResult result = run_mode({"devices"}, {{"HSA_SIM_DEVICES", "0"}});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.out, "hipInit: 101\n") << result.err;
}

TEST(HsaSimMemory, EndsWhereTheEnvironmentSays) {
  EXPECT_EQ(out_of({"memory", "8388608", "16777217", "1000"}, {{"HSA_SIM_MEMORY_MB", "24"}}),
            "8388608: 0\n16777217: 2\n1000: 0\nmemory: ok\n");
}
TEST(HsaSimMemory, FailsFromASizeOn) {
  EXPECT_EQ(out_of({"memory", "1048576", "9000000", "10"}, {{"HSA_SIM_OOM_BYTES", "9000000"}}),
            "1048576: 0\n9000000: 2\n10: 0\nmemory: ok\n");
}

TEST(HsaSimFaults, LateWorkShowsWhoDoesNotWait) {
  EXPECT_EQ(out_of({"late"}, {{"HSA_SIM_DELAY_US", "1000000"}}),
            "before: 1, ready: 600\nafter: 2\nlate: ok\n");
}
TEST(HsaSimFaults, LateWorkIsWaitedForByEveryMode) {
  for (const char* mode : {"copies", "kernels", "events"}) {
    EXPECT_NE(out_of({mode}, {{"HSA_SIM_DELAY_US", "2000"}}).find(": ok"), std::string::npos);
  }
}
TEST(HsaSimFaults, NthCallOfAFunctionFails) {
  const TempFolder folder;
  const std::string log = folder / "log";
  const ProcessResult result =
      run_mode({"devices"}, {{"HSA_SIM_FAIL", "hsa_init:1:4096"}, {"HSA_SIM_LOG", log}});
  EXPECT_EQ(result.exit_code, 4) << result.out;
  EXPECT_EQ(lockstep::testing::read_file(log).find("call hsa_init 4096\n"), 0U);
}
// As after a memory fault: this release of AMD's runtime ends the process.
TEST(HsaSimFaults, AStoppedQueueEndsTheProcess) {
  const ProcessResult lost = run_mode({"kernels"}, {{"HSA_SIM_LOST_AT", "1"}});
  EXPECT_EQ(lost.exit_code, 128 + SIGABRT) << lost.out << lost.err;
  EXPECT_NE(lost.err.find("stops: kernel add: it was asked to fail"), std::string::npos)
      << lost.err;
  const ProcessResult bodiless = run_mode({"bodiless"});
  EXPECT_EQ(bodiless.exit_code, 128 + SIGABRT) << bodiless.out << bodiless.err;
  EXPECT_NE(bodiless.err.find("kernel bodiless: there is no source of this code object: "),
            std::string::npos)
      << bodiless.err;
}
TEST(HsaSimFaults, ACrashSaysInWhichLibrary) {
  const ProcessResult lost =
      run_mode({"kernels"}, {{"HSA_SIM_LOST_AT", "1"}, {"HSA_SIM_NAME_CRASHES", "1"}});
  EXPECT_EQ(lost.exit_code, 128 + SIGABRT) << lost.out << lost.err;
  EXPECT_NE(lost.err.find("\nhsa_sim: signal 6 in libamdhip64.so."), std::string::npos) << lost.err;
}
TEST(HsaSimFaults, AMistypedFaultIsNoLayerWithoutFaults) {
  const Environment wrong = {{"HSA_SIM_FAIL", "hsa_init:1"},
                             {"HSA_SIM_ISA", "sm_90"},
                             {"HSA_SIM_DEVICES", "two"},
                             {"HSA_SIM_DELAY_US", "1s"},
                             {"HSA_SIM_DELAY_BARRIERS_US", "-1"}};
  for (const auto& [variable, value] : wrong) {
    const ProcessResult result = run_mode({"devices"}, {{variable, value}});
    EXPECT_EQ(result.exit_code, 2) << variable;
    EXPECT_NE(result.err.find("hsa_sim: " + variable + "='"), std::string::npos) << result.err;
  }
}

TEST(HsaSimLog, HasCallsKernelsAndCopies) {
  const TempFolder folder;
  const std::string log = folder / "log";
  out_of({"kernels"}, {{"HSA_SIM_LOG", log}});
  const std::string text = lockstep::testing::read_file(log);
  // The address of x and y, 7 and 1000, as the GPU would have got them; work-items, not blocks.
  EXPECT_NE(text.find("kernel add grid=1024,1,1 group=256,1,1 lds=0 arguments="),
            std::string::npos);
  EXPECT_NE(text.find("07000000e8030000"), std::string::npos);
  EXPECT_NE(text.find("kernel turn grid=64,1,1 group=64,1,1 lds=512 "), std::string::npos);
  EXPECT_NE(text.find("\ncopy 4000\n"), std::string::npos);
  EXPECT_NE(text.find("call hsa_queue_create 0\n"), std::string::npos);
}

}  // namespace
}  // namespace hsa_sim
