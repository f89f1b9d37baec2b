// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/verify.h>

#include <cstddef>
#include <string>
#include <vector>

#include "src/compare/verify_happens_before.h"

/// \file
/// The comparison of two traces, level by level, as the public functions share it.
namespace lockstep::verifying {

/// Findings of one kind that are listed; the rest is counted in one more, "more".
constexpr std::size_t kMaxListed = 16;

struct CompareOptions {
  VerifyLevel level = VerifyLevel::kArguments;
  std::vector<std::string> allowed_extra;  ///< name patterns; see VerifyOptions
};

/// L0 to L3 of what the two traces executed. Whether a trace is complete is the caller's question.
VerifyReport compare(const Trace& eager, const Trace& replay, const CompareOptions& options);

/// L0 and L1: appends what differs in counts and hashes. True for each level that held.
struct MultisetResult {
  bool counts = false, multiset = false;
};
MultisetResult compare_multisets(const OrderedView& eager, const OrderedView& replay,
                                 std::vector<VerifyFinding>& findings);

/// Positions of replay that `patterns` allow beyond what eager has, sorted; each told as a note.
std::vector<std::size_t> allowed_extras(const OrderedView& eager, const OrderedView& replay,
                                        const std::vector<std::string>& patterns,
                                        std::vector<VerifyFinding>& findings);

/// A finding with both entries filled in where positions are given (-1 = none).
VerifyFinding make_finding(VerifyLevel level, std::string what, std::string message,
                           const OrderedView& eager, std::ptrdiff_t eager_index,
                           const OrderedView& replay, std::ptrdiff_t replay_index);

/// Failures first, lowest level first, otherwise as they came.
void sort_findings(std::vector<VerifyFinding>& findings);

/// "kernel saxpy": what an entry is, shorter than to_string().
std::string short_name(const LaunchTraceEntry& entry);

}  // namespace lockstep::verifying
