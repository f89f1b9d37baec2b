// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hsa_sim {

// A process that ends by a signal says before in which library: "hsa_sim: signal 11 in
// libamdhip64.so.5, called as hipMalloc by liblockstep_backend_hip.so". So that what AMD's runtime
// does to itself when this layer fails it is told apart from what its caller did.
void name_crashes();

}  // namespace hsa_sim
