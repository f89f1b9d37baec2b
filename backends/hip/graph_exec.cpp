// SPDX-License-Identifier: Apache-2.0
#include "driver.h"
#include "refusal.h"

// Executable graphs.
namespace lockstep::hip {
namespace {

hipGraphExec_t to_exec(gpu::Handle exec) { return static_cast<hipGraphExec_t>(exec); }

}  // namespace

// In its child graphs, too.
gpu::Result HipDriver::has_host_nodes(gpu::Handle graph, bool* has) {
  std::vector<gpu::Handle> nodes;
  if (const gpu::Result result = graph_nodes(graph, &nodes)) return result;
  for (const gpu::Handle node : nodes) {
    gpu::NodeFacts facts;
    if (const gpu::Result result = graph_node_facts(node, &facts)) return result;
    if (facts.kind == LOCKSTEP_NODE_CHILD_GRAPH) {
      if (const gpu::Result result = has_host_nodes(facts.child, has)) return result;
    }
    *has = *has || facts.kind == LOCKSTEP_NODE_HOST;
  }
  return hipSuccess;
}

gpu::Result HipDriver::graph_instantiate(gpu::Handle graph, gpu::Handle* exec) {
  if (const gpu::Result refused = captures_.check_unsafe("hipGraphInstantiate")) return refused;
  const int result = call_.hipGraphInstantiate_(
      reinterpret_cast<hipGraphExec_t*>(exec), static_cast<hipGraph_t>(graph), nullptr, nullptr, 0);
  if (result != hipSuccess) return result;
  // What 5.3 to 5.6 do was never seen; 5.7 calls host functions when it should.
  if (library_.version.before(5, 7)) {
    bool calls_host = false;
    gpu::Result taken = has_host_nodes(graph, &calls_host);
    if (taken == hipSuccess && calls_host) {
      taken = fresh_.made(*exec, static_cast<hipGraph_t>(graph));
    }
    if (taken != hipSuccess) {
      call_.hipGraphExecDestroy_(to_exec(*exec));
      return taken;
    }
  }
  launched_.made(*exec);
  return hipSuccess;
}
gpu::Result HipDriver::graph_exec_destroy(gpu::Handle exec) {
  launched_.gone(exec);
  if (fresh_.gone(exec)) return hipSuccess;
  return call_.hipGraphExecDestroy_(to_exec(exec));
}

gpu::Result HipDriver::graph_exec_update(gpu::Handle exec, gpu::Handle graph,
                                         std::uint32_t* outcome) {
  hipGraphNode_t node = nullptr;
  hipGraphExecUpdateResult told = hipGraphExecUpdateSuccess;
  const auto native_graph = static_cast<hipGraph_t>(graph);
  const int result = launched_.change(exec, [&] {
    return fresh_.update(exec, native_graph, [&](hipGraphExec_t changed) {
      const int answer = call_.hipGraphExecUpdate_(changed, native_graph, &node, &told);
      const bool half = answer == hipSuccess && told != hipGraphExecUpdateSuccess;
      return half ? kErrorUpdateFailed : answer;
    });
  });
  *outcome = update_outcome(told);
  const bool refused = told != hipGraphExecUpdateSuccess;
  if (result == kErrorUpdateFailed && !refused) *outcome = LOCKSTEP_UPDATE_NOT_SUPPORTED;
  if (result == hipSuccess || (result != kErrorUpdateFailed && !refused)) return result;
  call_.hipGetLastError_();  // expected: not to be found by whoever asks next
  return hipSuccess;
}
gpu::Result HipDriver::graph_exec_set_enabled(gpu::Handle exec, gpu::Handle node, bool enabled) {
  if (call_.hipGraphNodeSetEnabled_ == nullptr) {
    return not_supported("releases before ROCm 5.7 cannot disable nodes");
  }
  return launched_.change(exec, [&] {
    return call_.hipGraphNodeSetEnabled_(to_exec(exec), static_cast<hipGraphNode_t>(node),
                                         enabled ? 1 : 0);
  });
}

gpu::Result HipDriver::graph_launch(gpu::Handle exec, gpu::Handle stream) {
  const auto on = static_cast<hipStream_t>(stream);
  // 5.2 follows the special handles as if they were a stream's address.
  if ((on == nullptr || on == hipStreamPerThread) && library_.version.before(5, 3)) {
    return not_supported(
        "ROCm 5.2 crashes when a graph is launched on the legacy or the per-thread stream");
  }
  if (const gpu::Result refused = captures_.check_not_capturing(on, "hipGraphLaunch")) {
    return refused;
  }
  return launched_.launch(exec, on, [&] {
    return fresh_.launch(
        exec, on, [&](hipGraphExec_t launched) { return call_.hipGraphLaunch_(launched, on); });
  });
}

}  // namespace lockstep::hip
