// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

#include "drivers/digits_faults.h"
#include "sim_environment.h"
#include "support/temp_folder.h"

// The simulated driver misbehaves: what the public interface makes of it.
namespace cuda_sim {
namespace {

using lockstep::testing::ProcessResult;
using lockstep::testing::run;
using lockstep::testing::TempFolder;

std::string out_of(const std::vector<std::string>& mode,
                   const std::map<std::string, std::optional<std::string>>& faults) {
  std::vector<std::string> command = {CUDA_SIM_FAULT_PROGRAM};
  command.insert(command.end(), mode.begin(), mode.end());
  const ProcessResult result = run(command, simulated(faults));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

TEST(CudaSimFaults, NthCallOfAFunctionFails) {
  EXPECT_EQ(out_of({"allocate", "100", "200", "300"}, {{"CUDA_SIM_FAIL", "cuMemAlloc_v2:2:2"}}),
            "100: ok\n200: out of memory 2 cuMemAlloc\n300: ok\n");
  EXPECT_EQ(out_of({"allocate", "100", "200", "300"},
                   {{"CUDA_SIM_FAIL", "cuMemAlloc_v2:1:2,cuMemAlloc_v2:3:1"}}),
            "100: out of memory 2 cuMemAlloc\n200: ok\n300: invalid argument 1 cuMemAlloc\n");
}

TEST(CudaSimModules, ACaptureOfAnotherLibrarySurvivesTheirEnd) {
  const TempFolder folder;
  EXPECT_EQ(out_of({"foreign-capture"}, {{"CUDA_SIM_LOG", folder / "calls"}}),
            "its capture: whole\nnot waited for\nvalue: 2\n");
  // The second one is unloaded when its user has waited for the device.
  std::istringstream lines(lockstep::testing::read_file(folder / "calls"));
  std::string number, name, code, order;
  while (lines >> number >> name >> code) {
    if (name == "cuStreamEndCapture") order += "end ";
    if (name == "cuModuleUnload") order += "unload ";
    if (name == "cuCtxSynchronize") order += "wait ";
  }
  EXPECT_EQ(order, "unload end wait unload unload ");  // the last one: the program's own
}

TEST(CudaSimFaults, OutOfMemoryFromASizeOn) {
  EXPECT_EQ(out_of({"allocate", "1048575", "1048576", "10"}, {{"CUDA_SIM_OOM_BYTES", "1048576"}}),
            "1048575: ok\n1048576: out of memory 2 cuMemAlloc\n10: ok\n");
}

TEST(CudaSimFaults, MemoryOfADeviceEnds) {
  EXPECT_EQ(
      out_of({"allocate", "8388608", "8388609", "8388608", "1"}, {{"CUDA_SIM_MEMORY_MB", "16"}}),
      "8388608: ok\n8388609: out of memory 2 cuMemAlloc\n8388608: ok\n"
      "1: out of memory 2 cuMemAlloc\n");
}

TEST(CudaSimFaults, ALostContextStaysLost) {
  const std::string out = out_of({"lost"}, {{"CUDA_SIM_LOST_AT", "2"}});
  std::istringstream lines(out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "first: ok");
  // The kernel's own failure once; from then on the context is what is missing.
  std::getline(lines, line);
  EXPECT_EQ(line.rfind("second: launch failed 719 ", 0), 0U) << line;
  int lost = 0;
  while (std::getline(lines, line)) {
    EXPECT_NE(line.find(": device lost 719 "), std::string::npos) << line;
    ++lost;
  }
  EXPECT_EQ(lost, 4) << out;
}

TEST(CudaSimFaults, ADriverThatSaysTheDeviceIsLostIsBelieved) {
  for (const int code : {709, 214, 220}) {
    const std::string out =
        out_of({"lost"}, {{"CUDA_SIM_FAIL", "cuStreamSynchronize:1:" + std::to_string(code)}});
    EXPECT_EQ(out.rfind("first: device lost " + std::to_string(code) + " cuStreamSynchronize\n", 0),
              0U)
        << out;
  }
}

TEST(CudaSimFaults, LateWorkIsWaitedFor) {
  EXPECT_EQ(out_of({"late"}, {{"CUDA_SIM_DELAY_US", "100000"}}), "done at once: no\nvalue: 42\n");
}

TEST(CudaSimFaults, NoDevice) {
  const std::string out = out_of({"open"}, {{"CUDA_SIM_DEVICES", "0"}});
  EXPECT_EQ(out.find("open: ok"), std::string::npos) << out;
  EXPECT_NE(out.find("host auto: ok"), std::string::npos) << out;
}

TEST(CudaSimFaults, AMistypedFaultIsNoDriverWithoutFaults) {
  for (const auto& [variable, value] :
       std::map<std::string, std::string>{{"CUDA_SIM_FAIL", "cuMemAlloc_v2:2"},
                                          {"CUDA_SIM_DEVICES", "two"},
                                          {"CUDA_SIM_OOM_BYTES", "1k"}}) {
    const ProcessResult result =
        run({CUDA_SIM_FAULT_PROGRAM, "allocate", "1"}, simulated({{variable, value}}));
    EXPECT_EQ(result.exit_code, 2) << variable;
    EXPECT_NE(result.err.find("cuda_sim: " + variable + "='" + value), std::string::npos)
        << result.err;
  }
}

// ---- Every driver call of a program failed, one at a time ----

// The calls of an undisturbed run, by name, in their order.
std::vector<std::string> calls_of_digits() {
  const TempFolder folder;
  const ProcessResult result = run({program("lockstep-digits"), "--device", "cuda:0"},
                                   simulated({{"CUDA_SIM_LOG", folder / "calls"}}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return test_drivers::logged_calls(folder / "calls");
}

int plausible_code(const std::string& call) {
  if (call == "cuMemAlloc_v2" || call == "cuMemHostAlloc") return 2;
  if (call == "cuGetProcAddress_v2") return 500;
  if (call == "cuModuleLoadDataEx") return 209;
  if (call == "cuLaunchKernel" || call == "cuGraphLaunch") return 719;
  return 999;
}

TEST(CudaSimFaults, EveryCallOfDigitsFailedOnce) {
  const std::vector<std::string> calls = calls_of_digits();
  ASSERT_GT(calls.size(), 10000U);
  test_drivers::fail_each_call_once("driver", calls, 150, plausible_code,
                                    [](const std::string& fault) {
                                      return run({program("lockstep-digits"), "--device", "cuda:0"},
                                                 simulated({{"CUDA_SIM_FAIL", fault}}));
                                    });
}

}  // namespace
}  // namespace cuda_sim
