// SPDX-License-Identifier: Apache-2.0
#include "src/trace/graph_order.h"

#include <lockstep/error.h>

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <queue>

namespace lockstep {
namespace {

constexpr std::uint32_t kNoChain = std::numeric_limits<std::uint32_t>::max();

/// Successors of every node in one array, sorted by node.
struct Successors {
  std::vector<std::size_t> begin;
  std::vector<std::uint32_t> to;

  explicit Successors(const GraphDefinition& graph) : begin(graph.nodes.size() + 1, 0) {
    for (const auto& [from, target] : graph.edges) {
      if (from >= graph.nodes.size() || target >= graph.nodes.size()) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("graph {} version {}: edge [{},{}] names a node that is not there "
                                "({} nodes)",
                                graph.graph, graph.version, from, target, graph.nodes.size()));
      }
      ++begin[from + 1];
    }
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    to.resize(graph.edges.size());
    std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
    for (const auto& [from, target] : graph.edges) to[next[from]++] = target;
    for (std::size_t i = 0; i + 1 < begin.size(); ++i) {
      std::sort(to.begin() + static_cast<std::ptrdiff_t>(begin[i]),
                to.begin() + static_cast<std::ptrdiff_t>(begin[i + 1]));
    }
  }
};

}  // namespace

GraphOrder order_graph(const GraphDefinition& graph) {
  const std::size_t count = graph.nodes.size();
  const Successors successors(graph);
  std::vector<std::uint32_t> waiting_for(count, 0);
  for (const std::uint32_t target : successors.to) ++waiting_for[target];

  GraphOrder result;
  result.order.reserve(count);
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t node = 0; node < count; ++node) {
    if (waiting_for[node] == 0) ready.push(node);
  }
  while (!ready.empty()) {
    const std::uint32_t node = ready.top();
    ready.pop();
    result.order.push_back(node);
    for (std::size_t i = successors.begin[node]; i < successors.begin[node + 1]; ++i) {
      if (--waiting_for[successors.to[i]] == 0) ready.push(successors.to[i]);
    }
  }
  if (result.order.size() != count) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("graph {} version {}: its edges have a cycle", graph.graph, graph.version));
  }

  result.chain.assign(count, kNoChain);
  std::uint32_t chains = 0;
  for (const std::uint32_t first : result.order) {
    if (result.chain[first] != kNoChain) continue;
    const std::uint32_t chain = chains++;
    std::uint32_t node = first;
    while (true) {
      result.chain[node] = chain;
      const auto begin =
          successors.to.begin() + static_cast<std::ptrdiff_t>(successors.begin[node]);
      const auto end =
          successors.to.begin() + static_cast<std::ptrdiff_t>(successors.begin[node + 1]);
      const auto next = std::find_if(
          begin, end, [&](std::uint32_t target) { return result.chain[target] == kNoChain; });
      if (next == end) break;
      node = *next;
    }
  }
  return result;
}

std::vector<LaunchTraceEntry> expand_ordered(const GraphDefinition& graph, const GraphOrder& order,
                                             const LaunchTraceEntry& launch) {
  constexpr auto kInherited =
      static_cast<std::uint16_t>(static_cast<std::uint16_t>(EntryFlag::kPending) |
                                 static_cast<std::uint16_t>(EntryFlag::kWarmup) |
                                 static_cast<std::uint16_t>(EntryFlag::kStale) |
                                 static_cast<std::uint16_t>(EntryFlag::kInternal));
  std::vector<LaunchTraceEntry> result;
  result.reserve(graph.nodes.size());
  for (const std::uint32_t node : order.order) {
    if (graph.nodes[node].has(EntryFlag::kDisabled)) continue;
    LaunchTraceEntry& entry = result.emplace_back(graph.nodes[node]);
    if (entry.semantic_hash == 0) entry.semantic_hash = semantic_hash(entry);
    entry.stream_index = launch.stream_index;
    if (entry.device == 0) entry.device = launch.device;
    entry.thread_index = launch.thread_index;
    entry.sequence = launch.sequence;
    entry.time_ns = launch.time_ns;
    entry.launch = launch.launch;
    entry.graph = graph.graph;
    entry.graph_version = graph.version;
    entry.node = static_cast<std::int32_t>(node);
    entry.branch = order.chain[node];
    // Nodes of a captured graph carry the mark of their capture; here they stand for work done.
    entry.flags &= static_cast<std::uint16_t>(~static_cast<std::uint16_t>(EntryFlag::kCaptured));
    entry.flags |= static_cast<std::uint16_t>(launch.flags & kInherited);
    entry.set(EntryFlag::kReplayed);
  }
  return result;
}

std::vector<LaunchTraceEntry> expand_graph(const GraphDefinition& graph,
                                           const LaunchTraceEntry& launch) {
  return expand_ordered(graph, order_graph(graph), launch);
}

}  // namespace lockstep
