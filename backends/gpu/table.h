// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver.h"

namespace lockstep::gpu {

// All a vendor's lockstep_backend_query does: negotiates the version, attaches the host and the
// driver, and gives the one table. Starts nothing. INCOMPATIBLE_PLUGIN when the ranges do not meet.
const lockstep_backend* query(Driver& driver, const lockstep_host* host, lockstep_error* error);

}  // namespace lockstep::gpu
