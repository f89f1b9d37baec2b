// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

/// \file
/// Myers' O(ND) search for a shortest edit path, in linear space.
namespace lockstep {

class EditPath {
 public:
  /// A run of `length` equal elements at (x, y).
  using Match = std::function<void(std::int64_t x, std::int64_t y, std::int64_t length)>;

  /// Elements are equal when their upper 32 bits are; the lower 32 bits carry positions.
  EditPath(std::span<const std::uint64_t> left, std::span<const std::uint64_t> right)
      : left_(left), right_(right) {}

  /// Calls `match` for every run in order. Returns false when the edit distance is above `limit`:
  /// then the path is anchored where a bounded search came farthest, and not proven shortest.
  bool walk(std::uint64_t limit, const Match& match);

 private:
  struct Box {
    std::int64_t x0, x1, y0, y1;
    std::int64_t limit;    ///< edits to search, from both ends together
    bool matched = false;  ///< the box is one run of equal elements
  };
  struct Split {
    std::int64_t x, y;
    std::int64_t edits;  ///< spent from the end that came farthest
    bool exact;
    bool forward;  ///< which end that was, when not exact
  };

  bool same(std::int64_t x, std::int64_t y) const {
    return ((left_[static_cast<std::size_t>(x)] ^ right_[static_cast<std::size_t>(y)]) >> 32) == 0;
  }
  Split split(const Box& box);
  bool step_forward(const Box& box, std::int64_t edits, Split& found);
  bool step_backward(const Box& box, std::int64_t edits, Split& found);
  Split farthest(const Box& box, std::int64_t edits) const;

  std::span<const std::uint64_t> left_, right_;
  /// Farthest x on each diagonal, by its distance from the corner's diagonal plus `origin_`.
  std::vector<std::int64_t> forward_, backward_;
  std::int64_t origin_ = 0;
};

}  // namespace lockstep
