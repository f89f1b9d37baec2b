// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_diff.h>
#include <lockstep/trace_file.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "support/trace_entries.h"

namespace lockstep {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using testing::Not;

struct Expected {
  std::string left, right;
  ViewOptions::Kind view;
  std::uint64_t left_entries, right_entries, matched;
  std::optional<std::uint64_t> first;
};

class RecordedPairs : public testing::TestWithParam<Expected> {};

TEST_P(RecordedPairs, CompareAsCounted) {
  const Expected& expected = GetParam();
  DiffOptions options;
  options.view.kind = expected.view;
  const auto left = recording(expected.left), right = recording(expected.right);
  for (const DiffReport& report :
       {diff(read_trace(left), read_trace(right), options), diff_files(left, right, options)}) {
    EXPECT_EQ(report.left_entries, expected.left_entries);
    EXPECT_EQ(report.right_entries, expected.right_entries);
    EXPECT_EQ(report.matched, expected.matched);
    EXPECT_EQ(report.first_difference, expected.first);
    EXPECT_EQ(report.equal, !expected.first.has_value());
    EXPECT_TRUE(report.matched_exact);
  }
}

constexpr auto kExecuted = ViewOptions::Kind::kExecuted;
constexpr auto kEnqueued = ViewOptions::Kind::kEnqueued;
INSTANTIATE_TEST_SUITE_P(
    Traces, RecordedPairs,
    testing::Values(
        Expected{"mlp-eager-b8-fp32", "mlp-eager-b8-fp32-again", kExecuted, 24, 24, 24, {}},
        Expected{"mlp-eager-b8-fp32", "mlp-eager-b64-fp32", kExecuted, 24, 36, 7, 6},
        Expected{"mlp-eager-b8-fp32", "mlp-graph-b8-fp32", kExecuted, 24, 31, 24, 12},
        Expected{"mlp-eager-b8-fp32", "mlp-graph-b8-fp32", kEnqueued, 24, 24, 19, 12},
        Expected{"gpt2-fwd-b1-bf16-l2", "gpt2-fwd-b4-bf16-l2", kExecuted, 110, 110, 73, 58}));

TEST(Diff, EveryRecordingEqualsItself) {
  for (const auto& file : std::filesystem::directory_iterator(recording("x").parent_path())) {
    EXPECT_TRUE(diff_files(file.path(), file.path()).equal) << file.path();
  }
}

TEST(Cases, GOLD_09_OnlyRealDifferencesAreChanges) {
  const DiffReport report = diff(kernels({"A", "B", "C", "D"}), kernels({"A", "X", "C", "D", "E"}));
  EXPECT_FALSE(report.equal);
  EXPECT_EQ(report.matched, 3u);
  ASSERT_EQ(report.changes.size(), 2u);
  EXPECT_EQ(report.changes[0].kind, DiffChange::Kind::kReplace);
  EXPECT_EQ(report.changes[0].left_begin, 1u);
  EXPECT_EQ(report.changes[0].left_end, 2u);
  EXPECT_EQ(report.changes[1].kind, DiffChange::Kind::kInsert);
  EXPECT_EQ(report.changes[1].right_begin, 4u);
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["equal"], false);
  EXPECT_EQ(json["first_difference"], 1);
  EXPECT_EQ(json["changes"][1]["kind"], "insert");
  EXPECT_EQ(json["changes"][1]["right"], nlohmann::json::parse("[4,5]"));
}

TEST(Cases, GOLD_01_OneLaunchMoreIsNamed) {
  std::vector<std::string> names(12, "k");
  const Trace golden = kernels(names);
  names.insert(names.begin() + 7, "added");
  const Trace today = kernels(names);
  const DiffReport report = diff(golden, today);
  EXPECT_FALSE(report.equal);
  EXPECT_EQ(report.matched, 12u);
  ASSERT_EQ(report.changes.size(), 1u);
  EXPECT_EQ(report.changes[0].kind, DiffChange::Kind::kInsert);
  EXPECT_EQ(report.changes[0].right_begin, 7u);
  EXPECT_THAT(to_text(report, view(golden), view(today)),
              ::testing::AllOf(HasSubstr("12 and 13 entries"), HasSubstr("first difference at 7"),
                               HasSubstr("added")));
}

