// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>
#include <lockstep/backends.h>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "src/runtime/allocation_map.h"
#include "src/runtime/capture_registry.h"
#include "src/runtime/host_call.h"
#include "src/runtime/reclaimer.h"

/// \file
/// A plugin in this process.
namespace lockstep::detail {
struct DeviceState;
}

namespace lockstep::runtime {

/// A loaded plugin and all that the library keeps for it. Never destroyed: plugins are not
/// unloaded, and objects may outlive every static destructor.
class LoadedBackend {
 public:
  LoadedBackend(const std::filesystem::path& path, const lockstep_backend& plugin_table);

  /// Starts the driver at the first call; gives the same report ever after. Thread-safe.
  /// \throws Error kUnavailable in a child of a process that had started it.
  const BackendReport& start();
  /// After start(): the driver's library is not installed, which is no reason to worry.
  bool driver_missing() const noexcept { return driver_missing_; }

  /// The device of that ordinal, shared by everybody who has it open. start() has said kReady.
  std::shared_ptr<detail::DeviceState> open_device(std::int32_t ordinal);

  const std::string& name() const noexcept { return report_.name; }
  const std::filesystem::path& path() const noexcept { return report_.path; }
  std::int32_t priority() const noexcept { return report_.priority; }

  const lockstep_backend table;  ///< complete: every slot may be called

  AllocationMap allocations;
  CaptureRegistry captures;
  Reclaimer reclaimer;
  HostCalls host_calls;

 private:
  std::mutex mutex_;
  BackendReport report_;
  bool started_ = false;
  bool driver_missing_ = false;
  std::uint32_t generation_ = 0;  ///< fork generation in which it was started
  std::map<std::int32_t, std::weak_ptr<detail::DeviceState>> devices_;
};

}  // namespace lockstep::runtime
