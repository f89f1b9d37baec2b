// SPDX-License-Identifier: Apache-2.0
#include "refusal.h"

#include <utility>

#include "types.h"

namespace lockstep::hip {
namespace {

thread_local const char* t_reason = "";

}  // namespace

gpu::Result not_supported(const char* why) {
  t_reason = why;
  return kErrorNotSupported;
}
const char* take_reason() { return std::exchange(t_reason, ""); }

}  // namespace lockstep::hip
