// SPDX-License-Identifier: Apache-2.0
#include "src/compare/verify_matching.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace lockstep::verifying {
namespace {

Matching match_in(const OrderedView& eager, const std::vector<std::uint32_t>& eager_order,
                  const OrderedView& replay, const std::vector<std::uint32_t>& replay_order) {
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_hash;
  for (const std::uint32_t position : replay_order) {
    by_hash[replay.entries[position].semantic_hash].push_back(position);
  }
  std::unordered_map<std::uint64_t, std::size_t> used;
  Matching matching(eager.entries.size());
  for (const std::uint32_t position : eager_order) {
    const std::uint64_t hash = eager.entries[position].semantic_hash;
    matching[position] = by_hash[hash][used[hash]++];
  }
  return matching;
}

std::vector<std::uint32_t> all_positions(const OrderedView& view) {
  std::vector<std::uint32_t> order(view.entries.size());
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

}  // namespace

std::vector<BrokenOrder> broken_orders(const OrderedView& eager, const OrderedView& replay,
                                       const Matching& matching, std::size_t limit) {
  std::vector<BrokenOrder> result;
  for (std::uint32_t second = 0; second < matching.size() && result.size() < limit; ++second) {
    const std::size_t before = result.size();
    eager.strong.visit_latest(second, [&](std::uint32_t first) {
      if (replay.strong.before(matching[first], matching[second])) return;
      result.push_back({first, second, replay.weak().before(matching[first], matching[second])});
    });
    if (!eager.has_programmatic) continue;
    eager.weak().visit_latest(second, [&](std::uint32_t first) {
      if (replay.weak().before(matching[first], matching[second])) return;
      const bool known =
          std::any_of(result.begin() + static_cast<std::ptrdiff_t>(before), result.end(),
                      [&](const BrokenOrder& broken) { return broken.first == first; });
      if (!known) result.push_back({first, second, false});
    });
  }
  if (result.size() > limit) result.resize(limit);
  return result;
}

ExtraOrders extra_orders(const OrderedView& eager, const OrderedView& replay,
                         const Matching& matching) {
  std::vector<std::uint32_t> to_eager(matching.size());
  for (std::uint32_t i = 0; i < matching.size(); ++i) to_eager[matching[i]] = i;
  ExtraOrders extra;
  for (const std::uint32_t second : all_positions(replay)) {
    for (const std::uint32_t first : replay.strong.covers(second)) {
      if (eager.strong.before(to_eager[first], to_eager[second])) continue;
      if (extra.count++ == 0) {
        extra.first = to_eager[first];
        extra.second = to_eager[second];
      }
    }
  }
  return extra;
}

Matching match_by_creation(const OrderedView& eager, const OrderedView& replay) {
  return match_in(eager, eager.creation, replay, replay.creation);
}

Matching match_by_position(const OrderedView& eager, const OrderedView& replay) {
  return match_in(eager, all_positions(eager), replay, all_positions(replay));
}

}  // namespace lockstep::verifying
