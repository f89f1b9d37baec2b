// SPDX-License-Identifier: Apache-2.0
#include "src/compare/verify_happens_before.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "src/compare/verify_calls.h"
#include "src/compare/verify_watch.h"
#include "src/trace/graph_order.h"

namespace lockstep::verifying {
namespace {

bool adds(const Clock& known, const Clock& more) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (more[i] > (i < known.size() ? known[i] : 0)) return true;
  }
  return false;
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
      current_ = &entry;
      ++now_;
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
    std::set<std::int64_t> records;  ///< events that its nodes record
  };
  struct EventRecord {
    Clock clock;
    std::uint64_t when = 0;  ///< now_ of the record
  };

  /// Order that there may be besides: joined where the walk assumes it, and told where it would add
  /// something.
  void maybe(Clock& clock, const Clock& more, Doubt::Kind kind, const LaunchTraceEntry* cause) {
    if (!adds(clock, more)) return;
    if (options_.assume_doubtful) join(clock, more);
    const bool told = std::any_of(view.doubts.begin(), view.doubts.end(),
                                  [&](const Doubt& doubt) { return doubt.kind == kind; });
    if (!told) view.doubts.push_back({kind, where(cause), where(current_)});
  }

  std::string where(const LaunchTraceEntry* entry) const {
    if (entry == nullptr) return {};
    std::string text = describe(*entry, 80);
    if (entry->thread_index != 0) text += fmt::format(" of thread {}", entry->thread_index);
    return fmt::format("{} (entry {} as enqueued)", text, entry - trace_.entries.data());
  }

  /// The clock with which the next entry of that stream begins.
  Clock begin_of(const LaunchTraceEntry& entry, Stream& stream, bool programmatic = false) {
    Clock begin = programmatic && stream.after_kernel && !programmatic_is_full_ ? stream.overlapping
                                                                                : stream.tail;
    join(begin, threads_[entry.thread_index]);
    join_legacy(begin, stream);
    if (threads_.size() > 1) {
      const LaunchTraceEntry* latest = nullptr;
      for (const auto& [thread, wait] : last_waits_) {
        if (thread == entry.thread_index) continue;
        if (latest == nullptr || wait > latest) latest = wait;
      }
      maybe(begin, waited_, Doubt::Kind::kOtherThread, latest);
    }
    maybe(begin, polled_, Doubt::Kind::kQuery, last_query_);
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
        record_event(entry.event, stream.tail);
        join(stream_records_, stream.tail);
        last_stream_record_ = now_;
        return;
      }
      case OperationKind::kEventWait: {
        Stream& stream = stream_of(entry);
        Clock begin = begin_of(entry, stream);
        join_event(begin, entry.event);
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
      case OperationKind::kExternalSemaphore: {
        ++view.unfollowed;
        Stream& stream = stream_of(entry);
        Clock begin = begin_of(entry, stream);
        pass_signal(begin);
        pass(stream, begin);
        return;
      }
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
    if (waits_for_end(entry)) end_wait(entry, end);
  }

  void note_chain(Stream& stream) {
    if (relation.size() != 0) stream.chain = relation.chain(relation.size() - 1);
  }

  void end_wait(const LaunchTraceEntry& entry, const Clock& ended) {
    if (is_query(entry)) {
      join(polled_, ended);
      last_query_ = &entry;
      return;
    }
    join(threads_[entry.thread_index], ended);
    join(waited_, ended);
    last_waits_[entry.thread_index] = &entry;
  }

  void synchronize(const LaunchTraceEntry& entry) {
    Clock ended;
    switch (scope_of(entry)) {
      case SyncScope::kEvent:
        join_event(ended, entry.event);
        break;
      case SyncScope::kDevice:
        for (const auto& [index, stream] : streams_) {
          if (stream.device == entry.device) join(ended, stream.tail);
        }
        break;
      case SyncScope::kStream: {
        const Stream& stream = stream_of(entry);
        ended = stream.tail;
        join_legacy(ended, stream);
        break;
      }
    }
    end_wait(entry, ended);
  }

  void record_event(std::int64_t event, const Clock& clock) {
    if (event >= 0) events_[event] = {clock, now_};
  }

  /// A wait of a stream or of the host names the record that it binds. Only a record that the node
  /// of a graph made may have no number: then it may be this event's, and the latest.
  void join_event(Clock& clock, std::int64_t event) {
    const auto found = events_.find(event);
    if (found != events_.end()) {
      if (found->second.when > last_unnumbered_node_) {
        join(clock, found->second.clock);
      } else {
        maybe(clock, found->second.clock, Doubt::Kind::kEventNode, nullptr);
      }
    }
    // Neither the host's notices nor waits without a number know which records nodes made.
    const bool any = event < 0 || event >= kFirstWatchedEvent;
    maybe(clock, any ? node_records_ : unnumbered_nodes_, Doubt::Kind::kEventNode, nullptr);
  }

  /// A node names its event, not a record of it: which stream records were of that event no trace
  /// says. Known is what other nodes recorded, until a stream records anything.
  void join_event_of_node(Clock& clock, std::int64_t event, const Graph& graph) {
    const auto found = events_.find(event);
    if (found != events_.end()) {
      if (found->second.when > std::max(last_stream_record_, last_unnumbered_node_) &&
          graph.records.count(event) == 0) {
        join(clock, found->second.clock);
      } else {
        maybe(clock, found->second.clock, Doubt::Kind::kEventNode, nullptr);
      }
    }
    maybe(clock, stream_records_, Doubt::Kind::kEventNode, nullptr);
    maybe(clock, event < 0 ? node_records_ : unnumbered_nodes_, Doubt::Kind::kEventNode, nullptr);
    for (const auto& [recorded, at] : launch_records_) {
      if (recorded == event || recorded < 0 || event < 0) {
        maybe(clock, at, Doubt::Kind::kEventNode, nullptr);
      }
    }
  }

  /// Waits for a value and writes of one: which wait is for which write is not recorded.
  void pass_signal(Clock& clock) {
    maybe(clock, signals_, Doubt::Kind::kSignal, nullptr);
    join(signals_, clock);
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
    for (const LaunchTraceEntry& node : definition.nodes) {
      if (node.kind == OperationKind::kEventRecord) graph.records.insert(node.event);
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
        ends[node] = run_node(expanded[next++], begin, chains[node], graph);
      }
      join(done, ends[node]);
    }
    // Waits of the same launch bind what had been recorded before it.
    for (const auto& [event, clock] : launch_records_) {
      record_event(event, clock);
      join(node_records_, clock);
      if (event >= 0) continue;
      join(unnumbered_nodes_, clock);
      last_unnumbered_node_ = now_;
    }
    launch_records_.clear();
    last_run = done;
    pass(stream, done);
  }

  Clock run_node(LaunchTraceEntry& node, Clock& begin, std::int64_t& chain, const Graph& graph) {
    switch (node.kind) {
      case OperationKind::kAlloc:
      case OperationKind::kFree:
        ++view.memory_nodes;
        return begin;
      case OperationKind::kHostFunc:
        ++view.host_functions;
        return begin;
      case OperationKind::kEventRecord:
        launch_records_.emplace_back(node.event, begin);
        return begin;
      case OperationKind::kEventWait:
        join_event_of_node(begin, node.event, graph);
        return begin;
      case OperationKind::kStreamMemOp:
      case OperationKind::kExternalSemaphore:
        ++view.unfollowed;
        pass_signal(begin);
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
  std::map<std::int64_t, EventRecord> events_;
  std::vector<std::pair<std::int64_t, Clock>> launch_records_;  ///< by nodes of the present launch
  Clock stream_records_;    ///< of all events that streams recorded
  Clock node_records_;      ///< of all events that nodes recorded
  Clock unnumbered_nodes_;  ///< of all records by nodes that have no number
  Clock waited_;            ///< what any thread has waited for
  Clock polled_;            ///< what any query found ended
  Clock signals_;           ///< of stream memory operations and semaphores
  std::uint64_t now_ = 0, last_stream_record_ = 0, last_unnumbered_node_ = 0;
  const LaunchTraceEntry *current_ = nullptr, *last_query_ = nullptr;
  std::map<std::uint32_t, const LaunchTraceEntry*> last_waits_;  ///< by thread
  std::map<std::uint32_t, Clock> threads_;
  std::map<std::int32_t, Clock> runs_;  ///< by graph: end of its latest launch
  std::map<std::pair<std::int32_t, std::uint32_t>, Graph> graphs_;
  std::size_t positions_ = 0;
  std::uint64_t launches_ = 0;
};

}  // namespace

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
