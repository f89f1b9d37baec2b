// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double weight = position - static_cast<double>(below);
  return values[below] * (1 - weight) + values[above] * weight;
}

Interval interval(const std::vector<double>& values) {
  // How many values of n lie below the true median is binomial: n/2, give or take 0.98 sqrt(n).
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  const double rank = std::floor(n / 2 - 0.98 * std::sqrt(n));  // from 1, outwards
  const std::size_t low = rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1;
  return {sorted[low], quantile(sorted, 0.5), sorted[sorted.size() - 1 - low]};
}

template <class Combine>
Interval paired(const Figure& figure, const Figure& base, const Combine& combine) {
  std::vector<double> values;
  for (std::size_t round = 0; round < figure.rounds.size(); ++round)
    values.push_back(combine(figure.rounds[round], base.rounds[round]));
  return interval(values);
}

void print(const Table& table) {
  std::printf("\n%s [%s]\n", table.title.c_str(), table.unit.c_str());
  if (!table.figures.empty()) {
    std::printf("  %-44s %12s %12s %12s   %s\n", "", "minimum", "median", "maximum",
                "ratio to the first (95 %)");
  }
  for (const Figure& figure : table.figures) {
    std::printf("  %-44s %12.4g %12.4g %12.4g   %.3f (%.3f to %.3f)\n", figure.name.c_str(),
                figure.minimum, figure.median, figure.maximum, figure.ratio, figure.ratio_low,
                figure.ratio_high);
  }
  for (const std::string& note : table.notes) std::printf("  %s\n", note.c_str());
  for (const Bar& bar : table.bars) {
    std::printf("  %-8s %s: %.4g (%.4g to %.4g) %s, bar %s %g\n", bar.met() ? "met" : "NOT MET",
                bar.what.c_str(), bar.measured.median, bar.measured.low, bar.measured.high,
                bar.unit.c_str(), bar.direction == Bar::Direction::kAtMost ? "at most" : "at least",
                bar.limit);
  }
}

nlohmann::ordered_json to_json(const Table& table) {
  nlohmann::ordered_json json = {{"title", table.title},
                                 {"unit", table.unit},
                                 {"figures", nlohmann::ordered_json::array()},
                                 {"bars", nlohmann::ordered_json::array()},
                                 {"notes", table.notes}};
  for (const Figure& figure : table.figures) {
    json["figures"].push_back({{"name", figure.name},
                               {"minimum", figure.minimum},
                               {"median", figure.median},
                               {"maximum", figure.maximum},
                               {"ratio", figure.ratio},
                               {"ratio_low", figure.ratio_low},
                               {"ratio_high", figure.ratio_high}});
  }
  for (const Bar& bar : table.bars) {
    json["bars"].push_back(
        {{"what", bar.what},
         {"unit", bar.unit},
         {"low", bar.measured.low},
         {"median", bar.measured.median},
         {"high", bar.measured.high},
         {"direction", bar.direction == Bar::Direction::kAtMost ? "at most" : "at least"},
         {"limit", bar.limit},
         {"met", bar.met()}});
  }
  return json;
}

}  // namespace

const Figure& Table::of(const std::string& name) const {
  for (const Figure& figure : figures) {
    if (figure.name == name) return figure;
  }
  throw std::logic_error("the table '" + title + "' has no contender '" + name + "'");
}

Interval Table::difference(const std::string& name, const std::string& base) const {
  return paired(of(name), of(base), [](double value, double other) { return value - other; });
}

Interval Table::ratio(const std::string& name, const std::string& base) const {
  return paired(of(name), of(base), [](double value, double other) { return value / other; });
}

Interval Table::spread(const std::string& name) const { return interval(of(name).rounds); }

Table measure(std::string title, std::string unit, const std::vector<Contender>& contenders,
              int rounds) {
  for (const Contender& contender : contenders) contender.run();
  Table table{std::move(title), std::move(unit), {}, {}, {}};
  for (const Contender& contender : contenders) table.figures.emplace_back().name = contender.name;
  for (int round = 0; round < rounds; ++round) {
    // Another one begins each round: nobody always follows the same neighbour.
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const std::size_t next = (i + static_cast<std::size_t>(round)) % contenders.size();
      table.figures[next].rounds.push_back(contenders[next].run());
    }
  }
  for (Figure& figure : table.figures) {
    figure.minimum = quantile(figure.rounds, 0);
    figure.median = quantile(figure.rounds, 0.5);
    figure.maximum = quantile(figure.rounds, 1);
    const Interval ratio = table.ratio(figure.name, table.figures.front().name);
    figure.ratio = ratio.median;
    figure.ratio_low = ratio.low;
    figure.ratio_high = ratio.high;
  }
  return table;
}

void stay_on(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(processor), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) {
    throw std::runtime_error("cannot stay on processor " + std::to_string(processor));
  }
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double cpu_seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double begin = now();
  work();
  return now() - begin;
}

bool report(const std::vector<Table>& tables, const std::string& json_path) {
  nlohmann::ordered_json json = {{"lockstep_bench", 1},
                                 {"tables", nlohmann::ordered_json::array()}};
  bool met = true;
  for (const Table& table : tables) {
    print(table);
    json["tables"].push_back(to_json(table));
    for (const Bar& bar : table.bars) met = met && bar.met();
  }
  if (json_path.empty()) return met;
  std::ofstream file(json_path);
  file << json.dump(2) << '\n';
  file.flush();
  if (!file) throw std::runtime_error("cannot write " + json_path);
  return met;
}

}  // namespace bench
