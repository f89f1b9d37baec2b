// SPDX-License-Identifier: Apache-2.0
#include "src/compare/verify_happens_before.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/trace/graph_order.h"

namespace lockstep::verifying {
namespace {

/// 512 MiB of clock numbers. Beyond it order is not decided rather than the machine filled.
constexpr std::uint64_t kMaxClockCells = std::uint64_t{1} << 27;

/// Attributes are compact JSON; the key's spelling is the vendor's own, the word is common to all.
bool is_programmatic_launch(const LaunchTraceEntry& entry) {
  const std::string_view text = entry.attributes;
  const std::size_t word = text.find("programmatic");
  if (word == std::string_view::npos) return false;
  const std::size_t colon = text.find(':', word);
  if (colon == std::string_view::npos || colon + 1 >= text.size()) return false;
  const char value = text[colon + 1];
  return value != '0' && value != 'f' && value != 'n';
}

enum class SyncScope { kStream, kEvent, kDevice };

SyncScope scope_of(const LaunchTraceEntry& entry) {
  const std::string_view name = entry.name;
  const auto says = [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  if (says("Event") || says("event")) return SyncScope::kEvent;
  if (entry.event >= 0) return SyncScope::kEvent;
  // Our recorder says so where there is no stream; names decide in the files of others.
  for (const auto& [key, value] : entry.unknown) {
    if (key == "scope" && value == "\"device\"") return SyncScope::kDevice;
  }
  if (says("Ctx") || says("Context") || says("Device") || says("device")) return SyncScope::kDevice;
  return SyncScope::kStream;
}

/// Copies to the host block their thread unless the call says otherwise. Uploads do not: from
/// pageable memory they return before the data is on the device.
bool waits_for_end(const LaunchTraceEntry& entry) {
  return entry.kind == OperationKind::kMemcpy &&
         (entry.memcpy_kind == MemcpyKind::kDtoH || entry.memcpy_kind == MemcpyKind::kHtoH) &&
         !entry.name.empty() && entry.name.find("Async") == std::string::npos;
}

bool is_compared(const LaunchTraceEntry& entry) {
  return is_core_kind(entry.kind) || entry.kind == OperationKind::kOpaque;
}

/// Walks a trace once and builds one relation. Which entries are compared does not depend on
/// `programmatic_is_full`, so that two walks number them alike.
class Walk {
 public:
  Walk(const Trace& trace, const OrderedViewOptions& options, bool programmatic_is_full)
      : trace_(trace), options_(options), programmatic_is_full_(programmatic_is_full) {
    for (const StreamDefinition& stream : trace.streams) {
      Stream& state = streams_[stream.stream];
      state.context = {stream.device, stream.context};
      state.device = stream.device;
      state.blocking = stream.blocking && !stream.legacy;
      state.legacy = stream.legacy;
      state.defined = true;
    }
  }

  void run() {
    for (const LaunchTraceEntry& entry : trace_.entries) {
      if (entry.has(EntryFlag::kCaptured) || entry.has(EntryFlag::kFailed)) continue;
      push(entry);
    }
  }

  OrderedView view;
  OrderRelation relation;

 private:
  struct Stream {
    Clock tail;         ///< of the end of everything enqueued so far
    Clock overlapping;  ///< with which a programmatic launch begins that comes next
    std::int64_t chain = -1;
    std::pair<std::int32_t, std::uint32_t> context{0, 0};
    std::int32_t device = 0;
    bool blocking = false, legacy = false, defined = false;
    bool after_kernel = false;
  };
  struct Graph {
    GraphOrder order;
    std::vector<std::vector<std::pair<std::uint32_t, bool>>> before;  ///< (node, programmatic)
  };

  /// The clock with which the next entry of that stream begins.
  Clock begin_of(const LaunchTraceEntry& entry, Stream& stream, bool programmatic = false) {
    Clock begin = programmatic && stream.after_kernel && !programmatic_is_full_ ? stream.overlapping
                                                                                : stream.tail;
    join(begin, threads_[entry.thread_index]);
    join_legacy(begin, stream);
    return begin;
  }

  void join_legacy(Clock& clock, const Stream& stream) {
    if (!stream.legacy && !stream.blocking) return;
    for (const auto& [index, other] : streams_) {
      if (other.context == stream.context && (stream.legacy ? other.blocking : other.legacy)) {
        join(clock, other.tail);
      }
    }
  }

  static void pass(Stream& stream, const Clock& begin) {
    join(stream.tail, begin);
    stream.overlapping = stream.tail;
    stream.after_kernel = false;
  }

  Stream& stream_of(const LaunchTraceEntry& entry) {
    Stream& stream = streams_[entry.stream_index];
    if (!stream.defined) stream.device = entry.device;
    return stream;
  }

  /// Keeps an entry of the view and orders it, or lets the order pass through where it is left out.
  Clock observe(LaunchTraceEntry entry, const Clock& begin, std::int64_t preferred) {
    const std::size_t position = positions_++;
    if (std::binary_search(options_.left_out.begin(), options_.left_out.end(), position)) {
      return begin;
    }
    if (entry.semantic_hash == 0) entry.semantic_hash = semantic_hash(entry);
    view.entries.push_back(std::move(entry));
    return relation.add(begin, preferred);
  }

  void push(const LaunchTraceEntry& entry) {
    switch (entry.kind) {
      case OperationKind::kMark:
        return;
      case OperationKind::kSynchronize:
        return synchronize(entry);
      case OperationKind::kGraphLaunch:
        return launch_graph(entry);
      case OperationKind::kEventRecord: {
        Stream& stream = stream_of(entry);
        pass(stream, begin_of(entry, stream));
        if (entry.event >= 0) events_[entry.event] = stream.tail;
        return;
      }
      case OperationKind::kEventWait: {
        Stream& stream = stream_of(entry);
        Clock begin = begin_of(entry, stream);
        const auto found = events_.find(entry.event);
        if (found != events_.end()) join(begin, found->second);
        pass(stream, begin);
        return;
      }
      case OperationKind::kAlloc:
      case OperationKind::kFree:
        // Only stream-ordered ones are work of a stream.
        if (entry.name.find("Async") == std::string::npos) return;
        break;
      case OperationKind::kHostFunc:
        ++view.host_functions;
        break;
      case OperationKind::kStreamMemOp:
      case OperationKind::kExternalSemaphore:
        ++view.unfollowed;
        break;
      default:
        break;
    }
    Stream& stream = stream_of(entry);
    if (!is_compared(entry) || entry.is_empty_operation() || entry.has(EntryFlag::kInternal)) {
      pass(stream, begin_of(entry, stream));
      return;
    }
    const bool kernel = entry.kind == OperationKind::kKernelLaunch;
    const bool programmatic = kernel && is_programmatic_launch(entry);
    view.has_programmatic |= programmatic && stream.after_kernel;
    const Clock begin = begin_of(entry, stream, programmatic);
    const Clock end = observe(entry, begin, stream.chain);
    note_chain(stream);
    join(stream.tail, end);
    stream.overlapping = begin;
    stream.after_kernel = kernel;
    if (waits_for_end(entry)) join(threads_[entry.thread_index], end);
  }

  void note_chain(Stream& stream) {
    if (relation.size() != 0) stream.chain = relation.chain(relation.size() - 1);
  }

  void synchronize(const LaunchTraceEntry& entry) {
    Clock& thread = threads_[entry.thread_index];
    switch (scope_of(entry)) {
      case SyncScope::kEvent: {
        const auto found = events_.find(entry.event);
        if (found != events_.end()) join(thread, found->second);
        return;
      }
      case SyncScope::kDevice:
        for (const auto& [index, stream] : streams_) {
          if (stream.device == entry.device) join(thread, stream.tail);
        }
        return;
      case SyncScope::kStream: {
        Stream& stream = stream_of(entry);
        join(thread, stream.tail);
        join_legacy(thread, stream);
        return;
      }
    }
  }

  Graph& graph_of(const GraphDefinition& definition) {
    const auto [at, added] = graphs_.try_emplace({definition.graph, definition.version});
    Graph& graph = at->second;
    if (!added) return graph;
    graph.order = order_graph(definition);
    graph.before.resize(definition.nodes.size());
    std::vector<bool> programmatic(definition.edges.size(), false);
    for (const std::uint32_t edge : definition.programmatic_edges) {
      if (edge < programmatic.size()) programmatic[edge] = true;
    }
    for (std::size_t e = 0; e < definition.edges.size(); ++e) {
      graph.before[definition.edges[e].second].emplace_back(definition.edges[e].first,
                                                            programmatic[e]);
    }
    return graph;
  }

  void launch_graph(const LaunchTraceEntry& entry) {
    Stream& stream = stream_of(entry);
    const GraphDefinition* definition = trace_.find_graph(entry.graph, entry.graph_version);
    Clock start = begin_of(entry, stream);
    LaunchTraceEntry launch = entry;
    launch.launch = launches_++;
    if (definition == nullptr) {
      if (entry.has(EntryFlag::kInternal)) return pass(stream, start);
      pass(stream, observe(launch, start, stream.chain));
      return note_chain(stream);
    }
    in_internal_launch_ = entry.has(EntryFlag::kInternal);
    Clock& last_run = runs_[entry.graph];
    join(start, last_run);
    const Graph& graph = graph_of(*definition);
    view.has_programmatic |= !definition->programmatic_edges.empty();

    std::vector<LaunchTraceEntry> expanded = expand_ordered(*definition, graph.order, launch);
    std::size_t next = 0;
    const std::size_t count = definition->nodes.size();
    std::vector<Clock> begins(count), ends(count);
    std::vector<std::int64_t> chains(count, stream.chain);
    Clock done = start;
    for (const std::uint32_t node : graph.order.order) {
      Clock& begin = begins[node];
      begin = start;
      for (const auto& [earlier, programmatic] : graph.before[node]) {
        // A programmatic successor begins no earlier than its predecessor does, and knows no more.
        join(begin, programmatic && !programmatic_is_full_ ? begins[earlier] : ends[earlier]);
        chains[node] = chains[earlier];
      }
      if (definition->nodes[node].has(EntryFlag::kDisabled)) {
        ends[node] = begin;
      } else {
        ends[node] = run_node(expanded[next++], begin, chains[node]);
      }
      join(done, ends[node]);
    }
    last_run = done;
    pass(stream, done);
  }

  Clock run_node(LaunchTraceEntry& node, Clock& begin, std::int64_t& chain) {
    switch (node.kind) {
      case OperationKind::kAlloc:
      case OperationKind::kFree:
        ++view.memory_nodes;
        return begin;
      case OperationKind::kHostFunc:
        ++view.host_functions;
        return begin;
      case OperationKind::kEventRecord:
        if (node.event >= 0) events_[node.event] = begin;
        return begin;
      case OperationKind::kEventWait: {
        const auto found = events_.find(node.event);
        if (found != events_.end()) join(begin, found->second);
        return begin;
      }
      case OperationKind::kStreamMemOp:
      case OperationKind::kExternalSemaphore:
        ++view.unfollowed;
        return begin;
      default:
        break;
    }
    if (in_internal_launch_ || !is_compared(node) || node.is_empty_operation()) return begin;
    const std::size_t before = relation.size();
    Clock end = observe(std::move(node), begin, chain);
    if (relation.size() != before) chain = relation.chain(before);
    return end;
  }

  const Trace& trace_;
  const OrderedViewOptions& options_;
  const bool programmatic_is_full_;
  bool in_internal_launch_ = false;
  std::map<std::uint32_t, Stream> streams_;
  std::map<std::int64_t, Clock> events_;
  std::map<std::uint32_t, Clock> threads_;
  std::map<std::int32_t, Clock> runs_;  ///< by graph: end of its latest launch
  std::map<std::pair<std::int32_t, std::uint32_t>, Graph> graphs_;
  std::size_t positions_ = 0;
  std::uint64_t launches_ = 0;
};

}  // namespace

void join(Clock& into, const Clock& other) {
  if (into.size() < other.size()) into.resize(other.size(), 0);
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

Clock OrderRelation::add(const Clock& begin, std::int64_t preferred) {
  const auto has_ended = [&](std::size_t c) {
    return c < begin.size() && begin[c] == chains_[c].size();
  };
  std::size_t chain = chains_.size();
  if (preferred >= 0 && has_ended(static_cast<std::size_t>(preferred))) {
    chain = static_cast<std::size_t>(preferred);
  } else {
    for (std::size_t c = 0; c < begin.size() && chain == chains_.size(); ++c) {
      if (has_ended(c)) chain = c;
    }
  }
  if (chain == chains_.size()) chains_.emplace_back();
  const auto entry = static_cast<std::uint32_t>(begin_.size());
  chain_.push_back(static_cast<std::uint32_t>(chain));
  position_.push_back(static_cast<std::uint32_t>(chains_[chain].size()));
  chains_[chain].push_back(entry);
  cells_ += begin.size();
  if (cells_ > kMaxClockCells) complete_ = false;
  begin_.push_back(complete_ ? begin : Clock{});
  Clock end = begin;
  if (end.size() <= chain) end.resize(chain + 1, 0);
  end[chain] = static_cast<std::uint32_t>(chains_[chain].size());
  return end;
}

std::uint64_t OrderRelation::predecessors(std::size_t entry) const noexcept {
  return std::accumulate(begin_[entry].begin(), begin_[entry].end(), std::uint64_t{0});
}

std::vector<std::uint32_t> OrderRelation::covers(std::size_t entry) const {
  std::vector<std::uint32_t> latest;
  visit_latest(entry, [&](std::uint32_t earlier) { latest.push_back(earlier); });
  // Latest first: what is implied at all is implied by one that is not, and that one is later.
  std::sort(latest.begin(), latest.end(), std::greater<>());
  std::vector<std::uint32_t> result;
  for (const std::uint32_t candidate : latest) {
    const bool implied = std::any_of(result.begin(), result.end(),
                                     [&](std::uint32_t later) { return before(candidate, later); });
    if (!implied) result.push_back(candidate);
  }
  return result;
}

OrderedView ordered_view(const Trace& trace, const OrderedViewOptions& options) {
  Walk strong(trace, options, false);
  strong.run();
  OrderedView view = std::move(strong.view);
  view.strong = std::move(strong.relation);
  if (view.has_programmatic) {
    Walk weak(trace, options, true);
    weak.run();
    view.programmatic_too = std::move(weak.relation);
  }
  view.creation.resize(view.entries.size());
  std::iota(view.creation.begin(), view.creation.end(), 0u);
  // Nodes of one launch stand together, in executed order; they were made in node order.
  for (std::size_t begin = 0; begin < view.entries.size();) {
    const LaunchTraceEntry& first = view.entries[begin];
    std::size_t end = begin + 1;
    while (first.has(EntryFlag::kReplayed) && end < view.entries.size() &&
           view.entries[end].has(EntryFlag::kReplayed) &&
           view.entries[end].launch == first.launch) {
      ++end;
    }
    std::sort(view.creation.begin() + static_cast<std::ptrdiff_t>(begin),
              view.creation.begin() + static_cast<std::ptrdiff_t>(end),
              [&](std::uint32_t a, std::uint32_t b) {
                return std::tie(view.entries[a].node, a) < std::tie(view.entries[b].node, b);
              });
    begin = end;
  }
  return view;
}

}  // namespace lockstep::verifying
