// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// \file
/// Calls of this library's own that a capture must not mind.
namespace lockstep::detail {
struct DeviceState;
}

namespace lockstep::runtime {

/// The calling thread in relaxed capture mode, until the end of the scope. Allocating, freeing and
/// asking are then no offence against captures, the thread's own or others', nor against those of
/// other code in the process, which this library does not know of.
class RelaxedMode {
 public:
  explicit RelaxedMode(detail::DeviceState& device) noexcept;
  ~RelaxedMode();
  RelaxedMode(const RelaxedMode&) = delete;
  RelaxedMode& operator=(const RelaxedMode&) = delete;

  /// False where the backend has no such mode.
  bool holds() const noexcept { return exchanged_; }

 private:
  detail::DeviceState& device_;
  std::uint32_t mode_;  ///< the thread's own, while it is exchanged
  bool exchanged_;
};

}  // namespace lockstep::runtime
