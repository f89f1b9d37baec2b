// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/backend_slots.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <tuple>

#define LOCKSTEP_FOR_EACH_SLOT(X)  \
  X(initialize)                    \
  X(device_count)                  \
  X(device_info)                   \
  X(device_attribute)              \
  X(capabilities)                  \
  X(device_open)                   \
  X(device_close)                  \
  X(device_memory)                 \
  X(device_synchronize)            \
  X(device_native)                 \
  X(memory_allocate)               \
  X(memory_free)                   \
  X(memory_register)               \
  X(memory_unregister)             \
  X(pointer_info)                  \
  X(peer_access)                   \
  X(peer_enable)                   \
  X(module_create)                 \
  X(module_destroy)                \
  X(module_native)                 \
  X(module_kernel)                 \
  X(module_global)                 \
  X(module_load_all)               \
  X(kernel_info)                   \
  X(kernel_set_max_dynamic_shared) \
  X(kernel_native)                 \
  X(stream_create)                 \
  X(stream_special)                \
  X(stream_from_native)            \
  X(stream_destroy)                \
  X(stream_native)                 \
  X(stream_identity)               \
  X(stream_synchronize)            \
  X(stream_query)                  \
  X(event_create)                  \
  X(event_from_native)             \
  X(event_destroy)                 \
  X(event_native)                  \
  X(event_record)                  \
  X(event_query)                   \
  X(event_synchronize)             \
  X(event_elapsed)                 \
  X(stream_wait_event)             \
  X(launch)                        \
  X(copy)                          \
  X(set)                           \
  X(host_function)                 \
  X(capture_begin)                 \
  X(capture_end)                   \
  X(capture_status)                \
  X(capture_thread_mode)           \
  X(graph_create)                  \
  X(graph_clone)                   \
  X(graph_destroy)                 \
  X(graph_native)                  \
  X(graph_add_node)                \
  X(graph_node_count)              \
  X(graph_node)                    \
  X(graph_edges)                   \
  X(graph_instantiate)             \
  X(graph_exec_destroy)            \
  X(graph_exec_native)             \
  X(graph_exec_identity)           \
  X(graph_exec_update)             \
  X(graph_exec_set_enabled)        \
  X(graph_exec_launch)             \
  X(graph_from_native)

namespace lockstep::runtime {
namespace {

template <std::size_t N>
struct SlotName {
  constexpr SlotName(const char (&text)[N]) { std::copy_n(text, N, value); }
  char value[N];
};

lockstep_code refuse(const char* slot, lockstep_error* error) {
  if (error != nullptr) {
    error->code = LOCKSTEP_E_NOT_SUPPORTED;
    std::snprintf(error->call, sizeof(error->call), "%s", slot);
    std::snprintf(error->message, sizeof(error->message), "the backend does not offer %s", slot);
  }
  return LOCKSTEP_E_NOT_SUPPORTED;
}

/// What stands in for a slot that a plugin does not have.
template <SlotName Name, typename Function>
struct AbsentSlot;

template <SlotName Name, typename... Arguments>
struct AbsentSlot<Name, lockstep_code (*)(Arguments...)> {
  static lockstep_code call(Arguments... arguments) {
    // The error record is the last parameter of every slot that returns a code.
    return refuse(Name.value, std::get<sizeof...(Arguments) - 1>(std::make_tuple(arguments...)));
  }
};

template <SlotName Name, typename Result, typename... Arguments>
struct AbsentSlot<Name, Result (*)(Arguments...)> {
  static Result call(Arguments...) { return Result(); }
};

lockstep_code nothing_to_load(lockstep_module*, lockstep_error*) { return LOCKSTEP_OK; }

lockstep_code not_capturing(lockstep_stream*, uint32_t* status, uint64_t* id, lockstep_error*) {
  *status = LOCKSTEP_CAPTURE_NOT_CAPTURING;
  *id = 0;
  return LOCKSTEP_OK;
}

}  // namespace

lockstep_backend complete_table(const lockstep_backend& plugin_table) {
  lockstep_backend table = {};
  std::memcpy(&table, &plugin_table, std::min(plugin_table.struct_size, sizeof(table)));
  table.struct_size = sizeof(table);
  if (table.module_load_all == nullptr) table.module_load_all = nothing_to_load;
  // Without capture no stream ever captures, which is an answer and not a failure.
  if (table.capture_status == nullptr) table.capture_status = not_capturing;
#define LOCKSTEP_COMPLETE(slot) \
  if (table.slot == nullptr) table.slot = AbsentSlot<#slot, decltype(table.slot)>::call;
  LOCKSTEP_FOR_EACH_SLOT(LOCKSTEP_COMPLETE)
#undef LOCKSTEP_COMPLETE
  return table;
}

}  // namespace lockstep::runtime
