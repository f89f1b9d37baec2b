// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>

#include "enqueue.h"
#include "graph.h"
#include "launch.h"
#include "memory.h"
#include "module.h"

namespace lockstep::gpu {
namespace {

std::uint32_t intern(const std::string& text) {
  return recorder().intern(text.data(), text.size());
}

bool side_is_device(std::uint64_t address, Side declared) {
  // The pointer decides; the node's declared type is asked only where nobody knows the pointer.
  const PointerFacts facts = facts_of(reinterpret_cast<const void*>(address));
  if (facts.memory_kind != LOCKSTEP_MEMORY_UNKNOWN) return is_device_side(facts.memory_kind);
  return declared == Side::kDevice;
}

}  // namespace

Result edges_between(Handle graph, const std::vector<GraphNode>& nodes,
                     std::vector<lockstep_graph_edge>* edges) {
  std::vector<Edge> native;
  const Result result = driver().graph_edges(graph, &native);
  if (result != kSuccess) return result;
  std::map<Handle, std::uint32_t> ordinals;
  for (std::uint32_t index = 0; index < nodes.size(); ++index) {
    ordinals[nodes[index].native] = index;
  }
  edges->clear();
  for (const Edge& edge : native) {
    const auto from = ordinals.find(edge.from);
    const auto to = ordinals.find(edge.to);
    if (from == ordinals.end() || to == ordinals.end()) continue;
    edges->push_back({from->second, to->second, edge.programmatic ? 1U : 0U});
  }
  const auto key = [](const lockstep_graph_edge& edge) { return std::pair(edge.from, edge.to); };
  // Between the same two nodes a full edge comes first and wins.
  std::sort(edges->begin(), edges->end(), [&](const auto& a, const auto& b) {
    return std::tuple(a.from, a.to, a.programmatic) < std::tuple(b.from, b.to, b.programmatic);
  });
  edges->erase(std::unique(edges->begin(), edges->end(),
                           [&](const auto& a, const auto& b) { return key(a) == key(b); }),
               edges->end());
  return kSuccess;
}

void GraphDefinition::kernel_record(const NodeFacts& facts, lockstep_record* record) {
  const lockstep_kernel* kernel = kernel_of(facts.kernel.function);
  if (kernel != nullptr) {
    record->name = kernel->name_number;
    fill_kernel(*record, kernel, facts.kernel, nullptr);
    return;
  }
  // A function of somebody else's module.
  std::string name = driver().function_name(facts.kernel.function);
  if (name.empty()) name = "unknown kernel";
  record->name = intern(name);
  auto& to = record->of.kernel;
  to.grid = facts.kernel.grid;
  to.block = facts.kernel.block;
  to.cluster = facts.kernel.cluster;
  to.cooperative = facts.kernel.cooperative ? 1 : 0;
  to.shared_bytes = facts.kernel.shared_bytes;
  to.attributes = attributes_number(facts.kernel);
  to.arguments = facts.kernel.arguments;
  to.parameter_count = UINT32_MAX;
  ParameterLayout layout = driver().function_parameters(nullptr, facts.kernel.function, name);
  if (layout.known && facts.kernel.arguments != nullptr) {
    layouts_.push_back(std::move(layout.parameters));
    to.parameter_count = static_cast<std::uint32_t>(layouts_.back().size());
    to.parameters = layouts_.back().data();
  }
}

void GraphDefinition::copy_record(const NodeFacts& facts, lockstep_record* record) {
  const Copy& copy = facts.copy;
  PlannedCopy plan;
  plan.copy = copy;
  plan.direction = direction_of(side_is_device(copy.source, copy.source_side),
                                side_is_device(copy.destination, copy.destination_side));
  plan.call = call_for(plan.direction, copy.height, copy.depth, false);
  fill_copy(*record, plan);
  record->name = name_of(plan.call);
}

Result GraphDefinition::to_record(const GraphNode& node, NodeFacts* facts,
                                  lockstep_record* record) {
  const Result result = driver().graph_node_facts(node.native, facts);
  if (result != kSuccess) {
    failed_call_ = Call::kGraphNodeParameters;
    return result;
  }
  init_record(*record, LOCKSTEP_RECORD_OPAQUE, 0, device_, 0);
  switch (facts->kind) {
    case LOCKSTEP_NODE_KERNEL:
      record->kind = LOCKSTEP_RECORD_KERNEL;
      kernel_record(*facts, record);
      break;
    case LOCKSTEP_NODE_COPY:
      if (!driver().traits().copy_getter_trusted && !node.recorded) {
        // Somebody else's, and nobody can say what it copies: opaque, which is never equal.
        record->name = intern("unknown copy");
        break;
      }
      record->kind = LOCKSTEP_RECORD_MEMCPY;
      record->of.copy.peer_device = -1;
      if (driver().traits().copy_getter_trusted) {
        copy_record(*facts, record);
      } else {
        record->of.copy = node.recorded->of.copy;
        record->name = node.recorded->name;
      }
      break;
    case LOCKSTEP_NODE_SET: {
      record->kind = LOCKSTEP_RECORD_MEMSET;
      constexpr Call kFlat[] = {Call::kSet8, Call::kSet16, Call::kSet32};
      constexpr Call kPitched[] = {Call::kSet2D8, Call::kSet2D16, Call::kSet2D32};
      const int size = facts->set.value_size == 1 ? 0 : facts->set.value_size == 2 ? 1 : 2;
      record->name = name_of(facts->set.height > 1 ? kPitched[size] : kFlat[size]);
      fill_set(*record, facts->set);
      break;
    }
    case LOCKSTEP_NODE_HOST:
      record->kind = LOCKSTEP_RECORD_HOST_FUNC;
      record->name = name_of(Call::kLaunchHostFunction);
      break;
    case LOCKSTEP_NODE_EMPTY:
      record->kind = LOCKSTEP_RECORD_MARK;
      record->name = intern("empty");
      break;
    case LOCKSTEP_NODE_CHILD_GRAPH:
      record->kind = LOCKSTEP_RECORD_MARK;
      record->name = intern("child graph");
      break;
    case LOCKSTEP_NODE_EVENT_RECORD:
      record->kind = LOCKSTEP_RECORD_EVENT_RECORD;
      record->name = name_of(Call::kEventRecord);
      break;
    case LOCKSTEP_NODE_EVENT_WAIT:
      record->kind = LOCKSTEP_RECORD_EVENT_WAIT;
      record->name = name_of(Call::kStreamWaitEvent);
      break;
    case LOCKSTEP_NODE_ALLOC:
    case LOCKSTEP_NODE_FREE: {
      const bool alloc = facts->kind == LOCKSTEP_NODE_ALLOC;
      record->kind = alloc ? LOCKSTEP_RECORD_ALLOC : LOCKSTEP_RECORD_FREE;
      record->name = name_of(alloc ? Call::kMemAllocAsync : Call::kMemFreeAsync);
      record->of.memory.address = facts->address;
      record->of.memory.bytes = facts->bytes;
      record->of.memory.memory_kind = LOCKSTEP_MEMORY_DEVICE;
      if (const auto own = memory_map().find(facts->address)) {
        record->of.memory.allocation = own->identity;
        record->of.memory.bytes = own->bytes;
      }
      break;
    }
    default:
      record->name = intern(facts->native_kind);
      if (facts->native_kind == "batch_mem_op") record->kind = LOCKSTEP_RECORD_STREAM_MEMOP;
      if (facts->native_kind == "external_semaphore") {
        record->kind = LOCKSTEP_RECORD_EXTERNAL_SEMAPHORE;
      }
      break;
  }
  return kSuccess;
}

Result GraphDefinition::list(const std::vector<GraphNode>& nodes) {
  records_.resize(nodes.size());
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    NodeFacts facts;
    if (const Result result = to_record(nodes[index], &facts, &records_[index])) return result;
    kinds_.push_back(facts.kind);
    children_.push_back(facts.child);
  }
  return kSuccess;
}

