// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/environment.h"

#include <cstdlib>
#include <sys/auxv.h>

namespace lockstep::runtime {

std::optional<std::string> environment(const char* name) {
  // secure_getenv covers set-id programs; AT_SECURE also file capabilities and security modules.
  if (getauxval(AT_SECURE) != 0) return std::nullopt;
  const char* value = secure_getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

}  // namespace lockstep::runtime
