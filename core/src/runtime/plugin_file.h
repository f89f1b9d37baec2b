// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>
#include <lockstep/backends.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// From a file to a checked plugin table, and from there to its devices. Shared by the library and
/// the probe program.
namespace lockstep::runtime {

struct PluginFile {
  BackendStatus status = BackendStatus::kReady;
  std::string reason;                       ///< why it is not ready
  const lockstep_backend* table = nullptr;  ///< as the plugin gave it; null when not ready
};

/// "host" from ".../liblockstep_backend_host.so"; "" for any other file name.
std::string backend_name_of_file(const std::filesystem::path& path);
/// Lower case letters, digits and underscores.
bool is_backend_name(std::string_view name);

/// Loads the library (it stays loaded) and asks for its table. Never starts a driver. `expected` is
/// the name the file's name promises, "" = any.
PluginFile open_plugin(const std::filesystem::path& path, std::string_view expected,
                       const lockstep_host& host);

/// Starts the plugin's driver and fills in status, reason and devices of `report`. `table` is
/// complete (backend_slots.h). *driver_missing tells that the driver's library is not there at all.
void start_plugin(const lockstep_backend& table, BackendReport& report, bool* driver_missing);

}  // namespace lockstep::runtime
