// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "src/compare/verify_arguments.h"
#include "src/compare/verify_matching.h"

namespace lockstep::verifying {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u ^ (b + 0x7f4a7c159e3779b9u + (a << 6) + (a >> 2));
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 29;
  return x;
}

std::uint64_t mix_sorted(std::uint64_t seed, std::vector<std::uint64_t>& values) {
  std::sort(values.begin(), values.end());
  for (const std::uint64_t value : values) seed = mix(seed, value);
  return seed;
}

/// What is known of each entry of one side before the search.
struct Shape {
  std::vector<std::uint64_t> color;  ///< equal colors may be matched: hash, and arguments if known
  std::vector<std::uint64_t> place;  ///< color, and the colors of all that is before and after
  std::vector<std::uint64_t> before, after;  ///< how many entries
};

/// Two rounds of: an entry looks like what is directly before it, looks like what is directly
/// after it. The order's covers do not depend on how it was written down.
Shape shape_of(const OrderedView& view, bool use_arguments) {
  const std::size_t count = view.entries.size();
  Shape shape;
  shape.color.resize(count);
  shape.before.resize(count);
  shape.after.assign(count, 0);
  std::vector<std::vector<std::uint32_t>> covers(count), covered(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    shape.color[i] = view.entries[i].semantic_hash;
    if (use_arguments) shape.color[i] = mix(shape.color[i], argument_signature(view.entries[i]));
    shape.before[i] = view.strong.predecessors(i);
    covers[i] = view.strong.covers(i);
    for (const std::uint32_t earlier : covers[i]) covered[earlier].push_back(i);
  }
  // Those after an entry: in each chain, from the first that the entry ends before.
  for (std::size_t c = 0; c < view.strong.chain_count(); ++c) {
    const auto& members = view.strong.members(c);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto first =
          std::partition_point(members.begin(), members.end(),
                               [&](std::uint32_t later) { return !view.strong.before(i, later); });
      shape.after[i] += static_cast<std::uint64_t>(members.end() - first);
    }
  }
  shape.place = shape.color;
  std::vector<std::uint64_t> around;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::uint64_t> down = shape.place, up = shape.place;
    for (std::size_t i = 0; i < count; ++i) {
      around.clear();
      for (const std::uint32_t earlier : covers[i]) around.push_back(down[earlier]);
      down[i] = mix_sorted(mix(down[i], 1), around);
    }
    for (std::size_t i = count; i-- > 0;) {
      around.clear();
      for (const std::uint32_t later : covered[i]) around.push_back(up[later]);
      up[i] = mix_sorted(mix(up[i], 2), around);
    }
    for (std::size_t i = 0; i < count; ++i) shape.place[i] = mix(down[i], up[i]);
  }
  return shape;
}

class Search {
 public:
  Search(const OrderedView& eager, const OrderedView& replay, bool arguments, std::uint64_t bound)
      : eager_(eager), replay_(replay), arguments_(arguments), bound_(bound) {}

  std::uint64_t steps() const noexcept { return steps_; }

