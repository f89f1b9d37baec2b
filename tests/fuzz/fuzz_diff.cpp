// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_diff.h>

#include <cstdlib>

#include "fuzz/fuzz_target.h"

namespace lockstep::fuzz {

/// The first byte is the distance up to which alignment is exact; then keys, a byte each, with 255
/// between the two sides. Every alignment is a valid one, and equal sides align whole.
void diff(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  std::vector<std::uint64_t> left, right;
  bool second = false;
  for (std::size_t i = 1; i < size; ++i) {
    if (data[i] == 255 && !second) {
      second = true;
    } else {
      (second ? right : left).push_back(data[i]);
    }
  }
  const auto check = [&](const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
    bool exact = false;
    std::uint64_t x = 0, y = 0, matched = 0;
    const auto match_until = [&](std::uint64_t to_x, std::uint64_t to_y) {
      if (to_x - x != to_y - y || to_x > a.size() || to_y > b.size()) std::abort();
      for (; x < to_x; ++x, ++y, ++matched) {
        if (a[x] != b[y] || a[x] == 0) std::abort();
      }
    };
    for (const DiffChange& change : align(a, b, data[0], &exact)) {
      match_until(change.left_begin, change.right_begin);
      if (change.left_end < x || change.right_end < y) std::abort();
      x = change.left_end;
      y = change.right_end;
    }
    match_until(a.size(), b.size());
    return exact ? std::optional(matched) : std::nullopt;
  };
  const auto there = check(left, right), back = check(right, left);
  if (there && back && *there != *back) std::abort();
  check(left, left);
}

}  // namespace lockstep::fuzz

LOCKSTEP_FUZZ_TARGET(lockstep::fuzz::diff)
