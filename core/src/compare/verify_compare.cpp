// SPDX-License-Identifier: Apache-2.0
#include "src/compare/verify_compare.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "src/compare/verify_arguments.h"
#include "src/compare/verify_matching.h"

namespace lockstep::verifying {
namespace {

class Comparison {
 public:
  /// `assumed`: what nothing decides is taken for order in eager and for none in replay.
  Comparison(const OrderedView& eager, const OrderedView& replay, bool assumed,
             VerifyReport& report)
      : eager_(eager), replay_(replay), assumed_(assumed), report_(report) {}

  void run(VerifyLevel level) {
    const MultisetResult sets = compare_multisets(eager_, replay_, report_.findings);
    if (!sets.counts) return;
    report_.verified = VerifyLevel::kCounts;
    if (!sets.multiset || level < VerifyLevel::kMultiset) return;
    report_.verified = VerifyLevel::kMultiset;
    if (level < VerifyLevel::kOrder || !compare_order(level)) return;
    report_.verified = VerifyLevel::kOrder;
    if (level >= VerifyLevel::kArguments && compare_arguments()) {
      report_.verified = VerifyLevel::kArguments;
    }
  }

 private:
  void fail(VerifyLevel level, std::string what, std::string message, std::ptrdiff_t left = -1,
            std::ptrdiff_t right = -1) {
    report_.findings.push_back(
        make_finding(level, std::move(what), std::move(message), eager_, left, replay_, right));
  }
  void note(VerifyLevel level, std::string what, std::string message, std::ptrdiff_t left = -1,
            std::ptrdiff_t right = -1) {
    fail(level, std::move(what), std::move(message), left, right);
    report_.findings.back().note = true;
  }

  bool arguments_hold(const Matching& matching) const {
    BufferBijection buffers;
    for (std::size_t i = 0; i < matching.size(); ++i) {
      const auto difference = buffers.unify(eager_.entries[i], replay_.entries[matching[i]]);
      if (difference && difference->what != ArgumentDifference::What::kStruct) return false;
    }
    return true;
  }

  bool order_holds(const Matching& matching) const {
    return broken_orders(eager_, replay_, matching, 1).empty();
  }

  /// Finds the matching that everything after this is said of. One that keeps the order and the
  /// arguments is best; then one that keeps the order.
  bool compare_order(VerifyLevel level) {
    if (!eager_.complete() || !replay_.complete()) {
      fail(VerifyLevel::kOrder, "undecided",
           "order was not decided: too many entries run side by side to keep track of; compare a "
           "shorter stretch");
      return false;
    }
    const bool arguments = level >= VerifyLevel::kArguments;
    const Matching simple[] = {match_by_creation(eager_, replay_),
                               match_by_position(eager_, replay_)};
    for (const Matching& matching : simple) {
      if (!order_holds(matching)) continue;
      if (!has_order_) matching_ = matching;
      has_order_ = true;
      if (arguments && !arguments_hold(matching)) continue;
      matching_ = matching;
      note_extra_orders();
      return true;
    }
    Matching found;
    SearchOptions options;
    SearchResult result = SearchResult::kImpossible;
    if (arguments) {
      options.arguments = true;
      result = search_matching(eager_, replay_, options, found);
      if (result == SearchResult::kFound) {
        matching_ = std::move(found);
        note_extra_orders();
        return true;
      }
      arguments_undecided_ = result == SearchResult::kUndecided;
    }
    if (!has_order_) {
      options.arguments = false;
      result = search_matching(eager_, replay_, options, found);
      if (result == SearchResult::kFound) matching_ = std::move(found);
      has_order_ = result == SearchResult::kFound;
    }
    if (has_order_) {
      note_extra_orders();
      return true;
    }
    tell_broken_orders(simple[0], simple[1], result);
    return false;
  }