TEST(Cases, GOLD_08_CallNamesDoNotMakeADifference) {
  LaunchTraceEntry cuda = copy(MemcpyKind::kHtoD, 16), hip = cuda;
  cuda.name = "cuMemcpyHtoDAsync";
  hip.name = "hipMemcpyHtoDAsync";
  EXPECT_TRUE(diff(trace_of({cuda}), trace_of({hip})).equal);
}

TEST(Diff, TruncatedIsNeverEqual) {
  Trace cut = kernels({"A"});
  cut.footer = {};
  const DiffReport report = diff(kernels({"A"}), cut);
  EXPECT_FALSE(report.equal);
  EXPECT_TRUE(report.right_truncated);
  EXPECT_FALSE(report.left_truncated);
  EXPECT_FALSE(report.first_difference.has_value());
  EXPECT_THAT(to_text(report, view(cut), view(cut)), HasSubstr("right trace is truncated"));
}

TEST(Diff, OpaqueAndUndefinedGraphsNeverEqual) {
  const Trace opaque = trace_of({of_kind(OperationKind::kOpaque, "cuLaunchMystery")});
  EXPECT_FALSE(diff(opaque, opaque).equal);
  const Trace undefined = trace_of({graph_launch(3)});
  EXPECT_FALSE(diff(undefined, undefined).equal);
  Trace defined = undefined;
  GraphDefinition graph;
  graph.graph = 3;
  graph.version = 1;
  graph.nodes = {kernel("a")};
  defined.graphs[{3, 1}] = graph;
  EXPECT_TRUE(diff(defined, defined).equal);
}

TEST(Diff, GraphLaunchesCompareByWhatTheGraphDoes) {
  Trace left = trace_of({graph_launch(0, 1)}), right = trace_of({graph_launch(5, 2)});
  right.entries[0].name = "hipGraphLaunch";
  GraphDefinition graph;
  graph.nodes = {kernel("a"), kernel("b")};
  graph.edges = {{0, 1}};
  left.graphs[{0, 1}] = graph;
  right.graphs[{5, 2}] = graph;
  right.graphs[{5, 2}].graph = 5;
  right.graphs[{5, 2}].version = 2;
  DiffOptions options;
  options.view.kind = kEnqueued;
  options.view.kinds = {OperationKind::kGraphLaunch};
  EXPECT_TRUE(diff(left, right, options).equal);
  right.graphs[{5, 2}].edges.clear();
  EXPECT_FALSE(diff(left, right, options).equal);
  EXPECT_TRUE(diff(left, right).equal) << "the executed order is still the same";
}

TEST(Diff, ArgumentsCountWhenAskedFor) {
  LaunchTraceEntry one = kernel("a"), two = one;
  one.argument_hash = 1;
  two.argument_hash = 2;
  DiffOptions options;
  EXPECT_TRUE(diff(trace_of({one}), trace_of({two}), options).equal);
  options.compare_arguments = true;
  EXPECT_FALSE(diff(trace_of({one}), trace_of({two}), options).equal);
  EXPECT_TRUE(diff(trace_of({one}), trace_of({one}), options).equal);
}

TEST(Diff, ExtensionKindsCompareByKindAndName) {
  LaunchTraceEntry future = of_kind(OperationKind::kUnknown, "warp"), other = future;
  future.kind_text = "teleport";
  other.kind_text = "time_travel";
  future.semantic_hash = other.semantic_hash = 0;
  DiffOptions options;
  options.view.core_kinds_only = false;
  EXPECT_TRUE(diff(trace_of({future}), trace_of({future}), options).equal);
  EXPECT_FALSE(diff(trace_of({future}), trace_of({other}), options).equal);
  EXPECT_TRUE(diff(trace_of({future}), trace_of({other})).equal) << "not core kinds";
}

TEST(Diff, PerStreamIgnoresHowStreamsInterleave) {
  const Trace left = trace_of({kernel("a", 0), kernel("b", 1), kernel("c", 0), kernel("d", 1)});
  const Trace right = trace_of({kernel("b", 7), kernel("d", 7), kernel("a", 2), kernel("c", 2)});
  EXPECT_FALSE(diff(left, right).equal);
  DiffOptions options;
  options.per_stream = true;
  const DiffReport report = diff(left, right, options);
  EXPECT_TRUE(report.equal);
  EXPECT_EQ(report.matched, 4u);
}

