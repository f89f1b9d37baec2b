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

void* device_native(lockstep_device* device) { return device->context; }
void* module_native(lockstep_module* module) { return module->native; }
void* kernel_native(lockstep_kernel* kernel) { return kernel->function; }
void* stream_native(lockstep_stream* stream) { return native_of(stream); }
std::uint64_t stream_identity(lockstep_stream* stream) { return identity_of(stream); }
void* event_native(lockstep_event* event) { return event->native; }
void* graph_native(lockstep_graph* graph) { return graph->native->handle; }
void* graph_exec_native(lockstep_graph_exec* exec) { return exec->native; }

lockstep_backend make_table(const Traits& traits, std::uint32_t version) {
  lockstep_backend table{};
  table.struct_size = sizeof table;
  table.abi_version = version;
  table.priority = 100;
  table.name = traits.name;
  table.vendor = traits.vendor;
  table.version = LOCKSTEP_VERSION_TEXT;

  table.initialize = start;
  table.device_count = guarded<device_count>;
  table.device_info = guarded<device_info>;
  table.device_attribute = guarded<device_attribute>;
  table.capabilities = capabilities;
  table.device_open = guarded<device_open>;
  table.device_close = device_close;
  table.device_memory = guarded<device_memory>;
  table.device_synchronize = guarded<device_synchronize>;
  table.device_native = device_native;

  table.memory_allocate = guarded<memory_allocate>;
  table.memory_free = guarded<memory_free>;
  table.memory_register = guarded<memory_register>;
  table.memory_unregister = guarded<memory_unregister>;
  table.pointer_info = guarded<pointer_info>;
  table.peer_access = guarded<peer_access>;
  table.peer_enable = guarded<peer_enable>;

  table.module_create = guarded<module_create>;
  table.module_destroy = module_destroy;
  table.module_native = module_native;
  table.module_kernel = guarded<module_kernel>;
  table.module_global = guarded<module_global>;
  table.module_load_all = guarded<module_load_all>;
  table.kernel_info = guarded<kernel_info>;
  table.kernel_set_max_dynamic_shared = guarded<kernel_set_max_dynamic_shared>;
  table.kernel_native = kernel_native;

  table.stream_create = guarded<stream_create>;
  table.stream_special = guarded<stream_special>;
  table.stream_from_native = guarded<stream_from_native>;
  table.stream_destroy = stream_destroy;
  table.stream_native = stream_native;
  table.stream_identity = stream_identity;
  table.stream_synchronize = guarded<stream_synchronize>;
  table.stream_query = guarded<stream_query>;

  table.event_create = guarded<event_create>;
  table.event_from_native = guarded<event_from_native>;
  table.event_destroy = event_destroy;
  table.event_native = event_native;
  table.event_record = guarded<event_record>;
  table.event_query = guarded<event_query>;
  table.event_synchronize = guarded<event_synchronize>;
  table.event_elapsed = guarded<event_elapsed>;
  table.stream_wait_event = guarded<stream_wait_event>;

  table.launch = guarded<launch>;
  table.copy = guarded<copy>;
  table.set = guarded<set>;
  table.host_function = guarded<host_function>;

  table.capture_begin = guarded<capture_begin>;
  table.capture_end = guarded<capture_end>;
  table.capture_status = guarded<capture_status>;
  table.capture_thread_mode = guarded<capture_thread_mode>;

  table.graph_create = guarded<graph_create>;
  table.graph_clone = guarded<graph_clone>;
  table.graph_destroy = graph_destroy;
  table.graph_native = graph_native;
  table.graph_add_node = guarded<graph_add_node>;
  table.graph_node_count = guarded<graph_node_count>;
  table.graph_node = guarded<graph_node>;
  table.graph_edges = guarded<graph_edges>;

  table.graph_instantiate = guarded<graph_instantiate>;
  table.graph_exec_destroy = graph_exec_destroy;
  table.graph_exec_native = graph_exec_native;
  table.graph_exec_identity = graph_exec_identity;
  table.graph_exec_update = guarded<graph_exec_update>;
  table.graph_exec_set_enabled = guarded<graph_exec_set_enabled>;
  table.graph_exec_launch = guarded<graph_exec_launch>;
  table.graph_from_native = guarded<graph_from_native>;
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
