// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

namespace lockstep::hostrt {

class GraphMemory;
class Module;

// One stretch of memory the runtime knows of. `kind` is LOCKSTEP_MEMORY_*.
struct Allocation {
  enum class Origin { kAllocated, kRegistered, kGlobal, kGraph };
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;
  std::uint32_t kind = 0;
  std::int32_t device = -1;
  std::uint64_t id = 0;
  Origin origin = Origin::kAllocated;
  std::weak_ptr<GraphMemory> graph_memory;  // origin kGraph only
  std::weak_ptr<Module> module;             // origin kGlobal only: unmapped with it

  void* pointer() const noexcept { return reinterpret_cast<void*>(base); }
};

// How the recorder sees a change of the map; of kind alloc or free. flags: LOCKSTEP_RECORD_*.
void report_change(const Allocation& allocation, bool allocates, std::uint32_t name,
                   std::uint64_t stream = 0, std::uint32_t flags = 0);

// All memory of the process that the runtime knows of. "Device" memory is ordinary memory that is
// known to be a device's; what is not in here is pageable host memory. Thread-safe; functions throw
// hostrt::Error. Recording is the caller's part, who knows the call.
class MemoryMap {
 public:
  MemoryMap(std::uint32_t devices, std::uint64_t bytes_per_device, std::uint64_t fail_allocation);

  Allocation allocate(std::int32_t device, std::uint64_t bytes, std::uint32_t kind,
                      Allocation::Origin origin = Allocation::Origin::kAllocated);
  void bind_graph_memory(std::uintptr_t base, std::weak_ptr<GraphMemory> memory);
  // What memory_free() may free: the allocation that begins at `pointer`.
  Allocation require_base(const void* pointer) const;
  // Forgets it; the storage lives until release().
  Allocation remove(const void* pointer);
  void release(const Allocation& allocation) noexcept;

  Allocation add_registered(void* pointer, std::uint64_t bytes);
  Allocation remove_registered(void* pointer);
  // Variables of modules: known from the first time somebody asks for them.
  void add_global(std::int32_t device, void* pointer, std::uint64_t bytes,
                  std::weak_ptr<Module> module);
  // Takes a stretch out that nobody freed by a call of its own; recorded as `name`, internal.
  void forget(void* pointer, std::uint32_t name) noexcept;

  // The stretch `pointer` lies in; false for pageable memory.
  bool find(const void* pointer, Allocation* allocation) const;
  void usage(std::int32_t device, std::uint64_t* free, std::uint64_t* total) const;

 private:
  void insert_locked(Allocation allocation);
  const Allocation* find_locked(std::uintptr_t address) const;

  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, Allocation> by_base_;
  std::vector<std::uint64_t> used_;
  const std::uint64_t total_;
  const std::uint64_t fail_allocation_;
  std::uint64_t allocations_ = 0;
};

// Memory that allocation nodes of a graph stand for: one address for all launches. `live` follows
// the launches and frees in the order in which they are enqueued.
class GraphMemory {
 public:
  GraphMemory(MemoryMap& map, std::int32_t device, std::uint64_t bytes);
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  const Allocation& allocation() const noexcept { return allocation_; }
  bool live() const noexcept;
  void set_live(bool live) noexcept;

 private:
  MemoryMap& map_;
  Allocation allocation_;
  mutable std::shared_mutex mutex_;
  bool live_ = false;
};

}  // namespace lockstep::hostrt
