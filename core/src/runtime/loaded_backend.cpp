// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/loaded_backend.h"

#include <lockstep/error.h>

#include "src/record/host_recorder.h"
#include "src/runtime/backend_slots.h"
#include "src/runtime/plugin_error.h"
#include "src/runtime/plugin_file.h"
#include "src/runtime/process_state.h"
#include "src/runtime/states.h"

namespace lockstep::runtime {

LoadedBackend::LoadedBackend(const std::filesystem::path& path,
                             const lockstep_backend& plugin_table)
    : table(complete_table(plugin_table)) {
  report_.name = table.name;
  report_.path = path;
  report_.tried = {path.string()};
  report_.version = table.version == nullptr ? "" : table.version;
  report_.vendor = table.vendor == nullptr ? "" : table.vendor;
  report_.priority = table.priority;
  report_.abi_version = table.abi_version;
}

const BackendReport& LoadedBackend::start() {
  const std::lock_guard lock(mutex_);
  if (started_) {
    if (generation_ != fork_generation()) throw_forked(name());
    return report_;
  }
  watch_forks();
  process.backends.fetch_add(1, std::memory_order_relaxed);
  generation_ = fork_generation();
  start_plugin(table, report_, &driver_missing_);
  started_ = true;
  watch_process_end();
  return report_;
}

std::shared_ptr<detail::DeviceState> LoadedBackend::open_device(std::int32_t ordinal) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<detail::DeviceState>& known = devices_[ordinal];
  if (auto device = known.lock()) return device;

  const DeviceSummary& summary = report_.devices.at(static_cast<std::size_t>(ordinal));
  auto device = std::make_shared<detail::DeviceState>(*this, summary);
  ErrorRecord error;
  const lockstep_code code =
      table.device_open(static_cast<std::uint32_t>(ordinal), &device->handle, &error);
  if (code != LOCKSTEP_OK) {
    throw_plugin_error(*this, device.get(), nullptr, code, error, {"Device::open"});
  }
  device->read_limits();
  record_device({ordinal, summary.name, summary.arch, summary.uuid}, summary.driver,
                summary.simulated);
  known = device;
  return device;
}

}  // namespace lockstep::runtime
