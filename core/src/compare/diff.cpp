// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_diff.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "src/compare/align.h"
#include "src/compare/diff_keys.h"

namespace lockstep {
namespace {

/// Pairs of streams examined for likeness; above that many, streams pair in first-seen order.
constexpr std::size_t kMostStreamPairs = 4096;

using Positions = std::vector<std::uint64_t>;

struct StreamPart {
  std::uint32_t stream = 0;
  Positions positions;  ///< in the view
  std::vector<std::uint64_t> keys;
};

std::vector<StreamPart> by_stream(const KeySequence& sequence) {
  std::map<std::uint32_t, std::size_t> place;
  std::vector<StreamPart> parts;
  for (std::size_t i = 0; i < sequence.keys.size(); ++i) {
    const auto [found, fresh] = place.emplace(sequence.streams[i], parts.size());
    if (fresh) parts.emplace_back().stream = sequence.streams[i];
    parts[found->second].positions.push_back(i);
    parts[found->second].keys.push_back(sequence.keys[i]);
  }
  return parts;
}

std::uint64_t common_keys(const std::vector<std::uint64_t>& a,
                          const std::vector<std::uint64_t>& b) {
  std::uint64_t common = 0;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    if (*x == *y) {
      common += *x != kNeverEqual ? 1 : 0;
      ++x, ++y;
    } else {
      *x < *y ? ++x : ++y;
    }
  }
  return common;
}

/// A bijection of streams: those with the same work first, then the most alike, then the rest in
/// first-seen order. -1 stands for a stream without a partner.
std::vector<int> pair_streams(const std::vector<StreamPart>& left,
                              const std::vector<StreamPart>& right) {
  std::vector<int> partner(left.size(), -1);
  std::vector<bool> taken(right.size(), false);
  const auto pair = [&](std::size_t l, std::size_t r) {
    partner[l] = static_cast<int>(r);
    taken[r] = true;
  };
  std::map<std::vector<std::uint64_t>, std::vector<std::size_t>> same_work;
  for (std::size_t r = right.size(); r-- > 0;) same_work[right[r].keys].push_back(r);
  for (std::size_t l = 0; l < left.size(); ++l) {
    const auto found = same_work.find(left[l].keys);
    if (found == same_work.end() || found->second.empty()) continue;
    pair(l, found->second.back());
    found->second.pop_back();
  }
  const auto open_left = std::count(partner.begin(), partner.end(), -1);
  const auto open_right = std::count(taken.begin(), taken.end(), false);
  if (static_cast<std::size_t>(open_left) * static_cast<std::size_t>(open_right) <=
      kMostStreamPairs) {
    std::vector<std::vector<std::uint64_t>> sorted_right(right.size());
    for (std::size_t r = 0; r < right.size(); ++r) {
      if (taken[r]) continue;
      sorted_right[r] = right[r].keys;
      std::sort(sorted_right[r].begin(), sorted_right[r].end());
    }
    std::vector<std::tuple<std::uint64_t, std::size_t, std::size_t>> likeness;
    for (std::size_t l = 0; l < left.size(); ++l) {
      if (partner[l] >= 0) continue;
      std::vector<std::uint64_t> sorted = left[l].keys;
      std::sort(sorted.begin(), sorted.end());
      for (std::size_t r = 0; r < right.size(); ++r) {
        const std::uint64_t common = taken[r] ? 0 : common_keys(sorted, sorted_right[r]);
        if (common > 0) likeness.emplace_back(common, l, r);
      }
    }
    std::sort(likeness.begin(), likeness.end(), [](const auto& a, const auto& b) {
      if (std::get<0>(a) != std::get<0>(b)) return std::get<0>(a) > std::get<0>(b);
      return std::tie(std::get<1>(a), std::get<2>(a)) < std::tie(std::get<1>(b), std::get<2>(b));
    });
    for (const auto& [common, l, r] : likeness) {
      if (partner[l] < 0 && !taken[r]) pair(l, r);
    }
  }
  std::size_t r = 0;
  for (std::size_t l = 0; l < left.size(); ++l) {
    if (partner[l] >= 0) continue;
    while (r < right.size() && taken[r]) ++r;
    if (r < right.size()) pair(l, r);
  }
  return partner;
}

/// Positions of one side in [begin, end) of a stream, split where the view holds others between.
std::vector<std::pair<std::uint64_t, std::uint64_t>> stretches(const Positions& positions,
                                                               std::uint64_t begin,
                                                               std::uint64_t end) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> result;
  for (std::uint64_t i = begin; i < end; ++i) {
    const std::uint64_t at = positions[i];
    if (!result.empty() && result.back().second == at) {
      ++result.back().second;
    } else {
      result.emplace_back(at, at + 1);
    }
  }
  return result;
}

