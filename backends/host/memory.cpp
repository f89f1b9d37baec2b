// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <lockstep/backend.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include "error.h"
#include "record.h"

namespace lockstep::hostrt {
namespace {

// What GPUs give; vector loads of kernels rely on it.
constexpr std::size_t kAlignment = 256;

std::string address_text(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", pointer);
  return text;
}

}  // namespace

void report_change(const Allocation& allocation, bool allocates, std::uint32_t name,
                   std::uint64_t stream, std::uint32_t flags) {
  lockstep_record record = blank_record(allocates ? LOCKSTEP_RECORD_ALLOC : LOCKSTEP_RECORD_FREE,
                                        name, allocation.device, stream);
  record.flags = flags;
  record.of.memory.allocation = allocation.id;
  record.of.memory.address = allocation.base;
  record.of.memory.bytes = allocation.bytes;
  record.of.memory.memory_kind = allocation.kind;
  report_memory(record);
}

MemoryMap::MemoryMap(std::uint32_t devices, std::uint64_t bytes_per_device,
                     std::uint64_t fail_allocation)
    : used_(devices, 0), total_(bytes_per_device), fail_allocation_(fail_allocation) {}

void MemoryMap::insert_locked(Allocation allocation) {
  const std::uintptr_t base = allocation.base;
  by_base_.emplace(base, std::move(allocation));
}

Allocation MemoryMap::allocate(std::int32_t device, std::uint64_t bytes, std::uint32_t kind,
                               Allocation::Origin origin) {
  if (bytes == 0) throw Error(Native::kInvalidValue, "an allocation of 0 bytes");
  Allocation allocation;
  {
    const std::unique_lock lock(mutex_);
    if (++allocations_ == fail_allocation_) {
      throw Error(Native::kOutOfMemory, "allocation " + std::to_string(allocations_) +
                                            " was made to fail by LOCKSTEP_HOST_FAIL");
    }
    if (kind == LOCKSTEP_MEMORY_DEVICE) {
      std::uint64_t& used = used_.at(static_cast<std::size_t>(device));
      if (bytes > total_ || used > total_ - bytes) {
        throw Error(Native::kOutOfMemory, std::to_string(bytes) + " bytes asked for, " +
                                              std::to_string(total_ - used) + " of " +
                                              std::to_string(total_) + " bytes free on device " +
                                              std::to_string(device));
      }
      used += bytes;
    }
  }
  void* pointer = nullptr;
  if (posix_memalign(&pointer, kAlignment, bytes) != 0) {
    if (kind == LOCKSTEP_MEMORY_DEVICE) {
      const std::unique_lock lock(mutex_);
      used_[static_cast<std::size_t>(device)] -= bytes;
    }
    throw Error(Native::kOutOfMemory,
                "the system refused " + std::to_string(bytes) + " bytes of memory");
  }
  allocation.base = reinterpret_cast<std::uintptr_t>(pointer);
  allocation.bytes = bytes;
  allocation.kind = kind;
  allocation.device = device;
  allocation.id = next_id();
  allocation.origin = origin;
  {
    const std::unique_lock lock(mutex_);
    insert_locked(allocation);
  }
  return allocation;
}

void MemoryMap::bind_graph_memory(std::uintptr_t base, std::weak_ptr<GraphMemory> memory) {
  const std::unique_lock lock(mutex_);
  by_base_.at(base).graph_memory = std::move(memory);
}

Allocation MemoryMap::require_base(const void* pointer) const {
  const std::shared_lock lock(mutex_);
  const auto found = by_base_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == by_base_.end()) {
    const Allocation* inside = find_locked(reinterpret_cast<std::uintptr_t>(pointer));
    throw Error(Native::kInvalidValue,
                address_text(pointer) +
                    (inside == nullptr ? " is not an allocation (already freed?)"
                                       : " lies inside of an allocation, it does not begin one"));
  }
  if (found->second.origin == Allocation::Origin::kRegistered) {
    throw Error(Native::kInvalidValue, address_text(pointer) +
                                           " is registered memory: unregister it, its owner "
                                           "frees it");
  }
  if (found->second.origin == Allocation::Origin::kGlobal) {
    throw Error(Native::kInvalidValue, address_text(pointer) + " is a variable of a module");
  }
  return found->second;
}

Allocation MemoryMap::remove(const void* pointer) {
  const std::unique_lock lock(mutex_);
  const auto found = by_base_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == by_base_.end()) {
    throw Error(Native::kInvalidValue, address_text(pointer) + " was freed meanwhile");
  }
  Allocation allocation = found->second;
  by_base_.erase(found);
  return allocation;
}

