// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "src/compare/rules.h"
#include "src/trace/entry_rules.h"
#include "src/trace/view_filter.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostListed = 100;

/// An entry of the view with all kinds, and its place in the view that the user looks at.
struct Seen {
  LaunchTraceEntry entry;
  std::uint64_t index = 0;
};

std::uint64_t bytes_of(const LaunchTraceEntry& entry) {
  switch (entry.kind) {
    case OperationKind::kMemcpy:
      return entry.memcpy_byte_size;
    case OperationKind::kMemset:
      return entry.memset_byte_size;
    default:
      return entry.alloc_byte_size;
  }
}

bool counts(const Rule& rule, const LaunchTraceEntry& entry) {
  const bool kind = rule.kinds.empty() ? entry.kind != OperationKind::kMark
                                       : std::find(rule.kinds.begin(), rule.kinds.end(),
                                                   entry.kind) != rule.kinds.end();
  if (!kind) return false;
  if (rule.direction != MemcpyKind::kNone && entry.memcpy_kind != rule.direction) return false;
  if (rule.stream && entry.stream_index != *rule.stream) return false;
  const std::uint64_t bytes = bytes_of(entry);
  if (bytes < rule.least_bytes || bytes > rule.most_bytes) return false;
  return !rule.pattern || rule.pattern->matches_name(entry.name);
}

bool is_push(const LaunchTraceEntry& entry) {
  return entry.kind == OperationKind::kMark && entry.mark == "push";
}
bool is_pop(const LaunchTraceEntry& entry) {
  return entry.kind == OperationKind::kMark && entry.mark == "pop";
}
bool is_point(const LaunchTraceEntry& entry) {
  return entry.kind == OperationKind::kMark && !is_push(entry) && !is_pop(entry);
}

/// Entries counted together, and what to call the place in a message.
struct Group {
  std::string place;
  std::vector<const Seen*> counted;
};

/// Ranges that are open on each thread, by name; they nest, and threads do not see each other's.
using OpenRanges = std::map<std::uint32_t, std::vector<std::pair<std::string, std::size_t>>>;

std::vector<Group> group_between_marks(const Rule& rule, const std::vector<Seen>& view) {
  Group group{" between marks", {}};
  std::size_t first_point = view.size(), last_point = 0;
  for (std::size_t i = 0; i < view.size(); ++i) {
    if (!is_point(view[i].entry)) continue;
    first_point = std::min(first_point, i);
    last_point = i;
  }
  std::size_t open = 0;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const LaunchTraceEntry& entry = view[i].entry;
    if (is_push(entry)) ++open;
    if (is_pop(entry) && open > 0) --open;
    const bool inside = open > 0 || (i > first_point && i < last_point);
    if (inside && counts(rule, entry)) group.counted.push_back(&view[i]);
  }
  return {group};
}

std::vector<Group> group_in_ranges(const Rule& rule, const std::vector<Seen>& view) {
  const bool each = rule.scope == RuleScope::kInEachRange;
  std::vector<Group> groups;
  if (!each) groups.push_back({fmt::format(" in range {}", rule.range), {}});
  OpenRanges open;
  for (const Seen& seen : view) {
    auto& ranges = open[seen.entry.thread_index];
    if (is_push(seen.entry)) {
      const bool ours = seen.entry.name == rule.range;
      if (ours && each) {
        groups.push_back(
            {fmt::format(" in range {} number {}", rule.range, groups.size() + 1), {}});
      }
      ranges.emplace_back(seen.entry.name, ours ? groups.size() - 1 : 0);
    } else if (is_pop(seen.entry)) {
      if (!ranges.empty()) ranges.pop_back();
    } else if (counts(rule, seen.entry)) {
      bool counted = false;
      for (const auto& [name, group] : ranges) {
        if (name != rule.range || (counted && !each)) continue;
        groups[group].counted.push_back(&seen);
        counted = true;
      }
    }
  }
  return groups;
}

std::vector<Group> group(const Rule& rule, const std::vector<Seen>& view) {
  switch (rule.scope) {
    case RuleScope::kBetweenMarks:
      return group_between_marks(rule, view);
    case RuleScope::kInRange:
    case RuleScope::kInEachRange:
      return group_in_ranges(rule, view);
    case RuleScope::kEverywhere:
      break;
  }
  Group whole;
  for (const Seen& seen : view) {
    if (counts(rule, seen.entry)) whole.counted.push_back(&seen);
  }
  return {whole};
}

void check_group(const Rule& rule, const Group& group, std::vector<RuleViolation>& into) {
  const std::uint64_t count = group.counted.size();
  RuleViolation violation;
  violation.line = rule.line;
  violation.rule = rule.text;
  if (count < rule.least) {
    violation.message = fmt::format("{} {}{}, at least {} must be there", count, rule.what,
                                    group.place, rule.least);
    into.push_back(std::move(violation));
    return;
  }
  for (std::uint64_t i = rule.most; i < count; ++i) {
    const Seen& seen = *group.counted[i];
    violation.index = seen.index;
    violation.stream = seen.entry.stream_index;
    violation.message = fmt::format("entry {} on stream {}{}: {} ({} {}, {} allowed)", seen.index,
                                    seen.entry.stream_index, group.place, describe(seen.entry, 80),
                                    count, rule.what, rule.most);
    into.push_back(violation);
  }
}

}  // namespace

std::vector<RuleViolation> TraceRules::check(const Trace& trace, const ViewOptions& options) const {
  ViewOptions everything = options;
  everything.core_kinds_only = false;
  everything.kinds.clear();
  std::vector<Seen> view;
  std::uint64_t index = 0;
  for (LaunchTraceEntry& entry : lockstep::view(trace, everything)) {
    const bool shown = view_shows(options, entry);
    view.push_back({std::move(entry), index});
    if (shown) ++index;
  }
  std::vector<RuleViolation> result;
  for (const Rule& rule : impl_->rules) {
    std::vector<RuleViolation> found;
    for (const Group& part : group(rule, view)) check_group(rule, part, found);
    if (found.size() > kMostListed) {
      const std::size_t more = found.size() - kMostListed;
      found.resize(kMostListed);
      found.back().message += fmt::format("; {} more of this rule", more);
    }
    std::move(found.begin(), found.end(), std::back_inserter(result));
  }
  return result;
}

}  // namespace lockstep
