// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "memory.h"

// The interface to memory: pools, locked host memory, facts about pointers.
namespace hsa_sim {
namespace {

void pool_attribute(Pool pool, int attribute, void* value) {
  const bool group = pool.kind == PoolKind::kGroup;
  const bool on_gpu = is_gpu(pool.agent);
  switch (attribute) {
    case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
      return put(value, group ? HSA_AMD_SEGMENT_GROUP : HSA_AMD_SEGMENT_GLOBAL);
    case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS: {
      std::uint32_t flags = 0;
      if (pool.kind == PoolKind::kFine || pool.kind == PoolKind::kKernarg) {
        flags |= HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
      }
      if (pool.kind == PoolKind::kKernarg) flags |= HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT;
      if (pool.kind == PoolKind::kCoarse || pool.kind == PoolKind::kDevice) {
        flags |= HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
      }
      return put(value, flags);
    }
    case HSA_AMD_MEMORY_POOL_INFO_SIZE:
    case HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE:
      return put(value, group    ? kGroupBytes
                        : on_gpu ? settings().memory_bytes()
                                 : std::uint64_t{16} << 30);
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
      return put(value, !group);
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE:
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT:
      return put(value, kPage);
    case HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL:
      return put(value, !on_gpu);
    case 17:  // where it is: a CPU's or a GPU's
      return put(value, static_cast<std::uint32_t>(on_gpu ? 1 : 0));
    case 18:  // recommended granule
      return put(value, std::uint64_t{2} << 20);
    default:
      if (settings().logs()) settings().log("unknown pool attribute " + std::to_string(attribute));
      refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace hsa_sim

using namespace hsa_sim;

HSA_SIM_API hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent,
                                               hsa_status_t (*visit)(hsa_amd_memory_pool_t, void*),
                                               void* data) {
  return call("hsa_amd_agent_iterate_memory_pools", [&] {
    require_agent(agent);
    require(visit != nullptr);
    constexpr PoolKind kOfCpu[] = {PoolKind::kFine, PoolKind::kKernarg, PoolKind::kCoarse};
    constexpr PoolKind kOfGpu[] = {PoolKind::kDevice, PoolKind::kGroup};
    const auto visit_all = [&](const auto& kinds) {
      for (const PoolKind kind : kinds) {
        const hsa_status_t status = visit(pool_handle({agent, kind}), data);
        if (status != HSA_STATUS_SUCCESS) refuse(status);
      }
    };
    if (is_cpu(agent)) {
      visit_all(kOfCpu);
    } else {
      visit_all(kOfGpu);
    }
  });
}
HSA_SIM_API hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool,
                                         hsa_amd_memory_pool_info_t attribute, void* value) {
  return call("hsa_amd_memory_pool_get_info", [&] {
    require(value != nullptr);
    pool_attribute(pool_of(pool), static_cast<int>(attribute), value);
  });
}
HSA_SIM_API hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t pool,
                                               hsa_amd_agent_memory_pool_info_t attribute,
                                               void* value) {
  return call("hsa_amd_agent_memory_pool_get_info", [&] {
    require_agent(agent);
    require(value != nullptr);
    const bool own = pool_of(pool).agent.handle == agent.handle;
    switch (static_cast<int>(attribute)) {
      case HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS:
        return put(value, HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT);
      case HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS:
        return put(value, static_cast<std::uint32_t>(own ? 0 : 1));
      case HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO: {
        if (own) return;
        hsa_amd_memory_pool_link_info_t link{};
        link.atomic_support_32bit = link.atomic_support_64bit = link.coherent_support = true;
        link.link_type = HSA_AMD_LINK_INFO_TYPE_PCIE;
        link.numa_distance = 20;
        return put(value, link);
      }
      default:
        refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
  });
}
HSA_SIM_API hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, std::size_t bytes,
                                         std::uint32_t, void** address) {
  return call("hsa_amd_memory_pool_allocate", [&] {
    require(address != nullptr);
    *address = memory().allocate(pool_of(pool), bytes);
  });
}
HSA_SIM_API hsa_amd_memory_pool_free(void* address) {
  return call("hsa_amd_memory_pool_free", [&] { memory().release(address); });
}
HSA_SIM_API hsa_amd_agents_allow_access(std::uint32_t count, const hsa_agent_t* agents,
                                        const std::uint32_t*, const void* address) {
  return call("hsa_amd_agents_allow_access", [&] {
    require(count > 0 && agents != nullptr);
    for (std::uint32_t i = 0; i < count; ++i) require_agent(agents[i]);
    require(memory().find(address).has_value());
  });
}

HSA_SIM_API hsa_amd_memory_lock_to_pool(void* host, std::size_t bytes, hsa_agent_t*, int,
                                        hsa_amd_memory_pool_t pool, std::uint32_t, void** address) {
  return call("hsa_amd_memory_lock_to_pool", [&] {
    require(address != nullptr);
    require(is_cpu(pool_of(pool).agent), HSA_STATUS_ERROR_INVALID_MEMORY_POOL);
    memory().lock(host, bytes);
    *address = host;
  });
}
HSA_SIM_API hsa_amd_memory_lock(void* host, std::size_t bytes, hsa_agent_t*, int, void** address) {
  return call("hsa_amd_memory_lock", [&] {
    require(address != nullptr);
    memory().lock(host, bytes);
    *address = host;
  });
}
HSA_SIM_API hsa_amd_memory_unlock(void* host) {
  return call("hsa_amd_memory_unlock", [&] { memory().unlock(host); });
}

HSA_SIM_API hsa_amd_pointer_info(const void* address, hsa_amd_pointer_info_t* info,
                                 void* (*allocate)(std::size_t), std::uint32_t* agent_count,
                                 hsa_agent_t** agents) {
  return call("hsa_amd_pointer_info", [&] {
    require(address != nullptr && info != nullptr && info->size >= 4);
    // Callers of other releases have shorter and longer structs.
    hsa_amd_pointer_info_t answer{};
    const std::uint32_t bytes = info->size;
    answer.size = bytes;
    answer.type = HSA_EXT_POINTER_TYPE_UNKNOWN;
    if (const auto block = memory().find(address)) {
      const bool locked = block->kind == BlockKind::kLocked;
      answer.type = locked ? HSA_EXT_POINTER_TYPE_LOCKED : HSA_EXT_POINTER_TYPE_HSA;
      answer.agentBaseAddress = reinterpret_cast<void*>(block->base);
      answer.hostBaseAddress = is_cpu(block->owner) ? answer.agentBaseAddress : nullptr;
      answer.sizeInBytes = block->bytes;
      answer.userData = block->user_data;
      answer.agentOwner = block->owner;
      answer.global_flags = block->fine_grained ? HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED
                                                : HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
    }
    std::memset(info, 0, bytes);
    std::memcpy(info, &answer, std::min<std::size_t>(bytes, sizeof answer));
    if (agent_count == nullptr) return;
    *agent_count = 0;
    if (allocate == nullptr || agents == nullptr || answer.type == HSA_EXT_POINTER_TYPE_UNKNOWN) {
      return;
    }
    const std::uint32_t count = 1 + settings().devices();
    *agents = static_cast<hsa_agent_t*>(allocate(count * sizeof(hsa_agent_t)));
    require(*agents != nullptr, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    (*agents)[0] = {kCpu};
    for (std::uint32_t i = 1; i < count; ++i) (*agents)[i] = gpu_agent(i - 1);
    *agent_count = count;
  });
}
HSA_SIM_API hsa_amd_pointer_info_set_userdata(const void* address, void* data) {
  return call("hsa_amd_pointer_info_set_userdata",
              [&] { require(memory().set_user_data(address, data)); });
}

// Registered memory is pageable memory that an agent with a full profile may touch: none has one.
HSA_SIM_API hsa_memory_register(void*, std::size_t) {
  return call("hsa_memory_register", [] {});
}
HSA_SIM_API hsa_memory_deregister(void*, std::size_t) {
  return call("hsa_memory_deregister", [] {});
}
HSA_SIM_API hsa_memory_copy(void* to, const void* from, std::size_t bytes) {
  return call("hsa_memory_copy", [&] {
    require(to != nullptr && from != nullptr);
    std::memmove(to, from, bytes);
  });
}
HSA_SIM_API hsa_amd_coherency_set_type(hsa_agent_t agent, hsa_amd_coherency_type_t) {
  return call("hsa_amd_coherency_set_type", [&] { device_of(agent); });
}
