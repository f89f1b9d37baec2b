// SPDX-License-Identifier: Apache-2.0
#include "memory_map.h"

#include <iterator>
#include <mutex>

namespace lockstep::gpu {

void MemoryMap::insert(const Allocation& allocation) {
  std::unique_lock lock(mutex_);
  const std::uint64_t end = allocation.base + allocation.bytes;
  auto it = by_base_.upper_bound(allocation.base);
  if (it != by_base_.begin()) {
    auto before = std::prev(it);
    if (before->second.base + before->second.bytes > allocation.base) it = before;
  }
  while (it != by_base_.end() && it->first < end) it = by_base_.erase(it);
  by_base_.emplace(allocation.base, allocation);
}

std::optional<Allocation> MemoryMap::remove(std::uint64_t base) {
  std::unique_lock lock(mutex_);
  const auto it = by_base_.find(base);
  if (it == by_base_.end()) return std::nullopt;
  const Allocation allocation = it->second;
  by_base_.erase(it);
  return allocation;
}

std::optional<Allocation> MemoryMap::find(std::uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto it = by_base_.upper_bound(address);
  if (it == by_base_.begin()) return std::nullopt;
  --it;
  if (address - it->second.base >= it->second.bytes) return std::nullopt;
  return it->second;
}

}  // namespace lockstep::gpu
