// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "fence.h"
#include "graph_plan.h"

namespace lockstep::hostrt {

// One launch of an executable: nodes run as soon as what they depend on has ended, independent ones
// at the same time on threads of the executor.
class GraphRun : public std::enable_shared_from_this<GraphRun> {
 public:
  // Binds event nodes: waits to the records there are now, records to new ones.
  explicit GraphRun(std::shared_ptr<const GraphPlan> plan);

  const FencePtr& done() const noexcept { return done_; }
  // False: a node must run on a thread of the runtime.
  bool any_thread() const noexcept { return plan_->any_thread; }
  // Makes the records of event nodes the latest of their events. Once, when it has been enqueued.
  void publish_events();
  // Runs on the calling thread what can run there without waiting. skip: do nothing but reach the
  // fences, because the stream has failed.
  void start(bool skip) noexcept;

 private:
  struct NodeJob;

  void run_from(std::uint32_t node) noexcept;
  bool execute(std::uint32_t node) noexcept;  // false: goes on when an event is reached
  void fail(FailurePtr failure) noexcept;
  FailurePtr failure() noexcept;

  const std::shared_ptr<const GraphPlan> plan_;
  const FencePtr done_ = std::make_shared<Fence>();
  std::unique_ptr<std::atomic<std::uint32_t>[]> waiting_for_;  // by node
  std::atomic<std::uint32_t> unfinished_;
  std::vector<FencePtr> fences_;  // by node: of event nodes
  std::mutex mutex_;
  FailurePtr failure_;
  bool skip_ = false;
};

}  // namespace lockstep::hostrt
