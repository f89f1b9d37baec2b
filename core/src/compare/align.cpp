// SPDX-License-Identifier: Apache-2.0
#include "src/compare/align.h"

#include <lockstep/error.h>

#include <algorithm>
#include <limits>

#include "src/compare/edit_path.h"

namespace lockstep {
namespace {

using Keys = std::vector<std::uint64_t>;

bool same_key(std::uint64_t a, std::uint64_t b) { return a == b && a != kNeverEqual; }

/// Open addressing over keys; the slot of a key serves as its short number.
class KeyTable {
 public:
  void insert(std::uint64_t key) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    std::uint64_t& slot = slots_[find(key)];
    if (slot == kNeverEqual) {
      slot = key;
      ++count_;
    }
  }
  /// The key's number, or kAbsent.
  std::uint32_t number(std::uint64_t key) const {
    if (key == kNeverEqual || slots_.empty()) return kAbsent;
    const std::size_t at = find(key);
    return slots_[at] == key ? static_cast<std::uint32_t>(at) : kAbsent;
  }
  std::size_t slots() const { return slots_.size(); }

  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();

 private:
  std::size_t find(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (key * 0x9e3779b97f4a7c15u >> 20) & mask;
    while (slots_[at] != key && slots_[at] != kNeverEqual) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<std::uint64_t> old(std::max<std::size_t>(64, 2 * slots_.size()), kNeverEqual);
    old.swap(slots_);
    for (const std::uint64_t key : old) {
      if (key != kNeverEqual) slots_[find(key)] = key;
    }
  }
  std::vector<std::uint64_t> slots_;
  std::size_t count_ = 0;
};

std::uint64_t position(std::uint64_t packed) { return packed & 0xffffffffu; }

/// The middle parts of both sides, each key packed as (number, position) and those that the other
/// side does not have left out: they can match nothing, and without them the search is short.
struct Middle {
  std::uint64_t begin = 0;  ///< elements in front of both, all equal
  std::uint64_t left_end = 0, right_end = 0;
  std::size_t left_kept = 0, right_kept = 0;
};

Middle pack(Keys& left, Keys& right) {
  Middle middle;
  const std::size_t shorter = std::min(left.size(), right.size());
  std::size_t prefix = 0;
  while (prefix < shorter && same_key(left[prefix], right[prefix])) ++prefix;
  std::size_t suffix = 0;
  while (suffix < shorter - prefix &&
         same_key(left[left.size() - 1 - suffix], right[right.size() - 1 - suffix])) {
    ++suffix;
  }
  middle.begin = prefix;
  middle.left_end = left.size() - suffix;
  middle.right_end = right.size() - suffix;
  if (std::max(left.size(), right.size()) >= std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::kNotSupported,
                "cannot align traces of more than 4294967294 entries; compare slices of them");
  }
  if (middle.left_end == prefix || middle.right_end == prefix) return middle;

  KeyTable table;
  for (std::size_t i = prefix; i < middle.left_end; ++i) {
    if (left[i] != kNeverEqual) table.insert(left[i]);
  }
  std::vector<bool> on_right(table.slots(), false);
  for (std::size_t i = prefix; i < middle.right_end; ++i) {
    const std::uint32_t number = table.number(right[i]);
    if (number == KeyTable::kAbsent) continue;
    on_right[number] = true;
    right[prefix + middle.right_kept++] = std::uint64_t{number} << 32 | i;
  }
  for (std::size_t i = prefix; i < middle.left_end; ++i) {
    const std::uint32_t number = table.number(left[i]);
    if (number == KeyTable::kAbsent || !on_right[number]) continue;
    left[prefix + middle.left_kept++] = std::uint64_t{number} << 32 | i;
  }
  return middle;
}

/// A stretch of packed elements without a match.
struct Gap {
  std::uint64_t x0, x1, y0, y1;
};

