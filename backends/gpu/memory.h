// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory_map.h"
#include "objects.h"

namespace lockstep::gpu {

MemoryMap& memory_map();

// What an address is: our own map first, then the driver. LOCKSTEP_MEMORY_UNKNOWN for pageable host
// memory.
PointerFacts facts_of(const void* address);
// Copies see only two sides: pinned, registered and pageable memory is the host's.
inline bool is_device_side(std::uint32_t memory_kind) {
  return memory_kind == LOCKSTEP_MEMORY_DEVICE || memory_kind == LOCKSTEP_MEMORY_MANAGED;
}

lockstep_code memory_allocate(lockstep_device* device, const lockstep_allocation_desc* desc,
                              void** address, lockstep_error* error);
lockstep_code memory_free(lockstep_device* device, void* address, lockstep_stream* stream,
                          lockstep_error* error);
lockstep_code memory_register(lockstep_device* device, void* address, std::uint64_t bytes,
                              lockstep_error* error);
lockstep_code memory_unregister(lockstep_device* device, void* address, lockstep_error* error);
lockstep_code pointer_info(lockstep_device* device, const void* address,
                           lockstep_pointer_info* info, lockstep_error* error);

}  // namespace lockstep::gpu
