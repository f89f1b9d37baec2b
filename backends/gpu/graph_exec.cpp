// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "enqueue.h"
#include "graph.h"
#include "graph_shape.h"

namespace lockstep::gpu {
namespace {

// Reports the executable as it is now, once a version. Called with its mutex held.
lockstep_code define(lockstep_graph_exec* exec, lockstep_error* error) {
  if (!exec->stale.load(std::memory_order_relaxed)) return LOCKSTEP_OK;
  if (exec->broken) {
    return fail(error, LOCKSTEP_E_INTERNAL, driver().call_name(Call::kGraphLaunch),
                "an update was refused by the driver after it had changed some nodes, which could "
                "not be changed back: instantiate the graph anew");
  }
  GraphDefinition definition(exec->device);
  const Result result =
      definition.flatten(exec->current->handle, exec->current_nodes, exec->disabled);
  if (result != kSuccess) return fail_native(error, definition.failed_call(), result);
  const std::uint32_t version = exec->version.load(std::memory_order_relaxed) + 1;
  recorder().define_graph(exec->identity, version, definition.records().data(),
                          static_cast<std::uint32_t>(definition.records().size()),
                          definition.edges().data(),
                          static_cast<std::uint32_t>(definition.edges().size()));
  exec->version.store(version, std::memory_order_relaxed);
  exec->stale.store(false, std::memory_order_release);
  return LOCKSTEP_OK;
}

// Where the driver's update is not to be trusted: the shapes are compared before it may change
// anything, and what it changed before it refused a node is changed back. Where that fails (the
// graph has had nodes added since) the executable is not launched again.
lockstep_code update_carefully(lockstep_graph_exec* exec, lockstep_graph* graph,
                               std::uint32_t* outcome, lockstep_error* error) {
  const Handle wanted = graph->native->handle, current = exec->current->handle;
  const Result compared =
      compare_shapes(current, exec->current_nodes, wanted, graph->nodes, outcome);
  if (compared != kSuccess) return fail_native(error, Call::kGraphNodeParameters, compared);
  if (*outcome != LOCKSTEP_UPDATE_DONE) return LOCKSTEP_OK;
  const Result updated = driver().graph_exec_update(exec->native, wanted, outcome);
  if (updated == kSuccess && *outcome == LOCKSTEP_UPDATE_DONE) return LOCKSTEP_OK;
  std::uint32_t restored_to = LOCKSTEP_UPDATE_DONE;
  const Result restored = driver().graph_exec_update(exec->native, current, &restored_to);
  if (restored != kSuccess || restored_to != LOCKSTEP_UPDATE_DONE) {
    exec->broken = true;
    exec->stale.store(true);
  }
  return updated == kSuccess ? LOCKSTEP_OK : fail_native(error, Call::kGraphUpdate, updated);
}

}  // namespace

lockstep_code graph_instantiate(lockstep_graph* graph, lockstep_graph_exec** exec,
                                lockstep_error* error) {
  *exec = nullptr;
  ContextScope scope(graph->device->context);
  std::lock_guard lock(graph->mutex);
  auto made = std::make_unique<lockstep_graph_exec>();
  made->device = graph->device;
  const Result result = driver().graph_instantiate(graph->native->handle, &made->native);
  if (result != kSuccess) return fail_native(error, Call::kGraphInstantiate, result);
  made->identity = recorder().next_id();
  made->source = made->current = graph->native;
  made->source_nodes = made->current_nodes = graph->nodes;
  made->disabled.assign(graph->nodes.size(), false);
  if (const lockstep_code code = define(made.get(), error)) {
    driver().graph_exec_destroy(made->native);
    return code;
  }
  *exec = made.release();
  return LOCKSTEP_OK;
}

void graph_exec_destroy(lockstep_graph_exec* exec) {
  if (exec == nullptr) return;
  if (usable()) {
    ContextScope scope(exec->device->context);
    driver().graph_exec_destroy(exec->native);  // launches in flight complete
  }
  delete exec;
}

std::uint64_t graph_exec_identity(lockstep_graph_exec* exec, std::uint32_t* version) {
  if (usable()) {
    ContextScope scope(exec->device->context);
    std::lock_guard lock(exec->mutex);
    define(exec, nullptr);  // a failure shows when it is launched
  }
  if (version != nullptr) *version = exec->version.load();
  return exec->identity;
}

lockstep_code graph_exec_update(lockstep_graph_exec* exec, lockstep_graph* graph,
                                std::uint32_t* result, lockstep_error* error) {
  ContextScope scope(exec->device->context);
  std::scoped_lock lock(exec->mutex, graph->mutex);
  std::uint32_t outcome = LOCKSTEP_UPDATE_DONE;
  if (driver().traits().update_trusted) {
    const Result updated =
        driver().graph_exec_update(exec->native, graph->native->handle, &outcome);
    if (updated != kSuccess) return fail_native(error, Call::kGraphUpdate, updated);
  } else if (const lockstep_code code = update_carefully(exec, graph, &outcome, error)) {
    return code;
  }
  *result = outcome;
  if (outcome != LOCKSTEP_UPDATE_DONE) return LOCKSTEP_OK;
  exec->current = graph->native;
  exec->current_nodes = graph->nodes;
  exec->stale.store(true);
  return define(exec, error);
}

lockstep_code graph_exec_set_enabled(lockstep_graph_exec* exec, std::uint32_t node,
                                     std::uint32_t enabled, lockstep_error* error) {
  ContextScope scope(exec->device->context);
  std::lock_guard lock(exec->mutex);
  if (node >= exec->source_nodes.size()) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "graph_exec_set_enabled",
                "there is no node " + std::to_string(node) + ": the graph had " +
                    std::to_string(exec->source_nodes.size()) + " when it was instantiated");
  }
  const Result result =
      driver().graph_exec_set_enabled(exec->native, exec->source_nodes[node].native, enabled != 0);
  if (result != kSuccess) {
    return fail_native(error, Call::kGraphSetEnabled, result,
                       "only kernel, copy and set nodes can be disabled");
  }
  if (exec->disabled[node] == (enabled == 0)) return LOCKSTEP_OK;
  exec->disabled[node] = enabled == 0;
  exec->stale.store(true);  // defined before the next launch: several changes are one version
  return LOCKSTEP_OK;
}

