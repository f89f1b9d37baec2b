// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/launch_check.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "src/record/record_entry.h"

namespace lockstep::runtime {
namespace {

using Kind = KernelArgument::Kind;

struct Context {
  const char* function;
  const detail::KernelState& kernel;

  [[noreturn]] void refuse(const std::string& what) const {
    throw_invalid(fmt::format("{} of kernel '{}': {}", function, kernel.name, what),
                  kernel.device->id);
  }
};

/// Where a dimension is out of range.
void check_dimension(const Context& context, const char* what, const Dim3& value,
                     const Dim3& limit) {
  const std::array<std::uint32_t, 3> values = {value.x, value.y, value.z};
  const std::array<std::uint32_t, 3> limits = {limit.x, limit.y, limit.z};
  for (std::size_t i = 0; i < 3; ++i) {
    const char axis = "xyz"[i];
    if (values[i] == 0) {
      context.refuse(fmt::format("{}.{} is 0; every dimension is at least 1", what, axis));
    }
    if (limits[i] != 0 && values[i] > limits[i]) {
      context.refuse(
          fmt::format("{}.{} is {}, the device's limit is {}", what, axis, values[i], limits[i]));
    }
  }
}

[[noreturn]] void refuse_threads(const Context& context, const Dim3& block,
                                 std::uint32_t device_limit) {
  const std::uint64_t plane = std::uint64_t{block.x} * block.y;
  const std::uint64_t threads = plane > UINT32_MAX ? plane : plane * block.z;
  if (device_limit != 0 && threads > device_limit) {
    context.refuse(fmt::format("a block of {} threads exceeds the device's limit of {}", threads,
                               device_limit));
  }
  context.refuse(
      fmt::format("a block of {} threads exceeds the kernel's own limit of {} (by its registers or "
                  "launch bounds)",
                  threads, context.kernel.max_threads_per_block));
}

[[noreturn]] void refuse_shared(const Context& context, std::uint64_t bytes) {
  context.refuse(
      fmt::format("{} bytes of dynamic shared memory exceed the {} bytes that are allowed "
                  "now; Kernel::set_max_dynamic_shared raises that to at most {}",
                  bytes, context.kernel.max_dynamic_shared.load(std::memory_order_relaxed),
                  context.kernel.device->limits.max_shared_per_block_optin));
}

const char* words(std::uint8_t tag) {
  return tag == 1 ? "a pointer" : tag == 0 ? "a value" : tag == 2 ? "a struct" : "anything";
}

[[noreturn]] void refuse_argument(const Context& context, std::size_t index,
                                  const KernelArgument& given) {
  const lockstep_parameter& wanted = context.kernel.parameters[index];
  std::string message = fmt::format(
      "argument {} is {} of {} bytes, the kernel takes {} of {} bytes", index,
      words(static_cast<std::uint8_t>(given.kind)), given.size, words(wanted.tag), wanted.size);
  if (given.value == nullptr) message = fmt::format("argument {} has no value", index);
  context.refuse(message);
}

[[noreturn]] void refuse_count(const Context& context, std::size_t given) {
  context.refuse(fmt::format("{} argument(s) given, the kernel takes {}", given,
                             context.kernel.parameters.size()));
}

/// A struct without padding counts as a value: only pointers have to agree.
bool fits(const lockstep_parameter& wanted, const KernelArgument& given) noexcept {
  const bool kind = (wanted.tag == 1) == (given.kind == Kind::kPointer);
  return wanted.size == given.size && given.value != nullptr && (wanted.tag == 255 || kind);
}

/// \throws Error when the arguments are not those that the kernel takes.
void check_layout(const Context& context, std::span<const KernelArgument> arguments) {
  const std::vector<lockstep_parameter>& wanted = context.kernel.parameters;
  if (arguments.size() != wanted.size()) refuse_count(context, arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!fits(wanted[i], arguments[i])) refuse_argument(context, i, arguments[i]);
  }
}

}  // namespace

[[gnu::cold]] void refuse_limits(const detail::KernelState& kernel, const LaunchConfig& config,
                                 const char* function) {
  const Context context{function, kernel};
  const DeviceLimits& limits = kernel.device->limits;
  check_dimension(context, "grid", config.grid, limits.max_grid);
  check_dimension(context, "block", config.block, limits.max_block);
  const std::uint64_t plane = std::uint64_t{config.block.x} * config.block.y;
  if (plane > kernel.limits.threads || plane * config.block.z > kernel.limits.threads) {
    refuse_threads(context, config.block, limits.max_threads_per_block);
  }
  refuse_shared(context, config.shared_bytes);
}

void check_grid_times_block(const detail::KernelState& kernel, const LaunchConfig& config,
                            const char* function) {
  const auto check = [&](char axis, std::uint64_t blocks, std::uint64_t threads) {
    if (blocks * threads <= kernel.limits.grid_times_block) return;
    Context{function, kernel}.refuse(
        fmt::format("grid.{0} times block.{0} is {1} threads, the device's limit is {2}", axis,
                    blocks * threads, kernel.limits.grid_times_block));
  };
  check('x', config.grid.x, config.block.x);
  check('y', config.grid.y, config.block.y);
  check('z', config.grid.z, config.block.z);
}

void check_owners(const detail::KernelState& kernel, std::span<const KernelArgument> arguments,
                  const char* function) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const detail::AllocationPtr* owner = arguments[i].owner;
    if (owner == nullptr || *owner == nullptr || (*owner)->backend == &kernel.device->backend) {
      continue;
    }
    Context{function, kernel}.refuse(
        fmt::format("argument {} is a buffer of {}: memory of another backend cannot be "
                    "used; copy it through host memory",
                    i, (*owner)->device.id()));
  }
}

