// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
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

}  // namespace

Table measure(std::string title, std::string unit, const std::vector<Contender>& contenders,
              int rounds) {
  for (const Contender& contender : contenders) contender.run();
  std::vector<std::vector<double>> values(contenders.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) values[i].push_back(contenders[i].run());
  }
  Table table{std::move(title), std::move(unit), {}, {}};
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < values[i].size(); ++round)
      ratios.push_back(values[i][round] / values[0][round]);
    table.figures.push_back({contenders[i].name, quantile(values[i], 0), quantile(values[i], 0.5),
                             quantile(values[i], 1), quantile(ratios, 0.5), quantile(ratios, 0.25),
                             quantile(ratios, 0.75)});
  }
  return table;
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void report(const std::vector<Table>& tables, const std::string& json_path) {
  nlohmann::ordered_json json = {{"lockstep_bench", 1},
                                 {"tables", nlohmann::ordered_json::array()}};
  for (const Table& table : tables) {
    std::printf("\n%s [%s]\n  %-44s %12s %12s %12s   %s\n", table.title.c_str(), table.unit.c_str(),
                "", "minimum", "median", "maximum", "ratio to the first (middle half)");
    nlohmann::ordered_json item = {
        {"title", table.title}, {"unit", table.unit}, {"figures", nlohmann::ordered_json::array()}};
    for (const Figure& figure : table.figures) {
      std::printf("  %-44s %12.4g %12.4g %12.4g   %.3f (%.3f to %.3f)\n", figure.name.c_str(),
                  figure.minimum, figure.median, figure.maximum, figure.ratio, figure.ratio_low,
                  figure.ratio_high);
      item["figures"].push_back({{"name", figure.name},
                                 {"minimum", figure.minimum},
                                 {"median", figure.median},
                                 {"maximum", figure.maximum},
                                 {"ratio", figure.ratio},
                                 {"ratio_low", figure.ratio_low},
                                 {"ratio_high", figure.ratio_high}});
    }
    for (const std::string& note : table.notes) std::printf("  %s\n", note.c_str());
    item["notes"] = table.notes;
    json["tables"].push_back(std::move(item));
  }
  if (json_path.empty()) return;
  std::ofstream file(json_path);
  file << json.dump(2) << '\n';
  file.flush();
  if (!file) throw std::runtime_error("cannot write " + json_path);
}

}  // namespace bench
