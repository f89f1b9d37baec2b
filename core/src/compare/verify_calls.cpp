// SPDX-License-Identifier: Apache-2.0
#include "src/compare/verify_calls.h"

#include <string>
#include <string_view>

namespace lockstep::verifying {

bool is_programmatic_launch(const LaunchTraceEntry& entry) {
  const std::string_view text = entry.attributes;
  const std::size_t word = text.find("programmatic");
  if (word == std::string_view::npos) return false;
  const std::size_t colon = text.find(':', word);
  if (colon == std::string_view::npos || colon + 1 >= text.size()) return false;
  const char value = text[colon + 1];
  return value != '0' && value != 'f' && value != 'n';
}

SyncScope scope_of(const LaunchTraceEntry& entry) {
  const std::string_view name = entry.name;
  const auto says = [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  if (says("Event") || says("event")) return SyncScope::kEvent;
  if (entry.event >= 0) return SyncScope::kEvent;
  // Our recorder says so where there is no stream; names decide in the files of others.
  for (const auto& [key, value] : entry.unknown) {
    if (key == "scope" && value == "\"device\"") return SyncScope::kDevice;
  }
  if (says("Ctx") || says("Context") || says("Device") || says("device")) return SyncScope::kDevice;
  return SyncScope::kStream;
}

bool waits_for_end(const LaunchTraceEntry& entry) {
  return entry.kind == OperationKind::kMemcpy &&
         (entry.memcpy_kind == MemcpyKind::kDtoH || entry.memcpy_kind == MemcpyKind::kHtoH) &&
         !entry.name.empty() && entry.name.find("Async") == std::string::npos;
}

bool is_query(const LaunchTraceEntry& entry) {
  return entry.name.find("Query") != std::string::npos ||
         entry.name.find("query") != std::string::npos;
}

bool is_compared(const LaunchTraceEntry& entry) {
  return is_core_kind(entry.kind) || entry.kind == OperationKind::kOpaque;
}

}  // namespace lockstep::verifying
