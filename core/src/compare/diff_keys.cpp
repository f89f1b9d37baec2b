// SPDX-License-Identifier: Apache-2.0
#include "src/compare/diff_keys.h"

#include <lockstep/error.h>

#include <array>
#include <fmt/format.h>
#include <optional>
#include <xxhash.h>

#include "src/compare/align.h"
#include "src/trace/item_reader.h"

namespace lockstep {
namespace {

constexpr std::uintmax_t kLargeFile = std::uintmax_t{1} << 20;
constexpr std::size_t kMostKeys = std::size_t{1} << 28;
constexpr std::size_t kReservedKeys = std::size_t{1} << 24;

std::uint64_t not_reserved(std::uint64_t key) { return key == kNeverEqual ? 1 : key; }

std::uint64_t combine(std::uint64_t a, std::uint64_t b) {
  const std::array<std::uint64_t, 2> both = {a, b};
  return not_reserved(XXH3_64bits(both.data(), sizeof(both)));
}

class KeyCollector {
 public:
  KeyCollector(const DiffOptions& options, KeySequence& into)
      : options_(options), filter_(options.view), into_(into) {}

  ViewFilter& filter() { return filter_; }

  void define(const GraphDefinition& graph) { define({graph.graph, graph.version}, graph); }

  void define(ViewFilter::Key key, const GraphDefinition& graph) {
    filter_.define(key, graph);
    graph_keys_.erase(key);
  }

  void push(const LaunchTraceEntry& entry) {
    filter_.push(
        entry, [&](const LaunchTraceEntry& shown) { add(key_of(shown), shown.stream_index); },
        [&](const LaunchTraceEntry& launch, ViewFilter::Key graph) {
          const std::vector<std::uint64_t>& keys = keys_of_graph(graph);
          check_room(keys.size());
          for (const std::uint64_t key : keys) add(key, launch.stream_index);
        });
  }

 private:
  /// A small file can launch a large graph any number of times.
  void check_room(std::size_t more) const {
    if (into_.keys.size() + more <= kMostKeys) return;
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("the executed view has more than {} entries, which is what can be "
                            "compared at once; compare the enqueued view, where each launch of a "
                            "graph is one entry",
                            kMostKeys));
  }

  void add(std::uint64_t key, std::uint32_t stream) {
    into_.keys.push_back(key);
    if (options_.per_stream) into_.streams.push_back(stream);
  }

  std::uint64_t key_of(const LaunchTraceEntry& entry) {
    if (entry.kind == OperationKind::kOpaque) return kNeverEqual;
    if (entry.kind == OperationKind::kGraphLaunch) return key_of_launch(entry);
    std::uint64_t hash = entry.semantic_hash;
    if (!options_.normalisers.empty()) {
      LaunchTraceEntry normal = entry;
      for (const Normaliser& normaliser : options_.normalisers) normaliser.apply(normal);
      hash = semantic_hash(normal);
    } else if (hash == 0) {
      hash = semantic_hash(entry);
    }
    return options_.compare_arguments ? combine(hash, entry.argument_hash) : not_reserved(hash);
  }

  /// Two launches are one when their graphs do the same: the call and the graph's number are no
  /// part of it.
  std::uint64_t key_of_launch(const LaunchTraceEntry& launch) {
    const ViewFilter::Key id{launch.graph, launch.graph_version};
    const GraphDefinition* graph = filter_.definition(id);
    if (graph == nullptr) return kNeverEqual;
    std::uint64_t key = combine(static_cast<std::uint64_t>(launch.kind), graph->nodes.size());
    for (const std::uint64_t node : keys_of_graph(id)) {
      if (node == kNeverEqual) return kNeverEqual;
      key = combine(key, node);
    }
    for (const auto& [from, to] : graph->edges) {
      key = combine(key, std::uint64_t{from} << 32 | to);
    }
    return key;
  }

  const std::vector<std::uint64_t>& keys_of_graph(ViewFilter::Key id) {
    const auto found = graph_keys_.find(id);
    if (found != graph_keys_.end()) return found->second;
    std::vector<std::uint64_t> keys;
    for (const LaunchTraceEntry& node : filter_.shown_nodes(id)) keys.push_back(key_of(node));
    return graph_keys_.emplace(id, std::move(keys)).first->second;
  }

  const DiffOptions& options_;
  ViewFilter filter_;
  KeySequence& into_;
  std::map<ViewFilter::Key, std::vector<std::uint64_t>> graph_keys_;
};

/// Definitions of the whole file, for the rare one that defines a graph after its launch.
std::vector<GraphDefinition> read_definitions(const std::filesystem::path& path) {
  std::vector<GraphDefinition> result;
  ItemReader items(path, {});
  while (items.next()) {
    if (items.kind() == LineKind::kGraph) result.push_back(std::move(items.item().graph));
  }
  return result;
}

}  // namespace

KeySequence collect_keys(const Trace& trace, const DiffOptions& options) {
  KeySequence result;
  KeyCollector collector(options, result);
  for (const auto& [key, graph] : trace.graphs) collector.define(key, graph);
  for (const LaunchTraceEntry& entry : trace.entries) collector.push(entry);
  result.truncated = !trace.footer.present;
  return result;
}

KeySequence collect_keys(const std::filesystem::path& path, const DiffOptions& options) {
  KeySequence result;
  // A vector that grows holds its keys twice for a moment; pages not touched cost nothing.
  std::error_code not_a_file;
  const auto size = std::filesystem::file_size(path, not_a_file);
  if (!not_a_file && size > kLargeFile) result.keys.reserve(kReservedKeys);
  std::optional<KeyCollector> collector(std::in_place, options, result);
  ItemReader items(path, {});
  while (items.next()) {
    if (items.kind() == LineKind::kGraph) collector->define(items.item().graph);
    if (items.kind() == LineKind::kEntry) collector->push(items.item().entry);
  }
  result.truncated = items.truncated();
  if (!collector->filter().late_definition()) return result;

  KeySequence again;
  collector.emplace(options, again);
  for (const GraphDefinition& graph : read_definitions(path)) collector->define(graph);
  ItemReader second(path, {});
  while (second.next()) {
    if (second.kind() == LineKind::kEntry) collector->push(second.item().entry);
  }
  again.truncated = second.truncated();
  return again;
}

void visit_view(const std::filesystem::path& path, const ViewOptions& options,
                const std::function<bool(std::uint64_t, const LaunchTraceEntry&)>& visit) {
  ViewFilter filter(options);
  for (const GraphDefinition& graph : read_definitions(path)) filter.define(graph);
  ItemReader items(path, {});
  std::uint64_t ordinal = 0;
  bool wanted = true;
  while (wanted && items.next()) {
    if (items.kind() != LineKind::kEntry) continue;
    filter.push(items.item().entry, [&](const LaunchTraceEntry& shown) {
      if (wanted) wanted = visit(ordinal++, shown);
    });
  }
}

}  // namespace lockstep
