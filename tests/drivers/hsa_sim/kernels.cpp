// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "memory.h"

namespace hsa_sim {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::uint64_t, std::shared_ptr<const LoadedKernel>> kernels;
};
Table& table() {
  static auto* const instance = new Table;
  return *instance;
}

std::string triple(std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  return std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z);
}

std::string hex(const void* bytes, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const auto byte = static_cast<const unsigned char*>(bytes)[i];
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

void log_dispatch(const LoadedKernel& kernel, const hsa_kernel_dispatch_packet_t& packet) {
  if (!settings().logs()) return;
  settings().log("kernel " + kernel.name + " grid=" +
                 triple(packet.grid_size_x, packet.grid_size_y, packet.grid_size_z) + " group=" +
                 triple(packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z) +
                 " lds=" + std::to_string(packet.group_segment_size) + " arguments=" +
                 hex(packet.kernarg_address, std::min(kernel.descriptor.argument_bytes, 128U)));
}

// What the hardware or its queue's processor would not have done.
std::string check(const LoadedKernel& kernel, const hsa_kernel_dispatch_packet_t& packet) {
  const std::uint64_t group =
      std::uint64_t{packet.workgroup_size_x} * packet.workgroup_size_y * packet.workgroup_size_z;
  if (group == 0 || group > 1024) return "a work-group of " + std::to_string(group);
  if (packet.grid_size_x == 0 || packet.grid_size_y == 0 || packet.grid_size_z == 0) {
    return "an empty grid";
  }
  if (packet.group_segment_size > kGroupBytes) {
    return std::to_string(packet.group_segment_size) + " bytes of local memory";
  }
  if (packet.group_segment_size < kernel.descriptor.group_bytes) {
    return "less local memory than the kernel's own";
  }
  const std::uint32_t arguments = kernel.descriptor.argument_bytes;
  if (arguments > 0 && !memory().covers(packet.kernarg_address, arguments)) {
    return "arguments in memory that no GPU can reach";
  }
  return {};
}

std::string run_body(const LoadedKernel& kernel, const hsa_kernel_dispatch_packet_t& packet) {
  std::string why;
  const lockstep::hostjit::Kernel* const body = kernel.bodies->kernel(kernel.name, &why);
  if (body == nullptr) return why;
  const lockstep::hostjit::Dim3 block{packet.workgroup_size_x, packet.workgroup_size_y,
                                      packet.workgroup_size_z};
  if (packet.grid_size_x % block.x != 0 || packet.grid_size_y % block.y != 0 ||
      packet.grid_size_z % block.z != 0) {
    return "a grid of broken work-groups, which the simulation does not have";
  }
  const lockstep::hostjit::Dim3 grid{packet.grid_size_x / block.x, packet.grid_size_y / block.y,
                                     packet.grid_size_z / block.z};
  if (body->parameter_bytes() > kernel.descriptor.argument_bytes) {
    return "its source has more arguments than the code object";
  }
  // Both lay arguments out one after the other, each aligned by its own size.
  std::vector<void*> arguments;
  for (const auto& parameter : body->parameters()) {
    arguments.push_back(static_cast<char*>(packet.kernarg_address) + parameter.offset);
  }
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  const auto status =
      body->run_blocks(0, blocks, grid, block,
                       packet.group_segment_size - kernel.descriptor.group_bytes, arguments.data());
  return status.ok() ? std::string() : status.message;
}

}  // namespace

void add_kernel(std::uint64_t address, std::shared_ptr<const LoadedKernel> kernel) {
  const std::lock_guard lock(table().mutex);
  table().kernels[address] = std::move(kernel);
}

void remove_kernel(std::uint64_t address) {
  const std::lock_guard lock(table().mutex);
  table().kernels.erase(address);
}

std::shared_ptr<const LoadedKernel> find_kernel(std::uint64_t address) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().kernels.find(address);
  return found != table().kernels.end() ? found->second : nullptr;
}

std::string run_kernel(const LoadedKernel& kernel, const hsa_kernel_dispatch_packet_t& packet) {
  std::string why = check(kernel, packet);
  if (!why.empty()) return why;
  log_dispatch(kernel, packet);
  if (run_builtin_kernel(kernel, packet, &why)) return why;
  if (settings().next_kernel_is_lost()) return "it was asked to fail (HSA_SIM_LOST_AT)";
  return run_body(kernel, packet);
}

}  // namespace hsa_sim
