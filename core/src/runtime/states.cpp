// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/states.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/runtime/log.h"
#include "src/runtime/relaxed_mode.h"

namespace lockstep::detail {

using runtime::ErrorRecord;
using runtime::may_release;

DeviceState::DeviceState(runtime::LoadedBackend& backend_, const DeviceSummary& info_)
    : backend(backend_),
      generation(runtime::fork_generation()),
      info(info_),
      id(backend_.name() + ":" + std::to_string(info_.ordinal)) {}

DeviceState::~DeviceState() {
  if (handle != nullptr && may_release(generation)) backend.table.device_close(handle);
}

void DeviceState::read_limits() {
  const auto read = [&](lockstep_device_attribute attribute) -> std::uint64_t {
    std::int64_t value = 0;
    ErrorRecord error;
    // An attribute that a device does not have is no limit.
    return backend.table.device_attribute(static_cast<std::uint32_t>(info.ordinal), attribute,
                                          &value, &error) == LOCKSTEP_OK &&
                   value > 0
               ? static_cast<std::uint64_t>(value)
               : 0;
  };
  const auto read32 = [&](lockstep_device_attribute attribute) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(read(attribute), UINT32_MAX));
  };
  limits.max_threads_per_block = read32(LOCKSTEP_ATTR_MAX_THREADS_PER_BLOCK);
  limits.max_block = {read32(LOCKSTEP_ATTR_MAX_BLOCK_X), read32(LOCKSTEP_ATTR_MAX_BLOCK_Y),
                      read32(LOCKSTEP_ATTR_MAX_BLOCK_Z)};
  limits.max_grid = {read32(LOCKSTEP_ATTR_MAX_GRID_X), read32(LOCKSTEP_ATTR_MAX_GRID_Y),
                     read32(LOCKSTEP_ATTR_MAX_GRID_Z)};
  limits.max_shared_per_block = read32(LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK);
  limits.max_shared_per_block_optin = read32(LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK_OPTIN);
  limits.max_grid_times_block = read(LOCKSTEP_ATTR_MAX_GRID_TIMES_BLOCK);
}

void DeviceState::add_module(const std::shared_ptr<ModuleState>& module) {
  const std::lock_guard lock(mutex_);
  std::erase_if(modules_, [](const auto& each) { return each.expired(); });
  modules_.push_back(module);
}

void DeviceState::load_modules() {
  std::vector<std::shared_ptr<ModuleState>> modules;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& each : modules_) {
      auto module = each.lock();
      if (module != nullptr && !module->resident.load(std::memory_order_acquire)) {
        modules.push_back(std::move(module));
      }
    }
  }
  for (const auto& module : modules) {
    ErrorRecord error;
    const lockstep_code code = backend.table.module_load_all(module->handle, &error);
    if (code != LOCKSTEP_OK) {
      runtime::throw_plugin_error(backend, this, nullptr, code, error,
                                  {"loading modules before a capture"});
    }
    module->resident.store(true, std::memory_order_release);
  }
}

StreamState::StreamState(const Device& device_, lockstep_stream* handle_)
    : device_state(device_.state()),
      handle(handle_),
      launch(device_state.backend.table.launch),
      generation(device_state.generation),
      device(device_),
      table(device_state.backend.table),
      identity(table.stream_identity(handle_)) {}

StreamState::~StreamState() {
  if (may_release(device_state.generation)) table.stream_destroy(handle);
}

std::string StreamState::where() const {
  return fmt::format("{}, stream #{}", device_state.id, identity);
}

EventState::EventState(const Device& device_, lockstep_event* handle_)
    : device(device_), device_state(device.state()), handle(handle_) {}

EventState::~EventState() {
  if (may_release(device_state.generation)) device_state.backend.table.event_destroy(handle);
}

Allocation::Allocation(const Device& device_, void* address_, std::uint64_t bytes_,
                       MemoryKind kind_, Origin origin_, std::shared_ptr<StreamState> stream_,
                       std::uint64_t capture_id_)
    : device(device_),
      backend(&device.state().backend),
      address(address_),
      bytes(bytes_),
      kind(kind_),
      origin(origin_),
      stream(std::move(stream_)),
      capture_id(capture_id_) {
  device.state().backend.allocations.add(*this, address, bytes, kind);
}

