// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/allocation_map.h"

#include <mutex>

namespace lockstep::runtime {

std::uint64_t AllocationMap::add(const detail::Allocation& allocation, void* address,
                                 std::uint64_t bytes, MemoryKind kind) {
  const std::unique_lock lock(mutex_);
  const auto base = reinterpret_cast<std::uintptr_t>(address);
  const std::uint64_t id = next_id_++;
  by_base_[base] = {id, base, bytes, kind, &allocation};
  return id;
}

void AllocationMap::remove(void* address) noexcept {
  const std::unique_lock lock(mutex_);
  by_base_.erase(reinterpret_cast<std::uintptr_t>(address));
  frees_.fetch_add(1, std::memory_order_release);
}

std::optional<AllocationMap::Found> AllocationMap::find(const void* pointer) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::shared_lock lock(mutex_);
  auto after = by_base_.upper_bound(address);
  if (after == by_base_.begin()) return std::nullopt;
  const Found& found = (--after)->second;
  if (address - found.base >= found.bytes) return std::nullopt;
  return found;
}

bool AllocationMap::is_live(std::uintptr_t address, std::uint64_t id) const {
  const auto found = find(reinterpret_cast<const void*>(address));
  return found && found->id == id;
}

}  // namespace lockstep::runtime
