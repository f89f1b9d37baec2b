// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_entry.h>

#include <cstdint>

/// \file
/// What the call of an entry does to the order of work, as far as its fields and name say.
namespace lockstep::verifying {

/// Attributes are compact JSON; the key's spelling is the vendor's own, the word is common to all.
bool is_programmatic_launch(const LaunchTraceEntry& entry);

/// What a synchronise waits for.
enum class SyncScope : std::uint8_t { kStream, kEvent, kDevice };
SyncScope scope_of(const LaunchTraceEntry& entry);

/// Copies to the host block their thread unless the call says otherwise. Uploads do not: from
/// pageable memory they return before the data is on the device.
bool waits_for_end(const LaunchTraceEntry& entry);

/// A call that only asks: what it answered orders later calls if the program minds the answer.
bool is_query(const LaunchTraceEntry& entry);

/// Whether verification compares entries of that kind.
bool is_compared(const LaunchTraceEntry& entry);

}  // namespace lockstep::verifying
