// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tracer.h>

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <stdexcept>
#include <thread>

#include "unit/record/fake_plugin.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> names_of(const std::vector<LaunchTraceEntry>& entries) {
  std::vector<std::string> names;
  for (const LaunchTraceEntry& entry : entries) names.push_back(entry.name);
  return names;
}

std::vector<std::uint32_t> streams_of(const std::vector<LaunchTraceEntry>& entries) {
  std::vector<std::uint32_t> streams;
  for (const LaunchTraceEntry& entry : entries) streams.push_back(entry.stream_index);
  return streams;
}

ViewOptions enqueued() {
  ViewOptions options;
  options.kind = ViewOptions::Kind::kEnqueued;
  options.core_kinds_only = false;
  return options;
}

TEST(Tracer, TakeWithoutBeginIsEmpty) {
  const FakePlugin plugin;
  plugin.launch(plugin.stream(), "unseen");
  EXPECT_FALSE(Tracer::active());
  EXPECT_THAT(Tracer::take(), IsEmpty());
}

TEST(Tracer, TakesWhatWasEnqueuedSinceBegin) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  plugin.launch(stream, "before");
  Tracer::begin();
  EXPECT_TRUE(Tracer::active());
  plugin.launch(stream, "first", 3);
  plugin.copy(stream, 1024);
  const std::vector<LaunchTraceEntry> entries = Tracer::take();
  plugin.launch(stream, "after");

  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_EQ(entries[0].kind, OperationKind::kKernelLaunch);
  EXPECT_EQ(entries[0].name, "first");
  EXPECT_EQ(entries[0].grid_x, 3u);
  EXPECT_EQ(entries[0].block_x, 32u);
  EXPECT_EQ(entries[0].semantic_hash, semantic_hash(entries[0]));
  EXPECT_EQ(entries[1].kind, OperationKind::kMemcpy);
  EXPECT_EQ(entries[1].memcpy_kind, MemcpyKind::kHtoD);
  EXPECT_EQ(entries[1].memcpy_byte_size, 1024u);
  EXPECT_LT(entries[0].sequence, entries[1].sequence);
  EXPECT_LE(entries[0].time_ns, entries[1].time_ns);
  EXPECT_THAT(Tracer::take(), IsEmpty());
  EXPECT_FALSE(Tracer::active());
}

TEST(Tracer, BeginDiscardsWhatNobodyTook) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  Tracer::begin();
  plugin.launch(stream, "discarded");
  Tracer::begin();
  plugin.launch(stream, "kept");
  EXPECT_THAT(names_of(Tracer::take()), ElementsAre("kept"));
}

TEST(LaunchTrace, NestedAndOverlappingTracesAreIndependent) {
  const FakePlugin plugin;
  const std::uint64_t first = plugin.stream();
  const std::uint64_t second = plugin.stream();
  Tracer::begin();
  LaunchTrace outer;
  plugin.launch(first, "a");
  LaunchTrace inner;
  plugin.launch(second, "b");
  EXPECT_THAT(names_of(outer.take()), ElementsAre("a", "b"));
  plugin.launch(second, "c");
  const std::vector<LaunchTraceEntry> seen_inside = inner.take();
  EXPECT_THAT(names_of(seen_inside), ElementsAre("b", "c"));
  EXPECT_THAT(streams_of(seen_inside), ElementsAre(0, 0)) << "numbers are each trace's own";
  const std::vector<LaunchTraceEntry> all = Tracer::take();
  EXPECT_THAT(names_of(all), ElementsAre("a", "b", "c"));
  EXPECT_THAT(streams_of(all), ElementsAre(0, 1, 1));
  EXPECT_THAT(outer.take(), IsEmpty());
}

TEST(LaunchTrace, EntriesSurviveAnExceptionAndMoves) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  LaunchTrace trace;
  try {
    LaunchTrace unused;
    plugin.launch(stream, "thrown over");
    throw std::runtime_error("body");
  } catch (const std::runtime_error&) {
  }
  LaunchTrace moved = std::move(trace);
  EXPECT_TRUE(moved.active());
  EXPECT_FALSE(trace.active());  // NOLINT(bugprone-use-after-move): moved-from is ended and empty
  EXPECT_THAT(trace.take(), IsEmpty());
  EXPECT_THAT(names_of(moved.take()), ElementsAre("thrown over"));
  EXPECT_FALSE(moved.active());
}

