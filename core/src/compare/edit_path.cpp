// SPDX-License-Identifier: Apache-2.0
#include "src/compare/edit_path.h"

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

/// Edits searched from both ends together once a path is known not to be proven shortest.
constexpr std::int64_t kAnchoredSearch = 512;
/// No point of the box was reached on that diagonal.
constexpr std::int64_t kUnreached = std::numeric_limits<std::int64_t>::min();

}  // namespace

// Diagonal k holds the points with x - y = k. After `edits` edits from the upper left corner the
// reachable diagonals are those within `edits` of the corner's, every second one of them. The
// search from the lower right corner mirrors this. Where both meet lies on a shortest path.
bool EditPath::step_forward(const Box& box, std::int64_t edits, Split& found) {
  const std::int64_t corner = box.x0 - box.y0, other = box.x1 - box.y1;
  const bool odd = ((corner - other) & 1) != 0;
  for (std::int64_t i = -edits; i <= edits; i += 2) {
    const std::int64_t k = corner + i;
    std::int64_t& place = forward_[static_cast<std::size_t>(origin_ + i)];
    std::int64_t x = kUnreached;
    if (i > -edits) {
      const std::int64_t from = forward_[static_cast<std::size_t>(origin_ + i - 1)];
      if (from != kUnreached && from < box.x1) x = from + 1;
    }
    if (i < edits) {
      const std::int64_t from = forward_[static_cast<std::size_t>(origin_ + i + 1)];
      if (from != kUnreached && from - k <= box.y1) x = std::max(x, from);
    }
    if (x == kUnreached) {
      place = kUnreached;
      continue;
    }
    while (x < box.x1 && x - k < box.y1 && same(x, x - k)) ++x;
    place = x;
    const std::int64_t mirrored = k - other;
    if (odd && mirrored > -edits && mirrored < edits) {
      const std::int64_t back = backward_[static_cast<std::size_t>(origin_ + mirrored)];
      if (back != kUnreached && back <= x) {
        found = Split{x, x - k, edits, true, true};
        return true;
      }
    }
  }
  return false;
}

bool EditPath::step_backward(const Box& box, std::int64_t edits, Split& found) {
  const std::int64_t corner = box.x1 - box.y1, other = box.x0 - box.y0;
  const bool odd = ((corner - other) & 1) != 0;
  for (std::int64_t i = -edits; i <= edits; i += 2) {
    const std::int64_t k = corner + i;
    std::int64_t& place = backward_[static_cast<std::size_t>(origin_ + i)];
    std::int64_t x = kUnreached;
    if (i < edits) {
      const std::int64_t from = backward_[static_cast<std::size_t>(origin_ + i + 1)];
      if (from != kUnreached && from > box.x0) x = from - 1;
    }
    if (i > -edits) {
      const std::int64_t from = backward_[static_cast<std::size_t>(origin_ + i - 1)];
      const bool inside = from != kUnreached && from - k >= box.y0;
      if (inside) x = x == kUnreached ? from : std::min(x, from);
    }
    if (x == kUnreached) {
      place = kUnreached;
      continue;
    }
    while (x > box.x0 && x - k > box.y0 && same(x - 1, x - k - 1)) --x;
    place = x;
    const std::int64_t mirrored = k - other;
    if (!odd && mirrored >= -edits && mirrored <= edits) {
      const std::int64_t front = forward_[static_cast<std::size_t>(origin_ + mirrored)];
      if (front != kUnreached && front >= x) {
        found = Split{x, x - k, edits, true, false};
        return true;
      }
    }
  }
  return false;
}

EditPath::Split EditPath::farthest(const Box& box, std::int64_t edits) const {
  Split best{box.x0, box.y0, edits, false, true};
  std::int64_t progress = 0;
  for (std::int64_t i = -edits; i <= edits; i += 2) {
    const std::int64_t front = forward_[static_cast<std::size_t>(origin_ + i)];
    if (front != kUnreached) {
      const std::int64_t y = front - (box.x0 - box.y0 + i);
      if (front - box.x0 + y - box.y0 > progress) {
        progress = front - box.x0 + y - box.y0;
        best = Split{front, y, edits, false, true};
      }
    }
    const std::int64_t back = backward_[static_cast<std::size_t>(origin_ + i)];
    if (back != kUnreached) {
      const std::int64_t y = back - (box.x1 - box.y1 + i);
      if (box.x1 - back + box.y1 - y > progress) {
        progress = box.x1 - back + box.y1 - y;
        best = Split{back, y, edits, false, false};
      }
    }
  }
  return best;
}

EditPath::Split EditPath::split(const Box& box) {
  const std::int64_t whole = (box.x1 - box.x0) + (box.y1 - box.y0);
  const std::int64_t most = std::max<std::int64_t>(1, (std::min(box.limit, whole) + 1) / 2);
  origin_ = most + 1;
  const auto room = static_cast<std::size_t>(2 * origin_ + 1);
  if (forward_.size() < room) {
    forward_.resize(room);
    backward_.resize(room);
  }
  forward_[static_cast<std::size_t>(origin_)] = box.x0;
  backward_[static_cast<std::size_t>(origin_)] = box.x1;
  Split found{};
  for (std::int64_t edits = 1; edits <= most; ++edits) {
    if (step_forward(box, edits, found) || step_backward(box, edits, found)) return found;
  }
  return farthest(box, most);
}

bool EditPath::walk(std::uint64_t limit, const Match& match) {
  const auto n = static_cast<std::int64_t>(left_.size()),
             m = static_cast<std::int64_t>(right_.size());
  const auto first_limit = static_cast<std::int64_t>(std::min<std::uint64_t>(
      limit, static_cast<std::uint64_t>(n) + static_cast<std::uint64_t>(m)));
  bool exact = true;
  std::vector<Box> open = {Box{0, n, 0, m, first_limit}};
  while (!open.empty()) {
    Box box = open.back();
    open.pop_back();
    if (box.matched) {
      match(box.x0, box.y0, box.x1 - box.x0);
      continue;
    }
    std::int64_t run = 0;
    while (box.x0 + run < box.x1 && box.y0 + run < box.y1 && same(box.x0 + run, box.y0 + run)) {
      ++run;
    }
    if (run > 0) match(box.x0, box.y0, run);
    box.x0 += run;
    box.y0 += run;
    run = 0;
    while (box.x1 - run > box.x0 && box.y1 - run > box.y0 &&
           same(box.x1 - run - 1, box.y1 - run - 1)) {
      ++run;
    }
    if (run > 0) open.push_back(Box{box.x1 - run, box.x1, box.y1 - run, box.y1, 0, true});
    box.x1 -= run;
    box.y1 -= run;
    if (box.x0 == box.x1 || box.y0 == box.y1) continue;

    const Split at = split(box);
    Box before{box.x0, at.x, box.y0, at.y, box.limit};
    Box after{at.x, box.x1, at.y, box.y1, box.limit};
    if (!at.exact) {
      exact = false;
      // The side that was searched is known to be that near; the other side is searched anew.
      (at.forward ? before : after).limit = 2 * at.edits;
      (at.forward ? after : before).limit = kAnchoredSearch;
    }
    open.push_back(after);
    open.push_back(before);
  }
  return exact;
}

}  // namespace lockstep
