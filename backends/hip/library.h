// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <string>
#include <vector>

#include "../gpu/dynamic_library.h"
#include "symbols.h"

namespace lockstep::hip {

// AMD's runtime, opened at run time and never closed: it crashes when it is.
//
// LOCKSTEP_HIP_LIBRARY names one; else a runtime that the process has loaded already is taken (two
// of them would fight for the device); else the newest release whose library is found: by its
// versioned name on the loader's path, then below ROCM_PATH and /opt/rocm*.
struct Library {
  gpu::DynamicLibrary file;
  Functions call;
  Version version;
  std::string path;  // of the file, as the loader found it

  // Opens, checks the version, starts the runtime and finds every function. A message for people
  // when it fails: what was tried, which version was found, what is missing. UNAVAILABLE, or
  // NOT_FOUND when the runtime serves and has no device.
  lockstep_code load(lockstep_error* error);
};

inline constexpr int kNewestMajor = 7, kOldestMajor = 5, kOldestMinor = 2;

// Where a file of this name may lie, the loader's path first. For tests.
std::vector<std::string> rocm_candidates(const std::string& file);

}  // namespace lockstep::hip
