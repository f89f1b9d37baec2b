// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <string>

#include "../gpu/dynamic_library.h"
#include "symbols.h"

namespace lockstep::cuda {

inline constexpr int kOldestDriver = 12000;

// libcuda, opened at run time.
struct Library {
  gpu::DynamicLibrary file;
  Functions call;
  int version = 0;  // 13000 = 13.0

  // Opens, checks the version, initialises the driver and finds every function. A message for
  // people when it fails: what was tried, which versions were found and are needed, what is
  // missing. UNAVAILABLE, or NOT_FOUND when the driver serves and has no device.
  lockstep_code load(lockstep_error* error);
};

std::string version_text(int version);  // 12040 → "12.4"

}  // namespace lockstep::cuda
