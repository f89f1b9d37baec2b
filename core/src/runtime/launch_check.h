// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>
#include <lockstep/launch.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "src/runtime/states.h"

/// \file
/// Checks a launch and puts it into the form that plugins take. One rule for launches and nodes.
namespace lockstep::runtime {

/// A launch description with everything it points to. Not copyable; built on the stack, without
/// allocating for up to kInline arguments. What every launch does is inline here, and short: behind
/// the driver's code of the launch before, each line of ours has to be fetched again. The rest is
/// apart, in launch_check.cpp.
class LaunchDescription {
 public:
  static constexpr std::size_t kInline = 64;

  /// \throws Error kInvalidArgument naming the limit or the argument, and `function`.
  /// `types_matter`: the launch is recorded or becomes a node, of which the plugin has to know what
  /// its arguments are.
  [[gnu::always_inline]] inline LaunchDescription(const detail::KernelState& kernel,
                                                  const LaunchConfig& config,
                                                  std::span<const KernelArgument> arguments,
                                                  bool types_matter, const char* function);
  LaunchDescription(const LaunchDescription&) = delete;
  LaunchDescription& operator=(const LaunchDescription&) = delete;

  const lockstep_launch_desc& desc() const noexcept { return desc_; }
  /// The arguments were unlike those of earlier launches, or there was none: see keep_fitted.
  bool looked_at_closely() const noexcept { return looked_at_closely_; }

 private:
  /// Where more than kInline arguments lie.
  struct More {
    std::vector<const void*> pointers;
    std::vector<lockstep_parameter> parameters;
  };
  inline bool point_to_like(const lockstep_parameter* fitted,
                            std::span<const KernelArgument> arguments) noexcept;
  void point_to(const detail::KernelState& kernel, std::span<const KernelArgument> arguments,
                const char* function);
  void add_attributes(const LaunchConfig& config);

  // In the order of their use, for they lie on lines of the cache, too.
  lockstep_launch_desc desc_;
  std::unique_ptr<More> more_;
  bool looked_at_closely_ = false;
  // Left as they are: only the first argument_count and attribute_count elements are ever read.
  std::array<const void*, kInline> pointers_;
  std::array<lockstep_attribute, 4> attributes_;
  lockstep_dim3 cluster_;
  std::uint32_t cooperative_, programmatic_;
  std::int32_t priority_;
  std::array<lockstep_parameter, kInline> parameters_;
};

/// True when each of `value` is 1 to its limit. Without branches: a launch meets each of them cold.
inline bool within(const Dim3& value, const Dim3& limit) noexcept {
  return (static_cast<int>(value.x - 1 < limit.x) & static_cast<int>(value.y - 1 < limit.y) &
          static_cast<int>(value.z - 1 < limit.z)) != 0;
}

/// Whether the device and the kernel can be launched so; grid times block is looked at apart.
inline bool within_limits(const detail::KernelState& kernel, const LaunchConfig& config) noexcept {
  // Where there is a limit neither product overflows: the first is compared on its own.
  const std::uint64_t plane = std::uint64_t{config.block.x} * config.block.y;
  return within(config.grid, kernel.limits.grid) && within(config.block, kernel.limits.block) &&
         plane <= kernel.limits.threads && plane * config.block.z <= kernel.limits.threads &&
         (config.shared_bytes == 0 ||
          config.shared_bytes <= kernel.max_dynamic_shared.load(std::memory_order_relaxed));
}

[[noreturn]] void refuse_limits(const detail::KernelState& kernel, const LaunchConfig& config,
                                const char* function);
void check_grid_times_block(const detail::KernelState& kernel, const LaunchConfig& config,
                            const char* function);
/// Memory of another backend is refused. Looks at each allocation.
void check_owners(const detail::KernelState& kernel, std::span<const KernelArgument> arguments,
                  const char* function);

/// After a launch whose arguments were looked at closely: later ones are compared with them first.
void keep_fitted(const detail::KernelState& kernel, std::span<const KernelArgument> arguments);

/// Points to the arguments. False when one is not like that of an earlier launch which did fit.
inline bool LaunchDescription::point_to_like(const lockstep_parameter* fitted,
                                             std::span<const KernelArgument> arguments) noexcept {
  std::uint32_t different = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgument& argument = arguments[i];
    pointers_[i] = argument.value;
    different |= (argument.size ^ fitted[i].size) |
                 (static_cast<std::uint32_t>(argument.kind) ^ fitted[i].tag) |
                 static_cast<std::uint32_t>(argument.value == nullptr);
  }
  return different == 0;
}

inline LaunchDescription::LaunchDescription(const detail::KernelState& kernel,
                                            const LaunchConfig& config,
                                            std::span<const KernelArgument> arguments,
                                            bool types_matter, const char* function) {
  if (!within_limits(kernel, config)) [[unlikely]]
    refuse_limits(kernel, config, function);
  if (kernel.limits.grid_times_block != UINT64_MAX) [[unlikely]]
    check_grid_times_block(kernel, config, function);
  desc_.struct_size = sizeof(desc_);
  desc_.kernel = kernel.handle;
  desc_.grid = {config.grid.x, config.grid.y, config.grid.z};
  desc_.block = {config.block.x, config.block.y, config.block.z};
  desc_.shared_bytes = config.shared_bytes;
  desc_.arguments = pointers_.data();
  desc_.argument_count = static_cast<std::uint32_t>(arguments.size());
  desc_.attributes = nullptr;
  desc_.attribute_count = 0;

  const lockstep_parameter* const fitted = kernel.fitted.load(std::memory_order_acquire);
  // Sizes that did fit are not told again, and tags only to somebody who wants them.
  desc_.parameters = types_matter && !kernel.tags_known ? fitted : nullptr;
  if (fitted == nullptr || arguments.size() != kernel.parameters.size() ||
      !point_to_like(fitted, arguments)) [[unlikely]] {
    point_to(kernel, arguments, function);
  }
  if (several_backends()) [[unlikely]]
    check_owners(kernel, arguments, function);
  if ((config.cluster.x | config.cluster.y | config.cluster.z) > 1 ||
      (static_cast<int>(config.cooperative) | static_cast<int>(config.priority.has_value()) |
       static_cast<int>(config.programmatic_serialization)) != 0) [[unlikely]] {
    add_attributes(config);
  }
}

/// 0 is no limit in both; the result has none as the largest number.
detail::LaunchLimits launch_limits(const DeviceLimits& device, std::uint32_t threads_of_kernel);

/// The same launch as a trace entry, for comparing a graph with what was captured into it.
LaunchTraceEntry launch_entry(const detail::KernelState& kernel, const LaunchConfig& config);

/// Keeps what the launch uses alive in `contents`, and notes raw pointers into memory we allocated.
void keep_arguments(GraphContents& contents, std::uint32_t node, const detail::KernelState& kernel,
                    std::span<const KernelArgument> arguments, std::uint64_t capture_id);

}  // namespace lockstep::runtime
