// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "src/trace/graph_order.h"

/// \file
/// A view of a trace, entry by entry, so that files need not be held in memory.
namespace lockstep {

class ViewFilter {
 public:
  using Key = std::pair<std::int32_t, std::uint32_t>;
  using Sink = std::function<void(const LaunchTraceEntry&)>;

  explicit ViewFilter(ViewOptions options) : options_(std::move(options)) {}

  /// Keeps a copy of the definition. One that was launched before is noted in late_definition().
  void define(const GraphDefinition& graph);
  /// Calls `sink` for each entry of the view that `entry` stands for, in order.
  /// \throws Error as order_graph() does.
  void push(const LaunchTraceEntry& entry, const Sink& sink);
  bool late_definition() const noexcept { return late_definition_; }
  /// The nodes of a defined graph in executed order, nullptr when it has no definition.
  const std::vector<LaunchTraceEntry>* nodes(Key key);
  bool is_defined(const LaunchTraceEntry& launch) const;

 private:
  struct Graph {
    GraphDefinition definition;
    bool ordered = false;
    GraphOrder order;
    std::vector<LaunchTraceEntry> nodes;  ///< of a launch that says nothing of its own
  };

  bool wants(const LaunchTraceEntry& entry) const;
  Graph* find(Key key);

  ViewOptions options_;
  std::map<Key, Graph> graphs_;
  std::map<Key, bool> launched_undefined_;
  std::uint64_t launches_ = 0;
  bool late_definition_ = false;
};

}  // namespace lockstep
