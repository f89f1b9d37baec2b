// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace lockstep::testing {

/// What the probe needs in its environment beside what a test sets. Under ThreadSanitizer a child
/// that was forked may not start threads unless told so, and ours writes its own trace.
inline std::map<std::string, std::optional<std::string>> probe_environment() {
  const char* options = std::getenv("TSAN_OPTIONS");
  const std::string before = options != nullptr ? std::string(options) + ":" : std::string();
  return {{"TSAN_OPTIONS", before + "die_after_fork=0"}};
}

}  // namespace lockstep::testing
