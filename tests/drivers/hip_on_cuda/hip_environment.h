// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "support/process.h"

namespace hip_on_cuda {

// Options of a process whose hip plugin finds the runtime over the simulated CUDA driver, and
// `faults` in it. The cuda plugin finds that driver, too.
inline lockstep::testing::ProcessOptions simulated(
    const std::map<std::string, std::optional<std::string>>& faults = {}) {
  lockstep::testing::ProcessOptions options;
  options.environment = faults;
  options.environment["LOCKSTEP_HIP_LIBRARY"] = HIP_ON_CUDA_RUNTIME;
  options.environment["LOCKSTEP_CUDA_LIBRARY"] = CUDA_SIM_DRIVER;
  options.environment["LOCKSTEP_NVRTC_LIBRARY"] = CUDA_SIM_NVRTC;
  options.environment["LOCKSTEP_CACHE_DIR"] = HIP_ON_CUDA_CACHE;
  options.environment["LOCKSTEP_DEVICE"] = std::nullopt;
  options.environment["LOCKSTEP_TRACE"] = std::nullopt;
  return options;
}

inline std::string program(const std::string& name) {
  return std::string(LOCKSTEP_TEST_BIN_DIR) + "/" + name;
}

}  // namespace hip_on_cuda
