// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Which backends there are, and why one is not usable.
///
/// Search order: the folders and files in LOCKSTEP_BACKEND_PATH (colon-separated), then
/// `lockstep/backends/` beside the core library. The first plugin of a name wins; later ones are
/// reported as shadowed. The environment is ignored under elevated privileges.
namespace lockstep {

enum class BackendStatus : std::uint8_t {
  kReady,         ///< at least one device
  kNotBuilt,      ///< known by name, no plugin file in any searched folder
  kBroken,        ///< a file that does not load, lacks the symbol, or breaks the interface
  kIncompatible,  ///< no interface version in common
  kNoDriver,      ///< driver or runtime library missing, or too old
  kNoDevice,      ///< driver there, no device
  kShadowed,      ///< another plugin of the same name was found first
  kProbeFailed,   ///< crashed or hung while it was probed
};

/// "ready", "not built", "broken", "incompatible", "no driver", "no device", "shadowed", "probe
/// failed".
LOCKSTEP_API std::string_view to_string(BackendStatus status) noexcept;

struct DeviceSummary {
  std::int32_t ordinal = 0;
  std::string name, arch, uuid, bus_id, driver;
  std::uint64_t memory_bytes = 0;
  bool simulated = false;
  std::string capabilities;  ///< JSON object text as the plugin gives it, "" = none
};

struct BackendReport {
  std::string name;            ///< from the plugin, else from the file's name
  std::filesystem::path path;  ///< empty when not built
  BackendStatus status = BackendStatus::kNotBuilt;
  std::string reason;  ///< why it is not ready: what was tried, the loader's words, what to do
  std::vector<std::string> tried;  ///< each path or library name that was looked for
  std::string version, vendor;
  std::int32_t priority = 0;
  std::uint32_t abi_version = 0;
  std::vector<DeviceSummary> devices;
};

/// One report for each candidate file and for each of host, cuda and hip that has none, in search
/// order. A small probe program loads the plugins, so that nothing is initialised in this process
/// and a child may still be forked; a plugin that crashes or hangs takes only the probe with it.
/// Thread-safe; legal during capture. \throws Error kInternal when the probe program is missing.
LOCKSTEP_API std::vector<BackendReport> list_backends();

}  // namespace lockstep