  /// Candidates of an entry have the same key. `dominate`: and at least as much before and after.
  SearchResult run(const Shape& eager, const Shape& replay,
                   const std::vector<std::uint64_t>& eager_keys,
                   const std::vector<std::uint64_t>& replay_keys, bool dominate,
                   Matching& matching) {
    const std::size_t count = eager_.entries.size();
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> classes;
    for (const std::uint32_t position : replay_.creation) {
      classes[replay_keys[position]].push_back(position);
    }
    std::unordered_map<std::uint64_t, std::size_t> wanted;
    for (const std::uint64_t key : eager_keys) ++wanted[key];
    for (const auto& [key, number] : wanted) {
      const auto found = classes.find(key);
      if (found == classes.end() || found->second.size() != number) {
        return SearchResult::kImpossible;
      }
    }

    bijection_ = BufferBijection{};
    std::vector<bool> taken(count, false);
    std::vector<Level> levels(count);
    matching.assign(count, 0);
    // Entries stand in an order that agrees with the one that is guaranteed, so that everything
    // before an entry is matched when its turn comes.
    std::size_t depth = 0;
    bool entering = true;
    while (depth < count) {
      Level& level = levels[depth];
      const auto entry = static_cast<std::uint32_t>(depth);
      if (entering) {
        level.candidates.clear();
        level.next = 0;
        for (const std::uint32_t candidate : classes[eager_keys[depth]]) {
          if (++steps_ > bound_) return SearchResult::kUndecided;
          if (taken[candidate]) continue;
          if (dominate && (replay.before[candidate] < eager.before[depth] ||
                           replay.after[candidate] < eager.after[depth])) {
            continue;
          }
          if (keeps_order(entry, candidate, matching)) level.candidates.push_back(candidate);
        }
        prefer_same_chain(entry, matching, level.candidates);
      } else {
        taken[matching[depth]] = false;
        bijection_.undo(level.named);
      }
      level.named.clear();
      bool advanced = false;
      while (level.next < level.candidates.size() && !advanced) {
        if (++steps_ > bound_) return SearchResult::kUndecided;
        const std::uint32_t candidate = level.candidates[level.next++];
        if (arguments_ && !agree(entry, candidate, level.named)) continue;
        matching[depth] = candidate;
        taken[candidate] = true;
        advanced = true;
      }
      if (advanced) {
        ++depth;
        entering = true;
        continue;
      }
      if (depth == 0) return SearchResult::kImpossible;
      --depth;
      entering = false;
    }
    return SearchResult::kFound;
  }

 private:
  struct Level {
    std::vector<std::uint32_t> candidates;
    std::size_t next = 0;
    BufferBijection::Trail named;
  };

  bool keeps_order(std::uint32_t entry, std::uint32_t candidate, const Matching& matching) const {
    bool keeps = true;
    eager_.strong.visit_latest(entry, [&](std::uint32_t earlier) {
      keeps = keeps && replay_.strong.before(matching[earlier], candidate);
    });
    if (keeps && eager_.has_programmatic) {
      eager_.weak().visit_latest(entry, [&](std::uint32_t earlier) {
        keeps = keeps && replay_.weak().before(matching[earlier], candidate);
      });
    }
    return keeps;
  }

  /// Streams by bijection, where it can be had: an entry is first looked for in the chain in which
  /// the one before it in its own chain was found.
  void prefer_same_chain(std::uint32_t entry, const Matching& matching,
                         std::vector<std::uint32_t>& candidates) const {
    const std::size_t chain = eager_.strong.chain(entry);
    const std::uint32_t reach = eager_.strong.reach(entry, chain);
    if (reach == 0 || candidates.size() < 2) return;
    const std::uint32_t wanted =
        replay_.strong.chain(matching[eager_.strong.members(chain)[reach - 1]]);
    std::stable_partition(candidates.begin(), candidates.end(), [&](std::uint32_t candidate) {
      return replay_.strong.chain(candidate) == wanted;
    });
  }

  bool agree(std::uint32_t entry, std::uint32_t candidate, BufferBijection::Trail& named) {
    const auto difference =
        bijection_.unify(eager_.entries[entry], replay_.entries[candidate], &named);
    return !difference || difference->what == ArgumentDifference::What::kStruct;
  }

  const OrderedView& eager_;
  const OrderedView& replay_;
  const bool arguments_;
  const std::uint64_t bound_;
  BufferBijection bijection_;
  std::uint64_t steps_ = 0;
};

}  // namespace

SearchResult search_matching(const OrderedView& eager, const OrderedView& replay,
                             const SearchOptions& options, Matching& matching) {
  const auto known = [](const OrderedView& view) {
    return std::all_of(view.entries.begin(), view.entries.end(), has_known_arguments);
  };
  // Colors may only tell entries apart that can never be matched.
  const bool color_arguments = options.arguments && known(eager) && known(replay);
  const Shape left = shape_of(eager, color_arguments);
  const Shape right = shape_of(replay, color_arguments);
  Search search(eager, replay, options.arguments, options.bound / 2);
  if (search.run(left, right, left.place, right.place, false, matching) == SearchResult::kFound) {
    return SearchResult::kFound;
  }
  Search all(eager, replay, options.arguments,
             options.bound - std::min(options.bound, search.steps()));
  return all.run(left, right, left.color, right.color, true, matching);
}

}  // namespace lockstep::verifying
