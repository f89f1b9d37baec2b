// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_entry.h>

#include <cstdint>

/// \file
/// What copies and sets cover when one dimension is not enough.
namespace lockstep {

/// Bytes, rows, planes and pitches of a copy between any two memories. Pitch 0 = packed.
struct CopyRegion {
  void* destination = nullptr;
  const void* source = nullptr;
  Extent extent;  ///< width in bytes
  std::uint64_t source_pitch = 0, source_slice_pitch = 0;
  std::uint64_t destination_pitch = 0, destination_slice_pitch = 0;
  MemcpyKind expected = MemcpyKind::kNone;  ///< an error when the copy turns out to be another
};

/// What a set covers. Pitch 0 = packed.
struct FillRegion {
  void* destination = nullptr;
  Extent extent;                             ///< width in ELEMENTS of value_size bytes
  std::uint64_t pitch = 0, slice_pitch = 0;  ///< bytes
  std::uint32_t value = 0;                   ///< masked to value_size
  std::uint32_t value_size = 1;              ///< 1, 2 or 4 bytes
};

}  // namespace lockstep
