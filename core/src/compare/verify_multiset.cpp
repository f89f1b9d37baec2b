// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_diff.h>

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <unordered_map>

#include "src/compare/verify_compare.h"
#include "src/trace/entry_rules.h"

namespace lockstep::verifying {
namespace {

constexpr std::uint64_t kExactEditDistance = 10000;

std::string plural(std::uint64_t count, std::string_view word) {
  static const std::map<std::string_view, std::string_view> plurals = {
      {"kernel", "kernels"},
      {"memcpy", "memcpys"},
      {"memset", "memsets"},
      {"graph_launch", "undefined graph launches"},
      {"opaque", "opaque entries"}};
  if (count == 1) return fmt::format("1 {}", word);
  const auto found = plurals.find(word);
  return fmt::format("{} {}", count, found == plurals.end() ? word : found->second);
}

std::string dimensions(const Dim3& size) { return fmt::format("{}×{}×{}", size.x, size.y, size.z); }

/// The fields in which two entries of one kind differ, "grid 4×1×1 in eager, 8×1×1 in replay; …".
std::string field_differences(const LaunchTraceEntry& eager, const LaunchTraceEntry& replay) {
  std::string text;
  const auto field = [&](std::string_view name, const std::string& left, const std::string& right) {
    if (left == right) return;
    if (!text.empty()) text += "; ";
    text += fmt::format("{} {} in eager, {} in replay", name, left, right);
  };
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  switch (eager.kind) {
    case OperationKind::kKernelLaunch:
      field("name", display_name(eager.name), display_name(replay.name));
      if (text.empty()) field("mangled name", eager.name, replay.name);
      field("grid", dimensions(eager.grid()), dimensions(replay.grid()));
      field("block", dimensions(eager.block()), dimensions(replay.block()));
      field("shared memory", number(eager.shared_mem_bytes) + " B",
            number(replay.shared_mem_bytes) + " B");
      field("cluster", dimensions({eager.cluster_x, eager.cluster_y, eager.cluster_z}),
            dimensions({replay.cluster_x, replay.cluster_y, replay.cluster_z}));
      field("cooperative", eager.cooperative ? "yes" : "no", replay.cooperative ? "yes" : "no");
      break;
    case OperationKind::kMemcpy:
      field("direction", std::string(to_string(eager.memcpy_kind)),
            std::string(to_string(replay.memcpy_kind)));
      [[fallthrough]];
    case OperationKind::kMemset: {
      const Extent left = effective_extent(eager), right = effective_extent(replay);
      field("bytes", number(left.width * left.height * left.depth),
            number(right.width * right.height * right.depth));
      field("extent", fmt::format("{}×{}×{}", left.width, left.height, left.depth),
            fmt::format("{}×{}×{}", right.width, right.height, right.depth));
      if (eager.kind == OperationKind::kMemset) {
        field("value", fmt::format("0x{:0{}x}", eager.memset_value, 2 * eager.memset_value_size),
              fmt::format("0x{:0{}x}", replay.memset_value, 2 * replay.memset_value_size));
      }
      break;
    }
    default:
      break;
  }
  return text.empty() ? "they differ" : text;
}

/// `*` stands for any characters, `?` for one; brackets, which kernel names are full of, for
/// themselves.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

using HashCounts = std::unordered_map<std::uint64_t, std::int64_t>;

std::vector<std::uint64_t> hashes(const OrderedView& view) {
  std::vector<std::uint64_t> result;
  result.reserve(view.entries.size());
  for (const LaunchTraceEntry& entry : view.entries) result.push_back(entry.semantic_hash);
  return result;
}

/// By hash: how many more eager has than replay.
HashCounts surplus_of(const OrderedView& eager, const OrderedView& replay) {
  HashCounts surplus;
  for (const LaunchTraceEntry& entry : eager.entries) ++surplus[entry.semantic_hash];
  for (const LaunchTraceEntry& entry : replay.entries) --surplus[entry.semantic_hash];
  return surplus;
}

struct Unmatched {
  std::vector<std::uint32_t> eager, replay;  ///< of one changed stretch, in order
};

/// Entries that only one side has. Alignment says which of several equal ones it is; entries that
/// only stand elsewhere are no matter of multisets.
std::vector<Unmatched> unmatched_entries(const OrderedView& eager, const OrderedView& replay) {
  HashCounts surplus = surplus_of(eager, replay);
  bool exact = true;
  std::vector<Unmatched> stretches;
  for (const DiffChange& change :
       align(hashes(eager), hashes(replay), kExactEditDistance, &exact)) {
    Unmatched stretch;
    for (std::uint64_t i = change.left_begin; i < change.left_end; ++i) {
      std::int64_t& left_over = surplus[eager.entries[i].semantic_hash];
      if (left_over > 0) {
        --left_over;
        stretch.eager.push_back(static_cast<std::uint32_t>(i));
      }
    }
    for (std::uint64_t i = change.right_begin; i < change.right_end; ++i) {
      std::int64_t& left_over = surplus[replay.entries[i].semantic_hash];
      if (left_over < 0) {
        ++left_over;
        stretch.replay.push_back(static_cast<std::uint32_t>(i));
      }
    }
    stretches.push_back(std::move(stretch));
  }
  return stretches;
}

/// Takes pairs that are one entry with other fields, those of the same name first.
std::vector<std::pair<std::uint32_t, std::uint32_t>> take_pairs(const OrderedView& eager,
                                                                const OrderedView& replay,
                                                                Unmatched& stretch,
                                                                bool same_name) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (auto left = stretch.eager.begin(); left != stretch.eager.end();) {
    const LaunchTraceEntry& wanted = eager.entries[*left];
    const auto right =
        std::find_if(stretch.replay.begin(), stretch.replay.end(), [&](std::uint32_t candidate) {
          const LaunchTraceEntry& entry = replay.entries[candidate];
          return entry.kind == wanted.kind && (!same_name || entry.name == wanted.name);
        });
    if (right == stretch.replay.end() || !is_core_kind(wanted.kind)) {
      ++left;
      continue;
    }
    pairs.emplace_back(*left, *right);
    stretch.replay.erase(right);
    left = stretch.eager.erase(left);
  }
  return pairs;
}

/// Where an entry stands that replay launched by itself and not by a graph.
std::string beside_graph(const OrderedView& replay, std::uint32_t position) {
  if (replay.entries[position].has(EntryFlag::kReplayed)) return {};
  const auto replayed = [](const LaunchTraceEntry& entry) {
    return entry.has(EntryFlag::kReplayed);
  };
  const auto first = std::find_if(replay.entries.begin(), replay.entries.end(), replayed);
  if (first == replay.entries.end()) return {};
  return position < static_cast<std::size_t>(first - replay.entries.begin())
             ? ", launched before the graph"
             : ", launched beside the graph";
}

void list_findings(std::vector<VerifyFinding>& found, std::vector<VerifyFinding>& findings) {
  const std::size_t listed = std::min(found.size(), kMaxListed);
  for (std::size_t i = 0; i < listed; ++i) findings.push_back(std::move(found[i]));
  if (found.size() > listed) {
    VerifyFinding more;
    more.level = VerifyLevel::kMultiset;
    more.what = "more";
    more.message = fmt::format("{} more differences of this level", found.size() - listed);
    findings.push_back(std::move(more));
  }
}

}  // namespace

