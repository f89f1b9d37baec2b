// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <glob.h>

#include "nvrtc.h"

namespace lockstep::cuda {
namespace {

void add_matches(const std::string& pattern, std::vector<std::string>* to) {
  glob_t found;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    // Newest last in the alphabet, so from the end.
    for (std::size_t index = found.gl_pathc; index > 0; --index) {
      to->emplace_back(found.gl_pathv[index - 1]);
    }
  }
  globfree(&found);
}

}  // namespace

std::vector<std::string> nvrtc_candidates(int major) {
  // 11.2 and later 11.x share one name; from 12 on the major version is the name.
  const std::string file =
      major == 11 ? "libnvrtc.so.11.2" : "libnvrtc.so." + std::to_string(major);
  std::vector<std::string> all = {file};
  const auto variable = [](const char* name) -> std::string {
    const char* value = secure_getenv(name);
    return value != nullptr ? value : "";
  };
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string root = variable(name);
    if (root.empty()) continue;
    all.push_back(root + "/lib64/" + file);
    all.push_back(root + "/lib/" + file);
  }
  for (const char* root : {"/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"}) {
    all.push_back(std::string(root) + "/lib64/" + file);
  }
  add_matches("/usr/local/cuda-" + std::to_string(major) + "*/lib64/" + file, &all);
  // Python wheels: nvidia/cuda_nvrtc/lib (12), nvidia/cu13/lib (13).
  std::vector<std::string> packages;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string root = variable(name);
    if (!root.empty()) packages.push_back(root + "/lib/python3*/site-packages");
  }
  if (const std::string home = variable("HOME"); !home.empty()) {
    packages.push_back(home + "/.local/lib/python3*/site-packages");
  }
  packages.insert(packages.end(),
                  {"/usr/local/lib/python3*/site-packages", "/usr/local/lib/python3*/dist-packages",
                   "/usr/lib/python3/dist-packages"});
  for (const std::string& folder : packages) add_matches(folder + "/nvidia/*/lib/" + file, &all);
  return all;
}

}  // namespace lockstep::cuda
