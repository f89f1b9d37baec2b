// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace lockstep::testing {

/// What the probe needs in its environment beside what a test sets. Sanitizers take a child that
/// was forked for a process with its parent's threads: ThreadSanitizer forbids it to start one of
/// its own, which writes its trace, and LeakSanitizer complains of those it cannot stop.
inline std::map<std::string, std::optional<std::string>> probe_environment() {
  const auto added = [](const char* variable, const char* option) {
    const char* options = std::getenv(variable);
    return (options != nullptr ? std::string(options) + ":" : std::string()) + option;
  };
  return {{"TSAN_OPTIONS", added("TSAN_OPTIONS", "die_after_fork=0")},
          {"ASAN_OPTIONS", added("ASAN_OPTIONS", "detect_leaks=0")}};
}

}  // namespace lockstep::testing
