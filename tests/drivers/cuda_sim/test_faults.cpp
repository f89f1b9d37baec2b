// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

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
  std::istringstream lines(lockstep::testing::read_file(folder / "calls"));
  std::vector<std::string> calls;
  std::string number, name, code;
  while (lines >> number >> name >> code) calls.push_back(name);
  return calls;
}

// First and last call of every function, then evenly spread ones.
std::set<std::size_t> sample(const std::vector<std::string>& calls, std::size_t wanted) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> ends;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ends.try_emplace(calls[i], i + 1, i + 1).first->second.second = i + 1;
  }
  std::set<std::size_t> points;
  for (const auto& [name, range] : ends) points.insert({range.first, range.second});
  const std::size_t spread = wanted > points.size() ? wanted - points.size() : 0;
  for (std::size_t i = 0; i < spread; ++i) points.insert(1 + i * calls.size() / spread);
  return points;
}

int plausible_code(const std::string& call) {
  if (call == "cuMemAlloc_v2" || call == "cuMemHostAlloc") return 2;
  if (call == "cuGetProcAddress_v2") return 500;
  if (call == "cuModuleLoadDataEx") return 209;
  if (call == "cuLaunchKernel" || call == "cuGraphLaunch") return 719;
  return 999;
}

int count(const std::string& text, const std::string& of) {
  int found = 0;
  for (std::size_t at = text.find(of); at != text.npos; at = text.find(of, at + 1)) ++found;
  return found;
}

enum class Outcome { kRight, kTypedError, kUndecided, kBad };

Outcome outcome_of(const ProcessResult& result) {
  const bool classes = count(result.out, "349 of 360 right") == 3;
  const bool traces = count(result.out, "2472 and 2472 entries, equal") == 1;
  if (result.timed_out) return Outcome::kBad;
  if (result.exit_code == 0 && classes && traces && count(result.out, "replay verified") == 3) {
    return Outcome::kRight;
  }
  // Without the layout of a kernel's arguments the classes are right all the same, but that a
  // replay does what eager execution does is not claimed.
  if (result.exit_code == 1 && classes && traces && count(result.out, "could not be decided") > 0) {
    return Outcome::kUndecided;
  }
  const bool code = result.exit_code >= 3 && result.exit_code <= 5;
  return code && count(result.err, "lockstep-digits: ") == 1 ? Outcome::kTypedError : Outcome::kBad;
}

// The points to fail: a sample, or by LOCKSTEP_FAULT_POINTS "all", or those from "FIRST-LAST"
// (ci/check-faults runs all of them).
std::set<std::size_t> wanted_points(const std::vector<std::string>& calls) {
  const char* wanted = std::getenv("LOCKSTEP_FAULT_POINTS");
  if (wanted == nullptr) return sample(calls, 150);
  std::size_t first = 1, last = calls.size();
  if (std::string(wanted) != "all" && std::sscanf(wanted, "%zu-%zu", &first, &last) != 2) {
    ADD_FAILURE() << "LOCKSTEP_FAULT_POINTS=" << wanted << " is neither \"all\" nor FIRST-LAST";
  }
  std::set<std::size_t> points;
  for (std::size_t point = first; point <= std::min(last, calls.size()); ++point) {
    points.insert(point);
  }
  return points;
}

TEST(CudaSimFaults, EveryCallOfDigitsFailedOnce) {
  const std::vector<std::string> calls = calls_of_digits();
  ASSERT_GT(calls.size(), 10000U);
  const std::set<std::size_t> chosen = wanted_points(calls);
  const std::vector<std::size_t> points(chosen.begin(), chosen.end());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::map<Outcome, int> outcomes;
  const auto work = [&] {
    for (std::size_t i = next++; i < points.size(); i = next++) {
      const std::string& call = calls[points[i] - 1];
      const std::string fault =
          "*:" + std::to_string(points[i]) + ":" + std::to_string(plausible_code(call));
      const ProcessResult result = run({program("lockstep-digits"), "--device", "cuda:0"},
                                       simulated({{"CUDA_SIM_FAIL", fault}}));
      const Outcome outcome = outcome_of(result);
      const std::lock_guard lock(mutex);
      ++outcomes[outcome];
      EXPECT_NE(outcome, Outcome::kBad)
          << fault << " (" << call << "): exit code " << result.exit_code
          << (result.timed_out ? ", timed out\n" : "\n") << result.out << result.err;
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  std::cout << "driver calls: " << calls.size() << "; failed one at a time: " << points.size()
            << "; typed errors: " << outcomes[Outcome::kTypedError]
            << ", right results: " << outcomes[Outcome::kRight]
            << ", right and said to be undecided: " << outcomes[Outcome::kUndecided] << '\n';
  EXPECT_GT(outcomes[Outcome::kTypedError], 0);
  EXPECT_GT(outcomes[Outcome::kRight], 0);
}

}  // namespace
}  // namespace cuda_sim
