// SPDX-License-Identifier: Apache-2.0
// Graphs of a recording against what was captured, marked ranges, and recordings of real programs.
#include <lockstep/trace_file.h>

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verify_programs.h"

namespace lockstep::testing_verify {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kTraces = std::filesystem::path(LOCKSTEP_TEST_DATA_DIR) / "traces";

LaunchTraceEntry captured(LaunchTraceEntry entry, std::int32_t graph = -1) {
  entry.set(EntryFlag::kCaptured);
  entry.graph = graph;
  entry.graph_version = graph < 0 ? 0 : 1;
  return entry;
}

LaunchTraceEntry launch(std::int32_t graph) {
  LaunchTraceEntry entry = other(OperationKind::kGraphLaunch, 0, -1, "hostGraphLaunch");
  entry.graph = graph;
  entry.graph_version = 1;
  return entry;
}

void define(Trace& trace, std::int32_t graph, std::vector<LaunchTraceEntry> nodes,
            std::vector<std::pair<std::uint32_t, std::uint32_t>> edges) {
  GraphDefinition definition;
  definition.graph = graph;
  definition.version = 1;
  definition.nodes = std::move(nodes);
  definition.edges = std::move(edges);
  trace.graphs[{graph, 1}] = definition;
}

TEST(VerifyRecording, GraphOfARealProgram) {
  const Trace trace = read_trace(kTraces / "mlp-graph-b8-fp32.jsonl");
  const auto results = verify_recording(trace, VerifyLevel::kOrder);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].graph, 0);
  EXPECT_EQ(results[0].version, 1u);
  EXPECT_TRUE(results[0].report.ok()) << to_text(results[0].report);
  EXPECT_EQ(results[0].report.eager.size(), 5u);
  EXPECT_EQ(to_text(results[0].report), "replay verified (L0-L2): 5 entries\n");

  // That recording holds no arguments.
  const auto arguments = verify_recording(trace);
  EXPECT_EQ(arguments[0].report.verified, VerifyLevel::kOrder);
  EXPECT_THAT(to_text(arguments[0].report), HasSubstr("arguments unknown for 5 entries"));
}

TEST(VerifyRecording, FaultsInTheGraphOfARealProgram) {
  const Trace good = read_trace(kTraces / "mlp-graph-b8-fp32.jsonl");
  Trace trace = good;
  trace.graphs.at({0, 1}).edges.erase(trace.graphs.at({0, 1}).edges.begin() + 2);
  const auto edge = verify_recording(trace, VerifyLevel::kOrder);
  EXPECT_EQ(edge[0].report.verified, VerifyLevel::kMultiset);
  EXPECT_THAT(to_text(edge[0].report), HasSubstr("nothing orders them"));
  EXPECT_THAT(to_text(edge[0].report), HasSubstr("vectorized_layer_norm_kernel"));

  trace = good;
  trace.graphs.at({0, 1}).nodes[3].grid_x = 64;
  trace.graphs.at({0, 1}).nodes[3].semantic_hash = 0;
  const auto grid = verify_recording(trace, VerifyLevel::kOrder);
  EXPECT_EQ(grid[0].report.verified, VerifyLevel::kCounts);
  EXPECT_THAT(to_text(grid[0].report), HasSubstr("grid 2×1×1 in eager, 64×1×1 in replay"));

  trace = good;
  trace.graphs.at({0, 1}).nodes.clear();
  trace.graphs.at({0, 1}).edges.clear();
  const auto empty = verify_recording(trace, VerifyLevel::kOrder);
  EXPECT_EQ(empty[0].report.verified, std::nullopt);
  EXPECT_THAT(to_text(empty[0].report), HasSubstr("eager has 5 kernels, replay has 0"));

  trace = good;
  trace.footer.present = false;
  EXPECT_EQ(verify_recording(trace)[0].report.verified, std::nullopt);
}

