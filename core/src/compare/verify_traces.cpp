// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/verify.h>

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "src/compare/verify_compare.h"

namespace lockstep {
namespace {

using Key = std::pair<std::int32_t, std::uint32_t>;

void require_trace_level(VerifyLevel level) {
  if (level <= VerifyLevel::kArguments) return;
  throw Error(ErrorCode::kInvalidArgument,
              "a trace holds no values: traces are verified up to L3; verify() of a program "
              "compares values (L4)");
}

VerifyFinding finding_of(std::string what, bool note, std::string message) {
  VerifyFinding finding;
  finding.note = note;
  finding.what = std::move(what);
  finding.message = std::move(message);
  return finding;
}

/// A trace that is not whole is never equal to anything.
void refuse_incomplete(const Trace& trace, std::string_view side, VerifyReport& report) {
  const auto fail = [&](std::string what, std::string message) {
    report.findings.push_back(finding_of(std::move(what), false, std::move(message)));
    report.verified.reset();
  };
  if (!trace.footer.present) {
    fail("truncated",
         fmt::format("{} is truncated: it has no footer, so entries may be missing", side));
  } else if (trace.footer.dropped != 0) {
    fail("dropped", fmt::format("{} is not complete: {} entries were dropped while recording", side,
                                trace.footer.dropped));
  } else if (has_holes(trace.footer.coverage)) {
    fail("holes", fmt::format("{} is not complete: its recorder says that it lacks work ({})", side,
                              trace.footer.coverage));
  }
}

/// Entries of one capture: what eager execution would have enqueued.
struct Capture {
  Key label{-1, 0};
  std::vector<LaunchTraceEntry> entries;
  std::vector<std::uint64_t> hashes;  ///< of the core kinds, sorted
  bool used = false;
  Key names{-1, 0};  ///< the graph of the trace that it says it became, where it says so
};

std::vector<std::uint64_t> sorted_hashes(const std::vector<LaunchTraceEntry>& entries) {
  std::vector<std::uint64_t> hashes;
  for (const LaunchTraceEntry& entry : entries) {
    if (!is_core_kind(entry.kind) || entry.is_empty_operation()) continue;
    hashes.push_back(entry.semantic_hash != 0 ? entry.semantic_hash : semantic_hash(entry));
  }
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

/// Captured entries by the graph they name; those that name none by the stretch between two first
/// launches of graphs in which they stand.
std::vector<Capture> captures_of(const Trace& trace) {
  std::vector<Capture> captures;
  std::vector<Key> launched;
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t unnamed = kNone;
  for (const LaunchTraceEntry& entry : trace.entries) {
    if (entry.kind == OperationKind::kGraphLaunch && !entry.has(EntryFlag::kCaptured)) {
      const Key key{entry.graph, entry.graph_version};
      if (std::find(launched.begin(), launched.end(), key) == launched.end()) {
        launched.push_back(key);
        unnamed = kNone;
      }
    }
    if (!entry.has(EntryFlag::kCaptured) || entry.has(EntryFlag::kFailed)) continue;
    std::size_t at = unnamed;
    if (entry.graph >= 0 && entry.kind != OperationKind::kGraphLaunch) {
      const Key label{entry.graph, entry.graph_version};
      at = static_cast<std::size_t>(
          std::find_if(captures.begin(), captures.end(),
                       [&](const Capture& capture) { return capture.label == label; }) -
          captures.begin());
      if (at == captures.size()) captures.push_back({label, {}, {}, false});
    } else if (at == kNone) {
      at = unnamed = captures.size();
      captures.push_back({});
    }
    LaunchTraceEntry& kept = captures[at].entries.emplace_back(entry);
    kept.flags &= static_cast<std::uint16_t>(~static_cast<std::uint16_t>(EntryFlag::kCaptured));
    kept.thread_index = 0;  // no thread waits inside a capture
  }
  for (Capture& capture : captures) capture.hashes = sorted_hashes(capture.entries);
  return captures;
}

/// Graph versions by first launch, those never launched last.
std::vector<Key> graphs_by_launch(const Trace& trace) {
  std::vector<Key> keys;
  const auto add = [&](Key key) {
    if (trace.graphs.count(key) != 0 && std::find(keys.begin(), keys.end(), key) == keys.end()) {
      keys.push_back(key);
    }
  };
  for (const LaunchTraceEntry& entry : trace.entries) {
    if (entry.kind == OperationKind::kGraphLaunch) add({entry.graph, entry.graph_version});
  }
  for (const auto& [key, graph] : trace.graphs) add(key);
  return keys;
}

/// Which capture each graph was made from, nullptr where none is left. Who names its graph comes
/// first, then who equals it; what remains goes by order.
std::vector<const Capture*> assign(const Trace& trace, const std::vector<Key>& graphs,
                                   std::vector<Capture>& captures) {
  std::vector<const Capture*> result(graphs.size(), nullptr);
  const auto assign_where = [&](auto&& fits) {
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      if (result[i] != nullptr) continue;
      const auto found =
          std::find_if(captures.begin(), captures.end(),
                       [&](const Capture& capture) { return fits(graphs[i], capture); });
      if (found == captures.end()) continue;
      result[i] = &*found;
      found->used = true;
    }
  };
  const auto equals = [&](const Key& key, const Capture& capture) {
    return capture.hashes == sorted_hashes(trace.graphs.at(key).nodes);
  };
  // A recorder that numbers captures and executables alike names the graph without its version:
  // then the first version is meant.
  const auto named_by = [&](const Capture& capture) {
    const auto first = trace.graphs.lower_bound(capture.label);
    const bool defined = first != trace.graphs.end() && first->first.first == capture.label.first &&
                         (capture.label.second == 0 || first->first == capture.label);
    return defined ? first->first : Key{-1, 0};
  };
  for (Capture& capture : captures) capture.names = named_by(capture);
  const auto names_defined = [](const Capture& capture) { return capture.names.first >= 0; };
  assign_where([&](const Key& key, const Capture& capture) { return capture.names == key; });
  assign_where([&](const Key& key, const Capture& capture) {
    return !capture.used && !names_defined(capture) && equals(key, capture);
  });
  // One capture instantiated twice.
  assign_where([&](const Key& key, const Capture& capture) { return equals(key, capture); });
  assign_where([&](const Key& key, const Capture& capture) {
    // A later version came from an update that was recorded in its own right, or not at all.
    return !capture.used && !names_defined(capture) && key.second <= 1;
  });
  return result;
}

GraphVerification verify_graph(const Trace& trace, Key key, const Capture* capture,
                               VerifyLevel level) {
  GraphVerification result;
  result.graph = key.first;
  result.version = key.second;
  const GraphDefinition& graph = trace.graphs.at(key);
  Trace eager, replay;
  if (capture != nullptr) eager.entries = capture->entries;
  replay.graphs.emplace(key, graph);
  LaunchTraceEntry& launch = replay.entries.emplace_back();
  launch.kind = OperationKind::kGraphLaunch;
  launch.graph = key.first;
  launch.graph_version = key.second;
  if (capture == nullptr && !graph.nodes.empty()) {
    result.report.requested = level;
    result.report.findings.push_back(finding_of(
        "uncaptured", true,
        fmt::format("the capture of graph {} version {} was not recorded: it was captured before "
                    "the trace began, built by hand or changed since",
                    key.first, key.second)));
    result.report.replay = view(replay);
    return result;
  }
  result.report = verifying::compare(eager, replay, {level, {}});
  if (capture != nullptr && capture->names.first >= 0 && capture->names.first != key.first) {
    result.report.findings.push_back(finding_of(
        "shared", true,
        fmt::format("nothing names graph {} version {} as what it became; it is compared with the "
                    "capture of graph {}, whose operations are the same: instantiated twice, or "
                    "built by hand alike",
                    key.first, key.second, capture->names.first)));
  }
  if (graph.nodes.empty()) {
    for (VerifyFinding& finding : result.report.findings) {
      if (finding.what == "empty") {
        finding.message = fmt::format("graph {} version {} has no nodes: replay does nothing; {}",
                                      key.first, key.second, finding.message);
      }
    }
  }
  return result;
}

/// A range of marks: entries between push and pop.
struct Range {
  std::string label;
  bool replay = false;
  std::size_t begin = 0, end = 0;
  bool paired = false;
};

std::vector<Range> marked_ranges(const Trace& trace) {
  std::vector<Range> ranges;
  std::map<std::uint32_t, std::vector<std::ptrdiff_t>> open;  ///< by thread; -1: not ours
  const auto begins_with = [](const std::string& text, std::string_view word) {
    return text.compare(0, word.size(), word) == 0;
  };
  for (std::size_t i = 0; i < trace.entries.size(); ++i) {
    const LaunchTraceEntry& entry = trace.entries[i];
    if (entry.kind != OperationKind::kMark) continue;
    auto& stack = open[entry.thread_index];
    if (entry.mark == "push") {
      const bool eager = begins_with(entry.name, "eager"),
                 replay = begins_with(entry.name, "replay");
      stack.push_back(eager || replay ? static_cast<std::ptrdiff_t>(ranges.size()) : -1);
      if (eager || replay) {
        ranges.push_back(
            {entry.name.substr(eager ? 5 : 6), replay, i + 1, trace.entries.size(), false});
      }
    } else if (entry.mark == "pop" && !stack.empty()) {
      if (stack.back() >= 0) ranges[static_cast<std::size_t>(stack.back())].end = i;
      stack.pop_back();
    }
  }
  return ranges;
}

Trace stretch(const Trace& trace, const Range& range) {
  Trace result;
  result.streams = trace.streams;
  result.graphs = trace.graphs;
  result.entries.assign(trace.entries.begin() + static_cast<std::ptrdiff_t>(range.begin),
                        trace.entries.begin() + static_cast<std::ptrdiff_t>(range.end));
  return result;
}

void verify_ranges(const Trace& trace, VerifyLevel level, std::vector<GraphVerification>& results) {
  std::vector<Range> ranges = marked_ranges(trace);
  for (Range& eager : ranges) {
    if (eager.replay) continue;
    const auto replay = std::find_if(ranges.begin(), ranges.end(), [&](const Range& other) {
      return other.replay && !other.paired && other.label == eager.label;
    });
    if (replay == ranges.end()) continue;
    eager.paired = replay->paired = true;
    GraphVerification& result = results.emplace_back();
    result.label = eager.label;
    result.report = verifying::compare(stretch(trace, eager), stretch(trace, *replay), {level, {}});
  }
  for (const Range& range : ranges) {
    if (range.paired) continue;
    GraphVerification& result = results.emplace_back();
    result.label = range.label;
    result.report.requested = level;
    result.report.findings.push_back(finding_of(
        "unpaired", false,
        fmt::format("the range \"{}{}\" has no partner \"{}{}\"", range.replay ? "replay" : "eager",
                    range.label, range.replay ? "eager" : "replay", range.label)));
  }
}

}  // namespace

VerifyReport verify_traces(const Trace& eager, const Trace& replay, VerifyLevel level,
                           const std::vector<std::string>& allowed_extra) {
  require_trace_level(level);
  VerifyReport report = verifying::compare(eager, replay, {level, allowed_extra});
  refuse_incomplete(eager, "eager", report);
  refuse_incomplete(replay, "replay", report);
  verifying::sort_findings(report.findings);
  return report;
}

std::vector<GraphVerification> verify_recording(const Trace& trace, VerifyLevel level) {
  require_trace_level(level);
  std::vector<Capture> captures = captures_of(trace);
  const std::vector<Key> graphs = graphs_by_launch(trace);
  const std::vector<const Capture*> origins = assign(trace, graphs, captures);
  std::vector<GraphVerification> results;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    results.push_back(verify_graph(trace, graphs[i], origins[i], level));
  }
  verify_ranges(trace, level, results);
  for (GraphVerification& result : results) {
    refuse_incomplete(trace, "the recording", result.report);
    verifying::sort_findings(result.report.findings);
  }
  return results;
}

}  // namespace lockstep
