// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "call.h"
#include "enqueue.h"
#include "host/record.h"

// Graphs as a whole: their handles, nodes and edges. Single nodes: graph_nodes.cpp.
namespace cuda_sim {
namespace {

// Handles of captured and built graphs, to be found by what they stand for.
std::map<const hostrt::Graph*, CUgraph>& handles() {
  static auto* const instance = new std::map<const hostrt::Graph*, CUgraph>;
  return *instance;
}

CUgraphNodeType type_of(const hostrt::GraphNode& node) {
  if (const auto* work = dynamic_cast<const SimWork*>(node.work.get())) return work->type();
  switch (node.kind) {
    case LOCKSTEP_NODE_CHILD_GRAPH:
      return CU_GRAPH_NODE_TYPE_GRAPH;
    case LOCKSTEP_NODE_EVENT_WAIT:
      return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    case LOCKSTEP_NODE_EVENT_RECORD:
      return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case LOCKSTEP_NODE_ALLOC:
      return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    case LOCKSTEP_NODE_FREE:
      return CU_GRAPH_NODE_TYPE_MEM_FREE;
    default:
      return CU_GRAPH_NODE_TYPE_EMPTY;
  }
}

void remember_attributes(CUgraphNode_st& node, const hostrt::GraphNode& known) {
  const auto* work = dynamic_cast<const SimWork*>(known.work.get());
  if (work == nullptr) return;
  const auto* kernel = std::get_if<KernelParameters>(&work->parameters());
  if (kernel == nullptr) return;
  CUlaunchAttributeValue value{};
  value.cooperative = kernel->cooperative;
  node.attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE] = value;
  value = {};
  value.priority = kernel->priority;
  node.attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY] = value;
  node.attributes[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION] = kernel->cluster;
}

// Makes handles for the nodes that were captured since. With the lock held.
void complete(CUgraph graph) {
  for (auto i = static_cast<std::uint32_t>(graph->nodes.size()); i < graph->object->node_count();
       ++i) {
    const hostrt::GraphNode& known = graph->object->node(i);
    auto& node = graph->nodes.emplace_back(std::make_unique<CUgraphNode_st>());
    node->graph = graph;
    node->ordinal = i;
    node->type = type_of(known);
    remember_attributes(*node, known);
    if (known.child != nullptr) {
      node->child = std::make_unique<CUgraph_st>();
      node->child->context = graph->context;
      node->child->object = known.child->object;
      node->child->parent = node.get();
      Live<CUgraph_st>::all().add(node->child.get());
    }
    Live<CUgraphNode_st>::all().add(node.get());
  }
}

void forget_nodes(CUgraph graph) {
  for (const auto& node : graph->nodes) {
    Live<CUgraphNode_st>::all().remove(node.get());
    if (node->child == nullptr) continue;
    forget_nodes(node->child.get());
    Live<CUgraph_st>::all().remove(node->child.get());
  }
}

// The two-call way of all lists: a null list asks for the number; what is left of one is nulled.
void give_nodes(const std::vector<CUgraphNode>& all, CUgraphNode* nodes, std::size_t* count) {
  require(count);
  if (nodes != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) nodes[i] = i < all.size() ? all[i] : nullptr;
    *count = std::min(*count, all.size());
  } else {
    *count = all.size();
  }
}

template <typename Body>
CUresult graph_call(const char* name, CUgraph graph, const Body& body) {
  return call(name, [&] {
    const std::lock_guard lock(graphs_mutex());
    live(graph, CUDA_ERROR_INVALID_VALUE);
    complete(graph);
    body();
  });
}

