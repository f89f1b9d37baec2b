// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "src/compare/verify_happens_before.h"

/// \file
/// Which entry of replay stands for which entry of eager. Many entries may be equal, so a graph is
/// right when there is *any* one-to-one matching of equal entries that keeps eager's order.
namespace lockstep::verifying {

/// By position in the eager view: position in the replay view.
using Matching = std::vector<std::uint32_t>;

/// An order of eager that a matching does not find in replay.
struct BrokenOrder {
  std::uint32_t first = 0, second = 0;  ///< positions in the eager view
  bool programmatic = false;            ///< replay has it as a programmatic edge only
};

/// Orders of eager that replay lacks, those of the earliest entries first; at most `limit` of them.
std::vector<BrokenOrder> broken_orders(const OrderedView& eager, const OrderedView& replay,
                                       const Matching& matching, std::size_t limit);

struct ExtraOrders {
  std::uint64_t count = 0;              ///< pairs that no other pair implies
  std::uint32_t first = 0, second = 0;  ///< one of them, positions in the eager view
};
/// Orders of replay that eager does not guarantee.
ExtraOrders extra_orders(const OrderedView& eager, const OrderedView& replay,
                         const Matching& matching);

/// The k-th entry of each hash for the k-th one: as the work was created (a captured graph's nodes
/// are in the order of their capture), or as it stands in the views. Hashes agree as multisets.
Matching match_by_creation(const OrderedView& eager, const OrderedView& replay);
Matching match_by_position(const OrderedView& eager, const OrderedView& replay);

enum class SearchResult {
  kFound,
  kImpossible,  ///< every matching was ruled out
  kUndecided,   ///< the bound was reached: nothing may be concluded
};

struct SearchOptions {
  bool arguments = false;           ///< scalars and the bijection of buffers have to hold too
  std::uint64_t bound = 4'000'000;  ///< candidates looked at, over both passes
};

/// Looks for a matching that keeps eager's order. First among entries that are alike in all that
/// comes before and after them, which finds it at once where both sides have the same order; then
/// among all equal entries, by backtracking.
SearchResult search_matching(const OrderedView& eager, const OrderedView& replay,
                             const SearchOptions& options, Matching& matching);

}  // namespace lockstep::verifying