/// A change of one stream in places of the view: its stretches pair off one by one, and what one
/// side has more of stands as deletion or insertion.
void add_stream_change(const DiffChange& change, const Positions& left, const Positions& right,
                       std::vector<DiffChange>& into) {
  const auto a = stretches(left, change.left_begin, change.left_end);
  const auto b = stretches(right, change.right_begin, change.right_end);
  const auto before = [](const Positions& positions, std::uint64_t begin) {
    if (begin < positions.size()) return positions[begin];
    return positions.empty() ? std::uint64_t{0} : positions.back() + 1;
  };
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    DiffChange part;
    part.left_begin = part.left_end = before(left, change.left_end);
    part.right_begin = part.right_end = before(right, change.right_end);
    if (i < a.size()) std::tie(part.left_begin, part.left_end) = a[i];
    if (i < b.size()) std::tie(part.right_begin, part.right_end) = b[i];
    part.kind = i >= a.size()   ? DiffChange::Kind::kInsert
                : i >= b.size() ? DiffChange::Kind::kDelete
                                : DiffChange::Kind::kReplace;
    into.push_back(part);
  }
}

Alignment align_streams(const KeySequence& left, const KeySequence& right,
                        std::uint64_t exact_edit_distance) {
  Alignment result;
  std::vector<StreamPart> lefts = by_stream(left), rights = by_stream(right);
  const std::vector<int> partner = pair_streams(lefts, rights);
  std::vector<bool> used(rights.size(), false);
  const auto align_pair = [&](StreamPart& a, StreamPart& b) {
    const Alignment part = align_in_place(a.keys, b.keys, exact_edit_distance);
    result.matched += part.matched;
    result.exact = result.exact && part.exact;
    for (const DiffChange& change : part.changes) {
      add_stream_change(change, a.positions, b.positions, result.changes);
    }
  };
  for (std::size_t l = 0; l < lefts.size(); ++l) {
    if (partner[l] >= 0) used[static_cast<std::size_t>(partner[l])] = true;
    StreamPart none;
    align_pair(lefts[l], partner[l] < 0 ? none : rights[static_cast<std::size_t>(partner[l])]);
  }
  for (std::size_t r = 0; r < rights.size(); ++r) {
    StreamPart none;
    if (!used[r]) align_pair(none, rights[r]);
  }
  std::sort(result.changes.begin(), result.changes.end(),
            [](const DiffChange& a, const DiffChange& b) {
              return std::tie(a.left_begin, a.right_begin, a.left_end, a.right_end) <
                     std::tie(b.left_begin, b.right_begin, b.left_end, b.right_end);
            });
  return result;
}

DiffReport compare(KeySequence& left, KeySequence& right, const DiffOptions& options) {
  DiffReport report;
  report.left_entries = left.keys.size();
  report.right_entries = right.keys.size();
  report.left_truncated = left.truncated;
  report.right_truncated = right.truncated;
  for (const Normaliser& normaliser : options.normalisers) {
    report.normalisers.push_back(normaliser.name);
  }
  Alignment alignment = options.per_stream
                            ? align_streams(left, right, options.exact_edit_distance)
                            : align_in_place(left.keys, right.keys, options.exact_edit_distance);
  report.matched = alignment.matched;
  report.matched_exact = alignment.exact;
  report.changes = std::move(alignment.changes);
  for (const DiffChange& change : report.changes) {
    const std::uint64_t at = change.kind == DiffChange::Kind::kInsert ? change.right_begin
                             : change.kind == DiffChange::Kind::kDelete
                                 ? change.left_begin
                                 : std::min(change.left_begin, change.right_begin);
    report.first_difference = std::min(report.first_difference.value_or(at), at);
  }
  report.equal = report.changes.empty() && !left.truncated && !right.truncated;
  return report;
}

}  // namespace

DiffReport diff(const Trace& left, const Trace& right, const DiffOptions& options) {
  KeySequence left_keys = collect_keys(left, options), right_keys = collect_keys(right, options);
  return compare(left_keys, right_keys, options);
}

DiffReport diff_files(const std::filesystem::path& left, const std::filesystem::path& right,
                      const DiffOptions& options) {
  KeySequence left_keys = collect_keys(left, options), right_keys = collect_keys(right, options);
  return compare(left_keys, right_keys, options);
}

}  // namespace lockstep
