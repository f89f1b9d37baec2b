// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <string>

#include "enqueue.h"

namespace lockstep::gpu {
namespace {

std::uint64_t to_number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

void fill_memory(lockstep_record& record, const Allocation& allocation) {
  record.of.memory.allocation = allocation.identity;
  record.of.memory.address = allocation.base;
  record.of.memory.bytes = allocation.bytes;
  record.of.memory.memory_kind = allocation.memory_kind;
}

// The report that is made whether recording is on or not; the host makes the entry from it.
void report(lockstep_device* device, lockstep_stream* stream, lockstep_record_kind kind,
            std::uint32_t name, const Allocation& allocation, std::uint32_t flags = 0) {
  lockstep_record record;
  init_record(record, kind, name, device, stream != nullptr ? identity_of(stream) : 0);
  fill_memory(record, allocation);
  record.flags = flags;
  // While nothing is recorded the flag is of interest for our own captures only.
  if (stream != nullptr && (captures_open() || recording()) && is_capturing(stream)) {
    record.flags |= LOCKSTEP_RECORD_CAPTURED;
  }
  recorder().memory(&record);
}

// A record of a stream-ordered call is bound to its node, a plain one belongs to the device.
template <class Fill, class Perform>
Result record_memory(lockstep_device* device, lockstep_stream* stream, lockstep_record_kind kind,
                     Call call, Fill&& fill, Perform&& perform) {
  if (stream != nullptr) return enqueue(stream, kind, name_of(call), true, fill, perform);
  return record_call(device, 0, kind, name_of(call), fill, perform);
}

}  // namespace

MemoryMap& memory_map() {
  static MemoryMap* const instance = new MemoryMap;
  return *instance;
}

PointerFacts facts_of(const void* address) {
  if (const auto own = memory_map().find(to_number(address))) {
    return {own->memory_kind, own->device, own->base, own->bytes};
  }
  PointerFacts facts;
  // A pointer that the driver does not know is pageable host memory.
  if (driver().pointer_facts(address, &facts) != kSuccess) facts = {};
  return facts;
}

lockstep_code memory_allocate(lockstep_device* device, const lockstep_allocation_desc* desc,
                              void** address, lockstep_error* error) {
  *address = nullptr;
  if (desc->bytes == 0) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "memory_allocate",
                "an allocation needs at least one byte");
  }
  if (desc->attribute_count != 0) {
    return fail(error, LOCKSTEP_E_NOT_SUPPORTED, "memory_allocate",
                "allocation attribute " + std::to_string(desc->attributes[0].id) +
                    " is not known to this backend");
  }
  const bool pinned = desc->memory_kind == LOCKSTEP_MEMORY_PINNED;
  if (!pinned && desc->memory_kind != LOCKSTEP_MEMORY_DEVICE) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "memory_allocate",
                "memory_kind has to be device (1) or pinned (2)");
  }
  if (pinned && desc->stream != nullptr) {
    return fail(error, LOCKSTEP_E_NOT_SUPPORTED, "memory_allocate",
                "only device memory can be allocated in stream order");
  }
  const Call call = pinned                    ? Call::kHostAlloc
                    : desc->stream != nullptr ? Call::kMemAllocAsync
                                              : Call::kMemAlloc;
  ContextScope scope(desc->stream != nullptr ? desc->stream->context : device->context);
  Allocation allocation;
  allocation.bytes = desc->bytes;
  allocation.identity = recorder().next_id();
  allocation.memory_kind = desc->memory_kind;
  allocation.device = pinned ? -1 : device->ordinal;
  void* made = nullptr;
  const Result result = record_memory(
      device, desc->stream, LOCKSTEP_RECORD_ALLOC, call,
      [&](lockstep_record& record) { fill_memory(record, allocation); },
      [&] {
        if (pinned) return driver().host_allocate(desc->bytes, &made);
        if (desc->stream == nullptr) return driver().memory_allocate(desc->bytes, &made);
        return driver().memory_allocate_async(desc->bytes, native_of(desc->stream), &made);
      });
  if (result != kSuccess) {
    return fail_native(error, call, result, std::to_string(desc->bytes) + " bytes were asked for");
  }
  allocation.base = to_number(made);
  memory_map().insert(allocation);
  report(device, desc->stream, LOCKSTEP_RECORD_ALLOC, name_of(call), allocation);
  *address = made;
  return LOCKSTEP_OK;
}