void LaunchDescription::point_to(const detail::KernelState& kernel,
                                 std::span<const KernelArgument> arguments, const char* function) {
  if (kernel.layout_known) check_layout({function, kernel}, arguments);
  const std::size_t count = arguments.size();
  const void** pointers = pointers_.data();
  lockstep_parameter* parameters = parameters_.data();
  if (count > kInline) {
    more_ = std::make_unique<More>();
    more_->pointers.resize(count);
    more_->parameters.resize(count);
    pointers = more_->pointers.data();
    parameters = more_->parameters.data();
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto tag = static_cast<std::uint8_t>(arguments[i].kind);
    pointers[i] = arguments[i].value;
    parameters[i] = {0, arguments[i].size, tag, {}};
  }
  desc_.arguments = pointers;
  desc_.parameters = kernel.tags_known ? nullptr : parameters;
  looked_at_closely_ = true;
}

[[gnu::cold]] void keep_fitted(const detail::KernelState& kernel,
                               std::span<const KernelArgument> arguments) {
  if (!kernel.layout_known || arguments.size() > LaunchDescription::kInline ||
      kernel.fitted.load(std::memory_order_relaxed) != nullptr) {
    return;
  }
  auto kept = std::make_unique<lockstep_parameter[]>(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    kept[i] = {0, arguments[i].size, static_cast<std::uint8_t>(arguments[i].kind), {}};
  }
  const lockstep_parameter* none = nullptr;
  if (kernel.fitted.compare_exchange_strong(none, kept.get(), std::memory_order_acq_rel)) {
    static_cast<void>(kept.release());
  }
}

[[gnu::noinline]] void LaunchDescription::add_attributes(const LaunchConfig& config) {
  const auto add = [&](std::uint32_t id, const auto& value) {
    attributes_[desc_.attribute_count++] = {id, static_cast<std::uint32_t>(sizeof(value)), &value};
    desc_.attributes = attributes_.data();
  };
  if (config.cluster.x > 1 || config.cluster.y > 1 || config.cluster.z > 1) {
    cluster_ = {config.cluster.x, config.cluster.y, config.cluster.z};
    add(LOCKSTEP_LAUNCH_CLUSTER, cluster_);
  }
  if (config.cooperative) {
    cooperative_ = 1;
    add(LOCKSTEP_LAUNCH_COOPERATIVE, cooperative_);
  }
  if (config.priority) {
    priority_ = *config.priority;
    add(LOCKSTEP_LAUNCH_PRIORITY, priority_);
  }
  if (config.programmatic_serialization) {
    programmatic_ = 1;
    add(LOCKSTEP_LAUNCH_PROGRAMMATIC_SERIALIZATION, programmatic_);
  }
}

detail::LaunchLimits launch_limits(const DeviceLimits& device, std::uint32_t threads_of_kernel) {
  const auto or_none = [](std::uint32_t limit) { return limit == 0 ? UINT32_MAX : limit; };
  const auto each = [&](const Dim3& limit) {
    return Dim3{or_none(limit.x), or_none(limit.y), or_none(limit.z)};
  };
  detail::LaunchLimits limits{each(device.max_grid), each(device.max_block), UINT64_MAX,
                              UINT64_MAX};
  if (device.max_grid_times_block != 0) limits.grid_times_block = device.max_grid_times_block;
  for (const std::uint32_t threads : {device.max_threads_per_block, threads_of_kernel}) {
    if (threads != 0 && threads < limits.threads) limits.threads = threads;
  }
  return limits;
}

LaunchTraceEntry launch_entry(const detail::KernelState& kernel, const LaunchConfig& config) {
  LaunchTraceEntry entry;
  entry.kind = OperationKind::kKernelLaunch;
  entry.name = kernel.name;
  entry.device = kernel.device->info.ordinal;
  const auto to_abi = [](const Dim3& d) { return lockstep_dim3{d.x, d.y, d.z}; };
  set_launch_shape(entry, to_abi(config.grid), to_abi(config.block), to_abi(config.cluster));
  entry.shared_mem_bytes = config.shared_bytes;
  entry.cooperative = config.cooperative;
  entry.semantic_hash = semantic_hash(entry);
  return entry;
}

void keep_arguments(GraphContents& contents, std::uint32_t node, const detail::KernelState& kernel,
                    std::span<const KernelArgument> arguments, std::uint64_t capture_id) {
  contents.keep(std::static_pointer_cast<const void>(kernel.shared_from_this()));
  const AllocationMap& allocations = kernel.device->backend.allocations;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgument& argument = arguments[i];
    if (argument.kind != Kind::kPointer) continue;
    if (argument.owner != nullptr && *argument.owner != nullptr) {
      // Memory that is a node of this very graph lives with the graph.
      if (capture_id == 0 || (*argument.owner)->capture_id != capture_id) {
        contents.keep(*argument.owner);
      }
      continue;
    }
    const void* pointer = nullptr;
    std::memcpy(&pointer, argument.value, sizeof(pointer));
    if (const auto found = allocations.find(pointer)) {
      contents.raw_pointers.push_back({reinterpret_cast<std::uintptr_t>(pointer), found->id, node,
                                       fmt::format("argument {}", i)});
    }
  }
}

}  // namespace lockstep::runtime
