// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device.h>
#include <lockstep/error.h>
#include <lockstep/graph.h>
#include <lockstep/stream.h>

#include <algorithm>
#include <fmt/format.h>

#include "src/runtime/states.h"

namespace lockstep {

using detail::GraphExecState;
using detail::GraphState;
using runtime::ErrorRecord;

namespace {

void check(detail::DeviceState& device, const detail::StreamState* stream, lockstep_code code,
           const ErrorRecord& error, const char* function) {
  if (code != LOCKSTEP_OK) [[unlikely]] {
    runtime::throw_plugin_error(device.backend, &device, stream, code, error, {function});
  }
}

lockstep_graph_exec* instantiate(GraphState& graph, const char* function) {
  lockstep_graph_exec* handle = nullptr;
  ErrorRecord error;
  check(graph.device_state, nullptr,
        graph.device_state.backend.table.graph_instantiate(graph.handle, &handle, &error), error,
        function);
  return handle;
}

[[noreturn]] void throw_empty_graph(const GraphState& graph) {
  ErrorContext context;
  context.where = graph.device_state.id;
  throw Error(
      ErrorCode::kMismatch,
      fmt::format("Graph::instantiate on {}: the graph has no nodes. A capture that recorded "
                  "nothing is nearly always one of the wrong stream or device; allow_empty "
                  "takes it all the same",
                  graph.device_state.id),
      context);
}

std::string_view update_words(std::uint32_t result) {
  switch (result) {
    case LOCKSTEP_UPDATE_TOPOLOGY_CHANGED:
      return "the topology changed";
    case LOCKSTEP_UPDATE_NODE_TYPE_CHANGED:
      return "a node's type changed";
    case LOCKSTEP_UPDATE_FUNCTION_CHANGED:
      return "a node's kernel changed";
    case LOCKSTEP_UPDATE_PARAMETERS_CHANGED:
      return "parameters changed that cannot be updated";
    default:
      return "the backend cannot update in place";
  }
}

}  // namespace

GraphExec Graph::instantiate(const InstantiateOptions& options) const {
  GraphState& graph = state();
  graph.device_state.check_usable();
  if (!options.allow_empty && node_count() == 0) throw_empty_graph(graph);
  auto exec =
      std::make_shared<GraphExecState>(*this, lockstep::instantiate(graph, "Graph::instantiate"));
  graph.device_state.backend.reclaimer.collect(graph.device_state.backend);
  return GraphExec(std::move(exec));
}

GraphExec Graph::instantiate() const { return instantiate(InstantiateOptions()); }

[[gnu::hot]] GraphExecState& GraphExec::state() const {
  if (state_ == nullptr) [[unlikely]]
    runtime::throw_empty_handle("GraphExec");
  return *state_;
}

[[gnu::hot]] void detail::GraphExecState::check_pointers() {
  const std::uint64_t frees = allocations.frees();
  if (frees != checked_frees.load(std::memory_order_relaxed)) [[unlikely]]
    check_each_pointer(frees);
}

void detail::GraphExecState::check_each_pointer(std::uint64_t frees) {
  for (const runtime::RawPointer& pointer : contents->raw_pointers) {
    if (allocations.is_live(pointer.address, pointer.allocation)) continue;
    ErrorContext context;
    context.where = device_state.id;
    throw Error(
        ErrorCode::kStaleBuffer,
        fmt::format("GraphExec::launch on {}: node {} uses {} at {:#x} by raw pointer, which "
                    "was freed after the graph was made; pass the Buffer itself and the "
                    "graph keeps it, or capture again",
                    device_state.id, pointer.node, pointer.role, pointer.address),
        context);
  }
  checked_frees.store(frees, std::memory_order_relaxed);
}

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void refuse_stream(const GraphExecState& exec,
                                                          const detail::StreamState& stream) {
  runtime::throw_invalid(fmt::format("GraphExec::launch of a graph of {} on a stream of {}",
                                     exec.device_state.id, stream.device_state.id),
                         stream.where());
}

// The first launch, or one on another stream than the last. True when it was launched: behind an
// update that instantiated anew, under the mutex, so that those of other threads follow it.
[[gnu::cold, gnu::noinline]] bool launch_on_other_stream(GraphExecState& exec,
                                                         detail::StreamState& stream) {
  const std::lock_guard lock(exec.mutex);
  const bool behind_former = exec.former.pending();
  if (behind_former) {
    exec.former.let_wait(stream);
    ErrorRecord error;
    check(exec.device_state, &stream,
          stream.table.graph_exec_launch(exec.handle, stream.handle, &error), error,
          "GraphExec::launch");
    exec.former.followed();
  }
  exec.remember_stream(stream.shared_from_this());
  return behind_former;
}

}  // namespace

