// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "fence.h"
#include "graph.h"
#include "graph_plan.h"

namespace lockstep::hostrt {

class Stream;

// An executable graph: a copy of the graph as it was, its own launches one after the other.
// Thread-safe. Destroying it leaves launches in flight alone.
class GraphExec {
 public:
  // Defines version 1 at the recorder. Throws kNotSupported for a second executable of a graph with
  // memory nodes.
  explicit GraphExec(std::shared_ptr<Graph> graph);
  ~GraphExec();
  GraphExec(const GraphExec&) = delete;
  GraphExec& operator=(const GraphExec&) = delete;

  Device& device() const noexcept { return graph_->device(); }
  std::uint64_t identity() const noexcept { return identity_; }
  std::uint32_t version();

  std::uint32_t update(const Graph& graph);  // LOCKSTEP_UPDATE_*
  // Kernel, copy and set nodes of the graph itself.
  void set_enabled(std::uint32_t node, bool enabled);
  bool enabled(std::uint32_t node);
  void launch(Stream& stream);

 private:
  void define_locked();
  std::uint32_t switchable_locked(std::uint32_t node) const;  // in the plan; throws

  const std::shared_ptr<Graph> graph_;  // kept for its memory
  const std::uint64_t identity_;
  bool claimed_ = false;
  std::mutex mutex_;
  std::shared_ptr<const GraphPlan> plan_;
  std::uint32_t version_ = 1;
  FencePtr last_launch_;
};

}  // namespace lockstep::hostrt
