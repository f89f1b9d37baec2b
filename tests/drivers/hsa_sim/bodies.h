// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hostjit/hostjit.h"

// Bodies of kernels. What a code object was compiled from lies in the hip plugin's compile cache,
// to be found by the object's bytes; hostjit compiles it for the CPU at first need.
namespace hsa_sim {

class Bodies {
 public:
  virtual ~Bodies() = default;
  // Null with `why` set when there is no source, when it cannot be compiled, or when the kernel is
  // not in it. Thread safe; valid as long as this object.
  virtual const lockstep::hostjit::Kernel* kernel(std::string_view symbol, std::string* why) = 0;
  // A variable of the program: kernels' bodies use it in place of the code object's.
  virtual std::optional<lockstep::hostjit::Global> variable(std::string_view symbol) = 0;
};

// Looks for the source; compiles nothing yet. `wave_size` is what kernels will see as warpSize.
std::unique_ptr<Bodies> find_bodies(std::span<const std::byte> object, std::uint32_t wave_size);

}  // namespace hsa_sim