CUresult edges(const char* name, CUgraph graph, CUgraphNode* from, CUgraphNode* to,
               std::size_t* count) {
  return graph_call(name, graph, [&] {
    require(count);
    if ((from == nullptr) != (to == nullptr)) refuse(CUDA_ERROR_INVALID_VALUE, "one list of two");
    const auto all = graph->object->edges();
    if (from != nullptr) {
      for (std::size_t i = 0; i < *count; ++i) {
        from[i] = i < all.size() ? graph->nodes[all[i].from].get() : nullptr;
        to[i] = i < all.size() ? graph->nodes[all[i].to].get() : nullptr;
      }
    }
    *count = from != nullptr ? std::min(*count, all.size()) : all.size();
  });
}

CUresult neighbours(const char* name, CUgraphNode node, bool before, CUgraphNode* nodes,
                    std::size_t* count) {
  return call(name, [&] {
    const std::lock_guard lock(graphs_mutex());
    CUgraph graph = live(node, CUDA_ERROR_INVALID_VALUE).graph;
    complete(graph);
    std::vector<CUgraphNode> found;
    for (const lockstep_graph_edge& edge : graph->object->edges()) {
      if ((before ? edge.to : edge.from) != node->ordinal) continue;
      found.push_back(graph->nodes[before ? edge.from : edge.to].get());
    }
    give_nodes(found, nodes, count);
  });
}

}  // namespace

std::recursive_mutex& graphs_mutex() {
  static auto* const instance = new std::recursive_mutex;
  return *instance;
}

CUgraph make_graph(CUcontext context, std::shared_ptr<hostrt::Graph> object) {
  const std::lock_guard lock(graphs_mutex());
  auto made = std::make_unique<CUgraph_st>();
  made->context = context;
  made->object = std::move(object);
  handles()[made->object.get()] = made.get();
  Live<CUgraph_st>::all().add(made.get());
  return made.release();
}

void destroy_graph(CUgraph graph) {
  const std::lock_guard lock(graphs_mutex());
  handles().erase(graph->object.get());
  Live<CUgraph_st>::all().remove(graph);
  forget_nodes(graph);
  delete graph;
}

CUgraph graph_handle(const hostrt::Graph* object) {
  const std::lock_guard lock(graphs_mutex());
  const auto found = handles().find(object);
  return found == handles().end() ? nullptr : found->second;
}

CUgraphNode node_handle(CUgraph graph, std::uint32_t ordinal) {
  const std::lock_guard lock(graphs_mutex());
  complete(graph);
  return graph->nodes.at(ordinal).get();
}

void discard_captured_graph(const std::shared_ptr<hostrt::Graph>& object) {
  if (CUgraph graph = graph_handle(object.get())) destroy_graph(graph);
}

}  // namespace cuda_sim

using namespace cuda_sim;