namespace {

void report_free_failure(const DeviceState& device, const ErrorRecord& error) {
  runtime::log(runtime::LogLevel::kError, fmt::format("memory was not given back on {}: {} ({})",
                                                      device.id, error.message, error.native_name));
}

void give_back(const Device& device, void* address, Allocation::Origin origin,
               const std::shared_ptr<StreamState>& stream) {
  DeviceState& state = device.state();
  if (!may_release(state.generation)) return;
  const lockstep_backend& table = state.backend.table;
  // A capture may begin on another thread at this moment.
  const runtime::RelaxedMode relaxed(state);
  ErrorRecord error;
  const lockstep_code code =
      origin == Allocation::Origin::kRegistered
          ? table.memory_unregister(state.handle, address, &error)
          : table.memory_free(state.handle, address, stream ? stream->handle : nullptr, &error);
  if (code != LOCKSTEP_OK) report_free_failure(state, error);
}

}  // namespace

Allocation::~Allocation() {
  DeviceState& state = device.state();
  if (!may_release(state.generation)) return;
  runtime::LoadedBackend& owner = state.backend;
  owner.allocations.remove(address);
  if (capture_id != 0) {
    // A node of a graph: freed by a node too while its capture goes on, else by the graph.
    const auto capture = owner.captures.of(owner, *stream);
    if (capture == nullptr || capture->id != capture_id) return;
    give_back(device, address, origin, stream);
    const std::lock_guard lock(capture->mutex);
    capture->contents.add_node(OperationKind::kFree);
    return;
  }
  const bool put_off = origin == Origin::kStreamOrdered
                           ? owner.captures.of(owner, *stream) != nullptr
                           : owner.captures.any();
  if (!put_off) {
    give_back(device, address, origin, stream);
    return;
  }
  owner.reclaimer.after_captures([device = device, address = address, origin = origin,
                                  stream = stream] { give_back(device, address, origin, stream); });
  owner.reclaimer.captures_ended(owner);
}

ModuleState::ModuleState(const Device& device_, lockstep_module* handle_,
                         std::vector<std::string> kernels_)
    : device(device_), handle(handle_), kernels(std::move(kernels_)) {}

ModuleState::~ModuleState() {
  DeviceState& state = device.state();
  if (may_release(state.generation)) state.backend.table.module_destroy(handle);
}

GraphState::GraphState(const Device& device_) : device(device_), device_state(device.state()) {}

GraphState::~GraphState() {
  if (handle != nullptr && may_release(device_state.generation)) {
    device_state.backend.table.graph_destroy(handle);
  }
}

GraphExecState::GraphExecState(const Graph& graph_, lockstep_graph_exec* handle_)
    : device_state(graph_.state().device.state()),
      handle(handle_),
      launch(device_state.backend.table.graph_exec_launch),
      allocations(device_state.backend.allocations),
      checked_frees(UINT64_MAX),
      generation(device_state.generation),
      graph(graph_),
      device(graph.state().device),
      contents(std::make_shared<const runtime::GraphContents>(graph.state().contents)) {
  std::uint32_t plugin_version = 0;
  identity = device_state.backend.table.graph_exec_identity(handle, &plugin_version);
}

GraphExecState::~GraphExecState() {
  if (!may_release(device_state.generation)) return;
  device_state.backend.table.graph_exec_destroy(handle);
  if (last_stream != nullptr) {
    auto& reclaimer = device_state.backend.reclaimer;
    reclaimer.after_work(std::move(contents), std::move(last_stream));
    // Most streams are done by now; nothing else may come that would ask them.
    reclaimer.collect(device_state.backend);
  }
}

void GraphExecState::remember_stream(const std::shared_ptr<StreamState>& stream) {
  last_stream = stream;
  last_identity = stream->table.stream_identity(stream->handle);
  last_stream_seen.store(stream.get(), std::memory_order_relaxed);
}

void GraphExecState::replaced() {
  if (last_stream == nullptr) return;  // there is no launch to follow
  former.replaced(last_stream, last_identity);
  last_stream_seen.store(nullptr, std::memory_order_relaxed);  // the next launch asks
}

}  // namespace lockstep::detail
