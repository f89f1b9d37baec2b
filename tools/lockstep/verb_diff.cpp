// SPDX-License-Identifier: Apache-2.0
#include <lockstep/normalise.h>
#include <lockstep/trace_diff.h>

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "exit_code.h"
#include "json.h"
#include "text.h"
#include "trace_input.h"
#include "verbs.h"

namespace lockstep::cli {
namespace {

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// What changed, counted by kind and name.
struct ChangedName {
  std::string kind, name;
  std::uint64_t removed = 0, added = 0;  ///< entries within changes
  std::uint64_t left = 0, right = 0;     ///< entries in all
};

/// Counts of every name that takes part in a change.
std::vector<ChangedName> changed_names(const RereadableTrace& left, const RereadableTrace& right,
                                       const ViewOptions& options, const DiffReport& report) {
  std::map<std::pair<std::string, std::string>, ChangedName> names;
  const auto count = [&](const RereadableTrace& side, Ranges ranges,
                         std::uint64_t ChangedName::*all, std::uint64_t ChangedName::*changed) {
    std::sort(ranges.begin(), ranges.end());
    std::size_t next = 0;
    ViewReader(side.file(), options)
        .for_each([&](std::uint64_t position, const LaunchTraceEntry& entry) {
          while (next < ranges.size() && ranges[next].second <= position) ++next;
          ChangedName& name = names[{kind_name(entry), entry.name}];
          ++(name.*all);
          if (next < ranges.size() && ranges[next].first <= position) ++(name.*changed);
        });
  };
  Ranges left_ranges, right_ranges;
  for (const DiffChange& change : report.changes) {
    left_ranges.emplace_back(change.left_begin, change.left_end);
    right_ranges.emplace_back(change.right_begin, change.right_end);
  }
  count(left, std::move(left_ranges), &ChangedName::left, &ChangedName::removed);
  count(right, std::move(right_ranges), &ChangedName::right, &ChangedName::added);
  std::vector<ChangedName> result;
  for (auto& [key, name] : names) {
    if (name.removed == 0 && name.added == 0) continue;
    name.kind = key.first;
    name.name = key.second;
    result.push_back(std::move(name));
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return a.removed + a.added > b.removed + b.added;
  });
  return result;
}

std::string to_json_text(const DiffReport& report, const DiffCommandOptions& options,
                         const std::vector<ChangedName>& names) {
  JsonObject object;
  object.text("schema", "lockstep/diff/1")
      .text("left", options.left)
      .text("right", options.right)
      .text("view", view_name(options.selection))
      .members_of(to_json(report));
  if (options.stat) {
    std::vector<std::string> rows;
    for (const ChangedName& name : names) {
      rows.push_back(JsonObject()
                         .text("kind", name.kind)
                         .text("name", name.name)
                         .number("removed", name.removed)
                         .number("added", name.added)
                         .number("left", name.left)
                         .number("right", name.right)
                         .str());
    }
    object.array("names", rows);
  }
  return object.str() + "\n";
}

std::vector<Normaliser> parse_normalisers(const DiffCommandOptions& options) {
  std::vector<Normaliser> result;
  if (!options.rename_file.empty()) {
    result.push_back(rename_normaliser(parse_rename_map(
        read_text_file(options.rename_file, "a file of names"), options.rename_file)));
  }
  if (options.normalisers.empty()) return result;
  std::vector<std::string> names = {"all"};
  for (const NormaliserInfo& info : builtin_normalisers()) names.emplace_back(info.name);
  for (const std::string& name : split(options.normalisers, ',')) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw Failure(kUsage, fmt::format("there is no normaliser '{}'{}; there are {}", name,
                                        did_you_mean(name, names), fmt::join(names, ", ")));
    }
    if (name == "all") {
      for (Normaliser& normaliser : all_normalisers()) result.push_back(std::move(normaliser));
    } else {
      result.push_back(find_normaliser(name));
    }
  }
  return result;
}

void print_changed_names(Console& console, const std::vector<ChangedName>& names) {
  constexpr std::size_t kNameWidth = 64;
  if (names.empty()) return;
  console.print(fmt::format("{:>9}{:>9}{:>9}{:>9}  name\n", "removed", "added", "left", "right"));
  for (const ChangedName& name : names) {
    console.print(fmt::format("{:>9}{:>9}{:>9}{:>9}  {} {}\n", name.removed, name.added, name.left,
                              name.right, printable(name.kind),
                              display_name(name.name, kNameWidth)));
  }
}

}  // namespace

int run_verb(Console& console, const CommonOptions& common, const DiffCommandOptions& options) {
  if (options.quiet && common.json) {
    throw Failure(kUsage, "--quiet prints nothing, --json does: they exclude each other");
  }
  DiffOptions diff_options;
  diff_options.view = parse_selection(options.selection);
  diff_options.normalisers = parse_normalisers(options);
  diff_options.compare_arguments = options.arguments;
  diff_options.per_stream = options.per_stream;
  const RereadableTrace left(options.left), right(options.right);
  const DiffReport report = diff_files(left.file(), right.file(), diff_options);
  const bool truncated = report.left_truncated || report.right_truncated;
  if (!options.quiet) {
    std::vector<ChangedName> names;
    if (options.stat) names = changed_names(left, right, diff_options.view, report);
    if (common.json) {
      console.print(to_json_text(report, options, names));
    } else {
      const DiffTextOptions style{options.all, options.context, console.colors()};
      const std::string text = to_text(report, left.file(), right.file(), diff_options.view, style);
      console.print(options.stat ? text.substr(0, text.find('\n') + 1) : text);
      print_changed_names(console, names);
    }
  }
  if (truncated) {
    console.flush();
    const auto warn = [&](bool side_truncated, const std::string& path) {
      if (side_truncated) {
        console.warning(fmt::format("{} is truncated: it ends without a footer", path));
      }
    };
    warn(report.left_truncated, options.left);
    warn(report.right_truncated, options.right);
    return kUnreadable;
  }
  return report.equal ? kDone : kDifferent;
}

}  // namespace lockstep::cli
