// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/plugin_search.h"

#include <algorithm>
#include <dlfcn.h>

#include "src/runtime/environment.h"
#include "src/runtime/plugin_file.h"

namespace lockstep::runtime {
namespace {

void add_file(PluginSearch& search, const std::filesystem::path& path) {
  const bool known =
      std::any_of(search.candidates.begin(), search.candidates.end(),
                  [&](const Candidate& candidate) { return candidate.path == path; });
  if (!known) search.candidates.push_back({path, backend_name_of_file(path)});
}

void add_folder(PluginSearch& search, const std::filesystem::path& folder) {
  search.folders.push_back(folder);
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!backend_name_of_file(entry->path()).empty()) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) add_file(search, file);
}

}  // namespace

std::filesystem::path library_folder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&library_folder), &info) == 0 ||
      info.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::filesystem::path(info.dli_fname).parent_path() : real.parent_path();
}

std::filesystem::path probe_program() { return library_folder() / "lockstep" / "lockstep-probe"; }

PluginSearch search_plugins() {
  PluginSearch search;
  for (const std::string& entry : split(environment("LOCKSTEP_BACKEND_PATH").value_or(""), ':')) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(entry, error).lexically_normal();
    if (std::filesystem::is_directory(path, error)) {
      add_folder(search, path);
    } else if (std::filesystem::exists(path, error)) {
      add_file(search, path);
    } else {
      search.missing.push_back(path);
    }
  }
  add_folder(search, library_folder() / "lockstep" / "backends");
  return search;
}

}  // namespace lockstep::runtime
