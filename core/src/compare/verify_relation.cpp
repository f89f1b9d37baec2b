// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>

#include "src/compare/verify_happens_before.h"

namespace lockstep::verifying {
namespace {

/// 512 MiB of clock numbers. Beyond it order is not decided rather than the machine filled.
constexpr std::uint64_t kMaxClockCells = std::uint64_t{1} << 27;

}  // namespace

void join(Clock& into, const Clock& other) {
  if (into.size() < other.size()) into.resize(other.size(), 0);
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

Clock OrderRelation::add(const Clock& begin, std::int64_t preferred) {
  const auto has_ended = [&](std::size_t c) {
    return c < begin.size() && begin[c] == chains_[c].size();
  };
  std::size_t chain = chains_.size();
  if (preferred >= 0 && has_ended(static_cast<std::size_t>(preferred))) {
    chain = static_cast<std::size_t>(preferred);
  } else {
    for (std::size_t c = 0; c < begin.size() && chain == chains_.size(); ++c) {
      if (has_ended(c)) chain = c;
    }
  }
  if (chain == chains_.size()) chains_.emplace_back();
  const auto entry = static_cast<std::uint32_t>(begin_.size());
  chain_.push_back(static_cast<std::uint32_t>(chain));
  position_.push_back(static_cast<std::uint32_t>(chains_[chain].size()));
  chains_[chain].push_back(entry);
  cells_ += begin.size();
  if (cells_ > kMaxClockCells) complete_ = false;
  begin_.push_back(complete_ ? begin : Clock{});
  Clock end = begin;
  if (end.size() <= chain) end.resize(chain + 1, 0);
  end[chain] = static_cast<std::uint32_t>(chains_[chain].size());
  return end;
}

std::uint64_t OrderRelation::predecessors(std::size_t entry) const noexcept {
  return std::accumulate(begin_[entry].begin(), begin_[entry].end(), std::uint64_t{0});
}

std::vector<std::uint32_t> OrderRelation::covers(std::size_t entry) const {
  std::vector<std::uint32_t> latest;
  visit_latest(entry, [&](std::uint32_t earlier) { latest.push_back(earlier); });
  // Latest first: what is implied at all is implied by one that is not, and that one is later.
  std::sort(latest.begin(), latest.end(), std::greater<>());
  std::vector<std::uint32_t> result;
  for (const std::uint32_t candidate : latest) {
    const bool implied = std::any_of(result.begin(), result.end(),
                                     [&](std::uint32_t later) { return before(candidate, later); });
    if (!implied) result.push_back(candidate);
  }
  return result;
}

}  // namespace lockstep::verifying
