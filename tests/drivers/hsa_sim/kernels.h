// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "bodies.h"
#include "code_object.h"

// The kernels of loaded code objects, by the address of their descriptor: what packets name.
namespace hsa_sim {

struct LoadedKernel {
  std::string name;
  KernelDescriptor descriptor{};
  hsa_agent_t agent{};
  std::shared_ptr<Bodies> bodies;
  // Arguments of AMD's own copy and fill kernels: as ROCm 5 passes them, or as later ones do.
  bool first_generation = false;
};

void add_kernel(std::uint64_t address, std::shared_ptr<const LoadedKernel> kernel);
void remove_kernel(std::uint64_t address);
std::shared_ptr<const LoadedKernel> find_kernel(std::uint64_t address);

// Executes a dispatch on the calling thread. Empty when it was done; else why the hardware would
// have stopped.
std::string run_kernel(const LoadedKernel& kernel, const hsa_kernel_dispatch_packet_t& packet);

// AMD's own kernels, "__amd_rocclr_…". True when it is one of them; `why` says why it was not done.
bool run_builtin_kernel(const LoadedKernel& kernel, const hsa_kernel_dispatch_packet_t& packet,
                        std::string* why);

}  // namespace hsa_sim
