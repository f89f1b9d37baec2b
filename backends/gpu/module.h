// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "objects.h"

namespace lockstep::gpu {

lockstep_code module_create(lockstep_device* device, const lockstep_module_desc* desc,
                            lockstep_module** module, lockstep_error* error);
void module_destroy(lockstep_module* module);
// Unloads modules that were destroyed while that could not be done. Does nothing while a capture is
// open.
void unload_dead_modules();
lockstep_code module_kernel(lockstep_module* module, const char* name, lockstep_kernel** kernel,
                            lockstep_error* error);
lockstep_code module_global(lockstep_module* module, const char* name, void** address,
                            std::uint64_t* bytes, lockstep_error* error);
lockstep_code module_load_all(lockstep_module* module, lockstep_error* error);
lockstep_code kernel_info(lockstep_kernel* kernel, lockstep_kernel_info* info,
                          lockstep_error* error);
lockstep_code kernel_set_max_dynamic_shared(lockstep_kernel* kernel, std::uint32_t bytes,
                                            lockstep_error* error);

// Completes a kernel's layout by the tags of a typed launch.
void learn_types(lockstep_kernel* kernel, const lockstep_parameter* typed, std::uint32_t count);
// The kernel that a native function belongs to; null when it is not ours.
const lockstep_kernel* kernel_of(Handle function);

// A name expression without blanks and a leading '&': how two spellings are compared.
std::string normalised_expression(std::string_view expression);

}  // namespace lockstep::gpu
