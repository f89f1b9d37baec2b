// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// \file
/// Where plugins are looked for.
namespace lockstep::runtime {

struct Candidate {
  std::filesystem::path path;
  std::string name;  ///< from the file's name, "" when that does not tell
};

struct PluginSearch {
  std::vector<Candidate> candidates;           ///< existing files, in search order
  std::vector<std::filesystem::path> folders;  ///< every folder that was looked into
  std::vector<std::filesystem::path>
      missing;  ///< entries of LOCKSTEP_BACKEND_PATH that do not exist
};

/// LOCKSTEP_BACKEND_PATH first, then the folder beside the library. Files within a folder by name.
PluginSearch search_plugins();

/// The folder that holds the core library (found by dladdr), and where the probe program lies.
std::filesystem::path library_folder();
std::filesystem::path probe_program();

}  // namespace lockstep::runtime