TEST(VerifyRecording, RealStreamsVerifyAgainstThemselves) {
  const Trace trace = read_trace(kTraces / "torch-streams.jsonl");
  const VerifyReport same = verify_traces(trace, trace, VerifyLevel::kOrder);
  EXPECT_TRUE(same.ok()) << to_text(same);
  EXPECT_EQ(same.eager.size(), 29u);

  // The same work with its streams renamed and taking other turns.
  Trace renamed = trace;
  for (LaunchTraceEntry& entry : renamed.entries) {
    if (entry.stream_index != 0) entry.stream_index = 4 - entry.stream_index;
  }
  std::stable_sort(renamed.entries.begin() + 3, renamed.entries.begin() + 27,
                   [](const LaunchTraceEntry& a, const LaunchTraceEntry& b) {
                     return a.stream_index < b.stream_index;
                   });
  const VerifyReport turns = verify_traces(trace, renamed, VerifyLevel::kOrder);
  EXPECT_TRUE(turns.ok()) << to_text(turns);

  // Two kernels of one stream change places.
  Trace swapped = trace;
  std::swap(swapped.entries[3], swapped.entries[4]);
  const VerifyReport report = verify_traces(trace, swapped, VerifyLevel::kOrder);
  EXPECT_EQ(report.verified, VerifyLevel::kMultiset);
  EXPECT_NE(find(report, VerifyLevel::kOrder, "order"), nullptr);
}

TEST(VerifyRecording, EntriesThatNameTheirGraph) {
  // Two captures at once on two threads.
  Trace trace =
      trace_of({captured(kernel("a", 1), 0), captured(kernel("c", 2), 1),
                captured(kernel("b", 1), 0), captured(kernel("d", 2), 1), launch(1), launch(0)});
  define(trace, 0, {kernel("a"), kernel("b")}, {{0, 1}});
  define(trace, 1, {kernel("c"), kernel("d")}, {});
  const auto results = verify_recording(trace, VerifyLevel::kOrder);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].graph, 1);
  EXPECT_FALSE(results[0].report.ok());
  EXPECT_NE(find(results[0].report, VerifyLevel::kOrder, "order"), nullptr);
  EXPECT_EQ(results[1].graph, 0);
  EXPECT_TRUE(results[1].report.ok()) << to_text(results[1].report);
}

TEST(VerifyRecording, GraphComparedWithTheCaptureOfAnotherSaysSo) {
  Trace trace = trace_of(
      {captured(kernel("a", 1), 0), captured(kernel("b", 1), 0), launch(0), launch(1), launch(2)});
  define(trace, 0, {kernel("a"), kernel("b")}, {{0, 1}});
  define(trace, 1, {kernel("a"), kernel("b")}, {{0, 1}});  // instantiated again, or built by hand
  define(trace, 2, {kernel("a"), kernel("c")}, {{0, 1}});
  const auto results = verify_recording(trace, VerifyLevel::kOrder);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results[0].report.findings.empty()) << to_text(results[0].report);
  EXPECT_EQ(results[1].report.verified, VerifyLevel::kOrder) << to_text(results[1].report);
  const VerifyFinding* note = find(results[1].report, VerifyLevel::kCounts, "shared", true);
  ASSERT_NE(note, nullptr) << to_text(results[1].report);
  EXPECT_THAT(note->message, HasSubstr("it is compared with the capture of graph 0"));
  EXPECT_FALSE(results[2].report.ok());
  EXPECT_NE(find(results[2].report, VerifyLevel::kCounts, "uncaptured", true), nullptr);
}

