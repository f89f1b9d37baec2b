// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <algorithm>
#include <sys/mman.h>

namespace hsa_sim {
namespace {

std::uint64_t whole_pages(std::uint64_t bytes) {
  require(bytes > 0 && bytes <= UINT64_MAX / 2);
  return (bytes + kPage - 1) & ~(kPage - 1);
}

}  // namespace

Memory& memory() {
  static auto* const instance = new Memory;
  return *instance;
}

void* Memory::allocate(Pool pool, std::uint64_t bytes) {
  require(pool.kind != PoolKind::kGroup, HSA_STATUS_ERROR_INVALID_ALLOCATION);
  const std::uint64_t size = whole_pages(bytes);
  const bool on_gpu = pool.kind == PoolKind::kDevice;
  if (on_gpu) {
    require(!settings().out_of_memory(bytes), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    charge(device_of(pool.agent), size);
  }
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    if (on_gpu) refund(device_of(pool.agent), size);
    refuse(HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  }
  const bool fine = pool.kind == PoolKind::kFine || pool.kind == PoolKind::kKernarg;
  add({reinterpret_cast<std::uint64_t>(memory), size, BlockKind::kPool, pool.agent, fine});
  return memory;
}

void Memory::release(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<std::uint64_t>(memory));
  require(found != blocks_.end() && found->second.kind == BlockKind::kPool,
          HSA_STATUS_ERROR_INVALID_ALLOCATION);
  const Block block = found->second;
  blocks_.erase(found);
  if (is_gpu(block.owner)) used_[device_of(block.owner)] -= block.bytes;
  munmap(memory, block.bytes);
}

void Memory::lock(void* host, std::uint64_t bytes) {
  require(host != nullptr && bytes > 0);
  const std::lock_guard guard(mutex_);
  Block& block = locked_[reinterpret_cast<std::uint64_t>(host)];
  block.base = reinterpret_cast<std::uint64_t>(host);
  block.bytes = std::max(block.bytes, bytes);
  block.kind = BlockKind::kLocked;
  block.owner = {kCpu};
  block.fine_grained = true;
  ++block.locks;
}

void Memory::unlock(void* host) {
  const std::lock_guard guard(mutex_);
  const auto found = locked_.find(reinterpret_cast<std::uint64_t>(host));
  require(found != locked_.end());
  if (--found->second.locks == 0) locked_.erase(found);
}

void Memory::add(const Block& block) {
  const std::lock_guard lock(mutex_);
  blocks_[block.base] = block;
}

void Memory::remove(std::uint64_t base) {
  const std::lock_guard lock(mutex_);
  blocks_.erase(base);
}

void Memory::charge(std::uint32_t device, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  require(bytes <= settings().memory_bytes() - used_[device], HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  used_[device] += bytes;
}

void Memory::refund(std::uint32_t device, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  used_[device] -= bytes;
}

std::uint64_t Memory::available(std::uint32_t device) {
  const std::lock_guard lock(mutex_);
  return settings().memory_bytes() - used_[device];
}

Block* Memory::find_locked(std::uint64_t address) {
  for (Blocks* all : {&blocks_, &locked_}) {
    auto after = all->upper_bound(address);
    if (after == all->begin()) continue;
    Block& before = std::prev(after)->second;
    if (address - before.base < before.bytes) return &before;
  }
  return nullptr;
}

std::optional<Block> Memory::find(const void* address) {
  const std::lock_guard lock(mutex_);
  const Block* const block = find_locked(reinterpret_cast<std::uint64_t>(address));
  if (block == nullptr) return std::nullopt;
  return *block;
}

bool Memory::set_user_data(const void* address, void* data) {
  const std::lock_guard lock(mutex_);
  Block* const block = find_locked(reinterpret_cast<std::uint64_t>(address));
  if (block == nullptr) return false;
  block->user_data = data;
  return true;
}

bool Memory::covers(const void* address, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto at = reinterpret_cast<std::uint64_t>(address);
  // Adjacent blocks together may cover it: mapped virtual memory comes in pieces.
  while (bytes > 0) {
    const Block* const block = find_locked(at);
    if (block == nullptr) return false;
    const std::uint64_t part = std::min(bytes, block->bytes - (at - block->base));
    at += part;
    bytes -= part;
  }
  return true;
}

}  // namespace hsa_sim