VerifyFinding make_finding(VerifyLevel level, std::string what, std::string message,
                           const OrderedView& eager, std::ptrdiff_t eager_index,
                           const OrderedView& replay, std::ptrdiff_t replay_index) {
  VerifyFinding finding;
  finding.level = level;
  finding.what = std::move(what);
  finding.message = std::move(message);
  if (eager_index >= 0) {
    finding.eager_index = static_cast<std::uint64_t>(eager_index);
    finding.eager = eager.entries[*finding.eager_index];
  }
  if (replay_index >= 0) {
    finding.replay_index = static_cast<std::uint64_t>(replay_index);
    finding.replay = replay.entries[*finding.replay_index];
  }
  return finding;
}

void sort_findings(std::vector<VerifyFinding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const VerifyFinding& a, const VerifyFinding& b) {
                     return std::pair(a.note, a.level) < std::pair(b.note, b.level);
                   });
}

std::string short_name(const LaunchTraceEntry& entry) {
  if (entry.kind == OperationKind::kKernelLaunch) return "kernel " + display_name(entry.name, 120);
  return describe(entry, 120);
}

std::vector<std::size_t> allowed_extras(const OrderedView& eager, const OrderedView& replay,
                                        const std::vector<std::string>& patterns,
                                        std::vector<VerifyFinding>& findings) {
  std::vector<std::size_t> left_out;
  if (patterns.empty()) return left_out;
  HashCounts surplus = surplus_of(eager, replay);
  // Those that no graph launched come first: they are what an allow-list is for.
  for (const bool replayed : {false, true}) {
    for (std::size_t i = 0; i < replay.entries.size(); ++i) {
      const LaunchTraceEntry& entry = replay.entries[i];
      if (entry.kind != OperationKind::kKernelLaunch ||
          entry.has(EntryFlag::kReplayed) != replayed || surplus[entry.semantic_hash] >= 0) {
        continue;
      }
      const std::string shown = display_name(entry.name);
      const auto pattern =
          std::find_if(patterns.begin(), patterns.end(), [&](const std::string& text) {
            return matches(text, entry.name) || matches(text, shown);
          });
      if (pattern == patterns.end()) continue;
      ++surplus[entry.semantic_hash];
      left_out.push_back(i);
      VerifyFinding note = make_finding(
          VerifyLevel::kCounts, "allowed",
          fmt::format("replay launches {} beyond eager{}; allowed by \"{}\"", short_name(entry),
                      beside_graph(replay, static_cast<std::uint32_t>(i)), *pattern),
          eager, -1, replay, static_cast<std::ptrdiff_t>(i));
      note.note = true;
      findings.push_back(std::move(note));
    }
  }
  std::sort(left_out.begin(), left_out.end());
  return left_out;
}

