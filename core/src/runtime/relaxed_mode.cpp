// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/relaxed_mode.h"

#include "src/runtime/log.h"
#include "src/runtime/states.h"

namespace lockstep::runtime {

RelaxedMode::RelaxedMode(detail::DeviceState& device) noexcept
    : device_(device), mode_(LOCKSTEP_CAPTURE_RELAXED) {
  ErrorRecord error;
  exchanged_ =
      device_.backend.table.capture_thread_mode(device_.handle, &mode_, &error) == LOCKSTEP_OK;
}

RelaxedMode::~RelaxedMode() {
  ErrorRecord error;
  if (!exchanged_ ||
      device_.backend.table.capture_thread_mode(device_.handle, &mode_, &error) == LOCKSTEP_OK) {
    return;
  }
  log(LogLevel::kError, std::string("this thread stays in relaxed capture mode: ") + error.message);
}

}  // namespace lockstep::runtime
