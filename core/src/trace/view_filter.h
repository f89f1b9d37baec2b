// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "src/trace/graph_order.h"

/// \file
/// A view of a trace, entry by entry, so that files need not be held in memory: a launch is
/// expanded when it comes by. Exported for the command line, no part of the interface.
namespace lockstep {

/// Whether a view of these options shows an entry of the view of all kinds. A graph launch that is
/// in there was not expanded, and stays.
bool view_shows(const ViewOptions& options, const LaunchTraceEntry& entry);

class ViewFilter {
 public:
  using Key = std::pair<std::int32_t, std::uint32_t>;
  using Sink = std::function<void(const LaunchTraceEntry&)>;
  /// A launch and the nodes that the view shows of it, all of which carry the launch's stream.
  using GraphSink = std::function<void(const LaunchTraceEntry& launch, Key graph)>;

  explicit ViewFilter(ViewOptions options) : options_(std::move(options)) {}

  /// Keeps a copy of the definition. One that was launched before is noted in late_definition().
  LOCKSTEP_API void define(const GraphDefinition& graph);
  void define(Key key, const GraphDefinition& graph);
  /// Calls `sink` for each entry of the view that `entry` stands for, in order.
  /// \throws Error as order_graph() does.
  LOCKSTEP_API void push(const LaunchTraceEntry& entry, const Sink& sink);
  /// The same for whoever keeps something per graph: instead of its nodes one by one, `graph_sink`
  /// is told which graph runs; shown_nodes() has the nodes.
  void push(const LaunchTraceEntry& entry, const Sink& sink, const GraphSink& graph_sink);
  /// What the executed view shows of a defined graph, as of a launch that adds nothing of its own.
  std::vector<LaunchTraceEntry> shown_nodes(Key key);
  /// Whether the kinds asked for include that of `entry`.
  bool wants(const LaunchTraceEntry& entry) const;
  bool late_definition() const noexcept { return late_definition_; }
  /// nullptr when it has no definition.
  const GraphDefinition* definition(Key key) const;

 private:
  struct Graph {
    GraphDefinition definition;
    bool ordered = false;
    GraphOrder order;
  };

  Graph* find(Key key);

  ViewOptions options_;
  std::map<Key, Graph> graphs_;
  std::map<Key, bool> launched_undefined_;
  std::uint64_t launches_ = 0;
  bool late_definition_ = false;
};

}  // namespace lockstep
