// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "support/process.h"

namespace hsa_sim {

using Environment = std::map<std::string, std::optional<std::string>>;

// Options of a process whose HIP runtime finds the simulated layer, and `faults` in it.
inline lockstep::testing::ProcessOptions simulated(const Environment& faults = {}) {
  lockstep::testing::ProcessOptions options;
  options.environment = faults;
  options.environment["LD_LIBRARY_PATH"] = HSA_SIM_FOLDER;
  options.environment["LOCKSTEP_CACHE_DIR"] = HSA_SIM_CACHE;
  // Kernels that AMD's runtime compiles for itself.
  options.environment["AMD_COMGR_CACHE_DIR"] = HSA_SIM_CACHE "/comgr";
  options.environment["LSAN_OPTIONS"] = "suppressions=" HSA_SIM_SUPPRESSIONS;
  options.environment["LOCKSTEP_DEVICE"] = std::nullopt;
  options.environment["LOCKSTEP_TRACE"] = std::nullopt;
  return options;
}

inline std::string program(const std::string& name) {
  return std::string(LOCKSTEP_TEST_BIN_DIR) + "/" + name;
}

}  // namespace hsa_sim