lockstep_code memory_free(lockstep_device* device, void* address, lockstep_stream* stream,
                          lockstep_error* error) {
  if (address == nullptr) return LOCKSTEP_OK;
  ContextScope scope(stream != nullptr ? stream->context : device->context);
  // Taken out first: another thread may be given the address as soon as the driver has it back.
  std::optional<Allocation> own = memory_map().remove(to_number(address));
  Allocation allocation;
  if (own) {
    allocation = *own;
  } else {
    const PointerFacts facts = facts_of(address);
    if (facts.memory_kind == LOCKSTEP_MEMORY_UNKNOWN) {
      return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "memory_free",
                  "the pointer is not the start of a live allocation of this device");
    }
    allocation.base = to_number(address);
    allocation.bytes = facts.bytes;
    allocation.memory_kind = facts.memory_kind;
  }
  const bool pinned = allocation.memory_kind == LOCKSTEP_MEMORY_PINNED;
  if (allocation.registered || (pinned && stream != nullptr)) {
    if (own) memory_map().insert(*own);
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "memory_free",
                allocation.registered ? "registered memory is released with memory_unregister"
                                      : "pinned memory cannot be freed in stream order");
  }
  const Call call = pinned              ? Call::kHostFree
                    : stream != nullptr ? Call::kMemFreeAsync
                                        : Call::kMemFree;
  report(device, stream, LOCKSTEP_RECORD_FREE, name_of(call), allocation);
  const Result result = record_memory(
      device, stream, LOCKSTEP_RECORD_FREE, call,
      [&](lockstep_record& record) { fill_memory(record, allocation); },
      [&] {
        if (pinned) return driver().host_free(address);
        if (stream == nullptr) return driver().memory_free(address);
        return driver().memory_free_async(address, native_of(stream));
      });
  if (result != kSuccess) {
    // It lives on.
    if (own) memory_map().insert(*own);
    report(device, stream, LOCKSTEP_RECORD_ALLOC, name_of(Call::kMemAlloc), allocation,
           LOCKSTEP_RECORD_INTERNAL);
    return fail_native(error, call, result);
  }
  return LOCKSTEP_OK;
}

lockstep_code memory_register(lockstep_device* device, void* address, std::uint64_t bytes,
                              lockstep_error* error) {
  if (address == nullptr || bytes == 0) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "memory_register",
                "a non-empty range of host memory is needed");
  }
  ContextScope scope(device->context);
  const Result result = driver().host_register(address, bytes);
  if (result != kSuccess) return fail_native(error, Call::kHostRegister, result);
  Allocation allocation{to_number(address),     bytes, recorder().next_id(),
                        LOCKSTEP_MEMORY_PINNED, -1,    true};
  memory_map().insert(allocation);
  // Ours to name pointers by, no allocation of the program's.
  report(device, nullptr, LOCKSTEP_RECORD_ALLOC, name_of(Call::kHostRegister), allocation,
         LOCKSTEP_RECORD_INTERNAL);
  return LOCKSTEP_OK;
}

lockstep_code memory_unregister(lockstep_device* device, void* address, lockstep_error* error) {
  ContextScope scope(device->context);
  const Result result = driver().host_unregister(address);
  if (result != kSuccess) return fail_native(error, Call::kHostUnregister, result);
  if (const auto own = memory_map().remove(to_number(address))) {
    report(device, nullptr, LOCKSTEP_RECORD_FREE, name_of(Call::kHostUnregister), *own,
           LOCKSTEP_RECORD_INTERNAL);
  }
  return LOCKSTEP_OK;
}

lockstep_code pointer_info(lockstep_device* device, const void* address,
                           lockstep_pointer_info* info, lockstep_error*) {
  ContextScope scope(device->context);
  const PointerFacts facts = facts_of(address);
  info->memory_kind = facts.memory_kind;
  info->device = facts.device;
  info->base = facts.base;
  info->bytes = facts.bytes;
  return LOCKSTEP_OK;
}

}  // namespace lockstep::gpu
