// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::hostrt {

// What the environment says, read once when the runtime starts; nothing under elevated privileges.
//   LOCKSTEP_HOST_DEVICES=N      number of devices, 1 to 64; default 1
//   LOCKSTEP_HOST_MEMORY_MB=N    memory of each device in MiB; default what the machine has
//   LOCKSTEP_HOST_FAIL=alloc:N   the N-th allocation of the process fails as if out of memory
struct Settings {
  std::uint32_t devices = 1;
  std::uint64_t memory_bytes = 0;
  std::uint64_t fail_allocation = 0;  // 0 = none
};

// Throws Error naming the variable, its value and what it may be.
Settings read_settings();

}  // namespace lockstep::hostrt
