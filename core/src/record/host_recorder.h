// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>
#include <lockstep/export.h>
#include <lockstep/trace.h>

#include <cstdint>
#include <string_view>

/// \file
/// What the plugin loader needs of the recorder. Exported for tests, which stand in for plugins.
namespace lockstep {

/// The table that is handed to plugins (lockstep_host::recorder). Prepares recording on first use:
/// reads the LOCKSTEP_TRACE… and LOCKSTEP_RECORD… variables and opens what they ask for. Where a
/// preload library owns the recorder of this process, it is that one's table. Thread-safe; the
/// table lives as long as the process.
/// \throws Error kInvalidArgument naming the variable and its value, kInputOutput when the trace
/// file cannot be created. The error is remembered: every later call throws it again.
LOCKSTEP_API const lockstep_recorder* host_recorder();

/// The text that intern() gave `number` to, "" for 0 and for a number never given out. Valid as
/// long as the process lives. Thread-safe.
LOCKSTEP_API std::string_view recorded_text(std::uint32_t number);

/// Adds what a device is to every trace, open or to come. Call it when a device is opened; calling
/// it again for the same device is fine. Does nothing when recording could not be prepared.
LOCKSTEP_API void record_device(const TraceDevice& device, std::string_view driver, bool simulated);

/// Coverage counters for the footer, as JSON object text. The last call wins.
LOCKSTEP_API void record_coverage(std::string_view json);

}  // namespace lockstep
