// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

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

// By LOCKSTEP_FAULT_POINTS "all", or "I/N" for every N-th from the I-th on.
std::set<std::size_t> wanted_points(const std::vector<std::string>& calls, std::size_t sampled) {
  const char* wanted = std::getenv("LOCKSTEP_FAULT_POINTS");
  if (wanted == nullptr) return sample(calls, sampled);
  std::size_t part = 1, parts = 1;
  if (std::string(wanted) != "all" &&
      (std::sscanf(wanted, "%zu/%zu", &part, &parts) != 2 || part < 1 || part > parts)) {
    ADD_FAILURE() << "LOCKSTEP_FAULT_POINTS=" << wanted << " is neither \"all\" nor I/N";
  }
  std::set<std::size_t> points;
  for (std::size_t point = part; point <= calls.size(); point += parts) points.insert(point);
  return points;
}

int plausible_code(const std::string& call) {
  if (call.rfind("hiprtc", 0) == 0) return 6;
  if (call == "hipMalloc" || call == "hipHostMalloc") return 2;
  if (call == "hipModuleLoadData") return 209;
  if (call == "hipModuleLaunchKernel" || call == "hipGraphLaunch") return 719;
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

void fail_every_call_once(const Library& library, std::size_t least, std::size_t sampled) {
  const std::vector<std::string> calls = calls_of_digits(library);
  ASSERT_GT(calls.size(), least);
  const std::set<std::size_t> chosen = wanted_points(calls, sampled);
  const std::vector<std::size_t> points(chosen.begin(), chosen.end());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::map<Outcome, int> outcomes;
  const auto work = [&] {
    for (std::size_t i = next++; i < points.size(); i = next++) {
      const std::string& call = calls[points[i] - 1];
      const std::string fault =
          "*:" + std::to_string(points[i]) + ":" + std::to_string(plausible_code(call));
      const ProcessResult result = run_digits(library, "_FAIL", fault);
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
  std::cout << library.prefix << " calls: " << calls.size()
            << "; failed one at a time: " << points.size()
            << "; typed errors: " << outcomes[Outcome::kTypedError]
            << ", right results: " << outcomes[Outcome::kRight]
            << ", right and said to be undecided: " << outcomes[Outcome::kUndecided] << '\n';
  EXPECT_GT(outcomes[Outcome::kTypedError], 0);
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