TEST(VerifyRecording, EntriesThatNameNoGraphGoToTheOneTheyEqualElseByOrder) {
  Trace trace =
      trace_of({captured(kernel("a", 1)), captured(kernel("b", 1)), launch(0),
                captured(kernel("c", 1)), captured(kernel("d", 1)), launch(1), launch(2)});
  define(trace, 0, {kernel("a"), kernel("b")}, {{0, 1}});
  define(trace, 1, {kernel("c"), kernel("d", 0, {9})}, {{0, 1}});
  define(trace, 2, {kernel("e")}, {});
  const auto results = verify_recording(trace, VerifyLevel::kOrder);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results[0].report.ok()) << to_text(results[0].report);
  EXPECT_EQ(results[1].report.verified, VerifyLevel::kCounts);
  EXPECT_THAT(to_text(results[1].report), HasSubstr("grid 4×1×1 in eager, 9×1×1 in replay"));
  // Nothing was captured for the last: built by hand, for all that is known.
  EXPECT_FALSE(results[2].report.ok());
  EXPECT_EQ(failures(results[2].report), 0u);
  const VerifyFinding* note = find(results[2].report, VerifyLevel::kCounts, "uncaptured", true);
  ASSERT_NE(note, nullptr);
  EXPECT_THAT(note->message, HasSubstr("the capture of graph 2 version 1 was not recorded"));
  EXPECT_THAT(to_text(results[2].report), HasSubstr("not verified: there was nothing to compare"));
}

TEST(VerifyRecording, OneCaptureInstantiatedTwice) {
  Trace trace = trace_of({captured(kernel("a", 1)), launch(0), launch(1)});
  define(trace, 0, {kernel("a")}, {});
  define(trace, 1, {kernel("a")}, {});
  for (const GraphVerification& result : verify_recording(trace, VerifyLevel::kOrder)) {
    EXPECT_TRUE(result.report.ok()) << result.graph << to_text(result.report);
  }
}

TEST(VerifyRecording, CaptureThatForksAndJoins) {
  Trace trace =
      trace_of({captured(kernel("a", 1)), captured(record(0, 1)), captured(wait(0, 2)),
                captured(kernel("b", 2)), captured(kernel("c", 1)), captured(record(1, 2)),
                captured(wait(1, 1)), captured(kernel("d", 1)), launch(0)});
  const std::vector<LaunchTraceEntry> nodes = {kernel("a"), kernel("b"), kernel("c"), kernel("d")};
  define(trace, 0, nodes, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  EXPECT_TRUE(verify_recording(trace, VerifyLevel::kOrder)[0].report.ok());
  define(trace, 0, nodes, {{0, 1}, {0, 2}, {2, 3}});
  const auto results = verify_recording(trace, VerifyLevel::kOrder);
  ASSERT_NE(find(results[0].report, VerifyLevel::kOrder, "order"), nullptr);
  EXPECT_EQ(find(results[0].report, VerifyLevel::kOrder, "order")->eager->name, "d");
}

TEST(VerifyRecording, MarkedRangesInPairs) {
  Trace trace = trace_of({mark("push", "eager decode"), mark("push", "inner"), kernel("a", 1),
                          mark("pop", ""), kernel("b", 1), mark("pop", ""), kernel("between"),
                          mark("push", "eager prefill"), kernel("p"), mark("pop", ""),
                          mark("push", "replay decode"), launch(0), mark("pop", ""),
                          mark("push", "replay lonely"), mark("pop", "")});
  define(trace, 0, {kernel("a"), kernel("b")}, {{0, 1}});
  const auto results = verify_recording(trace, VerifyLevel::kOrder);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].graph, 0);
  EXPECT_EQ(results[1].graph, -1);
  EXPECT_EQ(results[1].label, " decode");
  EXPECT_TRUE(results[1].report.ok()) << to_text(results[1].report);
  EXPECT_EQ(results[1].report.eager.size(), 2u);
  EXPECT_EQ(results[2].report.findings[0].message,
            "the range \"eager prefill\" has no partner \"replay prefill\"");
  EXPECT_EQ(results[3].report.findings[0].what, "unpaired");
  EXPECT_FALSE(results[3].report.ok());
}

}  // namespace
}  // namespace lockstep::testing_verify
