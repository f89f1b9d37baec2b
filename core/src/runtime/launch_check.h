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

/// A launch description with everything it points to. Not copyable; built on the stack without
/// allocating for up to kInline arguments.
class LaunchDescription {
 public:
  static constexpr std::size_t kInline = 64;

  /// Hot, as all on the path of a launch: the linker lays such functions side by side, on few
  /// pages. \throws Error kInvalidArgument naming the limit or the argument, and `where`.
  [[gnu::hot]] LaunchDescription(const detail::KernelState& kernel, const LaunchConfig& config,
                                 std::span<const KernelArgument> arguments, const char* function);
  LaunchDescription(const LaunchDescription&) = delete;
  LaunchDescription& operator=(const LaunchDescription&) = delete;

  const lockstep_launch_desc& desc() const noexcept { return desc_; }

 private:
  /// Where more than kInline arguments lie.
  struct More {
    std::vector<const void*> pointers;
    std::vector<lockstep_parameter> parameters;
  };
  More& more(std::size_t count);
  void add_attributes(const LaunchConfig& config);

  lockstep_launch_desc desc_;
  // Left as they are: only the first argument_count and attribute_count elements are ever read.
  std::array<const void*, kInline> pointers_;
  std::array<lockstep_parameter, kInline> parameters_;
  std::unique_ptr<More> more_;
  std::array<lockstep_attribute, 4> attributes_;
  lockstep_dim3 cluster_;
  std::uint32_t cooperative_, programmatic_;
  std::int32_t priority_;
};

/// 0 is no limit in both; the result has none as the largest number.
detail::LaunchLimits launch_limits(const DeviceLimits& device, std::uint32_t threads_of_kernel);

/// The same launch as a trace entry, for comparing a graph with what was captured into it.
LaunchTraceEntry launch_entry(const detail::KernelState& kernel, const LaunchConfig& config);

/// Keeps what the launch uses alive in `contents`, and notes raw pointers into memory we allocated.
void keep_arguments(GraphContents& contents, std::uint32_t node, const detail::KernelState& kernel,
                    std::span<const KernelArgument> arguments, std::uint64_t capture_id);

}  // namespace lockstep::runtime
