// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_rules.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "src/trace/pattern.h"

/// \file
/// A rule in the form in which it is evaluated.
namespace lockstep {

enum class RuleScope : std::uint8_t { kEverywhere, kBetweenMarks, kInRange, kInEachRange };

struct Rule {
  std::uint32_t line = 0;
  std::string text;
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  std::string what;                          ///< as written, for messages
  std::vector<OperationKind> kinds;          ///< empty: every kind but marks
  MemcpyKind direction = MemcpyKind::kNone;  ///< kNone: any
  std::optional<Pattern> pattern;
  std::uint64_t least_bytes = 0;
  std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
  RuleScope scope = RuleScope::kEverywhere;
  std::string range;  ///< kInRange, kInEachRange
  std::optional<std::uint32_t> stream;
};

struct TraceRules::Impl {
  std::vector<Rule> rules;
};

}  // namespace lockstep
