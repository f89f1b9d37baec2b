// SPDX-License-Identifier: Apache-2.0
#include "call.h"

// What AMD's runtime looks for when it is loaded and the simulation does not have. The arguments do
// not matter: by the calling convention a function may be called with more of them than it reads.
namespace hsa_sim {
namespace {

hsa_status_t not_there(const char* name) {
  return call(name, [&] {
    if (settings().logs()) settings().log("refused " + std::string(name));
    refuse(HSA_STATUS_ERROR);
  });
}

}  // namespace
}  // namespace hsa_sim

// Some are declared by the header, with their arguments: the names are given in assembly.
#define HSA_SIM_REFUSED(name)                  \
  HSA_SIM_API refused_##name() __asm__(#name); \
  hsa_status_t refused_##name() { return hsa_sim::not_there(#name); }

HSA_SIM_REFUSED(hsa_amd_image_create)
HSA_SIM_REFUSED(hsa_amd_interop_map_buffer)
HSA_SIM_REFUSED(hsa_amd_interop_unmap_buffer)
HSA_SIM_REFUSED(hsa_amd_ipc_memory_attach)
HSA_SIM_REFUSED(hsa_amd_ipc_memory_create)
HSA_SIM_REFUSED(hsa_amd_ipc_memory_detach)
HSA_SIM_REFUSED(hsa_amd_svm_attributes_get)
HSA_SIM_REFUSED(hsa_amd_svm_attributes_set)
HSA_SIM_REFUSED(hsa_amd_svm_prefetch_async)
HSA_SIM_REFUSED(hsa_amd_agent_set_async_scratch_limit)
HSA_SIM_REFUSED(hsa_amd_ais_file_read)
HSA_SIM_REFUSED(hsa_amd_ais_file_write)
HSA_SIM_REFUSED(hsa_amd_enable_logging)
HSA_SIM_REFUSED(hsa_amd_portable_export_dmabuf)
HSA_SIM_REFUSED(hsa_amd_vmem_export_shareable_handle)
HSA_SIM_REFUSED(hsa_amd_vmem_import_shareable_handle)
HSA_SIM_REFUSED(hsa_amd_vmem_retain_alloc_handle)
HSA_SIM_REFUSED(hsa_ext_image_create)
HSA_SIM_REFUSED(hsa_ext_image_create_with_layout)
HSA_SIM_REFUSED(hsa_ext_image_data_get_info)
HSA_SIM_REFUSED(hsa_ext_image_destroy)
HSA_SIM_REFUSED(hsa_ext_image_export)
HSA_SIM_REFUSED(hsa_ext_image_import)
HSA_SIM_REFUSED(hsa_ext_sampler_create)
HSA_SIM_REFUSED(hsa_ext_sampler_create_v2)
HSA_SIM_REFUSED(hsa_ext_sampler_destroy)

// There are no system events: faults end a queue or the process.
HSA_SIM_API hsa_amd_register_system_event_handler(hsa_amd_system_event_callback_t callback, void*) {
  return hsa_sim::call("hsa_amd_register_system_event_handler",
                       [&] { hsa_sim::require(callback != nullptr); });
}
