// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "call.h"

// Agents and memory pools are numbers. One CPU, and the GPUs that HSA_SIM_DEVICES asks for.
namespace hsa_sim {

inline constexpr std::uint64_t kCpu = 0x1000;
inline constexpr std::uint64_t kFirstGpu = 0x2000;

inline hsa_agent_t gpu_agent(std::uint32_t device) { return {kFirstGpu + device}; }
inline bool is_cpu(hsa_agent_t agent) { return agent.handle == kCpu; }
inline bool is_gpu(hsa_agent_t agent) {
  return agent.handle >= kFirstGpu && agent.handle - kFirstGpu < settings().devices();
}
inline std::uint32_t device_of(hsa_agent_t agent) {
  require(is_gpu(agent), HSA_STATUS_ERROR_INVALID_AGENT);
  return static_cast<std::uint32_t>(agent.handle - kFirstGpu);
}
inline void require_agent(hsa_agent_t agent) {
  require(is_cpu(agent) || is_gpu(agent), HSA_STATUS_ERROR_INVALID_AGENT);
}

enum class PoolKind : std::uint8_t { kFine = 1, kKernarg, kCoarse, kDevice, kGroup };

struct Pool {
  hsa_agent_t agent;
  PoolKind kind;
};
inline hsa_amd_memory_pool_t pool_handle(Pool pool) {
  return {pool.agent.handle << 8 | static_cast<std::uint8_t>(pool.kind)};
}
inline Pool pool_of(hsa_amd_memory_pool_t handle) {
  const Pool pool{{handle.handle >> 8}, static_cast<PoolKind>(handle.handle & 0xFF)};
  const bool on_gpu = pool.kind == PoolKind::kDevice || pool.kind == PoolKind::kGroup;
  const bool known = pool.kind >= PoolKind::kFine && pool.kind <= PoolKind::kGroup;
  require(known && (on_gpu ? is_gpu(pool.agent) : is_cpu(pool.agent)),
          HSA_STATUS_ERROR_INVALID_MEMORY_POOL);
  return pool;
}

inline constexpr std::uint64_t kPage = 4096;
inline constexpr std::uint64_t kGroupBytes = 65536;  // local memory of a work-group

}  // namespace hsa_sim