[[gnu::hot]] void GraphExec::launch(const StreamRef& stream_handle) const {
  GraphExecState& exec = state();
  detail::StreamState& stream = stream_handle.state();
  exec.device_state.check_generation(exec.generation);
  // Which the plugin will look at, when the checks are done.
  __builtin_prefetch(stream.handle);
  __builtin_prefetch(exec.handle);
  if (&stream.device_state != &exec.device_state &&
      &stream.device_state.backend != &exec.device_state.backend) [[unlikely]] {
    refuse_stream(exec, stream);
  }
  exec.check_pointers();
  if (exec.last_stream_seen.load(std::memory_order_relaxed) != &stream) [[unlikely]] {
    if (launch_on_other_stream(exec, stream)) return;
  }
  ErrorRecord error;
  const lockstep_code code = exec.launch(exec.handle, stream.handle, &error);
  check(exec.device_state, &stream, code, error, "GraphExec::launch");
}

GraphExec::UpdateResult GraphExec::update(const Graph& graph_handle) {
  GraphExecState& exec = state();
  exec.device_state.check_usable();
  GraphState& graph = graph_handle.state();
  runtime::LoadedBackend& backend = exec.device_state.backend;
  if (&graph.device_state != &exec.device_state) {
    runtime::throw_invalid(fmt::format("GraphExec::update of an executable of {} by a graph of {}",
                                       exec.device_state.id, graph.device_state.id),
                           exec.device_state.id);
  }
  UpdateResult outcome;
  std::uint32_t result = LOCKSTEP_UPDATE_DONE;
  ErrorRecord error;
  const lockstep_code code =
      backend.table.graph_exec_update(exec.handle, graph.handle, &result, &error);
  if (code == LOCKSTEP_E_NOT_SUPPORTED) {
    result = LOCKSTEP_UPDATE_NOT_SUPPORTED;
  } else {
    check(exec.device_state, nullptr, code, error, "GraphExec::update");
  }
  if (result != LOCKSTEP_UPDATE_DONE) {
    outcome.reinstantiated = true;
    outcome.reason = update_words(result);
    if (error.message[0] != '\0') outcome.reason += std::string(": ") + error.message;
    lockstep_graph_exec* fresh = lockstep::instantiate(graph, "GraphExec::update");
    backend.table.graph_exec_destroy(exec.handle);  // launches in flight complete
    exec.handle = fresh;
    ++exec.reinstantiations;
  }
  const std::lock_guard lock(exec.mutex);
  if (outcome.reinstantiated) exec.replaced();
  if (exec.last_stream != nullptr) {
    // A launch that is under way still uses what the former nodes used.
    backend.reclaimer.after_work(exec.contents, exec.last_stream);
  }
  exec.contents = std::make_shared<const runtime::GraphContents>(graph.contents);
  exec.checked_frees.store(UINT64_MAX, std::memory_order_relaxed);
  exec.graph = graph_handle;
  ++exec.version;
  return outcome;
}

void GraphExec::set_enabled(GraphNode node, bool enabled) {
  GraphExecState& exec = state();
  exec.device_state.check_usable();
  ErrorRecord error;
  const lockstep_code code = exec.device_state.backend.table.graph_exec_set_enabled(
      exec.handle, node.index, enabled ? 1u : 0u, &error);
  check(exec.device_state, nullptr, code, error, "GraphExec::set_enabled");
  ++exec.version;
}

std::uint64_t GraphExec::identity() const { return state().identity; }
std::uint32_t GraphExec::version() const { return state().version; }
const Graph& GraphExec::graph() const { return state().graph; }
std::uint64_t GraphExec::reinstantiations() const { return state().reinstantiations; }
const Device& GraphExec::device() const { return state().device; }

void* GraphExec::native_handle() const {
  GraphExecState& exec = state();
  exec.device_state.check_usable();
  return exec.device_state.backend.table.graph_exec_native(exec.handle);
}

}  // namespace lockstep