TEST(LaunchTrace, SnapshotLeavesTheTraceOpen) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  LaunchTrace trace;
  plugin.launch(stream, "one");
  EXPECT_THAT(trace.snapshot().entries, SizeIs(1));
  plugin.launch(stream, "two");
  const Trace whole = trace.trace();
  EXPECT_THAT(names_of(whole.entries), ElementsAre("one", "two"));
  EXPECT_TRUE(whole.footer.present);
  EXPECT_EQ(whole.footer.entries, 2u);
  EXPECT_EQ(whole.footer.dropped, 0u);
  EXPECT_THAT(trace.take(), SizeIs(2)) << "take after trace gives the entries once";
}

TEST(LaunchTrace, FiltersByStreamDeviceThreadAndKind) {
  const FakePlugin plugin;
  const std::uint64_t first = plugin.stream();
  const std::uint64_t second = plugin.stream(1);
  LaunchTrace by_stream({.streams = {second}, .devices = {}, .threads = {}, .kinds = {}});
  LaunchTrace by_device({.streams = {}, .devices = {1}, .threads = {}, .kinds = {}});
  LaunchTrace by_thread(
      {.streams = {}, .devices = {}, .threads = {Tracer::this_thread()}, .kinds = {}});
  LaunchTrace by_kind(
      {.streams = {}, .devices = {}, .threads = {}, .kinds = {OperationKind::kMemcpy}});
  plugin.launch(first, "here");
  plugin.copy(first, 8);
  std::thread([&] {
    lockstep_record record = plugin.kernel(second, "there");
    record.device = 1;
    plugin.call(record);
  }).join();
  EXPECT_THAT(names_of(by_stream.take()), ElementsAre("there"));
  EXPECT_THAT(names_of(by_device.take()), ElementsAre("there"));
  EXPECT_THAT(names_of(by_thread.take()), ElementsAre("here", "fakeMemcpyHtoDAsync"));
  EXPECT_THAT(names_of(by_kind.take()), ElementsAre("fakeMemcpyHtoDAsync"));
}

TEST(LaunchTrace, CallsThatHaveNotReturnedArePending) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  LaunchTrace trace;
  LaunchTrace later;
  void* slot = plugin.begin(plugin.kernel(stream, "blocked"));
  const std::vector<LaunchTraceEntry> entries = trace.take();
  ASSERT_THAT(entries, SizeIs(1));
  EXPECT_TRUE(entries[0].has(EntryFlag::kPending));
  plugin.end(slot, {.flags = LOCKSTEP_RECORD_FAILED});
  const std::vector<LaunchTraceEntry> ended = later.take(enqueued());
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_FALSE(ended[0].has(EntryFlag::kPending)) << "its end came while this trace was open";
  EXPECT_TRUE(ended[0].has(EntryFlag::kFailed));
}

TEST(LaunchTrace, ExecutedViewLeavesOutCapturedFailedAndEmpty) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  LaunchTrace trace;
  const std::uint64_t graph = plugin.table().next_id();
  plugin.launch(stream, "captured", 1,
                {.flags = LOCKSTEP_RECORD_CAPTURED, .graph = graph, .node = 2});
  plugin.launch(stream, "failed", 1, {.flags = LOCKSTEP_RECORD_FAILED});
  plugin.copy(stream, 0);
  plugin.launch(stream, "ran");
  const Trace whole = trace.trace();
  ASSERT_THAT(whole.entries, SizeIs(4));
  EXPECT_TRUE(whole.entries[0].has(EntryFlag::kCaptured));
  EXPECT_EQ(whole.entries[0].node, 2);
  EXPECT_EQ(whole.entries[0].graph, 0);
  EXPECT_EQ(whole.entries[2].extent, (Extent{0, 1, 1}));
  EXPECT_THAT(names_of(trace.take()), ElementsAre("ran"));
}

TEST(LaunchTrace, StreamsAreNumberedByWorkAndNeverReused) {
  const FakePlugin plugin;
  const std::uint64_t first = plugin.stream();
  const std::uint64_t second = plugin.stream();
  LaunchTrace trace;
  const std::uint64_t event = plugin.event_record(first);
  plugin.event_wait(second, event);
  plugin.launch(second, "a");
  plugin.launch(first, "b");
  const std::uint64_t recreated = plugin.stream();  // the same address, were there one
  plugin.launch(recreated, "c");
  const Trace whole = trace.trace();
  EXPECT_THAT(streams_of(whole.entries), ElementsAre(1, 0, 0, 1, 2));
  EXPECT_EQ(whole.entries[0].event, 0);
  EXPECT_EQ(whole.entries[1].event, 0);
  EXPECT_THAT(whole.streams, SizeIs(3));
}

