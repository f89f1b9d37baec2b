// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace.h>

#include <gmock/gmock.h>

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LaunchTraceEntry kernel(const std::string& name) {
  LaunchTraceEntry entry;
  entry.name = name;
  entry.grid_x = entry.grid_y = entry.grid_z = 1;
  entry.block_x = 32, entry.block_y = entry.block_z = 1;
  return entry;
}

LaunchTraceEntry graph_launch(std::int32_t graph, std::uint32_t stream) {
  LaunchTraceEntry entry;
  entry.kind = OperationKind::kGraphLaunch;
  entry.name = "cuGraphLaunch";
  entry.graph = graph;
  entry.graph_version = 1;
  entry.stream_index = stream;
  return entry;
}

GraphDefinition graph(const std::vector<std::string>& names,
                      std::vector<std::pair<std::uint32_t, std::uint32_t>> edges) {
  GraphDefinition result;
  result.graph = 0;
  result.version = 1;
  for (const std::string& name : names) result.nodes.push_back(kernel(name));
  result.edges = std::move(edges);
  return result;
}

std::vector<std::string> names(const std::vector<LaunchTraceEntry>& entries) {
  std::vector<std::string> result;
  for (const auto& entry : entries) result.push_back(entry.name);
  return result;
}

std::vector<std::uint32_t> branches(const std::vector<LaunchTraceEntry>& entries) {
  std::vector<std::uint32_t> result;
  for (const auto& entry : entries) result.push_back(entry.branch);
  return result;
}

TEST(ExpandGraph, FollowsEdgesWithTiesByCreation) {
  const auto entries =
      expand_graph(graph({"d", "a", "b", "c"}, {{1, 2}, {1, 3}, {2, 0}, {3, 0}}), {});
  EXPECT_THAT(names(entries), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(branches(entries), ElementsAre(0, 0, 1, 0));
}

TEST(ExpandGraph, TakesStreamAndLaunchFromTheLaunch) {
  LaunchTraceEntry launch = graph_launch(0, 5);
  launch.launch = 3;
  launch.sequence = 17;
  launch.device = 2;
  const auto entries = expand_graph(graph({"a"}, {}), launch);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].stream_index, 5u);
  EXPECT_EQ(entries[0].launch, 3u);
  EXPECT_EQ(entries[0].sequence, 17u);
  EXPECT_EQ(entries[0].device, 2);
  EXPECT_EQ(entries[0].graph, 0);
  EXPECT_EQ(entries[0].graph_version, 1u);
  EXPECT_EQ(entries[0].node, 0);
  EXPECT_TRUE(entries[0].has(EntryFlag::kReplayed));
  EXPECT_EQ(entries[0].semantic_hash, semantic_hash(kernel("a")));
}

TEST(ExpandGraph, DisabledNodesOrderButDoNothing) {
  GraphDefinition definition = graph({"last", "off", "first"}, {{2, 1}, {1, 0}});
  definition.nodes[1].set(EntryFlag::kDisabled);
  EXPECT_THAT(names(expand_graph(definition, {})), ElementsAre("first", "last"));
}

TEST(ExpandGraph, IndependentNodesAreChainsOfTheirOwn) {
  EXPECT_THAT(branches(expand_graph(graph({"a", "b", "c"}, {{0, 2}}), {})), ElementsAre(0, 1, 0));
}

TEST(ExpandGraph, RefusesCyclesAndMissingNodes) {
  try {
    expand_graph(graph({"a", "b"}, {{0, 1}, {1, 0}}), {});
    FAIL() << "a cycle was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("cycle"));
  }
  try {
    expand_graph(graph({"a"}, {{0, 7}}), {});
    FAIL() << "an edge to nowhere was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[0,7]"));
  }
}

TEST(ExpandGraph, HoldsALongChainWithoutRecursion) {
  GraphDefinition definition;
  for (std::uint32_t i = 0; i < 100000; ++i) {
    definition.nodes.push_back(kernel("k"));
    if (i > 0) definition.edges.emplace_back(i - 1, i);
  }
  const auto entries = expand_graph(definition, {});
  ASSERT_EQ(entries.size(), 100000u);
  EXPECT_EQ(entries.back().branch, 0u);
}

Trace small_trace() {
  Trace trace;
  trace.graphs[{0, 1}] = graph({"x", "y"}, {{0, 1}});
  trace.entries.push_back(kernel("plain"));
  trace.entries.push_back(kernel("captured"));
  trace.entries.back().set(EntryFlag::kCaptured);
  trace.entries.push_back(kernel("failed"));
  trace.entries.back().set(EntryFlag::kFailed);
  trace.entries.push_back(kernel("internal"));
  trace.entries.back().set(EntryFlag::kInternal);
  LaunchTraceEntry empty;
  empty.kind = OperationKind::kMemcpy;
  empty.name = "empty";
  empty.memcpy_kind = MemcpyKind::kHtoD;
  trace.entries.push_back(empty);
  trace.entries.push_back(graph_launch(0, 1));
  trace.entries.push_back(graph_launch(9, 1));
  LaunchTraceEntry mark;
  mark.kind = OperationKind::kMark;
  mark.name = "mark";
  trace.entries.push_back(mark);
  LaunchTraceEntry opaque;
  opaque.kind = OperationKind::kOpaque;
  opaque.name = "opaque";
  trace.entries.push_back(opaque);
  trace.entries.push_back(graph_launch(0, 2));
  return trace;
}

TEST(View, ExecutedHoldsWhatRan) {
  const auto entries = view(small_trace());
  EXPECT_THAT(names(entries), ElementsAre("plain", "x", "y", "cuGraphLaunch", "opaque", "x", "y"));
  EXPECT_EQ(entries[1].launch, 0u);
  EXPECT_EQ(entries[5].launch, 2u);
  EXPECT_EQ(entries[5].stream_index, 2u);
}

TEST(View, EnqueuedIsFileOrder) {
  ViewOptions options;
  options.kind = ViewOptions::Kind::kEnqueued;
  EXPECT_THAT(names(view(small_trace(), options)),
              ElementsAre("plain", "captured", "failed", "internal", "empty", "cuGraphLaunch",
                          "cuGraphLaunch", "opaque", "cuGraphLaunch"));
  options.core_kinds_only = false;
  EXPECT_EQ(view(small_trace(), options).size(), small_trace().entries.size());
}

TEST(View, NamedKindsStandAlone) {
  ViewOptions options;
  options.kinds = {OperationKind::kMark};
  // The launch of an undefined graph stays whatever was asked for.
  EXPECT_THAT(names(view(small_trace(), options)), ElementsAre("cuGraphLaunch", "mark"));
}

}  // namespace
}  // namespace lockstep
