// SPDX-License-Identifier: Apache-2.0
#include "graph_run.h"

#include <optional>
#include <utility>

#include "executor.h"

namespace lockstep::hostrt {

struct GraphRun::NodeJob final : Runnable {
  NodeJob(std::shared_ptr<GraphRun> r, std::uint32_t n) : graph_run(std::move(r)), node(n) {}
  void run() noexcept override { graph_run->run_from(node); }
  std::shared_ptr<GraphRun> graph_run;
  std::uint32_t node;
};

GraphRun::GraphRun(std::shared_ptr<const GraphPlan> plan)
    : plan_(std::move(plan)),
      waiting_for_(std::make_unique<std::atomic<std::uint32_t>[]>(plan_->nodes.size())),
      unfinished_(static_cast<std::uint32_t>(plan_->nodes.size())),
      fences_(plan_->nodes.size()) {
  for (std::size_t i = 0; i < plan_->nodes.size(); ++i) {
    const PlanNode& node = plan_->nodes[i];
    waiting_for_[i].store(node.dependency_count, std::memory_order_relaxed);
    if (node.kind == LOCKSTEP_NODE_EVENT_WAIT) fences_[i] = node.event->latest();
    if (node.kind == LOCKSTEP_NODE_EVENT_RECORD) fences_[i] = std::make_shared<Fence>();
  }
}

void GraphRun::publish_events() {
  for (std::size_t i = 0; i < plan_->nodes.size(); ++i) {
    if (plan_->nodes[i].kind == LOCKSTEP_NODE_EVENT_RECORD) {
      plan_->nodes[i].event->set_latest(fences_[i]);
    }
  }
}

void GraphRun::start(bool skip) noexcept {
  skip_ = skip;
  if (plan_->nodes.empty()) {
    done_->reach(nullptr);
    return;
  }
  std::optional<std::uint32_t> own;
  for (std::uint32_t i = 0; i < plan_->nodes.size(); ++i) {
    if (plan_->nodes[i].dependency_count != 0) continue;
    if (own) {
      Executor::instance().submit(std::make_shared<NodeJob>(shared_from_this(), i));
    } else {
      own = i;
    }
  }
  run_from(*own);
}

void GraphRun::run_from(std::uint32_t node) noexcept {
  std::optional<std::uint32_t> next = node;
  // A node that waited for an event comes here again when it is reached.
  while (next) {
    const std::uint32_t current = *next;
    next.reset();
    if (!execute(current)) return;
    for (const std::uint32_t successor : plan_->nodes[current].successors) {
      if (waiting_for_[successor].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      if (next) {
        Executor::instance().submit(std::make_shared<NodeJob>(shared_from_this(), successor));
      } else {
        next = successor;
      }
    }
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_->reach(failure());
  }
}

bool GraphRun::execute(std::uint32_t node) noexcept {
  const PlanNode& planned = plan_->nodes[node];
  switch (planned.kind) {
    case LOCKSTEP_NODE_EVENT_WAIT: {
      const FencePtr& fence = fences_[node];
      if (fence == nullptr || fence->reached()) return true;
      return !fence->notify([self = shared_from_this(), node] {
        Executor::instance().submit(std::make_shared<NodeJob>(self, node));
      });
    }
    case LOCKSTEP_NODE_EVENT_RECORD:
      fences_[node]->reach(failure());
      return true;
    default:
      break;
  }
  if (planned.work == nullptr || !planned.enabled || skip_ || failure() != nullptr) return true;
  if (FailurePtr failure = planned.work->run()) fail(std::move(failure));
  return true;
}

void GraphRun::fail(FailurePtr failure) noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_ == nullptr) failure_ = std::move(failure);
}

FailurePtr GraphRun::failure() noexcept {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace lockstep::hostrt