TEST(Diff, PerStreamNamesPlacesInTheView) {
  const Trace left = trace_of({kernel("a", 0), kernel("b", 1), kernel("c", 0), kernel("d", 1)});
  const Trace right = trace_of({kernel("a", 0), kernel("b", 1), kernel("x", 0), kernel("d", 1)});
  DiffOptions options;
  options.per_stream = true;
  const DiffReport report = diff(left, right, options);
  ASSERT_EQ(report.changes.size(), 1u);
  EXPECT_EQ(report.changes[0].kind, DiffChange::Kind::kReplace);
  EXPECT_EQ(report.changes[0].left_begin, 2u);
  EXPECT_EQ(report.changes[0].right_begin, 2u);
  EXPECT_EQ(report.first_difference, 2u);
  EXPECT_EQ(report.matched, 3u);
}

TEST(Diff, PerStreamReportsAStreamTooMany) {
  const Trace left = trace_of({kernel("a", 0)});
  const Trace right = trace_of({kernel("a", 0), kernel("z", 1)});
  DiffOptions options;
  options.per_stream = true;
  const DiffReport report = diff(left, right, options);
  ASSERT_EQ(report.changes.size(), 1u);
  EXPECT_EQ(report.changes[0].kind, DiffChange::Kind::kInsert);
  EXPECT_EQ(report.changes[0].right_begin, 1u);
  EXPECT_EQ(report.first_difference, 1u);
}

TEST(DiffText, ShowsVerdictContextAndCount) {
  const auto left = read_trace(recording("mlp-eager-b8-fp32"));
  const auto right = read_trace(recording("mlp-eager-b64-fp32"));
  const DiffReport report = diff(left, right);
  const std::string text = to_text(report, view(left), view(right));
  EXPECT_THAT(text, HasSubstr("different: 24 and 36 entries, 7 alike; first difference at 6\n"));
  EXPECT_THAT(text, HasSubstr("    5   memcpy  HtoD 40 B"));
  EXPECT_THAT(text, HasSubstr("  - 6   kernel  "));
  EXPECT_THAT(text, HasSubstr("  + 6   kernel  "));
  EXPECT_THAT(text, HasSubstr("×1×1 / 128×1×1"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("_ZN")));
  EXPECT_EQ(text, to_text(report, recording("mlp-eager-b8-fp32"), recording("mlp-eager-b64-fp32"),
                          ViewOptions{}));
}

TEST(DiffText, AllShowsEveryChangeWithColorOnRequest) {
  const Trace left = kernels({"A", "B", "C", "D", "E", "F"});
  const Trace right = kernels({"A", "X", "C", "D", "E", "F", "G"});
  DiffTextOptions options;
  options.all = true;
  options.color = true;
  const std::string text = to_text(diff(left, right), view(left), view(right), options);
  EXPECT_THAT(text, HasSubstr("\x1b[31m  - 1   kernel  B"));
  EXPECT_THAT(text, HasSubstr("\x1b[32m  + 6   kernel  G"));
  EXPECT_THAT(text, HasSubstr("  …\n"));
  EXPECT_THAT(text, Not(HasSubstr("--all")));
}

TEST(DiffText, ColumnsStayApartBeyondPosition999) {
  Trace left, right;
  for (int i = 0; i < 1001; ++i) left.entries.push_back(kernel("A"));
  right = left;
  left.entries.push_back(kernel("B"));
  right.entries.push_back(kernel("C"));
  DiffTextOptions options;
  options.context = 2;
  const std::string text = to_text(diff(left, right), view(left), view(right), options);
  EXPECT_THAT(text, HasSubstr("\n    999  kernel  A"));
  EXPECT_THAT(text, HasSubstr("\n    1000 kernel  A"));
  EXPECT_THAT(text, HasSubstr("\n  - 1001 kernel  B"));
  EXPECT_THAT(text, HasSubstr("\n  + 1001 kernel  C"));
}

TEST(DiffText, EqualIsOneLine) {
  const Trace trace = kernels({"A"});
  EXPECT_EQ(to_text(diff(trace, trace), view(trace), view(trace)), "equal: 1 entry\n");
}

}  // namespace
}  // namespace lockstep
