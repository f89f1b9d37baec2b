// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "call.h"
#include "enqueue.h"

// Executable graphs.
namespace cuda_sim {
namespace {

CUgraphExecUpdateResult result_of(std::uint32_t outcome) {
  switch (outcome) {
    case LOCKSTEP_UPDATE_DONE:
      return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    case LOCKSTEP_UPDATE_TOPOLOGY_CHANGED:
      return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    case LOCKSTEP_UPDATE_NODE_TYPE_CHANGED:
      return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    default:
      return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  }
}

CUgraphExec instantiate(CUgraph graph, unsigned long long flags) {
  constexpr unsigned long long kHarmless =
      CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  if ((flags & ~kHarmless) != 0) {
    refuse(CUDA_ERROR_NOT_SUPPORTED, "freeing on launch and launches by devices");
  }
  const std::lock_guard lock(graphs_mutex());
  CUgraph_st& of = live(graph, CUDA_ERROR_INVALID_VALUE);
  auto made = std::make_unique<CUgraphExec_st>();
  made->context = of.context;
  made->source = of.object;
  made->object = hostrt::driver::instantiate(of.object);
  Live<CUgraphExec_st>::all().add(made.get());
  return made.release();
}

// The node's ordinal in the executable, which was made of the node's graph.
std::uint32_t ordinal_in(const CUgraphExec_st& exec, CUgraphNode node) {
  CUgraphNode_st& of = live(node, CUDA_ERROR_INVALID_VALUE);
  if (of.graph->object != exec.source) {
    refuse(CUDA_ERROR_INVALID_VALUE, "not a node of the graph that was instantiated");
  }
  return of.ordinal;
}

}  // namespace
}  // namespace cuda_sim

using namespace cuda_sim;

CUDA_SIM_API cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                         unsigned long long flags) {
  return call("cuGraphInstantiateWithFlags", [&] {
    require(exec);
    *exec = instantiate(graph, flags);
  });
}
CUDA_SIM_API cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return call("cuGraphInstantiateWithParams", [&] {
    require(exec);
    require(params);
    params->hErrNode_out = nullptr;
    params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    *exec = instantiate(graph, params->flags);
    params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  });
}
CUDA_SIM_API cuGraphExecDestroy(CUgraphExec exec) {
  return call("cuGraphExecDestroy", [&] {
    if (!Live<CUgraphExec_st>::all().remove(exec)) refuse(CUDA_ERROR_INVALID_VALUE, "no such one");
    delete exec;
  });
}
CUDA_SIM_API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                  CUgraphExecUpdateResultInfo* info) {
  return call("cuGraphExecUpdate_v2", [&] {
    require(info);
    CUgraphExec_st& of = live(exec, CUDA_ERROR_INVALID_VALUE);
    const std::lock_guard lock(graphs_mutex());
    *info = {};
    info->result = result_of(of.object->update(*live(graph, CUDA_ERROR_INVALID_VALUE).object));
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
      refuse(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graphs differ");
    }
  });
}
CUDA_SIM_API cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  return call("cuGraphNodeSetEnabled", [&] {
    CUgraphExec_st& of = live(exec, CUDA_ERROR_INVALID_VALUE);
    const std::lock_guard lock(graphs_mutex());
    of.object->set_enabled(ordinal_in(of, node), enabled != 0);
  });
}
CUDA_SIM_API cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled) {
  return call("cuGraphNodeGetEnabled", [&] {
    require(enabled);
    CUgraphExec_st& of = live(exec, CUDA_ERROR_INVALID_VALUE);
    const std::lock_guard lock(graphs_mutex());
    *enabled = of.object->enabled(ordinal_in(of, node)) ? 1 : 0;
  });
}
CUDA_SIM_API cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return call("cuGraphLaunch", [&] {
    CUgraphExec_st& of = live(exec, CUDA_ERROR_INVALID_VALUE);
    CUstream_st& on = stream_of(stream);
    of.object->launch(*on.object);
  });
}
CUDA_SIM_API cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return call("cuGraphUpload", [&] {
    live(exec, CUDA_ERROR_INVALID_VALUE);
    CUstream_st& on = stream_of(stream);
    on.context->device.rules().check_not_capturing(on.object->capture(), "cuGraphUpload", "");
  });
}
