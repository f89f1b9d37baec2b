// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>
#include <lockstep/trace_entry.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// A whole trace in memory: entries in enqueue order and what they refer to. For traces too large
/// for memory see TraceReader and TraceWriter (trace_file.h).
namespace lockstep {

/// One executable version of a graph. Nodes are in creation order and carry no stream.
struct GraphDefinition {
  std::int32_t graph = 0;
  std::uint32_t version = 0;
  std::vector<LaunchTraceEntry> nodes;
  /// (from, to) node ordinals: `from` ends before `to` begins.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  /// Ordinals into `edges` of programmatic edges: weaker than full ones.
  std::vector<std::uint32_t> programmatic_edges;
  std::vector<std::pair<std::string, std::string>> unknown;  ///< kept keys, as JSON text

  friend bool operator==(const GraphDefinition&, const GraphDefinition&) = default;
};

struct StreamDefinition {
  std::uint32_t stream = 0;
  std::int32_t device = 0;
  std::uint32_t context = 0;
  bool blocking = false;  ///< synchronises with the legacy default stream
  bool legacy = false;    ///< is the legacy default stream of its context
  std::vector<std::pair<std::string, std::string>> unknown;

  friend bool operator==(const StreamDefinition&, const StreamDefinition&) = default;
};

struct TraceDevice {
  std::int32_t ordinal = 0;
  std::string name;
  std::string arch;
  std::string uuid;  ///< "" when not known

  friend bool operator==(const TraceDevice&, const TraceDevice&) = default;
};

/// What is known of where a trace came from: the header and all `meta` lines, merged.
struct TraceInfo {
  std::string producer;
  std::vector<std::string> command;
  std::int64_t pid = 0;  ///< 0 = not known
  std::vector<TraceDevice> devices;
  std::string driver;
  bool simulated = false;
  std::vector<std::pair<std::string, std::string>> unknown;  ///< other header and meta keys

  friend bool operator==(const TraceInfo&, const TraceInfo&) = default;
};

/// True when whoever recorded counts `holes` in its coverage: work that the trace lacks. `coverage`
/// is a footer's, flat JSON as recorders write it.
inline bool has_holes(std::string_view coverage) noexcept {
  constexpr std::string_view kKey = "\"holes\":";
  const std::size_t at = coverage.find(kKey);
  if (at == std::string_view::npos) return false;
  const std::size_t value = coverage.find_first_not_of(' ', at + kKey.size());
  return value != std::string_view::npos && coverage[value] != '0';
}

/// Counts that the footer reports. `present` is false for a truncated trace.
struct TraceFooter {
  bool present = false;
  std::uint64_t entries = 0;
  std::uint64_t dropped = 0;
  std::uint64_t stalls = 0;  ///< times a full ring made a launcher wait
  std::uint64_t racing = 0;  ///< pairs of calls on one stream that overlapped in time
  std::string coverage;      ///< JSON object text, "" = none
  std::vector<std::pair<std::string, std::string>> unknown;

  friend bool operator==(const TraceFooter&, const TraceFooter&) = default;
};

/// Entries in file order, with the definitions they refer to.
struct LOCKSTEP_API Trace {
  TraceInfo info;
  std::vector<StreamDefinition> streams;
  /// By (graph, version).
  std::map<std::pair<std::int32_t, std::uint32_t>, GraphDefinition> graphs;
  std::vector<LaunchTraceEntry> entries;
  TraceFooter footer;

  /// The definition of that graph version, nullptr when there is none.
  const GraphDefinition* find_graph(std::int32_t graph, std::uint32_t version) const noexcept;
};

/// Which entries a view holds.
struct ViewOptions {
  /// Executed: captured, failed and empty entries and entries marked internal are left out, graph
  /// launches stand as their nodes. Enqueued: what the file holds, in its order.
  enum class Kind : std::uint8_t { kExecuted, kEnqueued };

  Kind kind = Kind::kExecuted;
  /// Kernel, memcpy, memset, opaque; enqueued: also graph launches, which stand for their work.
  bool core_kinds_only = true;
  std::vector<OperationKind> kinds;  ///< when not empty: exactly these (core_kinds_only ignored)
};

/// The nodes of one launch of `graph` in executed order: Kahn's order, ties by creation, disabled
/// nodes left out, `branch` set to the ordinal of each node's chain. Chains cover the graph: in
/// executed order, a node that no chain holds yet begins the next one, which goes on with the first
/// successor by creation that no chain holds, as long as there is one. Stream, device where the
/// node has none, launch ordinal and sequence come from `launch`. \throws Error (kInvalidArgument)
/// when the edges have a cycle or name a node that is not there.
LOCKSTEP_API std::vector<LaunchTraceEntry> expand_graph(const GraphDefinition& graph,
                                                        const LaunchTraceEntry& launch);

/// Entries of `trace` as `options` ask. A launch of a graph without a definition stays as it is,
/// whatever kinds were asked for, so that nothing is lost unseen.
LOCKSTEP_API std::vector<LaunchTraceEntry> view(const Trace& trace,
                                                const ViewOptions& options = {});

}  // namespace lockstep
