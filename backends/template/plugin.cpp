// SPDX-License-Identifier: Apache-2.0

// The entry point, the table and the device.

#include "plugin.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace template_plugin {
namespace {

const lockstep_host* host = nullptr;

// Start the driver here, and not before: loading the plugin must have no effect. When the driver's
// library is not there, say which names were tried and leave native_code at 0; when it is too old,
// give both versions and the driver's own answer.
lockstep_code initialize(lockstep_error*) { return LOCKSTEP_OK; }

lockstep_code device_count(std::uint32_t* count, lockstep_error*) {
  *count = 1;
  return LOCKSTEP_OK;
}

lockstep_code device_info(std::uint32_t ordinal, lockstep_device_info* info,
                          lockstep_error* error) {
  if (ordinal != 0) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "device_info", "there is one device, number 0");
  }
  // A device that is not real says so, by its name too, and `auto` never takes it.
  info->simulated = 1;
  std::snprintf(info->name, sizeof(info->name), "SIMULATED template device");
  std::snprintf(info->arch, sizeof(info->arch), "template");
  info->memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return LOCKSTEP_OK;
}

lockstep_code device_attribute(std::uint32_t, lockstep_device_attribute attribute,
                               std::int64_t* value, lockstep_error* error) {
  switch (attribute) {
    case LOCKSTEP_ATTR_STREAM_ORDERED_MEMORY:
    case LOCKSTEP_ATTR_COOPERATIVE_LAUNCH:
    case LOCKSTEP_ATTR_CLUSTER_LAUNCH:
    case LOCKSTEP_ATTR_GRAPHS:
    case LOCKSTEP_ATTR_CAPTURE:
    case LOCKSTEP_ATTR_GRAPH_MEMORY_NODES:
    case LOCKSTEP_ATTR_COMPILES_SOURCE:
      *value = 0;
      return LOCKSTEP_OK;
    default:
      return fail(error, LOCKSTEP_E_NOT_SUPPORTED, "device_attribute",
                  "the device does not have attribute " + std::to_string(attribute));
  }
}

lockstep_code device_open(std::uint32_t ordinal, lockstep_device** device, lockstep_error* error) {
  if (ordinal != 0) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "device_open", "there is one device, number 0");
  }
  *device = new lockstep_device{1};
  return LOCKSTEP_OK;
}
void device_close(lockstep_device* device) { delete device; }

// Nothing is ever in flight here.
lockstep_code device_synchronize(lockstep_device*, lockstep_error*) { return LOCKSTEP_OK; }

lockstep_backend make_table(std::uint32_t version) {
  lockstep_backend table = {};
  table.struct_size = sizeof(table);
  table.abi_version = version;
  table.priority = -1;
  table.name = "template";  // and the file: liblockstep_backend_template.so
  table.vendor = "yours";
  table.version = "0.1";
  table.initialize = initialize;
  table.device_count = device_count;
  table.device_info = device_info;
  table.device_attribute = device_attribute;
  table.device_open = device_open;
  table.device_close = device_close;
  table.device_synchronize = device_synchronize;
  fill_memory_slots(table);
  fill_stream_slots(table);
  // Slots that stay null are answered by the host with NOT_SUPPORTED: host functions,
  // kernels, capture, graphs.
  return table;
}

}  // namespace

const lockstep_recorder& recorder() { return *host->recorder; }

lockstep_code fail(lockstep_error* error, lockstep_code code, const char* call,
                   const std::string& message) {
  if (error != nullptr) {
    error->code = code;
    std::snprintf(error->call, sizeof(error->call), "%s", call);
    std::snprintf(error->message, sizeof(error->message), "%s", message.c_str());
  }
  return code;
}

lockstep_record new_record(lockstep_record_kind kind, const char* name,
                           const lockstep_stream* stream) {
  lockstep_record record = {};
  record.struct_size = sizeof(record);
  record.kind = kind;
  // intern() takes a lock: a plugin with many launches asks once and keeps the number.
  record.name = recorder().intern(name, std::strlen(name));
  record.stream = stream == nullptr ? 0 : stream->identity;
  return record;
}

}  // namespace template_plugin

extern "C" const lockstep_backend* lockstep_backend_query(const lockstep_host* host_table,
                                                          lockstep_error* error) {
  const std::uint32_t lowest =
      std::max(host_table->abi_min, std::uint32_t{LOCKSTEP_BACKEND_ABI_MIN});
  const std::uint32_t highest =
      std::min(host_table->abi_max, std::uint32_t{LOCKSTEP_BACKEND_ABI_MAX});
  if (lowest > highest) {
    template_plugin::fail(error, LOCKSTEP_E_INCOMPATIBLE_PLUGIN, "lockstep_backend_query",
                          "this plugin speaks interface " +
                              std::to_string(LOCKSTEP_BACKEND_ABI_MAX) + ", the program " +
                              std::to_string(host_table->abi_min) + " to " +
                              std::to_string(host_table->abi_max));
    return nullptr;
  }
  template_plugin::host = host_table;
  static const lockstep_backend table = template_plugin::make_table(highest);
  return &table;
}