MultisetResult compare_multisets(const OrderedView& eager, const OrderedView& replay,
                                 std::vector<VerifyFinding>& findings) {
  MultisetResult result;
  if (eager.entries.empty()) {
    const bool nothing = replay.entries.empty();
    findings.push_back(make_finding(
        VerifyLevel::kCounts, "empty",
        nothing ? "nothing to compare: neither eager nor replay did anything"
                : fmt::format("nothing to compare with: eager did nothing, replay did {}",
                              plural(replay.entries.size(), "operation")),
        eager, -1, replay, nothing ? -1 : 0));
    return result;
  }
  std::map<OperationKind, std::pair<std::uint64_t, std::uint64_t>> kinds;
  for (const LaunchTraceEntry& entry : eager.entries) ++kinds[entry.kind].first;
  for (const LaunchTraceEntry& entry : replay.entries) ++kinds[entry.kind].second;
  result.counts = true;
  for (const auto& [kind, count] : kinds) {
    if (count.first == count.second) continue;
    result.counts = false;
    std::string_view what = count.first > count.second ? "missing" : "extra";
    if (replay.entries.empty()) what = "empty";
    findings.push_back(make_finding(VerifyLevel::kCounts, std::string(what),
                                    fmt::format("eager has {}, replay has {}",
                                                plural(count.first, to_string(kind)), count.second),
                                    eager, -1, replay, -1));
  }

  std::vector<VerifyFinding> found;
  const auto find = [&](std::string what, const std::string& message, std::ptrdiff_t left,
                        std::ptrdiff_t right) {
    found.push_back(
        make_finding(VerifyLevel::kMultiset, std::move(what), message, eager, left, replay, right));
  };
  const auto changed = [&](const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
    for (const auto& [left, right] : pairs) {
      find("changed",
           fmt::format("{}: {}", short_name(eager.entries[left]),
                       field_differences(eager.entries[left], replay.entries[right])),
           left, right);
    }
  };
  Unmatched rest;
  for (Unmatched& stretch : unmatched_entries(eager, replay)) {
    changed(take_pairs(eager, replay, stretch, true));
    changed(take_pairs(eager, replay, stretch, false));
    rest.eager.insert(rest.eager.end(), stretch.eager.begin(), stretch.eager.end());
    rest.replay.insert(rest.replay.end(), stretch.replay.begin(), stretch.replay.end());
  }
  changed(take_pairs(eager, replay, rest, true));
  for (const std::uint32_t left : rest.eager) {
    find("missing", fmt::format("eager has it, replay has not: {}", to_string(eager.entries[left])),
         left, -1);
  }
  for (const std::uint32_t right : rest.replay) {
    find("extra",
         fmt::format("replay has it, eager has not: {}{}", to_string(replay.entries[right]),
                     beside_graph(replay, right)),
         -1, right);
  }
  const auto never_equal = [&](const OrderedView& view, bool is_eager) {
    for (std::size_t i = 0; i < view.entries.size(); ++i) {
      const LaunchTraceEntry& entry = view.entries[i];
      if (is_core_kind(entry.kind)) continue;
      const bool opaque = entry.kind == OperationKind::kOpaque;
      const auto position = static_cast<std::ptrdiff_t>(i);
      find(opaque ? "opaque" : "undefined_graph",
           fmt::format("{} cannot be compared: {}: {}", is_eager ? "eager" : "replay",
                       opaque ? "what it did could not be decoded"
                              : "the graph it launches is not defined in the trace",
                       to_string(entry)),
           is_eager ? position : -1, is_eager ? -1 : position);
    }
  };
  never_equal(eager, true);
  never_equal(replay, false);
  result.multiset = result.counts && found.empty();
  std::stable_sort(found.begin(), found.end(), [](const VerifyFinding& a, const VerifyFinding& b) {
    const auto position = [](const VerifyFinding& f) {
      return f.eager_index ? *f.eager_index : f.replay_index.value_or(0);
    };
    return position(a) < position(b);
  });
  list_findings(found, findings);
  return result;
}

}  // namespace lockstep::verifying
