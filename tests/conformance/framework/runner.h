// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "framework/case.h"
#include "framework/waivers.h"

namespace conformance {

/// How a case was run.
enum class Variant { kEager, kGraph, kThread };

/// What became of one run of a case.
enum class Outcome {
  kPassed,
  kFailed,
  kWaived,          ///< failed or unsupported, and a waiver says why
  kNotApplicable,   ///< the device has nothing to offer for it, with the reason
  kUnexpectedPass,  ///< a waiver says it fails, and it did not
};

struct CaseResult {
  std::string name;
  std::string variant;  ///< "eager", "graph", "thread"
  Outcome outcome = Outcome::kPassed;
  std::string message;  ///< why, "" when passed
  double seconds = 0.0;
};

/// One run of the suite over one backend: what the report file holds.
struct Report {
  std::string backend, device, arch, driver, lockstep_version;
  bool simulated = false;
  std::vector<CaseResult> results;
  std::vector<std::string> waiver_problems;  ///< expired, matched nothing
  std::size_t not_run = 0;                   ///< runs behind one that had to be given up

  std::size_t count(Outcome outcome) const;
  /// Everything ran, nothing failed, no waiver problem, and at least one case passed.
  bool ok() const;
};

struct RunOptions {
  std::string filter = "*";  ///< glob over case names
  std::string exclude;       ///< glob over case names that are left out; empty = none
  bool verbose = false;
  bool full = false;  ///< cases at their full size and number of rounds
  /// Only every `shards`-th case, from the `shard`-th on: several processes share the suite.
  std::size_t shard = 0, shards = 1;
  /// A run that takes longer ends the whole program with exit code 1: whatever hangs in a driver
  /// cannot be stopped in any other way. Before that, `given_up` gets the report so far, in which
  /// that run has failed; it is called on a thread of its own.
  int limit_seconds = 120;
  std::function<void(const Report&)> given_up;
  std::ostream* progress = nullptr;  ///< a line for each run, when verbose
};

Report run_suite(const std::vector<ls::Device>& devices, Waivers& waivers,
                 const RunOptions& options);

std::string to_string(Outcome outcome);
/// True when `text` matches a pattern of literal characters, `*` and `?`.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace conformance
