// SPDX-License-Identifier: Apache-2.0
// Level L2: every order that eager guarantees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verify_programs.h"

namespace lockstep::testing_verify {
namespace {

using ::testing::HasSubstr;

VerifyReport order(const Trace& eager, const Trace& replay) {
  return verify_traces(eager, replay, VerifyLevel::kOrder);
}

/// True when `eager` guarantees that "first" ends before "second" begins.
bool guarantees_order(Trace eager) {
  const Trace unordered = graph_of({kernel("first"), kernel("second")}, {});
  const VerifyReport report = order(eager, unordered);
  if (report.ok()) return false;
  EXPECT_NE(find(report, VerifyLevel::kOrder, "order"), nullptr) << to_text(report);
  EXPECT_TRUE(order(eager, chain_of({kernel("first"), kernel("second")})).ok());
  return true;
}

TEST(VerifyOrder, StreamsOrderTheirOwnWork) {
  EXPECT_TRUE(guarantees_order(trace_of({kernel("first", 1), kernel("second", 1)})));
  EXPECT_FALSE(guarantees_order(trace_of({kernel("first", 1), kernel("second", 2)})));
}

TEST(VerifyOrder, EventsOrderStreams) {
  EXPECT_TRUE(guarantees_order(
      trace_of({kernel("first", 1), record(0, 1), wait(0, 2), kernel("second", 2)})));
  // The record comes too early, the wait too late, or it binds another record.
  EXPECT_FALSE(guarantees_order(
      trace_of({record(0, 1), kernel("first", 1), wait(0, 2), kernel("second", 2)})));
  EXPECT_FALSE(guarantees_order(
      trace_of({kernel("first", 1), record(0, 1), kernel("second", 2), wait(0, 2)})));
  EXPECT_FALSE(guarantees_order(
      trace_of({record(0, 1), kernel("first", 1), record(1, 1), wait(0, 2), kernel("second", 2)})));
}

TEST(VerifyOrder, HostSynchronisationOrdersLaterCallsOfItsThread) {
  const auto with_sync = [](const LaunchTraceEntry& synchronize) {
    return trace_of({kernel("first", 1), record(5, 1), synchronize, kernel("second", 2)});
  };
  const auto kind = OperationKind::kSynchronize;
  EXPECT_TRUE(guarantees_order(with_sync(other(kind, 1, -1, "cuStreamSynchronize"))));
  EXPECT_TRUE(guarantees_order(with_sync(other(kind, 0, -1, "cuCtxSynchronize"))));
  EXPECT_TRUE(guarantees_order(with_sync(other(kind, 0, -1, "hipDeviceSynchronize"))));
  EXPECT_TRUE(guarantees_order(with_sync(other(kind, 0, 5, "cuEventSynchronize"))));
  EXPECT_FALSE(guarantees_order(with_sync(other(kind, 0, 6, "cuEventSynchronize"))));
  EXPECT_FALSE(guarantees_order(with_sync(other(kind, 2, -1, "cuStreamSynchronize"))));
  LaunchTraceEntry failed = other(kind, 1, -1, "cuStreamSynchronize");
  failed.set(EntryFlag::kFailed);
  EXPECT_FALSE(guarantees_order(with_sync(failed)));
}

TEST(VerifyOrder, BlockingDownloadsOrderLaterCalls) {
  const auto program = [](const std::string& name) {
    return trace_of({copy(64, 1, MemcpyKind::kDtoH, name), kernel("second", 2)});
  };
  const Trace unordered =
      graph_of({copy(64, 0, MemcpyKind::kDtoH, "cuMemcpyDtoHAsync"), kernel("second")}, {});
  EXPECT_FALSE(order(program("cuMemcpyDtoH"), unordered).ok());
  EXPECT_TRUE(order(program("cuMemcpyDtoHAsync"), unordered).ok());
}

TEST(VerifyOrder, LegacyStreamSynchronisesWithBlockingStreams) {
  const auto program = [](bool blocking, std::uint32_t first, std::uint32_t second,
                          std::uint32_t context = 0) {
    Trace trace = trace_of({kernel("first", first), kernel("second", second)});
    StreamDefinition legacy, stream;
    legacy.stream = 0;
    legacy.blocking = legacy.legacy = true;
    stream.stream = 1;
    stream.blocking = blocking;
    stream.context = context;
    trace.streams = {legacy, stream};
    return trace;
  };
  EXPECT_TRUE(guarantees_order(program(true, 0, 1)));
  EXPECT_TRUE(guarantees_order(program(true, 1, 0)));
  EXPECT_FALSE(guarantees_order(program(false, 0, 1)));
  EXPECT_FALSE(guarantees_order(program(false, 1, 0)));
  EXPECT_FALSE(guarantees_order(program(true, 0, 1, 1)));
}

TEST(VerifyOrder, LaunchesOfOneGraphFollowEachOther) {
  Trace twice = graph_of({kernel("first")}, {});
  twice.entries.push_back(twice.entries[0]);
  twice.entries[1].stream_index = 1;
  EXPECT_FALSE(order(twice, graph_of({kernel("first"), kernel("first")}, {})).ok());
  EXPECT_TRUE(order(twice, chain_of({kernel("first"), kernel("first")})).ok());
}

TEST(VerifyOrder, NodesThatAreNotComparedStillOrder) {
  const Trace eager = trace_of({kernel("first"), kernel("second")});
  LaunchTraceEntry disabled = kernel("switched off");
  disabled.set(EntryFlag::kDisabled);
  for (const LaunchTraceEntry& between :
       {other(OperationKind::kHostFunc, 0), mark("point", "empty"), disabled, copy(0)}) {
    EXPECT_TRUE(order(eager, chain_of({kernel("first"), between, kernel("second")})).ok())
        << between;
    EXPECT_FALSE(
        order(eager, graph_of({kernel("first"), between, kernel("second")}, {{0, 1}})).ok())
        << between;
  }
}

TEST(VerifyOrder, WrongOrderAcrossStreamsNamesBothOperations) {
  const Trace eager = trace_of(
      {kernel("produce", 1), record(0, 1), wait(0, 2), kernel("consume", 2), kernel("after", 1)});
  const std::vector<LaunchTraceEntry> nodes = {kernel("produce"), kernel("consume"),
                                               kernel("after")};
  EXPECT_TRUE(order(eager, graph_of(nodes, {{0, 1}, {0, 2}})).ok());
  const VerifyReport report = order(eager, graph_of(nodes, {{0, 2}}));
  EXPECT_EQ(report.verified, VerifyLevel::kMultiset);
  ASSERT_EQ(failures(report), 1u);
  EXPECT_EQ(report.findings[0].what, "order");
  EXPECT_EQ(report.findings[0].message,
            "eager guarantees that #0 (kernel  produce   4×1×1 / 256×1×1   stream 1) ends before "
            "#1 (kernel  consume   4×1×1 / 256×1×1   stream 2) begins; in replay (#0 and #1) "
            "nothing orders them");
  EXPECT_EQ(report.findings[0].eager->name, "consume");
}

TEST(VerifyOrder, AdditionalOrderIsANote) {
  const Trace eager = trace_of({kernel("left", 1), kernel("right", 2)});
  const VerifyReport report = order(eager, chain_of({kernel("left"), kernel("right")}));
  EXPECT_TRUE(report.ok());
  const VerifyFinding* extra = find(report, VerifyLevel::kOrder, "order", true);
  ASSERT_NE(extra, nullptr);
  EXPECT_THAT(extra->message, HasSubstr("1 additional order"));
  EXPECT_THAT(extra->message, HasSubstr("kernel  left"));
  EXPECT_THAT(extra->message, HasSubstr("kernel  right"));
  EXPECT_THAT(to_text(report), HasSubstr("replay verified (L0-L2): 2 entries\n  note: L2 order:"));
}

TEST(VerifyOrder, ProgrammaticEdgesAreWeaker) {
  const std::vector<LaunchTraceEntry> nodes = {kernel("a"), kernel("b"), kernel("c")};
  LaunchTraceEntry overlapping = kernel("b");
  overlapping.attributes = R"({"programmatic_serialization":1})";
  const Trace full = trace_of(nodes);
  const Trace overlap = trace_of({nodes[0], overlapping, nodes[2]});
  const Trace programmatic = graph_of(nodes, {{0, 1}, {1, 2}, {0, 2}}, {0});

  const VerifyReport weaker = order(full, programmatic);
  EXPECT_EQ(weaker.verified, VerifyLevel::kMultiset);
  ASSERT_NE(find(weaker, VerifyLevel::kOrder, "programmatic"), nullptr) << to_text(weaker);
  EXPECT_THAT(find(weaker, VerifyLevel::kOrder, "programmatic")->message,
              HasSubstr("only a programmatic edge orders them"));

  EXPECT_TRUE(order(overlap, programmatic).ok()) << to_text(order(overlap, programmatic));
  // Full where eager lets them overlap is only more order.
  const VerifyReport stronger = order(overlap, chain_of(nodes));
  EXPECT_TRUE(stronger.ok());
  EXPECT_NE(find(stronger, VerifyLevel::kOrder, "order", true), nullptr);
  // No edge at all is less than a programmatic one.
  const VerifyReport none = order(overlap, graph_of(nodes, {{1, 2}, {0, 2}}));
  EXPECT_NE(find(none, VerifyLevel::kOrder, "order"), nullptr) << to_text(none);
  // In a stream the kernel after both waits for both.
  EXPECT_FALSE(order(overlap, graph_of(nodes, {{0, 1}, {1, 2}}, {0})).ok());

  overlapping.attributes = R"({"programmatic_serialization":0})";
  EXPECT_FALSE(order(trace_of({nodes[0], overlapping, nodes[2]}), programmatic).ok());
}

/// `streams` streams of `length` equal kernels between a fork and a join.
Trace eager_fan(std::uint32_t streams, std::uint32_t length, bool interleaved) {
  std::vector<LaunchTraceEntry> entries = {kernel("fork", 0), record(0, 0)};
  for (std::uint32_t s = 1; s <= streams; ++s) entries.push_back(wait(0, s));
  for (std::uint32_t i = 0; i < streams * length; ++i) {
    entries.push_back(kernel("same", 1 + (interleaved ? i % streams : i / length)));
  }
  for (std::uint32_t s = 1; s <= streams; ++s) {
    entries.push_back(record(s, s));
    entries.push_back(wait(s, 0));
  }
  entries.push_back(kernel("join", 0));
  return trace_of(entries);
}

/// The same as a graph whose nodes were made stream by stream, or round by round.
Trace graph_fan(std::uint32_t streams, std::uint32_t length, bool interleaved,
                std::uint32_t without_edge = 0xffffffff) {
  std::vector<LaunchTraceEntry> nodes = {kernel("fork")};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  const auto node = [&](std::uint32_t s, std::uint32_t i) {
    return 1 + (interleaved ? i * streams + s : s * length + i);
  };
  for (std::uint32_t i = 0; i < streams * length; ++i) nodes.push_back(kernel("same"));
  nodes.push_back(kernel("join"));
  for (std::uint32_t s = 0; s < streams; ++s) {
    for (std::uint32_t i = 0; i < length; ++i) {
      edges.emplace_back(i == 0 ? 0 : node(s, i - 1), node(s, i));
    }
    edges.emplace_back(node(s, length - 1), static_cast<std::uint32_t>(nodes.size() - 1));
  }
  if (without_edge < edges.size()) edges.erase(edges.begin() + without_edge);
  return graph_of(nodes, edges);
}

TEST(VerifyOrder, ManyEqualKernelsOverThreeStreams) {
  for (const bool eager : {false, true}) {
    for (const bool replay : {false, true}) {
      const VerifyReport report = order(eager_fan(3, 40, eager), graph_fan(3, 40, replay));
      EXPECT_TRUE(report.ok()) << to_text(report);
      EXPECT_TRUE(report.findings.empty()) << to_text(report);
    }
  }
}

TEST(VerifyOrder, ManyEqualKernelsWithOneEdgeLess) {
  // The edge within a stream; no other way to match the kernels makes up for it.
  const VerifyReport report = order(eager_fan(3, 4, true), graph_fan(3, 4, false, 2));
  EXPECT_EQ(report.verified, VerifyLevel::kMultiset);
  EXPECT_GE(failures(report), 1u);
}

/// Crowns of equal kernels: in each, upper kernel i begins after the lower ones i and i + 1.
Trace crowns(std::uint32_t number, std::uint32_t size) {
  const std::uint32_t lower = number * size;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (std::uint32_t i = 0; i < lower; ++i) {
    const std::uint32_t crown = i / size * size;
    edges.emplace_back(i, lower + i);
    edges.emplace_back(crown + (i + 1) % size, lower + i);
  }
  return graph_of(std::vector<LaunchTraceEntry>(2 * lower, kernel("same")), edges);
}

TEST(VerifyOrder, SearchThatGivesUpIsNeverVerified) {
  EXPECT_TRUE(order(crowns(1, 24), crowns(1, 24)).ok());
  // Every kernel of one looks like every kernel of the other; there is no matching, and too many
  // to try them all.
  const VerifyReport report = order(crowns(1, 24), crowns(2, 12));
  EXPECT_EQ(report.verified, VerifyLevel::kMultiset);
  ASSERT_NE(find(report, VerifyLevel::kOrder, "undecided"), nullptr);
  EXPECT_NE(find(report, VerifyLevel::kOrder, "order"), nullptr);
  EXPECT_THAT(to_text(report), HasSubstr("L2 undecided: order was not decided"));
}

TEST(VerifyOrder, ArgumentsChooseAmongMatchings) {
  // Two streams of equal kernels on different buffers; the graph's nodes were made the other way
  // round, so that only buffers tell which chain is which.
  const auto on = [](std::uint32_t buffer, std::uint32_t stream = 0) {
    return with(kernel("same", stream), {pointer(buffer)});
  };
  const LaunchTraceEntry both = with(kernel("both", 0), {pointer(1), pointer(2)});
  const Trace eager = trace_of({with(kernel("start", 1), {pointer(1)}), on(1, 1), on(2, 2),
                                record(0, 1), record(1, 2), wait(0, 0), wait(1, 0), both});
  const Trace replay =
      graph_of({on(2), with(kernel("start"), {pointer(1)}), on(1), both}, {{1, 2}, {2, 3}, {0, 3}});
  EXPECT_TRUE(verify_traces(eager, replay).ok()) << to_text(verify_traces(eager, replay));

  const Trace wrong =
      graph_of({on(1), with(kernel("start"), {pointer(1)}), on(2), both}, {{1, 2}, {2, 3}, {0, 3}});
  const VerifyReport report = verify_traces(eager, wrong);
  EXPECT_EQ(report.verified, VerifyLevel::kOrder);
  EXPECT_NE(find(report, VerifyLevel::kArguments, "buffer"), nullptr);
}

}  // namespace
}  // namespace lockstep::testing_verify
