// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/buffer.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

/// \file
/// Which memory of a backend is allocated right now.
namespace lockstep::runtime {

/// Live allocations of one backend by address. Thread-safe.
class AllocationMap {
 public:
  struct Found {
    std::uint64_t id = 0;  ///< never used twice: memory reused at an address has another one
    std::uintptr_t base = 0;
    std::uint64_t bytes = 0;
    MemoryKind kind = MemoryKind::kUnknown;
    const detail::Allocation* allocation = nullptr;  ///< valid only while somebody owns it
  };

  std::uint64_t add(const detail::Allocation& allocation, void* address, std::uint64_t bytes,
                    MemoryKind kind);
  void remove(void* address) noexcept;

  /// The allocation that `pointer` lies in. One past the end is not in it.
  std::optional<Found> find(const void* pointer) const;
  /// Whether the allocation `id` still holds `address`.
  bool is_live(std::uintptr_t address, std::uint64_t id) const;
  /// Changes whenever something is freed.
  std::uint64_t frees() const noexcept { return frees_.load(std::memory_order_acquire); }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, Found> by_base_;
  std::uint64_t next_id_ = 1;
  std::atomic<std::uint64_t> frees_{0};
};

}  // namespace lockstep::runtime
