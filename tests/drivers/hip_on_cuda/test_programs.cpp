// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>
#include <lockstep/trace_file.h>

#include <algorithm>
#include <gtest/gtest.h>

#include "hip_environment.h"
#include "support/temp_folder.h"

// The examples by the hip plugin: their traces are those of the host backend, arguments included.
namespace hip_on_cuda {
namespace {

using lockstep::testing::ProcessResult;
using lockstep::testing::run;
using lockstep::testing::TempFolder;

struct Example {
  const char* name;
  std::vector<std::string> traces;
  std::size_t kernels;  // in the first trace
};
void PrintTo(const Example& example, std::ostream* out) { *out << example.name; }

class HipPrograms : public ::testing::TestWithParam<Example> {};

TEST_P(HipPrograms, TracesEqualThoseOfTheHost) {
  const TempFolder folder;
  for (const std::string device : {"host", "hip:0"}) {
    const ProcessResult result = run({program(std::string("lockstep-") + GetParam().name),
                                      "--device", device, "--out", folder / device},
                                     simulated());
    ASSERT_EQ(result.exit_code, 0) << device << '\n' << result.out << result.err;
    if (device != "host") {
      EXPECT_NE(result.out.find("SIMULATED AMD GPU"), std::string::npos) << result.out;
    }
  }
  for (const std::string& trace : GetParam().traces) {
    for (const bool arguments : {false, true}) {
      std::vector<std::string> command = {program("lockstep"), "diff", folder / ("host/" + trace),
                                          folder / ("hip:0/" + trace)};
      if (arguments) command.insert(command.begin() + 2, "--args");
      const ProcessResult result = run(command, simulated());
      EXPECT_EQ(result.exit_code, 0) << trace << '\n' << result.out << result.err;
    }
  }
  // Equal because known, not because both are unknown; and recorded once, by the outermost layer.
  const lockstep::Trace trace =
      lockstep::read_trace(folder / ("hip:0/" + GetParam().traces.front()));
  std::size_t kernels = 0;
  for (const auto& entry : trace.entries) {
    if (entry.kind == lockstep::OperationKind::kMemcpy) {
      EXPECT_EQ(entry.name.rfind("hipMemcpy", 0), 0U) << entry.name;
    }
    if (entry.kind != lockstep::OperationKind::kKernelLaunch) continue;
    ++kernels;
    EXPECT_NE(entry.argument_hash, 0U) << entry.name;
  }
  EXPECT_EQ(kernels, GetParam().kernels);
}

INSTANTIATE_TEST_SUITE_P(
    Examples, HipPrograms,
    ::testing::Values(Example{"digits", {"digits-eager.jsonl", "digits-replay.jsonl"}, 1644},
                      Example{"streams", {"streams.jsonl"}, 5},
                      Example{"attention", {"attention.jsonl"}, 1},
                      Example{"reduce", {"reduce.jsonl"}, 2}),
    [](const auto& example) { return std::string(example.param.name); });

TEST(HipChoice, DevicesAreListedAsSimulatedWithWhatWasDecided) {
  const ProcessResult result =
      run({program("lockstep"), "devices", "--verbose"}, simulated({{"CUDA_SIM_DEVICES", "2"}}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* text :
       {"0: SIMULATED AMD GPU (hip_on_cuda, NVIDIA GPU), sm_90",
        "1: SIMULATED AMD GPU (hip_on_cuda, NVIDIA GPU), sm_90", "\"properties\":\"R0600\"",
        "\"graph_getters\":\"trusted\"", "\"graph_node_types\":\"5.3\"", "\"memory_types\":\"6\"",
        "\"capture\":true", "\"compiler\":\"", "libhiprtc.so.7"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << " is not in\n" << result.out;
  }
}

TEST(HipChoice, NoDevice) {
  const ProcessResult result =
      run({program("lockstep"), "devices"}, simulated({{"CUDA_SIM_DEVICES", "0"}}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("hip       no device"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("hipErrorNoDevice"), std::string::npos) << result.out;
}

// Issue 5, acceptance 9: both vendors' plugins in one process.
TEST(HipAndCuda, ServeOneProcessInEitherOrder) {
  for (const std::string order : {"cuda,hip", "hip,cuda"}) {
    const ProcessResult result = run({HIP_BOTH_PROGRAM, order}, simulated());
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    const bool cuda_first = order == "cuda,hip";
    EXPECT_EQ(result.out, std::string(cuda_first ? "cuda: 42\nhip: 42\n" : "hip: 42\ncuda: 42\n") +
                              "cuda and hip traces are equal\n");
    EXPECT_EQ(result.err, "");
  }
}

}  // namespace
}  // namespace hip_on_cuda
