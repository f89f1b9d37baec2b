// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>
#include <string>

#include "device.h"
#include "graph.h"
#include "launch.h"
#include "memory.h"
#include "module.h"
#include "stream.h"

#ifndef LOCKSTEP_VERSION_TEXT
#define LOCKSTEP_VERSION_TEXT "0.1.0"
#endif

namespace lockstep::gpu {
namespace {

// A slot from a function of the same arguments whose last one is the error record: refused when
// the driver cannot be used, and nothing thrown passes.
template <auto Function>
struct Guarded;
template <class... Arguments, lockstep_code (*Function)(Arguments...)>
struct Guarded<Function> {
  static lockstep_code call(Arguments... arguments) noexcept {
    lockstep_error* const error = std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
    return slot(error, [&] { return Function(arguments...); });
  }
};
template <auto Function>
constexpr auto guarded = &Guarded<Function>::call;

// A native handle that others have from now on: they may capture what is enqueued there.
void* stream_native(lockstep_stream* stream) {
  stream->known_to_others = true;
  return native_of(stream);
}
void* event_native(lockstep_event* event) {
  event->known_to_others = true;
  if (usable()) driver().event_shared(event->native);
  return event->native;
}

// Slots with a function of their own name: first those that are guarded, then those that fill no
// error record and look after themselves.
// clang-format off
#define LOCKSTEP_GPU_GUARDED(X) \
  X(device_count) X(device_info) X(device_attribute) X(device_open) X(device_memory) \
  X(device_synchronize) X(memory_allocate) X(memory_free) X(memory_register) \
  X(memory_unregister) X(pointer_info) X(peer_access) X(peer_enable) X(module_create) \
  X(module_kernel) X(module_global) X(module_load_all) X(kernel_info) \
  X(kernel_set_max_dynamic_shared) X(stream_create) X(stream_special) X(stream_from_native) \
  X(stream_synchronize) X(stream_query) X(event_create) X(event_from_native) X(event_record) \
  X(event_query) X(event_synchronize) X(event_elapsed) X(stream_wait_event) X(launch) X(copy) \
  X(set) X(host_function) X(capture_begin) X(capture_end) X(capture_status) \
  X(capture_thread_mode) X(graph_create) X(graph_clone) X(graph_add_node) X(graph_node_count) \
  X(graph_node) X(graph_edges) X(graph_instantiate) X(graph_exec_update) \
  X(graph_exec_set_enabled) X(graph_exec_launch) X(graph_from_native)
#define LOCKSTEP_GPU_PLAIN(X) \
  X(capabilities) X(device_close) X(module_destroy) X(stream_destroy) X(stream_native) \
  X(event_destroy) X(event_native) X(graph_destroy) X(graph_exec_destroy) X(graph_exec_identity)
// clang-format on

lockstep_backend make_table(const Traits& traits, std::uint32_t version) {
  lockstep_backend table{};
  table.struct_size = sizeof table;
  table.abi_version = version;
  table.priority = 100;
  table.name = traits.name;
  table.vendor = traits.vendor;
  table.version = LOCKSTEP_VERSION_TEXT;

  table.initialize = start;
#define LOCKSTEP_GPU_SLOT(slot) table.slot = guarded<slot>;
  LOCKSTEP_GPU_GUARDED(LOCKSTEP_GPU_SLOT)
#undef LOCKSTEP_GPU_SLOT
#define LOCKSTEP_GPU_SLOT(slot) table.slot = slot;
  LOCKSTEP_GPU_PLAIN(LOCKSTEP_GPU_SLOT)
#undef LOCKSTEP_GPU_SLOT
  table.device_native = [](lockstep_device* device) {
    return driver().device_native(device->ordinal, device->context);
  };
  table.module_native = [](lockstep_module* module) { return module->native; };
  table.kernel_native = [](lockstep_kernel* kernel) { return kernel->function; };
  table.graph_native = [](lockstep_graph* graph) { return graph->native->handle; };
  table.graph_exec_native = [](lockstep_graph_exec* exec) { return exec->native; };
  table.stream_identity = [](lockstep_stream* stream) { return identity_of(stream); };
  return table;
}

}  // namespace

const lockstep_backend* query(Driver& driver, const lockstep_host* host, lockstep_error* error) {
  std::uint32_t version = LOCKSTEP_BACKEND_ABI_MAX;
  if (host != nullptr) {
    version = std::min<std::uint32_t>(LOCKSTEP_BACKEND_ABI_MAX, host->abi_max);
    if (version < std::max<std::uint32_t>(LOCKSTEP_BACKEND_ABI_MIN, host->abi_min)) {
      fail(error, LOCKSTEP_E_INCOMPATIBLE_PLUGIN, "lockstep_backend_query",
           "this plugin speaks interface versions " + std::to_string(LOCKSTEP_BACKEND_ABI_MIN) +
               " to " + std::to_string(LOCKSTEP_BACKEND_ABI_MAX) + ", the program " +
               std::to_string(host->abi_min) + " to " + std::to_string(host->abi_max) +
               ": install both from one release");
      return nullptr;
    }
  }
  attach(driver, host);
  static const lockstep_backend* const table =
      new lockstep_backend(make_table(driver.traits(), version));
  return table;
}

}  // namespace lockstep::gpu
