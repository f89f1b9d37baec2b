// SPDX-License-Identifier: Apache-2.0

// Memory, copies and sets.

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "plugin.h"

namespace template_plugin {
namespace {

struct Block {
  std::uint64_t bytes;
  std::uint32_t kind;      ///< LOCKSTEP_MEMORY_*
  std::uint64_t identity;  ///< as recorded
};

std::mutex mutex;

std::map<std::uintptr_t, Block>& blocks() {
  static auto* all = new std::map<std::uintptr_t, Block>;  // outlives whatever frees at exit
  return *all;
}

/// The block that the pointer lies in. The mutex is held.
std::map<std::uintptr_t, Block>::iterator find(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto after = blocks().upper_bound(address);
  if (after == blocks().begin()) return blocks().end();
  --after;
  return address - after->first < after->second.bytes ? after : blocks().end();
}

/// Allocations and frees are reported always, whether a trace is open or not.
void report(lockstep_record_kind kind, const char* name, std::uintptr_t address,
            const Block& block) {
  lockstep_record record = new_record(kind, name, nullptr);
  record.of.memory.allocation = block.identity;
  record.of.memory.address = address;
  record.of.memory.bytes = block.bytes;
  record.of.memory.memory_kind = block.kind;
  recorder().memory(&record);
}

lockstep_code memory_allocate(lockstep_device*, const lockstep_allocation_desc* desc,
                              void** address, lockstep_error* error) {
  if (desc->stream != nullptr || desc->attribute_count != 0) {
    return fail(error, LOCKSTEP_E_NOT_SUPPORTED, "memory_allocate",
                "stream-ordered memory and attributes are not supported");
  }
  *address = std::malloc(desc->bytes);
  if (*address == nullptr) {
    return fail(error, LOCKSTEP_E_OUT_OF_MEMORY, "malloc",
                "no " + std::to_string(desc->bytes) + " bytes left");
  }
  const Block block = {desc->bytes, desc->memory_kind, recorder().next_id()};
  const auto key = reinterpret_cast<std::uintptr_t>(*address);
  {
    const std::lock_guard lock(mutex);
    blocks()[key] = block;
  }
  report(LOCKSTEP_RECORD_ALLOC, "templateAlloc", key, block);
  return LOCKSTEP_OK;
}

lockstep_code memory_free(lockstep_device*, void* address, lockstep_stream* stream,
                          lockstep_error* error) {
  if (address == nullptr) return LOCKSTEP_OK;
  if (stream != nullptr) {
    return fail(error, LOCKSTEP_E_NOT_SUPPORTED, "memory_free",
                "stream-ordered memory is not supported");
  }
  Block block = {};
  {
    const std::lock_guard lock(mutex);
    const auto found = blocks().find(reinterpret_cast<std::uintptr_t>(address));
    if (found == blocks().end()) {
      return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "memory_free", "no such allocation");
    }
    block = found->second;
    blocks().erase(found);
  }
  report(LOCKSTEP_RECORD_FREE, "templateFree", reinterpret_cast<std::uintptr_t>(address), block);
  std::free(address);
  return LOCKSTEP_OK;
}

lockstep_code pointer_info(lockstep_device*, const void* pointer, lockstep_pointer_info* info,
                           lockstep_error*) {
  const std::lock_guard lock(mutex);
  const auto found = find(pointer);
  if (found == blocks().end()) {
    info->memory_kind = LOCKSTEP_MEMORY_UNKNOWN;
    info->device = -1;
    info->base = info->bytes = 0;
    return LOCKSTEP_OK;
  }
  info->memory_kind = found->second.kind;
  info->device = found->second.kind == LOCKSTEP_MEMORY_DEVICE ? 0 : -1;
  info->base = found->first;
  info->bytes = found->second.bytes;
  return LOCKSTEP_OK;
}

/// By the kind of memory on each side, never by what a caller says.
std::uint32_t direction_of(const void* destination, const void* source) {
  const bool from = kind_of_memory(source) == LOCKSTEP_MEMORY_DEVICE;
  const bool to = kind_of_memory(destination) == LOCKSTEP_MEMORY_DEVICE;
  return from ? (to ? LOCKSTEP_COPY_DTOD : LOCKSTEP_COPY_DTOH)
              : (to ? LOCKSTEP_COPY_HTOD : LOCKSTEP_COPY_HTOH);
}

/// Pitches of a description: 0 stands for packed.
struct Pitches {
  Pitches(std::uint64_t given_row, std::uint64_t given_plane, std::uint64_t width,
          std::uint64_t height)
      : row(given_row == 0 ? width : given_row),
        plane(given_plane == 0 ? row * height : given_plane) {}
  std::uint64_t row, plane;
};

/// False when `bytes` from `address` on leave the block that `address` lies in. Memory that is none
/// of ours cannot be checked.
bool stays_inside(const void* address, std::uint64_t bytes) {
  const std::lock_guard lock(mutex);
  const auto found = find(address);
  return found == blocks().end() ||
         bytes <= found->second.bytes - (reinterpret_cast<std::uintptr_t>(address) - found->first);
}

/// Bytes from the first to behind the last one of a region.
std::uint64_t reach(const Pitches& pitches, std::uint64_t width, std::uint64_t height,
                    std::uint64_t depth) {
  if (width == 0 || height == 0 || depth == 0) return 0;
  return (depth - 1) * pitches.plane + (height - 1) * pitches.row + width;
}

lockstep_code copy(lockstep_stream* stream, const lockstep_copy_desc* desc, lockstep_error* error) {
  const std::uint32_t direction = direction_of(desc->destination, desc->source);
  if (desc->expected_direction != LOCKSTEP_COPY_NONE && desc->expected_direction != direction) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "templateCopy",
                "the copy goes in another direction than was said");
  }
  const Pitches from(desc->source_pitch, desc->source_slice_pitch, desc->width, desc->height);
  const Pitches to(desc->destination_pitch, desc->destination_slice_pitch, desc->width,
                   desc->height);
  if (from.row < desc->width || to.row < desc->width) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "templateCopy", "a pitch is below the width");
  }
  if (!stays_inside(desc->source, reach(from, desc->width, desc->height, desc->depth)) ||
      !stays_inside(desc->destination, reach(to, desc->width, desc->height, desc->depth))) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "templateCopy",
                "the copy leaves the memory it begins in");
  }
  lockstep_record record = new_record(LOCKSTEP_RECORD_MEMCPY, "templateCopy", stream);
  record.of.copy.direction = direction;
  record.of.copy.peer_device = -1;
  record.of.copy.width = desc->width;
  record.of.copy.height = desc->height;
  record.of.copy.depth = desc->depth;
  record.of.copy.source = reinterpret_cast<std::uint64_t>(desc->source);
  record.of.copy.source_pitch = from.row;
  record.of.copy.source_slice_pitch = from.plane;
  record.of.copy.destination = reinterpret_cast<std::uint64_t>(desc->destination);
  record.of.copy.destination_pitch = to.row;
  record.of.copy.destination_slice_pitch = to.plane;
  const Recorded recorded(record);
  if (desc->width == 0) return LOCKSTEP_OK;
  const auto* source = static_cast<const char*>(desc->source);
  auto* destination = static_cast<char*>(desc->destination);
  for (std::uint64_t z = 0; z < desc->depth; ++z) {
    for (std::uint64_t y = 0; y < desc->height; ++y) {
      std::memmove(destination + z * to.plane + y * to.row, source + z * from.plane + y * from.row,
                   desc->width);
    }
  }
  return LOCKSTEP_OK;
}