Result GraphDefinition::add_level(Handle graph, const std::vector<GraphNode>& nodes,
                                  const std::vector<bool>& disabled, Span* whole) {
  std::vector<Span> spans(nodes.size());
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    NodeFacts facts;
    lockstep_record record;
    if (const Result result = to_record(nodes[index], &facts, &record)) return result;
    if (facts.kind == LOCKSTEP_NODE_CHILD_GRAPH) {
      std::vector<GraphNode> level;
      if (const Result result = list_nodes(facts.child, nodes[index].inner, &level)) {
        failed_call_ = Call::kGraphNodes;
        return result;
      }
      if (!level.empty()) {
        if (const Result result = add_level(facts.child, level, {}, &spans[index])) return result;
        continue;
      }
      record.name = intern("empty");
    }
    if (index < disabled.size() && disabled[index]) record.flags |= LOCKSTEP_RECORD_DISABLED;
    const auto number = static_cast<std::uint32_t>(records_.size());
    records_.push_back(record);
    spans[index] = {{number}, {number}};
  }
  std::vector<lockstep_graph_edge> level_edges;
  if (const Result result = edges_between(graph, nodes, &level_edges)) {
    failed_call_ = Call::kGraphEdges;
    return result;
  }
  std::vector<bool> has_before(nodes.size()), has_after(nodes.size());
  for (const lockstep_graph_edge& edge : level_edges) {
    has_after[edge.from] = has_before[edge.to] = true;
    for (std::uint32_t from : spans[edge.from].sinks) {
      for (std::uint32_t to : spans[edge.to].sources) {
        edges_.push_back({from, to, edge.programmatic});
      }
    }
  }
  const auto append = [](std::vector<std::uint32_t>& to, const std::vector<std::uint32_t>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    if (!has_before[index]) append(whole->sources, spans[index].sources);
    if (!has_after[index]) append(whole->sinks, spans[index].sinks);
  }
  return kSuccess;
}

Result GraphDefinition::flatten(Handle graph, const std::vector<GraphNode>& nodes,
                                const std::vector<bool>& disabled) {
  Span whole;
  const Result result = add_level(graph, nodes, disabled, &whole);
  std::sort(edges_.begin(), edges_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  return result;
}

}  // namespace lockstep::gpu
