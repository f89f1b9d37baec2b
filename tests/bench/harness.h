// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

/// \file
/// How benchmarks measure: every contender in turn, another one first each round, so that a machine
/// whose speed drifts does so for all of them; medians, and ratios and differences paired round by
/// round with their spread.
namespace bench {

/// One contender. `run` does the work once and returns the figure (seconds, ns a launch, …).
struct Contender {
  std::string name;
  std::function<double()> run;
};

struct Figure {
  std::string name;
  double minimum = 0, median = 0, maximum = 0;
  /// This contender over the first one, round by round.
  double ratio = 1, ratio_low = 1, ratio_high = 1;
  std::vector<double> rounds;
};

/// A median, and where that of endless rounds lies with 95 % confidence (by order statistics: no
/// distribution is assumed).
struct Interval {
  double low = 0, median = 0, high = 0;
};

/// What a figure has to reach. Judged at the favourable end of its interval: a noisy machine may
/// not fail what a quiet one would pass.
struct Bar {
  enum class Direction { kAtMost, kAtLeast };

  std::string what;
  std::string unit;
  Interval measured;
  Direction direction = Direction::kAtMost;
  double limit = 0;

  bool met() const {
    return direction == Direction::kAtMost ? measured.low <= limit : measured.high >= limit;
  }
};

struct Table {
  std::string title;
  std::string unit;
  std::vector<Figure> figures;
  std::vector<std::string> notes;
  std::vector<Bar> bars;

  /// \throws std::logic_error when there is no contender of that name.
  const Figure& of(const std::string& name) const;
  /// What `name` takes beyond `base`, and how many times as much, paired round by round.
  Interval difference(const std::string& name, const std::string& base) const;
  Interval ratio(const std::string& name, const std::string& base) const;
  Interval spread(const std::string& name) const;
};

inline constexpr int kRounds = 31;

/// Runs every contender once unmeasured, then `rounds` rounds of all of them.
Table measure(std::string title, std::string unit, const std::vector<Contender>& contenders,
              int rounds = kRounds);

/// Keeps the calling thread on one processor: no round pays for a move, and processes that are
/// measured in turn are measured on the same one. Threads made before stay free; those that it
/// makes later, and processes, begin on that processor too.
/// \throws std::runtime_error when the system refuses.
void stay_on(int processor);

/// Seconds that `work` took.
double seconds(const std::function<void()>& work);
/// Seconds of CPU time that all threads of this process spent in it.
double cpu_seconds(const std::function<void()>& work);

/// Tables on standard output for people; as one JSON object when `json_path` is not empty. False
/// when a bar was not met.
bool report(const std::vector<Table>& tables, const std::string& json_path);

}  // namespace bench
