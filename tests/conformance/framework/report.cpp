// SPDX-License-Identifier: Apache-2.0
#include "framework/report.h"

#include <lockstep/error.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace conformance {
namespace {

/// More runs with the same outcome for the same reason than this are one line.
constexpr std::size_t kMostOfOneReason = 20;

Outcome outcome_from(const std::string& text, const std::filesystem::path& path) {
  for (const Outcome outcome : {Outcome::kPassed, Outcome::kFailed, Outcome::kWaived,
                                Outcome::kNotApplicable, Outcome::kUnexpectedPass}) {
    if (to_string(outcome) == text) return outcome;
  }
  throw ls::Error(ls::ErrorCode::kInvalidFile,
                  path.string() + ": `" + text + "` is no outcome of a case");
}

}  // namespace

std::string to_json(const Report& report) {
  nlohmann::ordered_json json;
  json["lockstep_conformance"] = 1;
  json["backend"] = report.backend;
  json["device"] = report.device;
  json["arch"] = report.arch;
  json["driver"] = report.driver;
  json["simulated"] = report.simulated;
  json["ok"] = report.ok();
  for (const Outcome outcome : {Outcome::kPassed, Outcome::kFailed, Outcome::kWaived,
                                Outcome::kNotApplicable, Outcome::kUnexpectedPass}) {
    json["counts"][to_string(outcome)] = report.count(outcome);
  }
  json["not_run"] = report.not_run;
  json["waiver_problems"] = report.waiver_problems;
  json["results"] = nlohmann::ordered_json::array();
  for (const CaseResult& result : report.results) {
    nlohmann::ordered_json item = {{"case", result.name},
                                   {"variant", result.variant},
                                   {"outcome", to_string(result.outcome)},
                                   {"seconds", result.seconds}};
    if (!result.message.empty()) item["message"] = result.message;
    json["results"].push_back(std::move(item));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Report load_report(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw ls::Error(ls::ErrorCode::kNotFound, path.string() + ": cannot be opened");
  try {
    const auto json = nlohmann::json::parse(file);
    if (json.at("lockstep_conformance") != 1) {
      throw ls::Error(ls::ErrorCode::kInvalidFile,
                      path.string() + ": not a conformance report of version 1");
    }
    Report report;
    report.backend = json.at("backend");
    report.device = json.at("device");
    report.arch = json.at("arch");
    report.driver = json.at("driver");
    report.simulated = json.at("simulated");
    report.not_run = json.value("not_run", std::size_t{0});
    report.waiver_problems = json.at("waiver_problems").get<std::vector<std::string>>();
    for (const auto& item : json.at("results")) {
      report.results.push_back({item.at("case"), item.at("variant"),
                                outcome_from(item.at("outcome"), path), item.value("message", ""),
                                item.at("seconds")});
    }
    return report;
  } catch (const nlohmann::json::exception& error) {
    throw ls::Error(ls::ErrorCode::kInvalidFile, path.string() + ": " + error.what());
  } catch (const std::ios_base::failure& error) {  // a folder, say, which opens but cannot be read
    throw ls::Error(ls::ErrorCode::kInvalidFile,
                    path.string() + ": cannot be read: " + error.what());
  }
}

std::string to_text(const Report& report) {
  std::ostringstream text;
  text << "conformance of " << report.backend << " on " << report.device << " (" << report.arch
       << ", driver " << (report.driver.empty() ? "-" : report.driver)
       << "): " << report.results.size() << " runs, " << report.count(Outcome::kPassed)
       << " passed, " << report.count(Outcome::kFailed) << " failed, "
       << report.count(Outcome::kWaived) << " waived, " << report.count(Outcome::kNotApplicable)
       << " not applicable, " << report.count(Outcome::kUnexpectedPass) << " unexpected passes";
  if (report.not_run != 0) text << "; " << report.not_run << " not run";
  text << '\n';
  std::map<std::pair<Outcome, std::string>, std::size_t> reasons;
  for (const CaseResult& result : report.results) ++reasons[{result.outcome, result.message}];
  for (const CaseResult& result : report.results) {
    if (result.outcome == Outcome::kPassed) continue;
    std::size_t& alike = reasons[{result.outcome, result.message}];
    if (alike == 0) continue;  // told with the first of them
    text << "  " << to_string(result.outcome) << "  " << result.name << " (" << result.variant
         << ')';
    if (alike > kMostOfOneReason) {
      text << " and " << alike - 1 << " more (--verbose lists them)";
      alike = 0;
    }
    text << ": " << result.message << '\n';
  }
  for (const std::string& problem : report.waiver_problems)
    text << "  waiver problem: " << problem << '\n';
  if (report.count(Outcome::kPassed) == 0) text << "  no case passed: nothing was proven\n";
  text << (report.ok() ? "conformance: ok\n" : "conformance: FAILED\n");
  return text.str();
}

Comparison compare(const Report& left, const Report& right) {
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::pair<const CaseResult*, const CaseResult*>> rows;
  for (const CaseResult& result : left.results) rows[{result.name, result.variant}].first = &result;
  for (const CaseResult& result : right.results)
    rows[{result.name, result.variant}].second = &result;
  Comparison comparison;
  std::ostringstream text;
  std::size_t alike = 0;
  for (const auto& [key, sides] : rows) {
    const auto describe = [](const CaseResult* result) {
      return result == nullptr
                 ? std::string("not run")
                 : to_string(result->outcome) +
                       (result->message.empty() ? "" : ": " + result->message.substr(0, 160));
    };
    if (sides.first != nullptr && sides.second != nullptr &&
        sides.first->outcome == sides.second->outcome) {
      ++alike;
      continue;
    }
    comparison.equal = false;
    text << key.first << " (" << key.second << ")\n  - " << describe(sides.first) << "\n  + "
         << describe(sides.second) << '\n';
  }
  if (rows.empty()) {
    comparison.equal = false;
    text << "no case was run: nothing is compared\n";
  }
  comparison.text = left.backend + " on " + left.device + " against " + right.backend + " on " +
                    right.device + ": " + std::to_string(rows.size()) + " runs, " +
                    std::to_string(alike) + " alike\n" + text.str();
  return comparison;
}

}  // namespace conformance
