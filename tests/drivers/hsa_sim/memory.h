// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "agents.h"

// All memory that an agent may touch: what pools and code objects hold, host memory that was
// locked, virtual memory that was mapped. One address space: host and device addresses are the
// same.
namespace hsa_sim {

enum class BlockKind : std::uint8_t { kPool, kLocked, kMapped, kForeign };

struct Block {
  std::uint64_t base = 0, bytes = 0;
  BlockKind kind = BlockKind::kPool;
  hsa_agent_t owner{};
  bool fine_grained = false;
  void* user_data = nullptr;
  std::uint32_t locks = 0;  // kLocked: how often
};

class Memory {
 public:
  void* allocate(Pool pool, std::uint64_t bytes);  // refuses when the device's memory is full
  void release(void* memory);
  void lock(void* host, std::uint64_t bytes);
  void unlock(void* host);

  // A block that somebody else backs (mapped virtual memory, variables of kernels' bodies).
  void add(const Block& block);
  void remove(std::uint64_t base);
  // Takes from and gives back to what a device has.
  void charge(std::uint32_t device, std::uint64_t bytes);
  void refund(std::uint32_t device, std::uint64_t bytes);
  std::uint64_t available(std::uint32_t device);

  std::optional<Block> find(const void* address);
  bool set_user_data(const void* address, void* data);
  // Whether an agent may touch all of it.
  bool covers(const void* address, std::uint64_t bytes);

 private:
  using Blocks = std::map<std::uint64_t, Block>;
  Block* find_locked(std::uint64_t address);

  std::mutex mutex_;
  Blocks blocks_;  // that do not overlap
  Blocks locked_;  // host memory, may overlap others
  std::vector<std::uint64_t> used_ = std::vector<std::uint64_t>(16);
};

// Never destroyed.
Memory& memory();

}  // namespace hsa_sim
