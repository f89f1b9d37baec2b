// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>
#include <lockstep/launch.h>

#include <array>
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

  /// \throws Error kInvalidArgument naming the limit or the argument, and `where`.
  LaunchDescription(const detail::KernelState& kernel, const LaunchConfig& config,
                    std::span<const KernelArgument> arguments, const char* function);
  LaunchDescription(const LaunchDescription&) = delete;
  LaunchDescription& operator=(const LaunchDescription&) = delete;

  const lockstep_launch_desc& desc() const noexcept { return desc_; }

 private:
  lockstep_launch_desc desc_;
  // Left as they are: only the first argument_count and attribute_count elements are ever read.
  std::array<const void*, kInline> pointers_;
  std::array<lockstep_parameter, kInline> parameters_;
  std::vector<const void*> more_pointers_;
  std::vector<lockstep_parameter> more_parameters_;
  std::array<lockstep_attribute, 4> attributes_;
  lockstep_dim3 cluster_;
  std::uint32_t cooperative_, programmatic_;
  std::int32_t priority_;
};

/// The same launch as a trace entry, for comparing a graph with what was captured into it.
LaunchTraceEntry launch_entry(const detail::KernelState& kernel, const LaunchConfig& config);

/// Keeps what the launch uses alive in `contents`, and notes raw pointers into memory we allocated.
void keep_arguments(GraphContents& contents, std::uint32_t node, const detail::KernelState& kernel,
                    std::span<const KernelArgument> arguments, std::uint64_t capture_id);

}  // namespace lockstep::runtime