namespace {

// Apart from the path of a launch, as in launch.cpp.
[[gnu::noinline]] lockstep_code define_again(lockstep_graph_exec* exec, lockstep_stream* stream,
                                             lockstep_error* error) {
  const ContextScope context(stream->context);
  const std::lock_guard lock(exec->mutex);
  return define(exec, error);
}

[[gnu::cold, gnu::noinline]] lockstep_code explain_failure(const lockstep_stream* stream,
                                                           Result result, lockstep_error* error) {
  const ContextScope failed_in(stream->context);  // what a failure means depends on it
  return fail_native(error, Call::kGraphLaunch, result, describe(stream));
}

// Recorded, captured, changed since it was defined, into a stream that is not ours, or by a driver
// that needs more than its own call.
[[gnu::noinline]] lockstep_code launch_enqueued(lockstep_graph_exec* exec, lockstep_stream* stream,
                                                lockstep_error* error) {
  const LaunchScope scope(stream);
  if (exec->stale.load(std::memory_order_acquire)) [[unlikely]] {
    if (const lockstep_code code = define_again(exec, stream, error)) return code;
  }
  const Result result = enqueue(
      stream, LOCKSTEP_RECORD_GRAPH_LAUNCH, name_of(Call::kGraphLaunch), true,
      [&](lockstep_record& record) {
        record.of.graph_launch.graph = exec->identity;
        record.of.graph_launch.version = exec->version.load(std::memory_order_relaxed);
      },
      [&] { return driver().graph_launch(exec->native, native_of(stream)); });
  if (result == kSuccess) [[likely]]
    return LOCKSTEP_OK;
  return explain_failure(stream, result, error);
}

}  // namespace

[[gnu::hot]] lockstep_code graph_exec_launch(lockstep_graph_exec* exec, lockstep_stream* stream,
                                             lockstep_error* error) {
  const bool plain = g_state.plain_graph_launch != nullptr && !recording() && !captures_open() &&
                     stream->origin == lockstep_stream::Origin::kOwn &&
                     !exec->stale.load(std::memory_order_acquire);
  if (!plain) [[unlikely]]
    return launch_enqueued(exec, stream, error);
  const Result result = g_state.plain_graph_launch(exec->native, native_of(stream));
  note_launch(stream);
  if (result == kSuccess) [[likely]]
    return LOCKSTEP_OK;
  return explain_failure(stream, result, error);
}

}  // namespace lockstep::gpu
