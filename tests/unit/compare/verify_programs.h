// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>
#include <lockstep/verify.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Traces built by hand, for tests of verification.
namespace lockstep::testing_verify {

inline LaunchTraceEntry kernel(const std::string& name, std::uint32_t stream = 0, Dim3 grid = {4},
                               Dim3 block = {256}, std::uint64_t shared = 0) {
  LaunchTraceEntry entry;
  entry.kind = OperationKind::kKernelLaunch;
  entry.name = name;
  entry.stream_index = stream;
  entry.grid_x = grid.x, entry.grid_y = grid.y, entry.grid_z = grid.z;
  entry.block_x = block.x, entry.block_y = block.y, entry.block_z = block.z;
  entry.shared_mem_bytes = shared;
  entry.semantic_hash = semantic_hash(entry);
  return entry;
}

inline LaunchTraceEntry copy(std::uint64_t bytes, std::uint32_t stream = 0,
                             MemcpyKind kind = MemcpyKind::kHtoD,
                             const std::string& name = "hostMemcpyAsync") {
  LaunchTraceEntry entry;
  entry.kind = OperationKind::kMemcpy;
  entry.name = name;
  entry.stream_index = stream;
  entry.memcpy_kind = kind;
  entry.memcpy_byte_size = bytes;
  entry.extent = {bytes, 1, 1};
  entry.semantic_hash = semantic_hash(entry);
  return entry;
}

inline LaunchTraceEntry set(std::uint64_t bytes, std::uint32_t value, std::uint32_t stream = 0) {
  LaunchTraceEntry entry;
  entry.kind = OperationKind::kMemset;
  entry.name = "hostMemsetD32Async";
  entry.stream_index = stream;
  entry.memset_byte_size = bytes;
  entry.extent = {bytes, 1, 1};
  entry.memset_value = value;
  entry.memset_value_size = 4;
  entry.semantic_hash = semantic_hash(entry);
  return entry;
}

inline LaunchTraceEntry other(OperationKind kind, std::uint32_t stream, std::int64_t event = -1,
                              const std::string& name = "") {
  LaunchTraceEntry entry;
  entry.kind = kind;
  entry.name = name;
  entry.stream_index = stream;
  entry.event = event;
  return entry;
}
inline LaunchTraceEntry record(std::int64_t event, std::uint32_t stream) {
  return other(OperationKind::kEventRecord, stream, event, "hostEventRecord");
}
inline LaunchTraceEntry wait(std::int64_t event, std::uint32_t stream) {
  return other(OperationKind::kEventWait, stream, event, "hostStreamWaitEvent");
}
inline LaunchTraceEntry mark(const std::string& push_or_pop, const std::string& name) {
  LaunchTraceEntry entry = other(OperationKind::kMark, 0, -1, name);
  entry.mark = push_or_pop;
  return entry;
}

inline TraceArgument pointer(std::uint32_t buffer, std::uint64_t offset = 0) {
  TraceArgument argument;
  argument.tag = TraceArgument::Tag::kPointer;
  argument.size = 8;
  argument.buffer = buffer;
  argument.offset = offset;
  return argument;
}
inline TraceArgument scalar(std::uint32_t value) {
  TraceArgument argument;
  argument.size = 4;
  argument.bytes.resize(4);
  std::memcpy(argument.bytes.data(), &value, 4);
  return argument;
}
inline LaunchTraceEntry with(LaunchTraceEntry entry, std::vector<TraceArgument> arguments) {
  entry.arguments = std::move(arguments);
  entry.argument_hash = argument_hash(entry.arguments);
  return entry;
}

inline Trace trace_of(std::vector<LaunchTraceEntry> entries) {
  Trace trace;
  trace.entries = std::move(entries);
  trace.footer.present = true;
  trace.footer.entries = trace.entries.size();
  return trace;
}

/// One launch, on stream 0, of a graph of these nodes.
inline Trace graph_of(std::vector<LaunchTraceEntry> nodes,
                      std::vector<std::pair<std::uint32_t, std::uint32_t>> edges,
                      std::vector<std::uint32_t> programmatic = {}) {
  GraphDefinition graph;
  graph.graph = 0;
  graph.version = 1;
  graph.nodes = std::move(nodes);
  graph.edges = std::move(edges);
  graph.programmatic_edges = std::move(programmatic);
  LaunchTraceEntry launch = other(OperationKind::kGraphLaunch, 0, -1, "hostGraphLaunch");
  launch.graph = 0;
  launch.graph_version = 1;
  Trace trace = trace_of({launch});
  trace.graphs.emplace(std::pair(0, 1u), std::move(graph));
  return trace;
}

/// The graph of a chain of nodes.
inline Trace chain_of(std::vector<LaunchTraceEntry> nodes) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (std::uint32_t i = 1; i < nodes.size(); ++i) edges.emplace_back(i - 1, i);
  return graph_of(std::move(nodes), std::move(edges));
}

inline const VerifyFinding* find(const VerifyReport& report, VerifyLevel level,
                                 const std::string& what, bool note = false) {
  for (const VerifyFinding& finding : report.findings) {
    if (finding.level == level && finding.what == what && finding.note == note) return &finding;
  }
  return nullptr;
}

inline std::size_t failures(const VerifyReport& report) {
  std::size_t count = 0;
  for (const VerifyFinding& finding : report.findings) count += finding.note ? 0 : 1;
  return count;
}

}  // namespace lockstep::testing_verify
