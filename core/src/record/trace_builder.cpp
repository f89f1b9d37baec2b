// SPDX-License-Identifier: Apache-2.0
#include "src/record/trace_builder.h"

#include <algorithm>

namespace lockstep::record {
namespace {

/// Work gives its stream a number; what only orders, frees or waits does not.
bool introduces_stream(OperationKind kind) {
  switch (kind) {
    case OperationKind::kEventRecord:
    case OperationKind::kEventWait:
    case OperationKind::kAlloc:
    case OperationKind::kFree:
    case OperationKind::kSynchronize:
    case OperationKind::kMark:
      return false;
    default:
      return true;
  }
}

template <class List, class Value>
bool names(const List& list, const Value& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

template <class Map, class Number>
Number number_of(Map& map, std::uint64_t identity, Number first) {
  return map.try_emplace(identity, static_cast<Number>(map.size() + first)).first->second;
}

}  // namespace

TraceBuilder::TraceBuilder(TraceOutput& output, TraceFilter filter, std::uint64_t first_sequence,
                           std::uint64_t begin_ns)
    : output_(output),
      filter_(std::move(filter)),
      first_sequence_(first_sequence),
      begin_ns_(begin_ns) {}

bool TraceBuilder::accepts(const DecodedEntry& decoded) const {
  return decoded.private_work == private_ && decoded.entry.sequence >= first_sequence_ &&
         names(filter_.streams, decoded.stream) && names(filter_.devices, decoded.entry.device) &&
         names(filter_.threads, decoded.thread) &&
         (decoded.entry.kind == OperationKind::kGraphLaunch ||
          names(filter_.kinds, decoded.entry.kind));
}

std::int32_t TraceBuilder::graph_number(std::uint64_t graph) {
  return graph == 0 ? -1 : number_of(graphs_, graph, std::int32_t{0});
}

std::int64_t TraceBuilder::event_number(std::uint64_t event) {
  return event == 0 ? -1 : number_of(events_, event, std::int64_t{0});
}

void TraceBuilder::place(TraceArgument& argument, const Place& place) {
  if (place.allocation == 0) return;
  argument.buffer = number_of(buffers_, place.allocation, std::uint32_t{1});
  argument.offset = place.offset;
}

void TraceBuilder::number_places(LaunchTraceEntry& entry, const DecodedEntry& decoded) {
  for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
    if (entry.arguments[i].tag == TraceArgument::Tag::kPointer) {
      place(entry.arguments[i], decoded.arguments[i]);
    }
  }
  if (decoded.arguments_known) entry.argument_hash = argument_hash(entry.arguments);
  const auto side = [&](TraceArgument& argument, const Place& where) {
    argument.tag = TraceArgument::Tag::kPointer;
    place(argument, where);
  };
  if (entry.kind == OperationKind::kMemcpy) side(entry.source, decoded.source);
  if (entry.kind == OperationKind::kMemcpy || entry.kind == OperationKind::kMemset ||
      entry.kind == OperationKind::kPrefetch) {
    side(entry.destination, decoded.destination);
  }
  // Allocating and freeing is no use: buffers have the same numbers wherever they were allocated.
  if (entry.kind == OperationKind::kFree && buffers_.contains(decoded.destination.allocation)) {
    side(entry.destination, decoded.destination);
  }
}

StreamDefinition TraceBuilder::definition_of(std::uint32_t index, std::uint64_t stream,
                                             const LaunchTraceEntry& entry,
                                             const Definitions& definitions) {
  const StreamInfo info = definitions.stream(stream, entry);
  StreamDefinition definition;
  definition.stream = index;
  definition.device = info.device;
  definition.context = number_of(contexts_, info.context, std::uint32_t{0});
  definition.blocking = info.blocking != 0;
  definition.legacy = info.blocking == 2;
  return definition;
}

void TraceBuilder::number_stream(LaunchTraceEntry& entry, std::uint64_t stream,
                                 const Definitions& definitions) {
  if (stream == 0) {
    // Of the whole device: only its name tells it from stream 0 otherwise.
    if (entry.kind == OperationKind::kSynchronize && entry.event < 0) {
      entry.unknown.emplace_back("scope", "\"device\"");
    }
    return;
  }
  const auto known = streams_.find(stream);
  if (known != streams_.end()) {
    entry.stream_index = known->second;
    return;
  }
  const auto waiting = provisional_.find(stream);
  if (introduces_stream(entry.kind)) {
    entry.stream_index = number_of(streams_, stream, std::uint32_t{0});
    const StreamDefinition definition =
        definition_of(entry.stream_index, stream, entry, definitions);
    if (waiting == provisional_.end()) return output_.add(definition);
    return output_.resolve(waiting->second.stream, definition);
  }
  if (waiting != provisional_.end()) {
    entry.stream_index = waiting->second.stream;
    return;
  }
  entry.stream_index = kProvisional + static_cast<std::uint32_t>(provisional_.size());
  const StreamDefinition definition = definition_of(entry.stream_index, stream, entry, definitions);
  provisional_.emplace(stream, definition);
  output_.add(definition);
}

void TraceBuilder::define_graph(std::uint64_t graph, std::int32_t number, std::uint32_t version,
                                const Definitions& definitions) {
  const RecordedGraph* recorded = definitions.graph(graph, version);
  if (recorded == nullptr || !defined_graphs_.emplace(graph, version).second) return;
  GraphDefinition definition;
  definition.graph = number;
  definition.version = version;
  definition.nodes.reserve(recorded->nodes.size());
  for (const DecodedEntry& node : recorded->nodes) {
    LaunchTraceEntry entry = node.entry;
    number_places(entry, node);
    entry.event = event_number(node.event);
    definition.nodes.push_back(std::move(entry));
  }
  for (const lockstep_graph_edge& edge : recorded->edges) {
    if (edge.programmatic != 0) {
      definition.programmatic_edges.push_back(static_cast<std::uint32_t>(definition.edges.size()));
    }
    definition.edges.emplace_back(edge.from, edge.to);
  }
  output_.add(std::move(definition));
}

void TraceBuilder::add(DecodedEntry decoded, std::uint64_t time_ns, std::uint64_t racing,
                       const Definitions& definitions) {
  LaunchTraceEntry entry = std::move(decoded.entry);
  racing_ += racing;
  entry.time_ns = time_ns > begin_ns_ ? static_cast<std::int64_t>(time_ns - begin_ns_) : 0;
  entry.thread_index = number_of(threads_, decoded.thread, std::uint32_t{0});
  entry.event = event_number(decoded.event);
  if (entry.kind == OperationKind::kGraphLaunch) {
    entry.graph = graph_number(decoded.graph);
    define_graph(decoded.graph, entry.graph, entry.graph_version, definitions);
  } else if (decoded.end.graph != 0) {
    entry.graph = graph_number(decoded.end.graph);
    entry.node = decoded.end.node;
  }
  number_places(entry, decoded);
  number_stream(entry, decoded.stream, definitions);
  output_.add(std::move(entry));
}

void TraceBuilder::amend(std::uint64_t sequence, const recorder::EndFields& end) {
  if (sequence < first_sequence_) return;
  output_.amend(sequence, static_cast<std::uint16_t>(end.flags), graph_number(end.graph),
                end.graph != 0 ? end.node : -1);
}

void TraceBuilder::finish() {
  std::map<std::uint32_t, StreamDefinition> idle;
  const auto finals = final_streams();
  for (const auto& [stream, definition] : provisional_) {
    if (!streams_.contains(stream)) idle.emplace(definition.stream, definition);
  }
  for (auto& [provisional, definition] : idle) {
    definition.stream = finals.at(provisional);
    output_.resolve(provisional, definition);
  }
}

std::map<std::uint32_t, std::uint32_t> TraceBuilder::final_streams() const {
  std::map<std::uint32_t, std::uint64_t> in_order;
  for (const auto& [stream, definition] : provisional_) in_order.emplace(definition.stream, stream);
  std::map<std::uint32_t, std::uint32_t> finals;
  auto next = static_cast<std::uint32_t>(streams_.size());
  for (const auto& [number, stream] : in_order) {
    const auto known = streams_.find(stream);
    finals.emplace(number, known != streams_.end() ? known->second : next++);
  }
  return finals;
}

}  // namespace lockstep::record
