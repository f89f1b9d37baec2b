// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_diff.h>

#include <cstdint>
#include <vector>

/// \file
/// Longest common subsequence of two key sequences, in the memory of the sequences themselves.
namespace lockstep {

/// Never equal to anything, not even to itself. No hash is 0.
inline constexpr std::uint64_t kNeverEqual = 0;

struct Alignment {
  std::vector<DiffChange> changes;
  std::uint64_t matched = 0;
  bool exact = true;
};

/// Destroys both sequences: ten million keys a side are the memory there is.
Alignment align_in_place(std::vector<std::uint64_t>& left, std::vector<std::uint64_t>& right,
                         std::uint64_t exact_edit_distance);

}  // namespace lockstep
