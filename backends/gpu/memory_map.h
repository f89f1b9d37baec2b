// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

namespace lockstep::gpu {

struct Allocation {
  std::uint64_t base = 0, bytes = 0;
  std::uint64_t identity = 0;
  std::uint32_t memory_kind = 0;  // LOCKSTEP_MEMORY_*
  std::int32_t device = -1;
  bool registered = false;  // host memory that is not ours
};

// Every live allocation that this plugin made: what tells the direction of a copy without asking
// the driver. Thread safe; readers share the lock.
class MemoryMap {
 public:
  // An allocation takes the place of whatever the map still holds there: the driver gives an
  // address again only after it was freed.
  void insert(const Allocation& allocation);
  // Removes the allocation that begins at `base`.
  std::optional<Allocation> remove(std::uint64_t base);
  // The allocation that `address` lies in.
  std::optional<Allocation> find(std::uint64_t address) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Allocation> by_base_;
};

}  // namespace lockstep::gpu