TEST(LaunchTrace, StreamsWithoutWorkComeLast) {
  const FakePlugin plugin;
  const std::uint64_t idle = plugin.stream();
  const std::uint64_t busy = plugin.stream();
  LaunchTrace trace;
  plugin.event_record(idle);
  plugin.launch(busy, "a");
  const Trace whole = trace.trace();
  EXPECT_THAT(streams_of(whole.entries), ElementsAre(1, 0));
  ASSERT_THAT(whole.streams, SizeIs(2));
  EXPECT_EQ(whole.streams[1].stream, 1u);
}

TEST(LaunchTrace, GraphDefinitionsAreKnownFromBeforeTheTrace) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  const std::uint64_t before = plugin.table().next_id();
  const std::uint64_t during = plugin.table().next_id();
  plugin.define_chain(before, 1, {"x", "y"});
  LaunchTrace trace;
  plugin.define_chain(during, 1, {"z"});
  plugin.graph_launch(stream, before, 1);
  plugin.graph_launch(stream, during, 1);
  plugin.define_chain(during, 2, {"w"});
  plugin.graph_launch(stream, during, 2);
  const Trace whole = trace.trace();
  ASSERT_THAT(whole.entries, SizeIs(3));
  EXPECT_EQ(whole.entries[0].graph, 0);
  EXPECT_EQ(whole.entries[1].graph, 1);
  EXPECT_EQ(whole.entries[2].graph_version, 2u);
  const GraphDefinition* definition = whole.find_graph(0, 1);
  ASSERT_NE(definition, nullptr);
  EXPECT_THAT(names_of(definition->nodes), ElementsAre("x", "y"));
  EXPECT_THAT(definition->edges, ElementsAre(std::pair<std::uint32_t, std::uint32_t>(0, 1)));
  EXPECT_THAT(names_of(trace.take()), ElementsAre("x", "y", "z", "w"));
}

TEST(LaunchTrace, LargeGraphsComeInPieces) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  const std::uint64_t graph = plugin.table().next_id();
  constexpr std::size_t kNodes = 100000;  // more than a ring of the default size holds
  plugin.define_chain(graph, 1, std::vector<std::string>(kNodes, "node"));
  LaunchTrace trace;
  plugin.graph_launch(stream, graph, 1);
  const std::vector<LaunchTraceEntry> entries = trace.take();
  ASSERT_THAT(entries, SizeIs(kNodes));
  EXPECT_EQ(entries.back().node, static_cast<std::int32_t>(kNodes - 1));
}

TEST(LaunchTrace, PointersBecomeBuffersInOrderOfUse) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  const std::uint64_t base = 0x7000000000;
  plugin.allocate(base, 4096);
  const std::uint64_t old = plugin.allocate(base + 0x10000, 4096);
  LaunchTrace trace;
  plugin.launch_with(stream, "k",
                     {Argument::scalar(7), Argument::pointer(base + 0x10000 + 16),
                      Argument::pointer(base), Argument::pointer(0)});
  plugin.free(base + 0x10000, old);
  plugin.allocate(base + 0x10000, 4096);
  plugin.launch_with(stream, "k", {Argument::pointer(base + 0x10000), Argument::pointer(base)});
  plugin.launch_with(stream, "k", {Argument::pointer(0x1234)});
  const std::vector<LaunchTraceEntry> entries = trace.take();
  ASSERT_THAT(entries, SizeIs(3));
  const auto& first = entries[0].arguments;
  ASSERT_THAT(first, SizeIs(4));
  EXPECT_EQ(first[0].tag, TraceArgument::Tag::kScalar);
  EXPECT_EQ(first[0].bytes, (std::vector<std::byte>{std::byte{7}, {}, {}, {}}));
  EXPECT_EQ(first[1].buffer, 1u);
  EXPECT_EQ(first[1].offset, 16u);
  EXPECT_EQ(first[2].buffer, 2u);
  EXPECT_EQ(first[3].buffer, 0u);
  EXPECT_EQ(entries[0].argument_hash, argument_hash(first));
  EXPECT_NE(entries[0].argument_hash, 0u);
  EXPECT_EQ(entries[1].arguments[0].buffer, 3u) << "a new allocation at an old address";
  EXPECT_EQ(entries[1].arguments[1].buffer, 2u);
  EXPECT_EQ(entries[2].argument_hash, 0u) << "a pointer into nothing known";
}

