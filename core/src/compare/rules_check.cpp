// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "src/compare/rules.h"
#include "src/trace/entry_rules.h"
#include "src/trace/view_filter.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostListed = 100;

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

/// All that a rule asks of an entry but its name.
bool counts(const Rule& rule, const LaunchTraceEntry& entry) {
  const bool kind = rule.kinds.empty() ? entry.kind != OperationKind::kMark
                                       : std::find(rule.kinds.begin(), rule.kinds.end(),
                                                   entry.kind) != rule.kinds.end();
  if (!kind) return false;
  if (rule.direction != MemcpyKind::kNone && entry.memcpy_kind != rule.direction) return false;
  if (rule.stream && entry.stream_index != *rule.stream) return false;
  const std::uint64_t bytes = bytes_of(entry);
  return bytes >= rule.least_bytes && bytes <= rule.most_bytes;
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

/// Some of the names that a trace has, for messages.
class Names {
 public:
  void add(const std::string& name) {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return;
    if (names_.size() == kMostNamed) {
      more_ = true;
    } else {
      names_.push_back(name);
    }
  }
  bool empty() const noexcept { return names_.empty(); }
  std::string text() const {
    return fmt::format("\"{}\"{}", fmt::join(names_, "\", \""), more_ ? ", …" : "");
  }

 private:
  static constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> names_;
  bool more_ = false;
};

/// What a trace has that rules may ask for: a rule about something that is not there has nothing to
/// say, and most likely names it wrongly.
class Inventory {
 public:
  Inventory(const Trace& trace, const ViewOptions& view) {
    for (const StreamDefinition& stream : trace.streams) streams_.insert(stream.stream);
    if (view.kind != ViewOptions::Kind::kExecuted) return;
    for (const LaunchTraceEntry& entry : trace.entries) {
      if (entry.kind != OperationKind::kGraphLaunch || entry.has(EntryFlag::kCaptured) ||
          entry.has(EntryFlag::kFailed)) {
        continue;
      }
      if (trace.find_graph(entry.graph, entry.graph_version) != nullptr) ++expanded_launches_;
    }
  }
  void push(const LaunchTraceEntry& entry) {
    empty_ = false;
    if (is_push(entry)) {
      ranges_.add(entry.name);
    } else if (is_point(entry)) {
      points_.add(entry.name);
      ++point_count_;
    } else if (!is_pop(entry)) {
      streams_.insert(entry.stream_index);
    }
  }

  /// Why the rule cannot be kept or broken; nothing when it can. `range_found`: of its range.
  std::optional<std::string> objection(const Rule& rule, bool range_found) const {
    // "no entries" is what an empty trace keeps.
    const bool any = rule.kinds.empty() && rule.least == 0 && rule.most != kNoLimit;
    const bool narrow = rule.scope != RuleScope::kEverywhere || rule.stream || rule.pattern;
    if (empty_ && (!any || narrow)) {
      return "the trace has no entries that executed, so that nothing can be said of them: was "
             "anything recorded?";
    }
    if (rule.scope == RuleScope::kBetweenMarks && ranges_.empty() && point_count_ < 2) {
      return fmt::format(
          "nothing is between marks: the trace has no range, and {}",
          points_.empty() ? "no other mark" : "only one other mark, " + points_.text());
    }
    if (expanded_launches_ != 0 && std::find(rule.kinds.begin(), rule.kinds.end(),
                                             OperationKind::kGraphLaunch) != rule.kinds.end()) {
      return fmt::format(
          "{} graph launch(es) stand as their nodes in the executed view, which rules look at: ask "
          "for those, e.g. kernels or copies",
          expanded_launches_);
    }
    const bool in_range =
        rule.scope == RuleScope::kInRange || rule.scope == RuleScope::kInEachRange;
    if (in_range && !range_found) {
      return fmt::format(
          "there is no range \"{}\": the trace has {}{}", rule.range,
          ranges_.empty() ? "no ranges" : "the ranges " + ranges_.text(),
          points_.empty() ? std::string() : ", and marks that are no ranges: " + points_.text());
    }
    if (rule.stream && streams_.count(*rule.stream) == 0) {
      return fmt::format("there is no stream {}: the trace has {}", *rule.stream,
                         streams_.empty() ? "none" : fmt::format("the streams {}", stream_text()));
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

  std::string stream_text() const {
    if (streams_.size() > 1 && *streams_.rbegin() - *streams_.begin() + 1 == streams_.size()) {
      return fmt::format("{} to {}", *streams_.begin(), *streams_.rbegin());
    }
    return fmt::format("{}", fmt::join(streams_, ", "));
  }

  bool empty_ = true;
  std::uint64_t point_count_ = 0;
  std::uint64_t expanded_launches_ = 0;
  Names ranges_, points_;
  std::set<std::uint32_t> streams_;
};

/// Entries counted together, and what to call the place in a message.
struct Group {
  std::string place;
  std::uint64_t count = 0;
  std::vector<RuleViolation> beyond;  ///< what stands beyond the most allowed, as far as listed
};

/// Where an entry stands among the marks of the whole trace.
class MarkPlace {
 public:
  /// Learns where the first and the last point are: a first pass.
  void find(const LaunchTraceEntry& entry) {
    if (is_point(entry)) {
      first_point_ = std::min(first_point_, position_);
      last_point_ = position_;
    }
    ++position_;
  }
  void begin() { position_ = 0; }
  /// Whether the next entry stands between marks; entries come in the order of the first pass.
  bool next_is_inside(const LaunchTraceEntry& entry) {
    if (is_push(entry)) ++open_;
    if (is_pop(entry) && open_ > 0) --open_;
    const bool inside = open_ > 0 || (position_ > first_point_ && position_ < last_point_);
    ++position_;
    return inside;
  }

 private:
  std::uint64_t position_ = 0, open_ = 0, last_point_ = 0;
  std::uint64_t first_point_ = std::numeric_limits<std::uint64_t>::max();
};

/// One rule, while the entries of the view with all kinds go by: only counts and what will be
/// listed are kept.
class Check {
 public:
  explicit Check(const Rule& rule) : rule_(&rule) {
    if (rule.scope == RuleScope::kInEachRange) return;
    const bool between = rule.scope == RuleScope::kBetweenMarks;
    groups_.push_back({between                             ? " between marks"
                       : rule.scope == RuleScope::kInRange ? fmt::format(" in range {}", rule.range)
                                                           : "",
                       0,
                       {}});
  }

  /// `index` is the entry's place in the view that the user looks at.
  void push(const LaunchTraceEntry& entry, std::uint64_t index, bool between_marks) {
    const bool ranges =
        rule_->scope == RuleScope::kInRange || rule_->scope == RuleScope::kInEachRange;
    if (ranges && is_push(entry)) return open(entry);
    if (ranges && is_pop(entry)) return close(entry);
    if (!counts(*rule_, entry)) return;
    if (rule_->pattern && !rule_->pattern->matches_name(entry.name)) {
      if (rule_->least != 0) other_names_.add(entry.name);
      return;
    }
    if (ranges) return add_to_ranges(entry, index);
    if (rule_->scope == RuleScope::kEverywhere || between_marks) add(groups_.front(), entry, index);
  }

  void finish(const Inventory& inventory, std::vector<RuleViolation>& into) {
    if (const auto objection = inventory.objection(*rule_, range_found_)) {
      into.push_back(blank());
      into.back().message = *objection;
      return;
    }
    std::vector<RuleViolation> found;
    std::uint64_t total = 0;
    for (Group& group : groups_) {
      if (group.count < rule_->least) {
        ++total;
        if (found.size() >= kMostListed) continue;
        RuleViolation& violation = found.emplace_back(blank());
        violation.message = fmt::format("{} {}{}, at least {} must be there", group.count,
                                        rule_->what, group.place, rule_->least);
        if (group.count == 0 && rule_->pattern) {
          violation.message += other_names_.empty()
                                   ? "; the trace has none of any name"
                                   : "; no name matches, the trace has " + other_names_.text();
        }
        continue;
      }
      if (group.count > rule_->most) total += group.count - rule_->most;
      for (RuleViolation& violation : group.beyond) {
        if (found.size() >= kMostListed) break;
        violation.message +=
            fmt::format(" ({} {}, {} allowed)", group.count, rule_->what, rule_->most);
        found.push_back(std::move(violation));
      }
    }
    if (total > found.size()) {
      found.back().message += fmt::format("; {} more of this rule", total - found.size());
    }
    std::move(found.begin(), found.end(), std::back_inserter(into));
  }

 private:
  RuleViolation blank() const {
    RuleViolation violation;
    violation.line = rule_->line;
    violation.rule = rule_->text;
    return violation;
  }

  void add(Group& group, const LaunchTraceEntry& entry, std::uint64_t index) {
    if (++group.count <= rule_->most || listed_ == kMostListed) return;
    ++listed_;
    RuleViolation& violation = group.beyond.emplace_back(blank());
    violation.index = index;
    violation.stream = entry.stream_index;
    violation.message = fmt::format("entry {} on stream {}{}: {}", index, entry.stream_index,
                                    group.place, describe(entry, 80));
  }

  void open(const LaunchTraceEntry& entry) {
    range_found_ |= entry.name == rule_->range;
    if (rule_->scope == RuleScope::kInEachRange && entry.name == rule_->range) {
      groups_.push_back(
          {fmt::format(" in range {} number {}", rule_->range, groups_.size() + 1), 0, {}});
    }
    open_[entry.thread_index].emplace_back(entry.name, groups_.empty() ? 0 : groups_.size() - 1);
  }

  void close(const LaunchTraceEntry& entry) {
    auto& ranges = open_[entry.thread_index];
    if (!ranges.empty()) ranges.pop_back();
  }

  void add_to_ranges(const LaunchTraceEntry& entry, std::uint64_t index) {
    for (const auto& [name, group] : open_[entry.thread_index]) {
      if (name != rule_->range) continue;
      add(groups_[group], entry, index);
      if (rule_->scope == RuleScope::kInRange) return;  // however many enclose it
    }
  }

  const Rule* rule_;
  std::vector<Group> groups_;
  /// Ranges that are open on each thread, by name, with their group; they nest, and threads do not
  /// see each other's.
  std::map<std::uint32_t, std::vector<std::pair<std::string, std::size_t>>> open_;
  std::size_t listed_ = 0;
  bool range_found_ = false;
  Names other_names_;  ///< of entries that would count but for their names
};

}  // namespace

std::vector<RuleViolation> TraceRules::check(const Trace& trace, const ViewOptions& options) const {
  ViewOptions everything = options;
  everything.core_kinds_only = false;
  everything.kinds.clear();
  ViewFilter filter(everything);
  for (const auto& [key, graph] : trace.graphs) filter.define(key, graph);
  const auto visit = [&](const ViewFilter::Sink& sink) {
    for (const LaunchTraceEntry& entry : trace.entries) filter.push(entry, sink);
  };
  MarkPlace marks;
  Inventory inventory(trace, everything);
  visit([&](const LaunchTraceEntry& entry) {
    marks.find(entry);
    inventory.push(entry);
  });
  marks.begin();
  std::vector<Check> checks(impl_->rules.begin(), impl_->rules.end());
  std::uint64_t index = 0;
  visit([&](const LaunchTraceEntry& entry) {
    const bool inside = marks.next_is_inside(entry);
    for (Check& check : checks) check.push(entry, index, inside);
    if (view_shows(options, entry)) ++index;
  });
  std::vector<RuleViolation> result;
  for (Check& check : checks) check.finish(inventory, result);
  return result;
}

}  // namespace lockstep
