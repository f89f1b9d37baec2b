// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <memory>

#include "module.h"
#include "work.h"

namespace lockstep::hostrt {

// Checks a launch as a GPU driver does (the same for an eager launch and for a graph node) and
// copies its arguments. Throws Error kInvalidValue, or kNotSupported for attributes.
WorkPtr make_kernel_work(const Device& device, Kernel& kernel, const lockstep_launch_desc& desc);

// The limits alone: grid, block, dynamic shared memory.
void check_launch(const Kernel& kernel, lockstep_dim3 grid, lockstep_dim3 block,
                  std::uint64_t shared_bytes);

}  // namespace lockstep::hostrt
