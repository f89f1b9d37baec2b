// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/log.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <unistd.h>

#include "src/runtime/environment.h"

namespace lockstep::runtime {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"error", "warning", "info", "debug"};

void write_line(LogLevel level, std::string_view message) {
  std::string line = "lockstep: ";
  line += kNames[std::min<std::size_t>(static_cast<std::size_t>(level), 3)];
  line += ": ";
  line += message;
  line += '\n';
  // A message that cannot be written has nowhere else to go.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

LogLevel read_level() {
  const auto value = environment("LOCKSTEP_LOG");
  if (!value) return LogLevel::kWarning;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (*value == kNames[i]) return static_cast<LogLevel>(i);
  }
  write_line(LogLevel::kWarning,
             "LOCKSTEP_LOG=" + *value + " is not error, warning, info or debug: warning is used");
  return LogLevel::kWarning;
}

LogLevel threshold() {
  static const LogLevel level = read_level();
  return level;
}

}  // namespace

bool log_enabled(LogLevel level) { return level <= threshold(); }

void log(LogLevel level, std::string_view message) {
  if (log_enabled(level)) write_line(level, message);
}

void log_once(LogLevel level, const std::string& message) {
  if (!log_enabled(level)) return;
  static std::mutex mutex;
  static auto* seen = new std::set<std::string>;  // outlives every static destructor
  {
    const std::lock_guard lock(mutex);
    if (!seen->insert(message).second) return;
  }
  write_line(level, message);
}

void log_from_plugin(std::uint32_t level, const char* message) {
  log(static_cast<LogLevel>(std::min<std::uint32_t>(level, 3)), message == nullptr ? "" : message);
}

}  // namespace lockstep::runtime
