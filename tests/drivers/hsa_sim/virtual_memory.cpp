// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

// Virtual memory: addresses that are reserved, memory that is put there. ROCm 6 and 7 keep their
// pools for hipMallocAsync in it. The interface is newer than the header and declared here.
namespace hsa_sim {
namespace {

struct Piece {
  int file = -1;
  std::uint64_t bytes = 0;
  std::uint32_t device = 0;
  ~Piece() {
    if (file >= 0) close(file);
    if (charged) memory().refund(device, bytes);
  }
  bool charged = false;
};

struct Mapping {
  std::uint64_t bytes = 0;
  std::shared_ptr<Piece> piece;
};

struct State {
  std::mutex mutex;
  std::map<std::uint64_t, std::uint64_t> reserved;  // address → bytes
  std::map<std::uint64_t, std::shared_ptr<Piece>> pieces;
  std::map<std::uint64_t, Mapping> mappings;
  std::uint64_t next_handle = 1;
};
State& state() {
  static auto* const instance = new State;
  return *instance;
}

bool whole_pages(std::uint64_t number) { return number % kPage == 0; }

void reserve(void** address, std::uint64_t bytes, std::uint64_t wanted, std::uint64_t alignment) {
  require(address != nullptr && bytes > 0 && whole_pages(bytes));
  if (alignment < kPage) alignment = kPage;
  require((alignment & (alignment - 1)) == 0);
  const std::uint64_t room = bytes + alignment;
  void* const found = mmap(reinterpret_cast<void*>(wanted), room, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(found != MAP_FAILED, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  const auto begin = reinterpret_cast<std::uint64_t>(found);
  const std::uint64_t aligned = (begin + alignment - 1) & ~(alignment - 1);
  if (aligned > begin) munmap(found, aligned - begin);
  const std::uint64_t behind = begin + room - (aligned + bytes);
  if (behind > 0) munmap(reinterpret_cast<void*>(aligned + bytes), behind);
  const std::lock_guard lock(state().mutex);
  state().reserved[aligned] = bytes;
  *address = reinterpret_cast<void*>(aligned);
}

// The mapping that begins at `address`.
std::map<std::uint64_t, Mapping>::iterator mapping_at(void* address, std::uint64_t bytes) {
  const auto found = state().mappings.find(reinterpret_cast<std::uint64_t>(address));
  require(found != state().mappings.end() && found->second.bytes == bytes,
          HSA_STATUS_ERROR_INVALID_ALLOCATION);
  return found;
}

bool inside_a_reservation(std::uint64_t address, std::uint64_t bytes) {
  auto after = state().reserved.upper_bound(address);
  if (after == state().reserved.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return address - begin <= size && bytes <= size - (address - begin);
}

}  // namespace
}  // namespace hsa_sim

using namespace hsa_sim;

struct VirtualMemoryHandle {
  std::uint64_t handle;
};
struct VirtualMemoryAccess {
  int permissions;  // 0 none, 1 read, 2 write, 3 both
  hsa_agent_t agent;
};

HSA_SIM_API hsa_amd_vmem_address_reserve(void** address, std::size_t bytes, std::uint64_t wanted,
                                         std::uint64_t) {
  return call("hsa_amd_vmem_address_reserve", [&] { reserve(address, bytes, wanted, kPage); });
}
HSA_SIM_API hsa_amd_vmem_address_reserve_align(void** address, std::size_t bytes,
                                               std::uint64_t wanted, std::uint64_t alignment,
                                               std::uint64_t) {
  return call("hsa_amd_vmem_address_reserve_align",
              [&] { reserve(address, bytes, wanted, alignment); });
}
HSA_SIM_API hsa_amd_vmem_address_free(void* address, std::size_t bytes) {
  return call("hsa_amd_vmem_address_free", [&] {
    const std::lock_guard lock(state().mutex);
    const auto found = state().reserved.find(reinterpret_cast<std::uint64_t>(address));
    require(found != state().reserved.end() && found->second == bytes,
            HSA_STATUS_ERROR_INVALID_ALLOCATION);
    munmap(address, bytes);
    state().reserved.erase(found);
  });
}
HSA_SIM_API hsa_amd_vmem_handle_create(hsa_amd_memory_pool_t pool, std::size_t bytes, int,
                                       std::uint64_t, VirtualMemoryHandle* handle) {
  return call("hsa_amd_vmem_handle_create", [&] {
    require(handle != nullptr && bytes > 0 && whole_pages(bytes));
    const Pool from = pool_of(pool);
    require(from.kind == PoolKind::kDevice, HSA_STATUS_ERROR_INVALID_MEMORY_POOL);
    require(!settings().out_of_memory(bytes), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    auto piece = std::make_shared<Piece>();
    piece->bytes = bytes;
    piece->device = device_of(from.agent);
    memory().charge(piece->device, bytes);
    piece->charged = true;
    piece->file = memfd_create("hsa_sim", MFD_CLOEXEC);
    require(piece->file >= 0 && ftruncate(piece->file, static_cast<off_t>(bytes)) == 0,
            HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    const std::lock_guard lock(state().mutex);
    handle->handle = state().next_handle++;
    state().pieces[handle->handle] = std::move(piece);
  });
}
HSA_SIM_API hsa_amd_vmem_handle_release(VirtualMemoryHandle handle) {
  return call("hsa_amd_vmem_handle_release", [&] {
    std::shared_ptr<Piece> last;  // given back without the lock
    const std::lock_guard lock(state().mutex);
    const auto found = state().pieces.find(handle.handle);
    require(found != state().pieces.end());
    last = std::move(found->second);
    state().pieces.erase(found);
  });
}
HSA_SIM_API hsa_amd_vmem_map(void* address, std::size_t bytes, std::size_t offset,
                             VirtualMemoryHandle handle, std::uint64_t) {
  return call("hsa_amd_vmem_map", [&] {
    const std::lock_guard lock(state().mutex);
    const auto found = state().pieces.find(handle.handle);
    require(found != state().pieces.end());
    const std::shared_ptr<Piece>& piece = found->second;
    const auto at = reinterpret_cast<std::uint64_t>(address);
    require(whole_pages(at) && whole_pages(offset) && whole_pages(bytes) && bytes > 0 &&
            offset <= piece->bytes && bytes <= piece->bytes - offset);
    require(inside_a_reservation(at, bytes), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    // Nobody has access yet.
    require(mmap(address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, piece->file,
                 static_cast<off_t>(offset)) == address,
            HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    memory().add({at, bytes, BlockKind::kMapped, gpu_agent(piece->device), false});
    state().mappings[at] = {bytes, piece};
  });
}
HSA_SIM_API hsa_amd_vmem_unmap(void* address, std::size_t bytes) {
  return call("hsa_amd_vmem_unmap", [&] {
    std::shared_ptr<Piece> last;
    const std::lock_guard lock(state().mutex);
    const auto found = mapping_at(address, bytes);
    last = std::move(found->second.piece);
    state().mappings.erase(found);
    memory().remove(reinterpret_cast<std::uint64_t>(address));
    require(mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            address);
  });
}
HSA_SIM_API hsa_amd_vmem_set_access(void* address, std::size_t bytes,
                                    const VirtualMemoryAccess* access, std::size_t count) {
  return call("hsa_amd_vmem_set_access", [&] {
    require(access != nullptr && count > 0 &&
            inside_a_reservation(reinterpret_cast<std::uint64_t>(address), bytes));
    // One address space: what one agent may do, all may.
    int protection = PROT_NONE;
    for (std::size_t i = 0; i < count; ++i) {
      require_agent(access[i].agent);
      if ((access[i].permissions & 1) != 0) protection |= PROT_READ;
      if ((access[i].permissions & 2) != 0) protection |= PROT_WRITE;
    }
    require(mprotect(address, bytes, protection) == 0);
  });
}
HSA_SIM_API hsa_amd_vmem_get_access(void* address, int* permissions, hsa_agent_t agent) {
  return call("hsa_amd_vmem_get_access", [&] {
    require_agent(agent);
    require(permissions != nullptr && memory().find(address).has_value());
    *permissions = 3;
  });
}