TEST(LaunchTrace, UnknownLayoutsAreNeitherShownNorHashed) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  plugin.allocate(0x7100000000, 4096);
  LaunchTrace trace;
  plugin.launch(stream, "layout not known");
  plugin.launch_with(stream, "no parameters", {});
  const std::uint64_t address = 0x7100000008;
  plugin.launch_with(stream, "sizes only", {Argument::make(&address, 8, 255)});
  const std::vector<LaunchTraceEntry> entries = trace.take();
  ASSERT_THAT(entries, SizeIs(3));
  EXPECT_EQ(entries[0].argument_hash, 0u);
  EXPECT_EQ(entries[1].argument_hash, argument_hash({}));
  ASSERT_THAT(entries[2].arguments, SizeIs(1));
  EXPECT_EQ(entries[2].arguments[0].tag, TraceArgument::Tag::kPointer);
  EXPECT_EQ(entries[2].arguments[0].offset, 8u);
  EXPECT_EQ(entries[2].argument_hash, 0u);
}

TEST(LaunchTrace, ExtentsAreFolded) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  LaunchTrace trace;
  plugin.copy(stream, 64, 4, 64);
  plugin.copy(stream, 64, 4, 128);
  const std::vector<LaunchTraceEntry> entries = trace.take();
  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_EQ(entries[0].extent, (Extent{256, 1, 1}));
  EXPECT_EQ(entries[1].extent, (Extent{64, 4, 1}));
  EXPECT_EQ(entries[1].memcpy_byte_size, 256u);
}

TEST(LaunchTrace, MarksAreEntriesOfTheirOwn) {
  LaunchTrace trace;
  {
    const MarkRange range("step");
    mark("here");
  }
  const Trace whole = trace.trace();
  ASSERT_THAT(whole.entries, SizeIs(3));
  EXPECT_EQ(whole.entries[0].mark, "push");
  EXPECT_EQ(whole.entries[1].mark, "point");
  EXPECT_EQ(whole.entries[1].name, "here");
  EXPECT_EQ(whole.entries[2].mark, "pop");
  EXPECT_EQ(whole.entries[2].name, "step");
  EXPECT_THAT(trace.take(), IsEmpty()) << "marks are no core kind";
}

TEST(LaunchTrace, OverlappingCallsOnOneStreamAreCounted) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  LaunchTrace trace;
  void* slot = plugin.begin(plugin.kernel(stream, "slow"));
  std::thread([&] { plugin.launch(stream, "meanwhile"); }).join();
  plugin.end(slot);
  std::thread([&] { plugin.launch(stream, "afterwards"); }).join();
  EXPECT_EQ(trace.trace().footer.racing, 1u);
}

TEST(Cases, TRC_07_LegacyAndPerThreadStreams) {
  const FakePlugin plugin;
  const std::uint64_t legacy = plugin.stream(0, 0, 2);
  LaunchTrace trace;
  plugin.launch(legacy, "zero");
  plugin.launch(legacy, "legacy");
  for (int i = 0; i < 2; ++i) {
    std::thread([&] { plugin.launch(plugin.stream(), "per thread"); }).join();
  }
  const Trace whole = trace.trace();
  EXPECT_THAT(streams_of(whole.entries), ElementsAre(0, 0, 1, 2));
  EXPECT_TRUE(whole.streams[0].legacy);
  EXPECT_FALSE(whole.streams[1].legacy);
}

