// SPDX-License-Identifier: Apache-2.0
#include "graph.h"

#include <algorithm>
#include <string>
#include <utility>

#include "device.h"
#include "error.h"
#include "record.h"

namespace lockstep::hostrt {
namespace {

lockstep_record memory_record(const GraphNode& node, std::int32_t device) {
  const bool allocates = node.kind == LOCKSTEP_NODE_ALLOC;
  lockstep_record record =
      blank_record(allocates ? LOCKSTEP_RECORD_ALLOC : LOCKSTEP_RECORD_FREE,
                   allocates ? call_names().allocate_async : call_names().free_async, device, 0);
  const Allocation& allocation = node.memory->allocation();
  record.of.memory.allocation = allocation.id;
  record.of.memory.address = allocation.base;
  record.of.memory.bytes = allocation.bytes;
  record.of.memory.memory_kind = allocation.kind;
  return record;
}

lockstep_record record_of(const GraphNode& node, std::int32_t device) {
  switch (node.kind) {
    case LOCKSTEP_NODE_EVENT_RECORD:
    case LOCKSTEP_NODE_EVENT_WAIT: {
      const bool records = node.kind == LOCKSTEP_NODE_EVENT_RECORD;
      lockstep_record record =
          blank_record(records ? LOCKSTEP_RECORD_EVENT_RECORD : LOCKSTEP_RECORD_EVENT_WAIT,
                       records ? call_names().event_record : call_names().event_wait, device, 0);
      record.of.event.event = node.event->identity();
      return record;
    }
    case LOCKSTEP_NODE_ALLOC:
    case LOCKSTEP_NODE_FREE:
      return memory_record(node, device);
    default:
      return blank_record(LOCKSTEP_RECORD_MARK, call_names().empty, device, 0);
  }
}

}  // namespace

Graph::Graph(Device& device) : device_(device), identity_(next_id()) {}

std::uint32_t Graph::add(GraphNode node, std::vector<std::uint32_t> dependencies) {
  const std::lock_guard lock(mutex_);
  const auto ordinal = static_cast<std::uint32_t>(nodes_.size());
  for (const std::uint32_t dependency : dependencies) {
    if (dependency >= ordinal) {
      throw Error(Native::kInvalidValue, "node " + std::to_string(dependency) +
                                             " is no dependency: the graph has " +
                                             std::to_string(ordinal) + " nodes so far");
    }
  }
  std::sort(dependencies.begin(), dependencies.end());
  dependencies.erase(std::unique(dependencies.begin(), dependencies.end()), dependencies.end());
  node.dependencies = std::move(dependencies);
  node.record =
      node.work != nullptr ? node.work->record() : record_of(node, device_.signed_ordinal());
  nodes_.push_back(std::move(node));
  return ordinal;
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>(device_);
  const std::lock_guard lock(mutex_);
  for (const GraphNode& node : nodes_) {
    if (node.memory != nullptr) {
      throw Error(Native::kNotSupported,
                  "a graph with allocation nodes cannot be cloned or become a child: its memory "
                  "has one address");
    }
    copy->nodes_.push_back(node);
    if (node.child != nullptr) {
      copy->nodes_.back().child =
          std::make_shared<lockstep_graph>(lockstep_graph{node.child->object->clone()});
    }
  }
  return copy;
}

std::uint32_t Graph::node_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(nodes_.size());
}

const GraphNode& Graph::node(std::uint32_t ordinal) const {
  const std::lock_guard lock(mutex_);
  if (ordinal >= nodes_.size()) {
    throw Error(Native::kInvalidValue, "no node " + std::to_string(ordinal) + ": the graph has " +
                                           std::to_string(nodes_.size()));
  }
  return nodes_[ordinal];
}

std::vector<lockstep_graph_edge> Graph::edges() const {
  std::vector<lockstep_graph_edge> edges;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t to = 0; to < nodes_.size(); ++to) {
    for (const std::uint32_t from : nodes_[to].dependencies) edges.push_back({from, to, 0});
  }
  std::sort(edges.begin(), edges.end(), [](const auto& a, const auto& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  return edges;
}

bool Graph::has_memory_nodes() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const GraphNode& node) { return node.memory != nullptr; });
}

std::shared_ptr<GraphMemory> Graph::memory_at(const void* pointer) const {
  const std::lock_guard lock(mutex_);
  for (const GraphNode& node : nodes_) {
    if (node.kind == LOCKSTEP_NODE_ALLOC && node.memory->allocation().pointer() == pointer) {
      return node.memory;
    }
  }
  return nullptr;
}

bool Graph::frees(const GraphMemory& memory) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const GraphNode& node) {
    return node.kind == LOCKSTEP_NODE_FREE && node.memory.get() == &memory;
  });
}

bool Graph::claim_executable() { return !executable_.exchange(true); }
void Graph::release_executable() noexcept { executable_.store(false); }

}  // namespace lockstep::hostrt
