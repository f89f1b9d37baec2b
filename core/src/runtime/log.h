// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// \file
/// Messages for people on standard error. LOCKSTEP_LOG = error, warning (default), info or debug.
namespace lockstep::runtime {

/// Numbers of LOCKSTEP_LOG_*.
enum class LogLevel : std::uint32_t { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

bool log_enabled(LogLevel level);
/// One line, written at once so that lines of several threads do not mix.
void log(LogLevel level, std::string_view message);
/// The same line only the first time it comes up in this process.
void log_once(LogLevel level, const std::string& message);

/// lockstep_host::log.
void log_from_plugin(std::uint32_t level, const char* message);

}  // namespace lockstep::runtime
