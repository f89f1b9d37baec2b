// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backends.h>

// A file of its own because the probe program, which does not link the library, uses it too.
namespace lockstep {

std::string_view to_string(BackendStatus status) noexcept {
  switch (status) {
    case BackendStatus::kReady:
      return "ready";
    case BackendStatus::kNotBuilt:
      return "not built";
    case BackendStatus::kBroken:
      return "broken";
    case BackendStatus::kIncompatible:
      return "incompatible";
    case BackendStatus::kNoDriver:
      return "no driver";
    case BackendStatus::kNoDevice:
      return "no device";
    case BackendStatus::kShadowed:
      return "shadowed";
    case BackendStatus::kProbeFailed:
      return "probe failed";
  }
  return "unknown";
}

}  // namespace lockstep
