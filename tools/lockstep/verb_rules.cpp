// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_file.h>
#include <lockstep/trace_rules.h>

#include <fmt/format.h>

#include "exit_code.h"
#include "json.h"
#include "text.h"
#include "trace_input.h"
#include "verbs.h"

namespace lockstep::cli {
namespace {

std::string violation_json(const RuleViolation& violation) {
  const auto number = [](const auto& value) {
    return value ? std::to_string(*value) : std::string();
  };
  return JsonObject()
      .number("line", violation.line)
      .text("rule", violation.rule)
      .text("message", violation.message)
      .json("index", number(violation.index))
      .json("stream", number(violation.stream))
      .str();
}

}  // namespace

int run_verb(Console& console, const CommonOptions& common, const RulesOptions& options) {
  const TraceRules rules =
      TraceRules::parse(read_text_file(options.rules, "a file of rules"), options.rules);
  if (rules.size() == 0) {
    throw Failure(kUnreadable,
                  fmt::format("{} has no rules, so that any trace would keep them; write one a "
                              "line (docs/trace-rules.md)",
                              options.rules));
  }
  check_input(options.file);
  const Trace trace = read_trace(options.file);
  const std::vector<RuleViolation> violations = rules.check(trace);
  const bool truncated = !trace.footer.present;
  if (common.json) {
    std::vector<std::string> rows;
    for (const RuleViolation& violation : violations) rows.push_back(violation_json(violation));
    console.print(JsonObject()
                      .text("schema", "lockstep/rules/1")
                      .text("rules_file", options.rules)
                      .text("file", options.file)
                      .number("rules", rules.size())
                      .boolean("ok", violations.empty() && !truncated)
                      .boolean("truncated", truncated)
                      .array("violations", rows)
                      .str() +
                  "\n");
  } else {
    for (const RuleViolation& violation : violations) {
      console.print(fmt::format(
          "{}\n",
          console.paint(Color::kRed, printable(fmt::format("{}:{}: {}", options.rules,
                                                           violation.line, violation.message)))));
    }
    if (violations.empty()) {
      console.print(fmt::format("{} kept\n", counted(rules.size(), "rule is", "rules are")));
    }
  }
  console.flush();
  if (truncated) {
    console.warning(fmt::format("{} is truncated: what is missing may break rules", options.file));
    return kUnreadable;
  }
  return violations.empty() ? kDone : kDifferent;
}

}  // namespace lockstep::cli
