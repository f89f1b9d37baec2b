// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_file.h>
#include <lockstep/verify.h>

#include <algorithm>
#include <fmt/format.h>

#include "exit_code.h"
#include "json.h"
#include "text.h"
#include "trace_input.h"
#include "verbs.h"

namespace lockstep::cli {
namespace {

/// Why a trace without graphs and without marked ranges verifies nothing.
std::string nothing_to_verify(const Trace& trace) {
  const bool captured =
      std::any_of(trace.entries.begin(), trace.entries.end(),
                  [](const auto& entry) { return entry.has(EntryFlag::kCaptured); });
  return captured
             ? "nothing to verify: no graph was launched while this was recorded; what was "
               "captured there is in the trace, but no replay of it (what lockstep::verify() "
               "launches is not recorded)"
             : "nothing to verify: the trace has no graph that was launched, and no ranges marked "
               "\"eager\" and \"replay\"; `lockstep diff` compares two traces";
}

VerifyLevel parse_level(const std::string& text) {
  for (const VerifyLevel level : {VerifyLevel::kCounts, VerifyLevel::kMultiset, VerifyLevel::kOrder,
                                  VerifyLevel::kArguments}) {
    if (to_string(level) == text) return level;
  }
  if (to_string(VerifyLevel::kValues) == text) {
    throw Failure(kUsage, "a trace holds no values: L4 needs the program, by lockstep::verify()");
  }
  throw Failure(kUsage, fmt::format("there is no level '{}': L0, L1, L2 or L3", text));
}

/// What was compared, for people.
std::string subject(const GraphVerification& verification) {
  if (verification.graph < 0) {
    return verification.label.empty()
               ? std::string("marked ranges")
               : fmt::format("marked ranges \"{}\"", printable(verification.label));
  }
  return fmt::format("graph {} version {}", verification.graph, verification.version);
}

}  // namespace

int run_verb(Console& console, const CommonOptions& common, const VerifyCommandOptions& options) {
  const VerifyLevel level = parse_level(options.level);
  check_input(options.file);
  const Trace trace = read_trace(options.file);
  const std::vector<GraphVerification> results = verify_recording(trace, level);
  const bool truncated = !trace.footer.present;
  const bool ok = !results.empty() && !truncated &&
                  std::all_of(results.begin(), results.end(),
                              [](const auto& result) { return result.report.ok(); });
  const std::string nothing = results.empty() ? nothing_to_verify(trace) : std::string();
  if (common.json) {
    std::vector<std::string> graphs;
    for (const GraphVerification& result : results) {
      graphs.push_back(JsonObject()
                           .number("graph", result.graph)
                           .number("version", result.version)
                           .boolean("ok", result.report.ok())
                           .json("report", to_json(result.report))
                           .str());
    }
    JsonObject object;
    object.text("schema", "lockstep/verify/1")
        .text("file", options.file)
        .text("level", options.level)
        .boolean("ok", ok)
        .boolean("truncated", truncated)
        .json("reason", nothing.empty() ? std::string() : json_string(nothing))
        .array("graphs", graphs);
    console.print(object.str() + "\n");
  } else {
    for (const GraphVerification& result : results) {
      std::string text = to_text(result.report);
      while (!text.empty() && text.back() == '\n') text.pop_back();
      const Color color = result.report.ok() ? Color::kGreen : Color::kRed;
      console.print(fmt::format("{}: {}\n", console.paint(color, subject(result)), text));
    }
  }
  console.flush();
  if (truncated) {
    console.warning(
        fmt::format("{} is truncated: it ends without a footer, so that nothing in it "
                    "counts as verified",
                    options.file));
    return kUnreadable;
  }
  if (!nothing.empty() && !common.json) console.error(fmt::format("{}: {}", options.file, nothing));
  return ok ? kDone : kDifferent;
}

}  // namespace lockstep::cli
