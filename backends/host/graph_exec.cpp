// SPDX-License-Identifier: Apache-2.0
#include "graph_exec.h"

#include <string>
#include <utility>

#include "device.h"
#include "error.h"
#include "graph_run.h"
#include "record.h"
#include "stream.h"

namespace lockstep::hostrt {

GraphExec::GraphExec(std::shared_ptr<Graph> graph)
    : graph_(std::move(graph)), identity_(next_id()) {
  if (graph_->has_memory_nodes()) {
    if (!graph_->claim_executable()) {
      throw Error(Native::kNotSupported,
                  "a graph with allocation nodes has one executable at a time; destroy the other "
                  "one first");
    }
    claimed_ = true;
  }
  plan_ = std::make_shared<const GraphPlan>(GraphPlan::of(*graph_));
  const std::lock_guard lock(mutex_);
  define_locked();
}

GraphExec::~GraphExec() {
  if (claimed_) graph_->release_executable();
}

std::uint32_t GraphExec::version() {
  const std::lock_guard lock(mutex_);
  return version_;
}

void GraphExec::define_locked() {
  std::vector<lockstep_record> records;
  records.reserve(plan_->nodes.size());
  for (const PlanNode& node : plan_->nodes) {
    records.push_back(node.record);
    if (!node.enabled) records.back().flags |= LOCKSTEP_RECORD_DISABLED;
  }
  define_graph(identity_, version_, records.data(), static_cast<std::uint32_t>(records.size()),
               plan_->edges.data(), static_cast<std::uint32_t>(plan_->edges.size()));
}

std::uint32_t GraphExec::update(const Graph& graph) {
  if (&graph.device() != &device()) return LOCKSTEP_UPDATE_NOT_SUPPORTED;
  auto next = std::make_shared<GraphPlan>(GraphPlan::of(graph));
  const std::lock_guard lock(mutex_);
  const std::uint32_t result = compare_shapes(*plan_, *next);
  if (result != LOCKSTEP_UPDATE_DONE) return result;
  for (std::size_t i = 0; i < next->nodes.size(); ++i) {
    next->nodes[i].enabled = plan_->nodes[i].enabled;
  }
  plan_ = std::move(next);
  ++version_;
  define_locked();
  return LOCKSTEP_UPDATE_DONE;
}

std::uint32_t GraphExec::switchable_locked(std::uint32_t node) const {
  if (node >= plan_->top_to_flat.size()) {
    throw Error(Native::kInvalidValue, "no node " + std::to_string(node) + ": the executable has " +
                                           std::to_string(plan_->top_to_flat.size()));
  }
  const std::uint32_t flat = plan_->top_to_flat[node];
  const std::uint32_t kind =
      flat == UINT32_MAX ? std::uint32_t{LOCKSTEP_NODE_CHILD_GRAPH} : plan_->nodes[flat].kind;
  if (kind != LOCKSTEP_NODE_KERNEL && kind != LOCKSTEP_NODE_COPY && kind != LOCKSTEP_NODE_SET) {
    throw Error(Native::kInvalidValue, "node " + std::to_string(node) +
                                           " cannot be switched off: only kernels, copies and "
                                           "sets can");
  }
  return flat;
}

bool GraphExec::enabled(std::uint32_t node) {
  const std::lock_guard lock(mutex_);
  return plan_->nodes[switchable_locked(node)].enabled;
}

void GraphExec::set_enabled(std::uint32_t node, bool enabled) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t flat = switchable_locked(node);
  if (plan_->nodes[flat].enabled == enabled) return;
  auto next = std::make_shared<GraphPlan>(*plan_);
  next->nodes[flat].enabled = enabled;
  plan_ = std::move(next);
  ++version_;
  define_locked();
}

void GraphExec::launch(Stream& stream) {
  if (&stream.device() != &device()) {
    throw Error(Native::kInvalidValue, "the graph belongs to another device than the stream");
  }
  const std::lock_guard lock(mutex_);
  Recording recording;
  if (recording_active()) {
    lockstep_record record = blank_record(LOCKSTEP_RECORD_GRAPH_LAUNCH, call_names().graph_launch,
                                          device().signed_ordinal(), stream.identity());
    record.of.graph_launch.graph = identity_;
    record.of.graph_launch.version = version_;
    recording.begin(record);
  }
  device().rules().check_not_capturing(
      stream.capture(), "hostGraphLaunch",
      "a graph cannot be launched into a capture; add it as a child graph, or end the capture");
  for (const PlanNode& node : plan_->nodes) {
    if (node.kind == LOCKSTEP_NODE_ALLOC && node.memory->live()) {
      throw Error(Native::kInvalidValue,
                  "memory that an earlier launch of this graph allocated was not freed yet; free "
                  "it before launching again");
    }
  }
  auto run = std::make_shared<GraphRun>(plan_);
  FencePtr after = last_launch_ != nullptr && !last_launch_->reached() ? last_launch_ : nullptr;
  stream.enqueue_graph(run, std::move(after));
  run->publish_events();
  last_launch_ = run->done();
  for (const PlanNode& node : plan_->nodes) {
    if (node.memory != nullptr) node.memory->set_live(node.kind == LOCKSTEP_NODE_ALLOC);
  }
  recording.done();
}

}  // namespace lockstep::hostrt
