// SPDX-License-Identifier: Apache-2.0
#define LOCKSTEP_BACKEND_IMPLEMENTATION
#include <lockstep/backend.h>

#include "../gpu/table.h"
#include "driver.h"

extern "C" const lockstep_backend* lockstep_backend_query(const lockstep_host* host,
                                                          lockstep_error* error) {
  // Never destroyed: slots may be called while the process exits.
  static lockstep::hip::HipDriver* const driver = new lockstep::hip::HipDriver;
  return lockstep::gpu::query(*driver, host, error);
}
