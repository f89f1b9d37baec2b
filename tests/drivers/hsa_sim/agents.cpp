// SPDX-License-Identifier: Apache-2.0
#include "agents.h"

#include <cstdio>
#include <cstdlib>

#include "memory.h"
#include "signals.h"

// The system, its agents and their instruction sets. Attribute numbers without a name are of newer
// releases than the header's.
namespace hsa_sim {
namespace {

template <typename Handle>
using Visit = hsa_status_t (*)(Handle, void*);

void put_triple(void* to, std::uint32_t value) {
  for (int i = 0; i < 3; ++i) put(static_cast<std::uint32_t*>(to) + i, value);
}

void agent_attribute(hsa_agent_t agent, int attribute, void* value) {
  const bool cpu = is_cpu(agent);
  const std::uint32_t device = cpu ? 0 : device_of(agent);
  const Architecture& architecture = settings().architecture(device);
  const auto number = [&](std::uint32_t of_gpu, std::uint32_t of_cpu = 0) {
    put(value, cpu ? of_cpu : of_gpu);
  };
  switch (attribute) {
    case HSA_AGENT_INFO_NAME:
      return put_name(value, cpu ? "SIMULATED CPU" : architecture.name, 64);
    case HSA_AGENT_INFO_VENDOR_NAME:
      return put_name(value, cpu ? "CPU" : "AMD", 64);
    case HSA_AGENT_INFO_FEATURE:
      return number(HSA_AGENT_FEATURE_KERNEL_DISPATCH);
    case HSA_AGENT_INFO_MACHINE_MODEL:
      return number(HSA_MACHINE_MODEL_LARGE, HSA_MACHINE_MODEL_LARGE);
    case HSA_AGENT_INFO_PROFILE:
      return number(HSA_PROFILE_BASE, HSA_PROFILE_FULL);
    case HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE:
      return number(HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR, HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR);
    case HSA_AGENT_INFO_FAST_F16_OPERATION:
      return put(value, !cpu);
    case HSA_AGENT_INFO_WAVEFRONT_SIZE:
      return number(architecture.wave_size);
    case HSA_AGENT_INFO_WORKGROUP_MAX_DIM:
      for (int i = 0; i < 3; ++i) {
        put(static_cast<std::uint16_t*>(value) + i, static_cast<std::uint16_t>(cpu ? 0 : 1024));
      }
      return;
    case HSA_AGENT_INFO_WORKGROUP_MAX_SIZE:
      return number(1024);
    case HSA_AGENT_INFO_GRID_MAX_DIM:
      return put_triple(value, cpu ? 0 : UINT32_MAX);
    case HSA_AGENT_INFO_GRID_MAX_SIZE:
      return number(UINT32_MAX);
    case HSA_AGENT_INFO_FBARRIER_MAX_SIZE:
      return number(32);
    case HSA_AGENT_INFO_QUEUES_MAX:
      return number(128);
    case HSA_AGENT_INFO_QUEUE_MIN_SIZE:
      return number(64);
    case HSA_AGENT_INFO_QUEUE_MAX_SIZE:
      return number(131072);
    case HSA_AGENT_INFO_QUEUE_TYPE:
      return number(HSA_QUEUE_TYPE_MULTI);
    case HSA_AGENT_INFO_NODE:
    case HSA_AMD_AGENT_INFO_DRIVER_NODE_ID:
      return number(1 + device);
    case HSA_AGENT_INFO_DEVICE:
      return number(HSA_DEVICE_TYPE_GPU, HSA_DEVICE_TYPE_CPU);
    case HSA_AGENT_INFO_CACHE_SIZE: {
      const std::uint32_t sizes[4] = {16384, 8U << 20, 0, 0};
      return put(value, sizes);
    }
    case HSA_AGENT_INFO_EXTENSIONS:
      std::memset(value, 0, 128);
      return;
    case HSA_AGENT_INFO_VERSION_MAJOR:
    case HSA_AGENT_INFO_VERSION_MINOR:
      return put(value, std::uint16_t{1});
    case HSA_AMD_AGENT_INFO_CHIP_ID:
      return number(0x740F);
    case HSA_AMD_AGENT_INFO_CACHELINE_SIZE:
      return number(64, 64);
    case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
    case HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT:
      return number(104, 1);
    case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY:
      return number(1700, 3000);
    case HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY:
      return number(1600);
    case HSA_AMD_AGENT_INFO_MEMORY_WIDTH:
      return number(4096);
    case HSA_AMD_AGENT_INFO_BDFID:
      return number((3 + device) << 8);
    case HSA_AMD_AGENT_INFO_DOMAIN:
      return number(0);
    case HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU:
      return number(32);
    case HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU:
      return number(4);
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES:
      return number(8);
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE:
      return number(1);
    case HSA_AMD_AGENT_INFO_ASIC_REVISION:
      return number(1);
    case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
      return put_name(value, cpu ? "SIMULATED CPU" : "SIMULATED AMD GPU", 64);
    case HSA_AMD_AGENT_INFO_HDP_FLUSH:
      std::memset(value, 0, sizeof(hsa_amd_hdp_flush_t));
      return;
    case HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES:
      return put(value, !cpu);
    case HSA_AMD_AGENT_INFO_UUID: {
      char uuid[24];
      std::snprintf(uuid, sizeof uuid, "GPU-5157000000000%03x", device & 0xFFFU);
      return put_name(value, uuid, 21);
    }
    case HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS:
      return put(value, false);
    case 0xA015:  // memory available
      return put(value, memory().available(device));
    case 0xA016:  // frequency of the GPU's own clock
      return put(value, std::uint64_t{100'000'000});
    case 0xA107:  // family of the chip
      return number(141);
    case 0xA10A:  // copy engines
    case 0xA10B:  // copy engines for peers
      return number(2);
    case 0xA110:  // is part of a processor
      return put(value, false);
    case 0xA111:  // chiplets
      return number(1);
    case 0xA112:  // number as the kernel's driver counts
      return number(device);
    case 0xA113:  // the CPU that it hangs on
      return put(value, hsa_agent_t{kCpu});
    case 0xA114:  // properties of memory and of the agent: no bit set
    case 0xA115:
      std::memset(value, 0, 8);
      return;
    case 0xA116:  // scratch limits
    case 0xA117:
      return put(value, std::uint64_t{0});
    case 0xA118:  // capabilities
      std::memset(value, 0, 32);
      return;
    default:
      if (settings().logs()) settings().log("unknown agent attribute " + std::to_string(attribute));
      refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT);
  }
}

void system_attribute(int attribute, void* value) {
  switch (attribute) {
    case HSA_SYSTEM_INFO_VERSION_MAJOR:
    case HSA_SYSTEM_INFO_VERSION_MINOR:
      return put(value, std::uint16_t{1});
    case HSA_SYSTEM_INFO_TIMESTAMP:
      return put(value, now());
    case HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY:
      return put(value, std::uint64_t{1'000'000'000});
    case HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT:
      return put(value, UINT64_MAX);
    case HSA_SYSTEM_INFO_ENDIANNESS:
      return put(value, HSA_ENDIANNESS_LITTLE);
    case HSA_SYSTEM_INFO_MACHINE_MODEL:
      return put(value, HSA_MACHINE_MODEL_LARGE);
    case HSA_SYSTEM_INFO_EXTENSIONS:
      std::memset(value, 0, 128);
      return;
    case HSA_AMD_SYSTEM_INFO_BUILD_VERSION:
      return put(value, static_cast<const char*>("SIMULATED"));
    case HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED:
    case HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT:
    case 0x204:  // makes its waiting efficient
    case 0x205:  // exports memory to other drivers
    case 0x206:  // supports XNACK
      return put(value, false);
    case 0x207:  // version of the extension
      return put(value, std::uint16_t{1});
    case 0x208:
      return put(value, std::uint16_t{9});
    default:
      if (settings().logs()) {
        settings().log("unknown system attribute " + std::to_string(attribute));
      }
      refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace hsa_sim

using namespace hsa_sim;

HSA_SIM_API hsa_init() {
  return call("hsa_init", [] { require(settings().devices() > 0, HSA_STATUS_ERROR); });
}
HSA_SIM_API hsa_shut_down() {
  return call("hsa_shut_down", [] {});
}
HSA_SIM_API hsa_status_string(hsa_status_t status, const char** text) {
  require(text != nullptr);
  switch (static_cast<int>(status)) {
    case HSA_STATUS_SUCCESS:
      *text = "success";
      break;
    case HSA_STATUS_ERROR_OUT_OF_RESOURCES:
      *text = "out of resources";
      break;
    case HSA_STATUS_ERROR_EXCEPTION:
      *text = "an exception of a kernel";
      break;
    default:
      *text = "an error of the simulated HSA layer";
  }
  return HSA_STATUS_SUCCESS;
}
HSA_SIM_API hsa_system_get_info(hsa_system_info_t attribute, void* value) {
  return call("hsa_system_get_info", [&] {
    require(value != nullptr);
    system_attribute(static_cast<int>(attribute), value);
  });
}
HSA_SIM_API hsa_iterate_agents(hsa_status_t (*visit)(hsa_agent_t, void*), void* data) {
  return call("hsa_iterate_agents", [&] {
    require(visit != nullptr);
    hsa_status_t status = visit({kCpu}, data);
    for (std::uint32_t device = 0; status == 0 && device < settings().devices(); ++device) {
      status = visit(gpu_agent(device), data);
    }
    if (status != HSA_STATUS_SUCCESS) refuse(status);
  });
}
HSA_SIM_API hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void* value) {
  return call("hsa_agent_get_info", [&] {
    require_agent(agent);
    require(value != nullptr);
    agent_attribute(agent, static_cast<int>(attribute), value);
  });
}
HSA_SIM_API hsa_agent_extension_supported(std::uint16_t, hsa_agent_t agent, std::uint16_t,
                                          std::uint16_t, bool* result) {
  return call("hsa_agent_extension_supported", [&] {
    require_agent(agent);
    require(result != nullptr);
    *result = false;
  });
}
HSA_SIM_API hsa_system_extension_supported(std::uint16_t, std::uint16_t, std::uint16_t,
                                           bool* result) {
  return call("hsa_system_extension_supported", [&] {
    require(result != nullptr);
    *result = false;
  });
}
HSA_SIM_API hsa_agent_iterate_isas(hsa_agent_t agent, Visit<hsa_isa_t> visit, void* data) {
  return call("hsa_agent_iterate_isas", [&] {
    device_of(agent);
    require(visit != nullptr);
    // An instruction set is the agent that has it.
    const hsa_status_t status = visit({agent.handle}, data);
    if (status != HSA_STATUS_SUCCESS) refuse(status);
  });
}
HSA_SIM_API hsa_isa_get_info_alt(hsa_isa_t isa, hsa_isa_info_t attribute, void* value) {
  return call("hsa_isa_get_info_alt", [&] {
    const std::string& name = settings().architecture(device_of({isa.handle})).isa;
    require(value != nullptr);
    if (attribute == HSA_ISA_INFO_NAME_LENGTH) {
      put(value, static_cast<std::uint32_t>(name.size() + 1));
    } else if (attribute == HSA_ISA_INFO_NAME) {
      put_name(value, name, name.size() + 1);
    } else {
      refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
  });
}
