// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../gpu/driver.h"

namespace lockstep::hip {

// What this plugin refuses before the runtime sees it: the answer is hipErrorNotSupported, and the
// calling thread keeps why for whoever makes the error of it. `why` has to be a literal.
gpu::Result not_supported(const char* why);
// Once: "" afterwards.
const char* take_reason();

}  // namespace lockstep::hip