/// Of the equally short paths, the one whose insertions and deletions come as late as possible:
/// repetitions are then reported at their end, as people write them.
void slide_late(std::vector<Gap>& gaps, std::span<const std::uint64_t> left,
                std::span<const std::uint64_t> right) {
  const auto equal = [](std::uint64_t a, std::uint64_t b) { return ((a ^ b) >> 32) == 0; };
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    Gap& gap = gaps[i];
    const std::uint64_t x_end = i + 1 < gaps.size() ? gaps[i + 1].x0 : left.size();
    const std::uint64_t y_end = i + 1 < gaps.size() ? gaps[i + 1].y0 : right.size();
    const bool last = i + 1 == gaps.size();
    const bool insertion = gap.x0 == gap.x1, deletion = gap.y0 == gap.y1;
    if (insertion == deletion) continue;
    while (gap.x1 < x_end && gap.y1 < y_end && (last || gap.x1 + 1 < x_end)) {
      if (insertion && !equal(right[gap.y0], right[gap.y1])) break;
      if (deletion && !equal(left[gap.x0], left[gap.x1])) break;
      ++gap.x0, ++gap.x1, ++gap.y0, ++gap.y1;
    }
  }
}

void add_change(std::vector<DiffChange>& changes, std::uint64_t x0, std::uint64_t x1,
                std::uint64_t y0, std::uint64_t y1) {
  if (x0 == x1 && y0 == y1) return;
  DiffChange change;
  change.kind = x0 == x1   ? DiffChange::Kind::kInsert
                : y0 == y1 ? DiffChange::Kind::kDelete
                           : DiffChange::Kind::kReplace;
  change.left_begin = x0, change.left_end = x1;
  change.right_begin = y0, change.right_end = y1;
  changes.push_back(change);
}

}  // namespace

Alignment align_in_place(Keys& left, Keys& right, std::uint64_t exact_edit_distance) {
  Alignment result;
  const Middle middle = pack(left, right);
  const std::uint64_t suffix = left.size() - middle.left_end;
  const std::span packed_left(left.data() + middle.begin, middle.left_kept);
  const std::span packed_right(right.data() + middle.begin, middle.right_kept);

  std::vector<Gap> gaps;
  std::uint64_t x = 0, y = 0;
  const auto add_gap = [&](std::uint64_t to_x, std::uint64_t to_y) {
    if (to_x != x || to_y != y) gaps.push_back(Gap{x, to_x, y, to_y});
  };
  EditPath path(packed_left, packed_right);
  result.exact = path.walk(
      exact_edit_distance, [&](std::int64_t at_x, std::int64_t at_y, std::int64_t length) {
        add_gap(static_cast<std::uint64_t>(at_x), static_cast<std::uint64_t>(at_y));
        x = static_cast<std::uint64_t>(at_x + length);
        y = static_cast<std::uint64_t>(at_y + length);
      });
  add_gap(packed_left.size(), packed_right.size());
  slide_late(gaps, packed_left, packed_right);

  // Back to positions: what was left out shows as a hole between two matches.
  result.matched = middle.begin + suffix;
  std::uint64_t left_next = middle.begin, right_next = middle.begin;
  const auto match_until = [&](std::uint64_t to_x, std::uint64_t to_y) {
    for (; x < to_x && y < to_y; ++x, ++y) {
      const std::uint64_t at_left = position(packed_left[x]);
      const std::uint64_t at_right = position(packed_right[y]);
      add_change(result.changes, left_next, at_left, right_next, at_right);
      left_next = at_left + 1;
      right_next = at_right + 1;
      ++result.matched;
    }
  };
  x = y = 0;
  for (const Gap& gap : gaps) {
    match_until(gap.x0, gap.y0);
    x = gap.x1;
    y = gap.y1;
  }
  match_until(packed_left.size(), packed_right.size());
  add_change(result.changes, left_next, middle.left_end, right_next, middle.right_end);
  return result;
}

std::vector<DiffChange> align(const Keys& left, const Keys& right,
                              std::uint64_t exact_edit_distance, bool* exact) {
  Keys left_copy = left, right_copy = right;
  Alignment alignment = align_in_place(left_copy, right_copy, exact_edit_distance);
  if (exact != nullptr) *exact = alignment.exact;
  return std::move(alignment.changes);
}

}  // namespace lockstep
