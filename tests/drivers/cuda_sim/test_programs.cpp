// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_file.h>

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <tuple>
#include <vector>

#include "sim_environment.h"
#include "support/temp_folder.h"

// The examples on the simulated driver: their traces are those of the host backend, arguments
// included, and of the golden file.
namespace cuda_sim {
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

class CudaSimPrograms : public ::testing::TestWithParam<Example> {};

TEST_P(CudaSimPrograms, TracesEqualThoseOfTheHost) {
  const TempFolder folder;
  for (const std::string device : {"host", "cuda:0"}) {
    const ProcessResult result = run({program(std::string("lockstep-") + GetParam().name),
                                      "--device", device, "--out", folder / device},
                                     simulated());
    ASSERT_EQ(result.exit_code, 0) << device << '\n' << result.out << result.err;
    if (device != "host") {
      EXPECT_NE(result.out.find("SIMULATED"), std::string::npos) << result.out;
    }
  }
  for (const std::string& trace : GetParam().traces) {
    const ProcessResult result = run({program("lockstep"), "diff", "--args",
                                      folder / ("host/" + trace), folder / ("cuda:0/" + trace)},
                                     simulated());
    EXPECT_EQ(result.exit_code, 0) << trace << '\n' << result.out << result.err;
  }
  // Equal because known, not because both are unknown.
  const lockstep::Trace trace =
      lockstep::read_trace(folder / ("cuda:0/" + GetParam().traces.front()));
  std::size_t kernels = 0;
  for (const auto& entry : trace.entries) {
    if (entry.kind != lockstep::OperationKind::kKernelLaunch) continue;
    ++kernels;
    EXPECT_NE(entry.argument_hash, 0U) << entry.name;
  }
  EXPECT_EQ(kernels, GetParam().kernels);
}

INSTANTIATE_TEST_SUITE_P(
    Examples, CudaSimPrograms,
    ::testing::Values(Example{"digits", {"digits-eager.jsonl", "digits-replay.jsonl"}, 1644},
                      Example{"streams", {"streams.jsonl"}, 5},
                      Example{"attention", {"attention.jsonl"}, 1},
                      Example{"reduce", {"reduce.jsonl"}, 2}),
    [](const auto& example) { return std::string(example.param.name); });

TEST(CudaSimGolden, DigitsEqualTheGoldenTrace) {
  const TempFolder folder;
  const ProcessResult made =
      run({program("lockstep-digits"), "--device", "cuda:0", "--out", folder.path()}, simulated());
  ASSERT_EQ(made.exit_code, 0) << made.out << made.err;
  const ProcessResult result = run(
      {program("lockstep"), "diff", CUDA_SIM_GOLDEN, folder / "digits-eager.jsonl"}, simulated());
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(CudaSimChoice, AutoPassesASimulatedDeviceOver) {
  const ProcessResult result = run({CUDA_SIM_FAULT_PROGRAM, "open"}, simulated());
  EXPECT_EQ(result.out, "open: ok\nhost auto: ok\n") << result.err;
}

TEST(CudaSimChoice, DevicesAreListedAsSimulated) {
  const ProcessResult result =
      run({program("lockstep"), "devices"}, simulated({{"CUDA_SIM_DEVICES", "2"}}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("0: SIMULATED NVIDIA GPU, sm_90"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("1: SIMULATED NVIDIA GPU, sm_90"), std::string::npos) << result.out;
}

// What the real driver answered (docs/cuda-measured.md). Nothing of ours reads the list.
TEST(Cases, DEV_04_MasksAreTheDriversBusiness) {
  const std::vector<std::tuple<std::string, int, std::string>> rows = {
      {"0", 1, ""},
      {"1,0", 2, ""},
      {"0,,1", 1, ""},
      {"0,99,1", 1, ""},
      {"GPU-73696d00", 1, ""},
      {"0,GPU-73696d01", 1, ""},
      {"", 0, "CUDA_ERROR_NO_DEVICE"},
      {"-1", 0, "CUDA_ERROR_NO_DEVICE"},
      {"99", 0, "CUDA_ERROR_NO_DEVICE"},
      {"abc", 0, "CUDA_ERROR_NO_DEVICE"},
      {"GPU-12345678", 0, "CUDA_ERROR_NO_DEVICE"},
      {"1,1", 0, "CUDA_ERROR_INVALID_DEVICE"}};
  for (const auto& [mask, count, code] : rows) {
    const ProcessResult result =
        run({program("lockstep"), "devices"},
            simulated({{"CUDA_SIM_DEVICES", "2"}, {"CUDA_VISIBLE_DEVICES", mask}}));
    EXPECT_EQ(result.exit_code, 0) << mask << ": " << result.err;
    int seen = 0;
    for (std::size_t at = 0;
         (at = result.out.find("SIMULATED NVIDIA GPU, sm_90", at)) != std::string::npos; ++at) {
      ++seen;
    }
    EXPECT_EQ(seen, count) << mask << ": " << result.out;
    EXPECT_NE(result.out.find(code), std::string::npos) << mask << ": " << result.out;
  }
}

}  // namespace
}  // namespace cuda_sim