void set_plane(const lockstep_stream* stream, const lockstep_set_desc& desc, char* plane,
               std::uint64_t pitch) {
  lockstep_record record = new_record(LOCKSTEP_RECORD_MEMSET, "templateSet", stream);
  record.of.set.destination = reinterpret_cast<std::uint64_t>(plane);
  record.of.set.pitch = pitch;
  record.of.set.width = desc.width * desc.value_size;
  record.of.set.height = desc.height;
  record.of.set.value = desc.value;
  record.of.set.value_size = desc.value_size;
  const Recorded recorded(record);
  for (std::uint64_t y = 0; y < desc.height; ++y) {
    for (std::uint64_t x = 0; x < desc.width; ++x) {
      std::memcpy(plane + y * pitch + x * desc.value_size, &desc.value, desc.value_size);
    }
  }
}

// One entry a plane, on every backend; an empty set is one entry.
lockstep_code set(lockstep_stream* stream, const lockstep_set_desc* desc, lockstep_error*) {
  const Pitches to(desc->pitch, desc->slice_pitch, desc->width * desc->value_size, desc->height);
  const bool empty = desc->width == 0 || desc->height == 0 || desc->depth == 0;
  lockstep_set_desc plane = *desc;
  if (empty) plane.width = 0;
  auto* address = static_cast<char*>(desc->destination);
  for (std::uint64_t z = 0; z < (empty ? 1 : desc->depth); ++z) {
    set_plane(stream, plane, z == 0 ? address : address + z * to.plane, to.row);
  }
  return LOCKSTEP_OK;
}

}  // namespace

std::uint32_t kind_of_memory(const void* pointer) {
  const std::lock_guard lock(mutex);
  const auto found = find(pointer);
  return found == blocks().end() ? std::uint32_t{LOCKSTEP_MEMORY_UNKNOWN} : found->second.kind;
}

void fill_memory_slots(lockstep_backend& table) {
  table.memory_allocate = memory_allocate;
  table.memory_free = memory_free;
  table.pointer_info = pointer_info;
  table.copy = copy;
  table.set = set;
}

}  // namespace template_plugin
