// SPDX-License-Identifier: Apache-2.0
#define LOCKSTEP_BACKEND_IMPLEMENTATION
#include <lockstep/backend.h>

#include <algorithm>
#include <string>

#include "handles.h"
#include "module.h"
#include "record.h"

namespace lockstep::hostrt {
namespace {

lockstep_backend make_table(std::uint32_t version) {
  lockstep_backend table{};
  table.struct_size = sizeof(table);
  table.abi_version = version;
  table.priority = 0;
  table.name = "host";
  table.vendor = "lockstep";
  table.version = LOCKSTEP_HOST_VERSION;
  fill_device_slots(table);
  fill_module_slots(table);
  fill_stream_slots(table);
  fill_graph_slots(table);
  return table;
}

}  // namespace
}  // namespace lockstep::hostrt

extern "C" const lockstep_backend* lockstep_backend_query(const lockstep_host* host,
                                                          lockstep_error* error) {
  using lockstep::hostrt::Native;
  if (host == nullptr) {
    lockstep::hostrt::report(error, "lockstep_backend_query", Native::kInvalidValue,
                             "the host's table is null");
    return nullptr;
  }
  const std::uint32_t low = std::max(host->abi_min, std::uint32_t{LOCKSTEP_BACKEND_ABI_MIN});
  const std::uint32_t high = std::min(host->abi_max, std::uint32_t{LOCKSTEP_BACKEND_ABI_MAX});
  if (low > high) {
    const std::string message =
        "this plugin speaks interface versions " + std::to_string(LOCKSTEP_BACKEND_ABI_MIN) +
        " to " + std::to_string(LOCKSTEP_BACKEND_ABI_MAX) + ", the program " +
        std::to_string(host->abi_min) + " to " + std::to_string(host->abi_max) +
        "; use a plugin and a core library of the same release";
    lockstep::hostrt::report(error, "lockstep_backend_query", Native::kNotSupported,
                             message.c_str());
    if (error != nullptr) error->code = LOCKSTEP_E_INCOMPATIBLE_PLUGIN;
    return nullptr;
  }
  lockstep::hostrt::set_recorder(host->recorder);
  lockstep::hostrt::set_log(host->log);
  static const lockstep_backend table = lockstep::hostrt::make_table(high);
  return &table;
}
