// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

/// \file
/// How benchmarks measure: every contender in turn, round after round, so that a machine whose
/// speed drifts does so for all of them; medians, and ratios paired round by round with their
/// spread.
namespace bench {

/// One contender. `run` does the work once and returns the figure (seconds, ns a launch, …); lower
/// is better unless the table says otherwise.
struct Contender {
  std::string name;
  std::function<double()> run;
};

struct Figure {
  std::string name;
  double minimum = 0, median = 0, maximum = 0;
  /// This contender over the first one, round by round: median and the middle half.
  double ratio = 1, ratio_low = 1, ratio_high = 1;
};

struct Table {
  std::string title;
  std::string unit;
  std::vector<Figure> figures;
  std::vector<std::string> notes;
};

inline constexpr int kRounds = 31;

/// Runs every contender once unmeasured, then `rounds` rounds of all of them.
Table measure(std::string title, std::string unit, const std::vector<Contender>& contenders,
              int rounds = kRounds);

/// Seconds that `work` took.
double seconds(const std::function<void()>& work);

/// Tables on standard output for people; as one JSON object when `json_path` is not empty.
void report(const std::vector<Table>& tables, const std::string& json_path);

}  // namespace bench
