// SPDX-License-Identifier: Apache-2.0

// Capture and graphs of the fake plugin. Captured work is one chain.

#include "support/fake_backend/fake_state.h"

namespace lockstep::testing::fake {

void add_node(lockstep_graph& graph, std::shared_ptr<Work> work) {
  const auto count = static_cast<std::uint32_t>(graph.nodes.size());
  if (count > 0) graph.edges.insert({count - 1, count});
  graph.nodes.push_back(std::move(work));
}

namespace {

lockstep_code capture_begin(lockstep_stream* stream, std::uint32_t, lockstep_error* error) {
  if (const auto code = asked_failure("capture_begin", error)) return code;
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (stream->capture != 0) {
    return give(error, LOCKSTEP_E_INVALID_ARGUMENT, "fakeBeginCapture", "it captures already");
  }
  stream->capture = all.host->recorder->next_id();
  stream->origin = true;
  all.captures[stream->capture].streams.insert(stream);
  return LOCKSTEP_OK;
}

lockstep_code capture_end(lockstep_stream* stream, lockstep_graph** graph, lockstep_error* error) {
  *graph = nullptr;
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.captures.find(stream->capture);
  if (found == all.captures.end() || !stream->origin) {
    return give(error, LOCKSTEP_E_ILLEGAL_DURING_CAPTURE, "fakeEndCapture", "not begun here",
                LOCKSTEP_CAPTURE_RULE_UNMATCHED);
  }
  Capture capture = std::move(found->second);
  all.captures.erase(found);
  for (lockstep_stream* each : capture.streams) {
    each->capture = 0;
    each->origin = false;
  }
  if (capture.invalidated) {
    return give(error, LOCKSTEP_E_CAPTURE_INVALIDATED, "fakeEndCapture", "invalidated before",
                LOCKSTEP_CAPTURE_RULE_INVALIDATED);
  }
  if (const auto code = asked_failure("capture_end", error)) return code;
  *graph = new lockstep_graph(std::move(capture.graph));
  ++all.control.graphs;
  return LOCKSTEP_OK;
}

lockstep_code capture_status(lockstep_stream* stream, std::uint32_t* status, std::uint64_t* id,
                             lockstep_error*) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.captures.find(stream->capture);
  *id = stream->capture;
  *status = found == all.captures.end() ? LOCKSTEP_CAPTURE_NOT_CAPTURING
            : found->second.invalidated ? LOCKSTEP_CAPTURE_IS_INVALIDATED
                                        : LOCKSTEP_CAPTURE_ACTIVE;
  return LOCKSTEP_OK;
}

lockstep_code capture_thread_mode(lockstep_device*, std::uint32_t* mode, lockstep_error*) {
  const std::lock_guard lock(state().mutex);
  std::swap(state().thread_mode, *mode);
  return LOCKSTEP_OK;
}

lockstep_code graph_create(lockstep_device*, lockstep_graph** graph, lockstep_error*) {
  *graph = new lockstep_graph;
  ++state().control.graphs;
  return LOCKSTEP_OK;
}
lockstep_code graph_clone(lockstep_graph* graph, lockstep_graph** clone, lockstep_error*) {
  *clone = new lockstep_graph(*graph);
  ++state().control.graphs;
  return LOCKSTEP_OK;
}
void graph_destroy(lockstep_graph* graph) {
  if (graph != nullptr) --state().control.graphs;
  delete graph;
}

lockstep_code graph_add_node(lockstep_graph* graph, const lockstep_node_desc* desc,
                             const std::uint32_t* dependencies, std::uint32_t count,
                             std::uint32_t* node, lockstep_error* error) {
  if (const auto code = asked_failure("graph_add_node", error)) return code;
  std::shared_ptr<Work> work;
  if (desc->kind == LOCKSTEP_NODE_KERNEL) {
    work = work_of(*desc->launch);
  } else if (desc->kind == LOCKSTEP_NODE_COPY) {
    work = work_of(*desc->copy);
  } else if (desc->kind == LOCKSTEP_NODE_SET) {
    work = work_of(*desc->set);
  } else {
    work = std::make_shared<Work>();
    work->kind = desc->kind;
    work->function = desc->function;
    work->user_data = desc->user_data;
    work->record.kind = LOCKSTEP_RECORD_HOST_FUNC;
    if (desc->child != nullptr) work->child = std::make_shared<lockstep_graph>(*desc->child);
  }
  *node = static_cast<std::uint32_t>(graph->nodes.size());
  for (std::uint32_t i = 0; i < count; ++i) graph->edges.insert({dependencies[i], *node});
  graph->nodes.push_back(std::move(work));
  return LOCKSTEP_OK;
}

lockstep_code graph_node_count(lockstep_graph* graph, std::uint32_t* count, lockstep_error*) {
  *count = static_cast<std::uint32_t>(graph->nodes.size());
  return LOCKSTEP_OK;
}

lockstep_code graph_node(lockstep_graph* graph, std::uint32_t node, lockstep_node_info* info,
                         lockstep_error*) {
  const Work& work = *graph->nodes[node];
  info->kind = work.kind;
  const bool recorded = work.kind == LOCKSTEP_NODE_KERNEL || work.kind == LOCKSTEP_NODE_COPY ||
                        work.kind == LOCKSTEP_NODE_SET || work.kind == LOCKSTEP_NODE_HOST;
  info->record = recorded ? &work.record : nullptr;
  info->child = work.child.get();
  return LOCKSTEP_OK;
}

lockstep_code graph_edges(lockstep_graph* graph, lockstep_graph_edge* edges, std::uint32_t capacity,
                          std::uint32_t* count, lockstep_error*) {
  *count = static_cast<std::uint32_t>(graph->edges.size());
  std::uint32_t i = 0;
  for (const auto& [from, to] : graph->edges) {
    if (i < capacity) edges[i++] = {from, to, 0};
  }
  return LOCKSTEP_OK;
}

lockstep_code graph_instantiate(lockstep_graph* graph, lockstep_graph_exec** exec,
                                lockstep_error* error) {
  if (const auto code = asked_failure("graph_instantiate", error)) return code;
  if (const auto code = refuse_in_capture("fakeInstantiate", error)) return code;
  *exec = new lockstep_graph_exec{*graph, state().host->recorder->next_id()};
  ++state().control.executables;
  ++state().control.instantiations;
  return LOCKSTEP_OK;
}
void graph_exec_destroy(lockstep_graph_exec* exec) {
  if (exec != nullptr) --state().control.executables;
  delete exec;
}
std::uint64_t graph_exec_identity(lockstep_graph_exec* exec, std::uint32_t* version) {
  *version = exec->version;
  return exec->identity;
}
lockstep_code graph_exec_update(lockstep_graph_exec* exec, lockstep_graph* graph,
                                std::uint32_t* result, lockstep_error*) {
  *result = state().control.update_result;
  if (exec->graph.nodes.size() != graph->nodes.size()) *result = LOCKSTEP_UPDATE_TOPOLOGY_CHANGED;
  if (*result == LOCKSTEP_UPDATE_DONE) {
    exec->graph = *graph;
    ++exec->version;
  }
  return LOCKSTEP_OK;
}
lockstep_code graph_exec_launch(lockstep_graph_exec* exec, lockstep_stream*,
                                lockstep_error* error) {
  if (const auto code = refuse_in_capture("fakeGraphLaunch", error)) return code;
  for (const auto& node : exec->graph.nodes) execute(*node);
  return LOCKSTEP_OK;
}

}  // namespace

void fill_graph_slots(lockstep_backend& table) {
  table.capture_begin = capture_begin;
  table.capture_end = capture_end;
  table.capture_status = capture_status;
  table.capture_thread_mode = capture_thread_mode;
  table.graph_create = graph_create;
  table.graph_clone = graph_clone;
  table.graph_destroy = graph_destroy;
  table.graph_add_node = graph_add_node;
  table.graph_node_count = graph_node_count;
  table.graph_node = graph_node;
  table.graph_edges = graph_edges;
  table.graph_instantiate = graph_instantiate;
  table.graph_exec_destroy = graph_exec_destroy;
  table.graph_exec_identity = graph_exec_identity;
  table.graph_exec_update = graph_exec_update;
  table.graph_exec_launch = graph_exec_launch;
}

}  // namespace lockstep::testing::fake