TEST(Cases, TRC_10_SessionsWithIdleGapsLoseNothing) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  for (int session = 0; session < 50; ++session) {
    // Up to the 10 s of the case, which one session has.
    const int gap_ms = session == 49 ? 10000 : session % 7 == 6 ? 40 : session % 3;
    LaunchTrace trace;
    plugin.launch(stream, "at once");
    if (gap_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(gap_ms));
    plugin.launch(stream, "after the gap");
    const std::vector<LaunchTraceEntry> entries = trace.take();
    ASSERT_THAT(entries, SizeIs(2)) << "session " << session;
    EXPECT_EQ(entries[0].name, "at once");
    EXPECT_GE(entries[0].time_ns, 0);
    EXPECT_GE(entries[1].time_ns - entries[0].time_ns, std::int64_t{gap_ms} * 900'000);
    EXPECT_LT(entries[1].time_ns, 120'000'000'000);
  }
}

TEST(Cases, TRC_11_SixStreamsTwiceRound) {
  const FakePlugin plugin;
  std::vector<std::uint64_t> streams;
  for (int i = 0; i < 6; ++i) streams.push_back(plugin.stream());
  LaunchTrace trace;
  for (int i = 0; i < 12; ++i) plugin.launch(streams[i % 6], "k" + std::to_string(i % 6));
  EXPECT_THAT(streams_of(trace.take()), ElementsAre(0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5));
}

TEST(Recorder, ThreadsKeepTheirOrderAndLoseNothing) {
  const FakePlugin plugin;
  constexpr int kThreads = 8;
  constexpr std::uint32_t kRecords = 100000;  // several times what a ring holds
  std::vector<std::uint64_t> streams;
  for (int i = 0; i < kThreads; ++i) streams.push_back(plugin.stream());
  const std::uint32_t name = plugin.name("kernel");
  LaunchTrace trace;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      lockstep_record record = plugin.kernel(streams[i], "kernel");
      for (std::uint32_t n = 1; n <= kRecords; ++n) {
        record.of.kernel.grid.x = n;
        record.name = name;
        plugin.call(record);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Trace whole = trace.trace();
  ASSERT_THAT(whole.entries, SizeIs(std::size_t{kThreads} * kRecords));
  EXPECT_EQ(whole.footer.dropped, 0u);
  EXPECT_EQ(whole.footer.racing, 0u);
  std::map<std::uint32_t, std::uint32_t> last;
  std::uint64_t sequence = 0;
  for (const LaunchTraceEntry& entry : whole.entries) {
    ASSERT_EQ(entry.grid_x, ++last[entry.stream_index]);
    ASSERT_GT(entry.sequence, sequence);
    ASSERT_EQ(entry.thread_index, entry.stream_index);
    sequence = entry.sequence;
  }
  EXPECT_THAT(last, SizeIs(kThreads));
}

TEST(Recorder, RingsOfEndedThreadsAreUsedAgain) {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  LaunchTrace trace;
  constexpr std::size_t kThreads = 6000;  // more than there may be rings at once
  for (std::size_t i = 0; i < kThreads; ++i) {
    std::thread([&] { plugin.launch(stream, "short"); }).join();
  }
  const Trace whole = trace.trace();
  ASSERT_THAT(whole.entries, SizeIs(kThreads));
  EXPECT_EQ(whole.entries.back().thread_index, kThreads - 1);
  EXPECT_EQ(whole.footer.dropped, 0u);
}

TEST(Recorder, TracesMayBeginAndEndWhileOthersLaunch) {
#ifdef __SANITIZE_THREAD__
  constexpr int kRounds = 8;  // each drains what three threads launch without a pause
#else
  constexpr int kRounds = 50;
#endif
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  std::atomic<bool> stop{false};
  std::vector<std::thread> launchers;
  for (int i = 0; i < 3; ++i) {
    launchers.emplace_back([&] {
      const lockstep_record record = plugin.kernel(stream, "noise");
      while (!stop.load(std::memory_order_relaxed)) plugin.call(record);
    });
  }
  std::vector<std::thread> tracers;
  for (int i = 0; i < 3; ++i) {
    tracers.emplace_back([&, i] {
      const std::string own = "own" + std::to_string(i);
      for (int round = 0; round < kRounds; ++round) {
        LaunchTrace trace(
            {.streams = {}, .devices = {}, .threads = {Tracer::this_thread()}, .kinds = {}});
        plugin.launch(stream, own);
        const std::vector<LaunchTraceEntry> entries = trace.take();
        ASSERT_THAT(names_of(entries), ElementsAre(own));
      }
    });
  }
  for (std::thread& thread : tracers) thread.join();
  stop.store(true);
  for (std::thread& thread : launchers) thread.join();
}

}  // namespace
}  // namespace lockstep::testing