void MemoryMap::release(const Allocation& allocation) noexcept {
  std::free(allocation.pointer());
  if (allocation.kind != LOCKSTEP_MEMORY_DEVICE) return;
  const std::unique_lock lock(mutex_);
  used_[static_cast<std::size_t>(allocation.device)] -= allocation.bytes;
}

Allocation MemoryMap::add_registered(void* pointer, std::uint64_t bytes) {
  if (pointer == nullptr || bytes == 0) {
    throw Error(Native::kInvalidValue, "nothing to register: null pointer or 0 bytes");
  }
  Allocation allocation;
  allocation.base = reinterpret_cast<std::uintptr_t>(pointer);
  allocation.bytes = bytes;
  allocation.kind = LOCKSTEP_MEMORY_PINNED;
  allocation.id = next_id();
  allocation.origin = Allocation::Origin::kRegistered;
  {
    const std::unique_lock lock(mutex_);
    const auto next = by_base_.lower_bound(allocation.base);
    const bool overlaps = (next != by_base_.end() && next->first < allocation.base + bytes) ||
                          find_locked(allocation.base) != nullptr;
    if (overlaps) {
      throw Error(Native::kInvalidValue, address_text(pointer) + ", " + std::to_string(bytes) +
                                             " bytes: registered or allocated already");
    }
    insert_locked(allocation);
  }
  return allocation;
}

Allocation MemoryMap::remove_registered(void* pointer) {
  {
    const std::shared_lock lock(mutex_);
    const auto found = by_base_.find(reinterpret_cast<std::uintptr_t>(pointer));
    if (found == by_base_.end() || found->second.origin != Allocation::Origin::kRegistered) {
      throw Error(Native::kInvalidValue, address_text(pointer) + " is not registered");
    }
  }
  return remove(pointer);
}

void MemoryMap::add_global(std::int32_t device, void* pointer, std::uint64_t bytes,
                           std::weak_ptr<Module> module) {
  Allocation allocation;
  allocation.base = reinterpret_cast<std::uintptr_t>(pointer);
  allocation.bytes = bytes;
  allocation.kind = LOCKSTEP_MEMORY_DEVICE;
  allocation.device = device;
  allocation.id = next_id();
  allocation.origin = Allocation::Origin::kGlobal;
  allocation.module = std::move(module);
  {
    const std::unique_lock lock(mutex_);
    if (by_base_.contains(allocation.base)) return;
    insert_locked(allocation);
  }
  report_change(allocation, true, call_names().global, 0, LOCKSTEP_RECORD_INTERNAL);
}

void MemoryMap::forget(void* pointer, std::uint32_t name) noexcept {
  Allocation allocation;
  {
    const std::unique_lock lock(mutex_);
    const auto found = by_base_.find(reinterpret_cast<std::uintptr_t>(pointer));
    if (found == by_base_.end()) return;
    allocation = found->second;
    by_base_.erase(found);
  }
  report_change(allocation, false, name, 0, LOCKSTEP_RECORD_INTERNAL);
}

const Allocation* MemoryMap::find_locked(std::uintptr_t address) const {
  auto after = by_base_.upper_bound(address);
  if (after == by_base_.begin()) return nullptr;
  const Allocation& candidate = std::prev(after)->second;
  return address - candidate.base < candidate.bytes ? &candidate : nullptr;
}

bool MemoryMap::find(const void* pointer, Allocation* allocation) const {
  const std::shared_lock lock(mutex_);
  const Allocation* found = find_locked(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == nullptr) return false;
  *allocation = *found;
  return true;
}

void MemoryMap::usage(std::int32_t device, std::uint64_t* free, std::uint64_t* total) const {
  const std::shared_lock lock(mutex_);
  *total = total_;
  *free = total_ - used_.at(static_cast<std::size_t>(device));
}

GraphMemory::GraphMemory(MemoryMap& map, std::int32_t device, std::uint64_t bytes)
    : map_(map),
      allocation_(map.allocate(device, bytes, LOCKSTEP_MEMORY_DEVICE, Allocation::Origin::kGraph)) {
}

GraphMemory::~GraphMemory() {
  map_.forget(allocation_.pointer(), call_names().free);
  map_.release(allocation_);
}

bool GraphMemory::live() const noexcept {
  const std::shared_lock lock(mutex_);
  return live_;
}

void GraphMemory::set_live(bool live) noexcept {
  const std::unique_lock lock(mutex_);
  live_ = live;
}

}  // namespace lockstep::hostrt
