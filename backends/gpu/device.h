// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "objects.h"

namespace lockstep::gpu {

lockstep_code device_count(std::uint32_t* count, lockstep_error* error);
lockstep_code device_info(std::uint32_t ordinal, lockstep_device_info* info, lockstep_error* error);
lockstep_code device_attribute(std::uint32_t ordinal, lockstep_device_attribute attribute,
                               std::int64_t* value, lockstep_error* error);
const char* capabilities(std::uint32_t ordinal);
lockstep_code device_open(std::uint32_t ordinal, lockstep_device** device, lockstep_error* error);
void device_close(lockstep_device* device);
lockstep_code device_memory(lockstep_device* device, std::uint64_t* free_bytes,
                            std::uint64_t* total_bytes, lockstep_error* error);
lockstep_code device_synchronize(lockstep_device* device, lockstep_error* error);
lockstep_code peer_access(lockstep_device* from, lockstep_device* to, std::uint32_t* can,
                          lockstep_error* error);
lockstep_code peer_enable(lockstep_device* from, lockstep_device* to, lockstep_error* error);
// The context of an opened device; null when it was never opened.
Context context_of(int ordinal);

}  // namespace lockstep::gpu
