// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>
#include <lockstep/trace_entry.h>

#include <cstdint>
#include <functional>
#include <string_view>

/// \file
/// From what a plugin reports to what a trace holds: one rule for recordings and for graph nodes.
namespace lockstep {

/// The text of an interned number, "" for 0 and for one that was never given out.
using TextLookup = std::function<std::string_view(std::uint32_t number)>;

/// The entry that a record stands for: folded extents, semantic hash, and the flags as they came.
/// Whatever depends on the trace it will be part of is left to the caller: stream_index, sequence,
/// times, thread, graph and event numbers (event holds the record's identity), and pointers, which
/// are (0, 0) here; argument_hash is 0. Scalar arguments carry their bytes.
LaunchTraceEntry entry_from_record(const lockstep_record& record, const TextLookup& text);

/// The dimensions of a launch. A cluster of one block is none: the entry never shows it.
void set_launch_shape(LaunchTraceEntry& entry, const lockstep_dim3& grid,
                      const lockstep_dim3& block, const lockstep_dim3& cluster) noexcept;

/// fold_extent() for pitches as descriptions have them: 0 = packed.
Extent fold_region(const Extent& extent, std::uint64_t source_pitch,
                   std::uint64_t source_slice_pitch, std::uint64_t destination_pitch,
                   std::uint64_t destination_slice_pitch) noexcept;

}  // namespace lockstep