CUDA_SIM_API cuGraphCreate(CUgraph* graph, unsigned flags) {
  return call("cuGraphCreate", [&] {
    require(graph);
    if (flags != 0) refuse(CUDA_ERROR_INVALID_VALUE, "flags have to be 0");
    CUctx_st& context = current_context();
    *graph = make_graph(&context, std::make_shared<hostrt::Graph>(context.device));
  });
}
CUDA_SIM_API cuGraphDestroy(CUgraph graph) {
  return graph_call("cuGraphDestroy", graph, [&] {
    if (graph->parent != nullptr) refuse(CUDA_ERROR_INVALID_VALUE, "it belongs to its node");
    destroy_graph(graph);
  });
}
CUDA_SIM_API cuGraphClone(CUgraph* clone, CUgraph graph) {
  return graph_call("cuGraphClone", graph, [&] {
    require(clone);
    CUgraph made = make_graph(graph->context, graph->object->clone());
    made->cloned_from = graph;
    complete(made);
    for (std::size_t i = 0; i < made->nodes.size(); ++i) {
      made->nodes[i]->attributes = graph->nodes[i]->attributes;
    }
    *clone = made;
  });
}
CUDA_SIM_API cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode node, CUgraph clone) {
  return graph_call("cuGraphNodeFindInClone", clone, [&] {
    require(found);
    if (live(node, CUDA_ERROR_INVALID_VALUE).graph != clone->cloned_from ||
        node->ordinal >= clone->nodes.size()) {
      refuse(CUDA_ERROR_INVALID_VALUE, "not a node of the graph that was cloned");
    }
    *found = clone->nodes[node->ordinal].get();
  });
}
CUDA_SIM_API cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  return graph_call("cuGraphGetNodes", graph, [&] {
    std::vector<CUgraphNode> all;
    for (const auto& node : graph->nodes) all.push_back(node.get());
    give_nodes(all, nodes, count);
  });
}
CUDA_SIM_API cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  return graph_call("cuGraphGetRootNodes", graph, [&] {
    std::vector<CUgraphNode> roots;
    for (const auto& node : graph->nodes) {
      if (graph->object->node(node->ordinal).dependencies.empty()) roots.push_back(node.get());
    }
    give_nodes(roots, nodes, count);
  });
}
CUDA_SIM_API cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                             std::size_t* count) {
  return edges("cuGraphGetEdges", graph, from, to, count);
}
CUDA_SIM_API cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return neighbours("cuGraphNodeGetDependencies", node, true, nodes, count);
}
CUDA_SIM_API cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes,
                                          std::size_t* count) {
  return neighbours("cuGraphNodeGetDependentNodes", node, false, nodes, count);
}
#if CUDA_VERSION >= 12030
namespace {

void full_edges(CUgraphEdgeData* data, const std::size_t* count) {
  if (data != nullptr && count != nullptr) std::fill_n(data, *count, CUgraphEdgeData{});
}

}  // namespace

CUDA_SIM_API cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                                CUgraphEdgeData* data, std::size_t* count) {
  full_edges(from != nullptr ? data : nullptr, count);
  return edges("cuGraphGetEdges_v2", graph, from, to, count);
}
CUDA_SIM_API cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes,
                                           CUgraphEdgeData* data, std::size_t* count) {
  full_edges(nodes != nullptr ? data : nullptr, count);
  return neighbours("cuGraphNodeGetDependencies_v2", node, true, nodes, count);
}
CUDA_SIM_API cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes,
                                             CUgraphEdgeData* data, std::size_t* count) {
  full_edges(nodes != nullptr ? data : nullptr, count);
  return neighbours("cuGraphNodeGetDependentNodes_v2", node, false, nodes, count);
}
#endif

// The runtime's graphs only grow: what is left is put into a new one.
CUDA_SIM_API cuGraphDestroyNode(CUgraphNode node) {
  return call("cuGraphDestroyNode", [&] {
    const std::lock_guard lock(graphs_mutex());
    CUgraph graph = live(node, CUDA_ERROR_INVALID_VALUE).graph;
    complete(graph);
    if (graph->object->has_memory_nodes() || graph->parent != nullptr) {
      refuse(CUDA_ERROR_NOT_SUPPORTED, "nodes of such a graph cannot be destroyed");
    }
    auto smaller = std::make_shared<hostrt::Graph>(graph->object->device());
    const std::uint32_t gone = node->ordinal;
    for (std::uint32_t i = 0; i < graph->object->node_count(); ++i) {
      if (i == gone) continue;
      hostrt::GraphNode kept = graph->object->node(i);
      std::vector<std::uint32_t> dependencies;
      for (const std::uint32_t from : kept.dependencies) {
        if (from != gone) dependencies.push_back(from > gone ? from - 1 : from);
      }
      smaller->add(std::move(kept), std::move(dependencies));
    }
    handles().erase(graph->object.get());
    graph->object = std::move(smaller);
    handles()[graph->object.get()] = graph;
    Live<CUgraphNode_st>::all().remove(node);
    graph->nodes.erase(graph->nodes.begin() + gone);
    for (std::uint32_t i = gone; i < graph->nodes.size(); ++i) graph->nodes[i]->ordinal = i;
  });
}
