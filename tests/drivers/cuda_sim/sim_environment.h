// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "support/process.h"

namespace cuda_sim {

// Options of a process whose cuda plugin finds the simulated driver, and `faults` in it.
inline lockstep::testing::ProcessOptions simulated(
    const std::map<std::string, std::optional<std::string>>& faults = {}) {
  lockstep::testing::ProcessOptions options;
  options.environment = faults;
  options.environment["LOCKSTEP_CUDA_LIBRARY"] = CUDA_SIM_DRIVER;
  options.environment["LOCKSTEP_NVRTC_LIBRARY"] = CUDA_SIM_NVRTC;
  options.environment["LOCKSTEP_CACHE_DIR"] = CUDA_SIM_CACHE;
  options.environment["LOCKSTEP_DEVICE"] = std::nullopt;
  options.environment["LOCKSTEP_TRACE"] = std::nullopt;
  return options;
}

inline std::string program(const std::string& name) {
  return std::string(LOCKSTEP_TEST_BIN_DIR) + "/" + name;
}

}  // namespace cuda_sim
