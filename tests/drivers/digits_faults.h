// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/process.h"
#include "support/temp_folder.h"

// Every call that the digits program makes of a stand-in's library, failed once: a typed error or
// the right result, never a crash, a hang or a wrong answer.
namespace test_drivers {

using lockstep::testing::ProcessResult;

// The calls of a run, by name, in their order: what a stand-in wrote to its log.
inline std::vector<std::string> logged_calls(const std::string& file) {
  std::istringstream lines(lockstep::testing::read_file(file));
  std::vector<std::string> calls;
  std::string number, name, code;
  while (lines >> number >> name >> code) calls.push_back(name);
  return calls;
}

// First and last call of every function, then evenly spread ones. Calls count from 1.
inline std::set<std::size_t> sample(const std::vector<std::string>& calls, std::size_t wanted) {
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

// By LOCKSTEP_FAULT_POINTS "all", or "I/N" for every N-th from the I-th on (ci/check-faults); a
// sample where it is not set.
inline std::set<std::size_t> wanted_points(const std::vector<std::string>& calls,
                                           std::size_t sampled) {
  const char* wanted = std::getenv("LOCKSTEP_FAULT_POINTS");
  if (wanted == nullptr) return sample(calls, sampled);
  std::size_t part = 1, parts = 1;
  std::set<std::size_t> points;
  if (std::string(wanted) != "all" &&
      (std::sscanf(wanted, "%zu/%zu", &part, &parts) != 2 || part < 1 || part > parts)) {
    ADD_FAILURE() << "LOCKSTEP_FAULT_POINTS=" << wanted << " is neither \"all\" nor I/N";
    return points;
  }
  for (std::size_t point = part; point <= calls.size(); point += parts) points.insert(point);
  return points;
}

inline int count(const std::string& text, const std::string& of) {
  int found = 0;
  for (std::size_t at = text.find(of); at != text.npos; at = text.find(of, at + 1)) ++found;
  return found;
}

enum class Outcome { kRight, kTypedError, kUndecided, kBad };

inline Outcome outcome_of(const ProcessResult& result) {
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

// Runs the program once for each of the points: `run_with("*:7:999")` makes the seventh call fail
// so. Prints how it ended how often.
inline void fail_each_call_once(const std::string& library, const std::vector<std::string>& calls,
                                std::size_t sampled,
                                const std::function<int(const std::string& call)>& code_for,
                                const std::function<ProcessResult(const std::string&)>& run_with) {
  const std::set<std::size_t> chosen = wanted_points(calls, sampled);
  const std::vector<std::size_t> points(chosen.begin(), chosen.end());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::map<Outcome, int> outcomes;
  const auto work = [&] {
    for (std::size_t i = next++; i < points.size(); i = next++) {
      const std::string& call = calls[points[i] - 1];
      const std::string fault =
          "*:" + std::to_string(points[i]) + ":" + std::to_string(code_for(call));
      const ProcessResult result = run_with(fault);
      const Outcome outcome = outcome_of(result);
      const std::lock_guard lock(mutex);
      ++outcomes[outcome];
      EXPECT_NE(outcome, Outcome::kBad)
          << fault << " (" << call << "): exit code " << result.exit_code
          << (result.timed_out ? ", timed out\n" : "\n") << result.out << result.err;
    }
  };
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i) {
    workers.emplace_back(work);
  }
  for (std::thread& worker : workers) worker.join();
  std::cout << library << " calls: " << calls.size() << "; failed one at a time: " << points.size()
            << "; typed errors: " << outcomes[Outcome::kTypedError]
            << ", right results: " << outcomes[Outcome::kRight]
            << ", right and said to be undecided: " << outcomes[Outcome::kUndecided] << '\n';
  EXPECT_GT(outcomes[Outcome::kTypedError], 0);
}

}  // namespace test_drivers