  void tell_broken_orders(const Matching& by_creation, const Matching& by_position,
                          SearchResult result) {
    const auto in_creation = broken_orders(eager_, replay_, by_creation, kMaxListed + 1);
    const auto in_position = broken_orders(eager_, replay_, by_position, kMaxListed + 1);
    const bool position = in_position.size() < in_creation.size();
    const auto& broken = position ? in_position : in_creation;
    const Matching& matching = position ? by_position : by_creation;
    if (result == SearchResult::kUndecided) {
      fail(VerifyLevel::kOrder, "undecided",
           "order was not decided: of the many ways to match equal operations none that was tried "
           "keeps eager's order; what follows is said of the likeliest one");
    }
    for (std::size_t i = 0; i < std::min(broken.size(), kMaxListed); ++i) {
      const auto [first, second, programmatic] = broken[i];
      const LaunchTraceEntry& before = eager_.entries[first];
      const LaunchTraceEntry& after = eager_.entries[second];
      const bool reversed = replay_.strong.before(matching[second], matching[first]);
      fail(VerifyLevel::kOrder, programmatic ? "programmatic" : "order",
           fmt::format("eager {} that #{} ({}) ends before #{} ({}) begins; in replay (#{} "
                       "and #{}) {}",
                       assumed_ ? "may guarantee" : "guarantees", first, to_string(before), second,
                       to_string(after), matching[first], matching[second],
                       programmatic ? "only a programmatic edge orders them, so they may overlap"
                       : reversed   ? "the second ends before the first begins"
                       : assumed_   ? "nothing that is certain orders them"
                                    : "nothing orders them"),
           second, matching[second]);
    }
    if (broken.size() > kMaxListed) {
      fail(VerifyLevel::kOrder, "more", "there are more orders that replay does not keep");
    }
  }

  void note_extra_orders() {
    const ExtraOrders extra = extra_orders(eager_, replay_, matching_);
    if (extra.count == 0) return;
    note(VerifyLevel::kOrder, "order",
         fmt::format("replay orders more than eager does ({} additional {}): first that #{} ({}) "
                     "ends before #{} ({}) begins",
                     extra.count, extra.count == 1 ? "order" : "orders", matching_[extra.first],
                     to_string(replay_.entries[matching_[extra.first]]), matching_[extra.second],
                     to_string(replay_.entries[matching_[extra.second]])),
         extra.second, matching_[extra.second]);
  }

  bool compare_arguments() {
    using What = ArgumentDifference::What;
    BufferBijection buffers;
    std::uint64_t unknown = 0, failures = 0, structs = 0;
    std::ptrdiff_t first_unknown = -1;
    if (arguments_undecided_) {
      fail(VerifyLevel::kArguments, "undecided",
           "arguments were not decided: of the many ways to match equal operations none that was "
           "tried keeps eager's order and arguments; what follows is said of the likeliest one");
    }
    for (std::size_t i = 0; i < matching_.size(); ++i) {
      const LaunchTraceEntry& left = eager_.entries[i];
      const LaunchTraceEntry& right = replay_.entries[matching_[i]];
      const auto position = static_cast<std::ptrdiff_t>(i);
      if (!has_known_arguments(left) || !has_known_arguments(right)) {
        if (unknown++ == 0) first_unknown = position;
      }
      const auto difference = buffers.unify(left, right);
      if (!difference) continue;
      const std::string message = fmt::format("{}: {}", short_name(left), difference->text);
      if (difference->what == What::kStruct) {
        if (structs++ < kMaxListed) {
          note(VerifyLevel::kArguments, "struct",
               message + "; a struct may have padding, so this is not decided", position,
               matching_[i]);
        }
      } else if (failures++ < kMaxListed) {
        fail(VerifyLevel::kArguments, difference->what == What::kScalar ? "scalar" : "buffer",
             message, position, matching_[i]);
      }
    }
    if (failures > kMaxListed) {
      fail(VerifyLevel::kArguments, "more",
           fmt::format("{} more differences of this level", failures - kMaxListed));
    }
    if (unknown != 0) {
      note(VerifyLevel::kArguments, "unknown_arguments",
           fmt::format("arguments unknown for {} {}; first {}", unknown,
                       unknown == 1 ? "entry" : "entries",
                       to_string(eager_.entries[static_cast<std::size_t>(first_unknown)])),
           first_unknown, matching_[static_cast<std::size_t>(first_unknown)]);
    }
    return unknown == 0 && failures == 0 && structs == 0 && !arguments_undecided_;
  }

  const OrderedView& eager_;
  const OrderedView& replay_;
  const bool assumed_;
  VerifyReport& report_;
  Matching matching_;
  bool has_order_ = false;
  bool arguments_undecided_ = false;
};

void add_note(VerifyReport& report, VerifyLevel level, std::string what, std::string message) {
  VerifyFinding finding;
  finding.level = level;
  finding.note = true;
  finding.what = std::move(what);
  finding.message = std::move(message);
  report.findings.push_back(std::move(finding));
}

std::string doubt_text(const Doubt& doubt, std::string_view side) {
  switch (doubt.kind) {
    case Doubt::Kind::kOtherThread:
      return fmt::format(
          "{}: {} waits on one thread, and another then enqueues {}; no trace says whether the "
          "second thread knew. Wait on the thread that enqueues, or let the streams wait for "
          "events; a thread that has nothing to do with the step must not wait meanwhile",
          side, doubt.cause, doubt.first);
    case Doubt::Kind::kQuery:
      return fmt::format(
          "{}: {} answers that work has ended, and then {} is enqueued; no trace says whether the "
          "program polled for that or it just was so. Synchronise instead, or let the streams wait "
          "for events",
          side, doubt.cause, doubt.first);
    case Doubt::Kind::kEventNode:
      return fmt::format(
          "{}: at {} a wait concerns an event that the node of a graph records or waits for, and "
          "which record it binds is not known. Record and wait on the streams around the launch, "
          "or make it an edge of one graph",
          side, doubt.first);
    case Doubt::Kind::kSignal:
      return fmt::format(
          "{}: {} may wait for what an earlier stream memory operation or semaphore signals. Let "
          "the streams wait for events",
          side, doubt.first);
  }
  return {};
}

/// What the surest orders allow and the widest do not: neither holds nor fails.
void tell_undecided(VerifyReport& report, const VerifyReport& assumed, const OrderedView& eager,
                    const OrderedView& replay) {
  report.verified = VerifyLevel::kMultiset;
  const auto of_order = [](const VerifyFinding& finding) {
    return finding.level >= VerifyLevel::kOrder;
  };
  report.findings.erase(std::remove_if(report.findings.begin(), report.findings.end(), of_order),
                        report.findings.end());
  for (const VerifyFinding& missing : assumed.findings) {
    if (missing.note || (missing.what != "order" && missing.what != "programmatic")) continue;
    VerifyFinding& finding = report.findings.emplace_back(missing);
    finding.what = "undecided";
    finding.message = fmt::format("order was not decided: {}", missing.message);
    break;
  }
  const auto explain = [&](const OrderedView& view, std::string_view side) {
    for (const Doubt& doubt : view.doubts) {
      VerifyFinding& reason = report.findings.emplace_back();
      reason.level = VerifyLevel::kOrder;
      reason.what = "undecided";
      reason.message = doubt_text(doubt, side);
    }
  };
  explain(eager, "eager");
  explain(replay, "replay");
}

/// Where order cannot be followed, only what holds whatever it is has been verified, and only what
/// fails whatever it is has failed.
void compare_views(const Trace& eager, const Trace& replay, const OrderedView& left,
                   const OrderedView& right, const OrderedViewOptions& options, VerifyLevel level,
                   VerifyReport& report) {
  const auto run = [&](const OrderedView& a, const OrderedView& b, bool assumed) {
    VerifyReport result = report;
    Comparison(a, b, assumed, result).run(level);
    return result;
  };
  const auto holds = [](const VerifyReport& result) {
    return result.verified && *result.verified >= VerifyLevel::kOrder;
  };
  if (level < VerifyLevel::kOrder || (left.doubts.empty() && right.doubts.empty())) {
    report = run(left, right, false);
    return;
  }
  OrderedViewOptions assume = options;
  assume.assume_doubtful = true;
  const VerifyReport widest = run(ordered_view(eager, {{}, true}), right, true);
  if (holds(widest)) {
    report = widest;
    return;
  }
  report = run(left, ordered_view(replay, assume), false);
  if (holds(report)) tell_undecided(report, widest, left, right);
}

}  // namespace

VerifyReport compare(const Trace& eager, const Trace& replay, const CompareOptions& options) {
  VerifyReport report;
  report.requested = options.level;
  const OrderedView left = ordered_view(eager);
  OrderedView right = ordered_view(replay);
  const auto left_out = allowed_extras(left, right, options.allowed_extra, report.findings);
  const OrderedViewOptions right_options{left_out, false};
  if (!left_out.empty()) right = ordered_view(replay, right_options);

  compare_views(eager, replay, left, right, right_options, options.level, report);

  if (right.memory_nodes != 0) {
    add_note(report, VerifyLevel::kCounts, "memory",
             fmt::format("replay has {} memory {} (allocate, free), which are not compared",
                         right.memory_nodes, right.memory_nodes == 1 ? "node" : "nodes"));
  }
  if (left.host_functions != right.host_functions) {
    add_note(report, VerifyLevel::kCounts, "host_func",
             fmt::format("eager has {} host functions, replay has {}; they are not compared",
                         left.host_functions, right.host_functions));
  }
  if (left.unfollowed + right.unfollowed != 0 && options.level >= VerifyLevel::kOrder) {
    add_note(report, VerifyLevel::kOrder, "unfollowed",
             fmt::format("{} stream memory operations and semaphores order work in ways that are "
                         "not followed",
                         left.unfollowed + right.unfollowed));
  }
  sort_findings(report.findings);
  report.eager = left.entries;
  report.replay = right.entries;
  return report;
}

}  // namespace lockstep::verifying
