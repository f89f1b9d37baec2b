// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "unit/host/host_fixture.h"

namespace lockstep::host_test {
namespace {

class CaptureScenarios : public HostTest {};

bool mentions(const Result& result, const std::string& text) {
  return result.message.find(text) != std::string::npos;
}
std::string number_of(const lockstep_backend& b, const Stream& stream) {
  return "stream #" + std::to_string(b.stream_identity(stream.get()));
}
const std::vector<std::pair<std::uint32_t, std::uint32_t>> kChain = {{0, 1}};

TEST_F(Cases, CAP_01_UnjoinedForkNamesTheStream) {
  const Stream s1 = make_stream();
  const Stream s2 = make_stream();
  const Event e = make_event();
  const Event f = make_event();
  int* const p = allocate<int>(1);
  ASSERT_TRUE(succeeded(set(s1, p, 0, 4, 1)));
  ASSERT_TRUE(succeeded(synchronize(s1)));
  const auto fork = [&] {
    ASSERT_TRUE(succeeded(begin(s1)));
    ASSERT_TRUE(succeeded(launch(s1, kernel("add"), {}, p, 1)));
    ASSERT_TRUE(succeeded(record(e, s1)));
    ASSERT_TRUE(succeeded(wait(s2, e)));
    ASSERT_TRUE(succeeded(launch(s2, kernel("add"), {}, p, 10)));
  };
  fork();
  EXPECT_EQ(status(s2), LOCKSTEP_CAPTURE_ACTIVE);
  const Result unjoined = end(s1, nullptr);
  EXPECT_EQ(unjoined.native, 904);
  EXPECT_EQ(unjoined.code, LOCKSTEP_E_ILLEGAL_DURING_CAPTURE);
  EXPECT_EQ(unjoined.rule, std::uint32_t{LOCKSTEP_CAPTURE_RULE_UNJOINED});
  EXPECT_TRUE(mentions(unjoined, "work captured on " + number_of(b, s2))) << unjoined.message;
  EXPECT_EQ(status(s1), LOCKSTEP_CAPTURE_NOT_CAPTURING);
  EXPECT_EQ(status(s2), LOCKSTEP_CAPTURE_NOT_CAPTURING);
  EXPECT_TRUE(usable(s1));
  EXPECT_TRUE(usable(s2));

  start_recording();
  fork();
  ASSERT_TRUE(succeeded(record(f, s2)));
  ASSERT_TRUE(succeeded(wait(s1, f)));
  Graph graph;
  ASSERT_TRUE(succeeded(end(s1, &graph)));
  const std::vector<Recorded> records = stop_recording();
  EXPECT_EQ(kinds(graph), (std::vector<std::uint32_t>{LOCKSTEP_NODE_KERNEL, LOCKSTEP_NODE_KERNEL}));
  EXPECT_EQ(edges(graph), kChain);
  std::vector<std::pair<std::uint64_t, std::int32_t>> kernels;
  for (const Recorded& r : records) {
    EXPECT_EQ(r.flags, std::uint32_t{LOCKSTEP_RECORD_CAPTURED}) << r.name;
    EXPECT_NE(r.graph, 0U);
    if (r.record.kind == LOCKSTEP_RECORD_KERNEL) kernels.emplace_back(r.record.stream, r.node);
  }
  EXPECT_EQ(kernels, (std::vector<std::pair<std::uint64_t, std::int32_t>>{
                         {b.stream_identity(s1.get()), 0}, {b.stream_identity(s2.get()), 1}}));
  int value = -1;
  ASSERT_TRUE(succeeded(copy(s1, &value, p, sizeof(value))));
  ASSERT_TRUE(succeeded(synchronize(s1)));
  EXPECT_EQ(value, 0) << "a kernel ran while it was captured";
}

TEST_F(Cases, CAP_02_CapturedWorkDoesNotRun) {
  const Stream s = make_stream();
  int* const d = allocate<int>(1);
  int value = 5;
  ASSERT_TRUE(succeeded(copy(s, d, &value, sizeof(value))));
  ASSERT_TRUE(succeeded(begin(s)));
  ASSERT_TRUE(succeeded(launch(s, kernel("store"), {}, d, 7)));
  Graph graph;
  ASSERT_TRUE(succeeded(end(s, &graph)));
  ASSERT_TRUE(succeeded(copy(s, &value, d, sizeof(value))));
  ASSERT_TRUE(succeeded(synchronize(s)));
  EXPECT_EQ(value, 5);
  const Exec exec = instantiate(graph);
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  ASSERT_TRUE(succeeded(copy(s, &value, d, sizeof(value))));
  ASSERT_TRUE(succeeded(synchronize(s)));
  EXPECT_EQ(value, 7);
}

TEST_F(Cases, CAP_05_MergedCapturesAndDestroyedStreams) {
  const Stream s1 = make_stream();
  Stream s2 = make_stream();
  const Event e = make_event();
  ASSERT_TRUE(succeeded(begin(s1)));
  ASSERT_TRUE(succeeded(begin(s2)));
  ASSERT_TRUE(succeeded(launch(s1, kernel("nop"), {})));
  ASSERT_TRUE(succeeded(record(e, s1)));
  const Result merge = wait(s2, e);
  EXPECT_EQ(merge.native, 902);
  EXPECT_EQ(merge.rule, std::uint32_t{LOCKSTEP_CAPTURE_RULE_MERGE});
  EXPECT_TRUE(mentions(merge, number_of(b, s1)) && mentions(merge, number_of(b, s2)))
      << merge.message;
  EXPECT_EQ(begin(s1).native, 401);
  EXPECT_EQ(end(s1, nullptr).native, 901);
  EXPECT_EQ(end(s2, nullptr).native, 901);
  EXPECT_TRUE(usable(s1));
  EXPECT_TRUE(usable(s2));

  ASSERT_TRUE(succeeded(begin(s1)));
  ASSERT_TRUE(succeeded(record(e, s1)));
  ASSERT_TRUE(succeeded(wait(s2, e)));
  ASSERT_TRUE(succeeded(launch(s2, kernel("nop"), {})));
  const std::string destroyed = number_of(b, s2);
  s2.reset();
  EXPECT_EQ(status(s1), LOCKSTEP_CAPTURE_ACTIVE);
  const Result unjoined = end(s1, nullptr);
  EXPECT_EQ(unjoined.native, 904);
  EXPECT_TRUE(mentions(unjoined, destroyed)) << unjoined.message;
  EXPECT_TRUE(usable(s1));
}

TEST_F(Cases, CAP_07_LegacyStreamWhileABlockingStreamCaptures) {
  const Stream blocking = make_stream(true);
  const Stream legacy = special(LOCKSTEP_STREAM_LEGACY);
  int* const p = allocate<int>(1);
  ASSERT_TRUE(succeeded(begin(blocking)));
  const Result used = launch(legacy, kernel("store"), {}, p, 3);
  EXPECT_EQ(used.native, 906);
  EXPECT_EQ(used.rule, std::uint32_t{LOCKSTEP_CAPTURE_RULE_IMPLICIT});
  EXPECT_TRUE(mentions(
      used, "the legacy stream was used while blocking " + number_of(b, blocking) + " captures"))
      << used.message;
  const Result ended = end(blocking, nullptr);
  EXPECT_EQ(ended.native, 901);
  EXPECT_TRUE(mentions(ended, "invalidated by hostLaunchKernel on thread")) << ended.message;

  const Stream apart = make_stream(false);
  start_recording();
  ASSERT_TRUE(succeeded(begin(apart)));
  ASSERT_TRUE(succeeded(launch(legacy, kernel("store"), {}, p, 4)));
  Graph graph;
  ASSERT_TRUE(succeeded(end(apart, &graph)));
  const std::vector<Recorded> records = stop_recording();
  EXPECT_EQ(node_count(graph), 0U);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].flags, 0U);
  int value = 0;
  ASSERT_TRUE(succeeded(copy(legacy, &value, p, sizeof(value))));
  ASSERT_TRUE(succeeded(synchronize(legacy)));
  EXPECT_EQ(value, 4);
}

TEST_F(Cases, CAP_10_WatchdogInThreadLocalModeLeavesTheCaptureAlone) {
  const Stream s1 = make_stream();
  const Stream s2 = make_stream();
  const Event e = make_event();
  ASSERT_TRUE(succeeded(record(e, s2)));
  std::atomic<bool> stop{false};
  std::atomic<int> polls{0};
  std::atomic<int> refused{0};
  std::thread watchdog([&] {
    std::uint32_t mode = LOCKSTEP_CAPTURE_THREAD_LOCAL;
    EXPECT_TRUE(succeeded(call(b.capture_thread_mode, device, &mode)));
    while (!stop) {
      const Result polled = call(b.event_query, e.get());
      if (!polled.ok() && polled.code != LOCKSTEP_E_NOT_READY) ++refused;
      ++polls;
    }
  });
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(succeeded(begin(s1)));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(succeeded(launch(s1, kernel("nop"), {})));
    const int seen = polls;
    while (polls == seen) std::this_thread::yield();
    Graph graph;
    ASSERT_TRUE(succeeded(end(s1, &graph))) << "round " << round;
    ASSERT_EQ(node_count(graph), 5U);
  }
  stop = true;
  watchdog.join();
  EXPECT_EQ(refused, 0);
  EXPECT_GE(polls, 100);
}

TEST_F(Cases, CAP_13_UnrelatedStreamIsNotCaptured) {
  const Stream s1 = make_stream();
  const Stream s2 = make_stream();
  int* const p = allocate<int>(1);
  ASSERT_TRUE(succeeded(set(s2, p, 0, 4, 1)));
  ASSERT_TRUE(succeeded(begin(s1)));
  ASSERT_TRUE(succeeded(launch(s2, kernel("add"), {}, p, 1)));
  Graph graph;
  ASSERT_TRUE(succeeded(end(s1, &graph)));
  EXPECT_EQ(node_count(graph), 0U);
  const Exec exec = instantiate(graph);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(succeeded(launch_graph(exec, s1)));
  ASSERT_TRUE(succeeded(synchronize(s1)));
  int value = 0;
  ASSERT_TRUE(succeeded(copy(s2, &value, p, sizeof(value))));
  ASSERT_TRUE(succeeded(synchronize(s2)));
  EXPECT_EQ(value, 1);
}

TEST_F(Cases, CAP_14_FirstUseOfAKernelInsideACapture) {
  Module module;
  ASSERT_TRUE(succeeded(compile("extern \"C\" __global__ void first_use(int* p) { *p = 12; }",
                                {"first_use"}, &module)));
  lockstep_kernel* first_use = nullptr;
  ASSERT_TRUE(succeeded(call(b.module_kernel, module.get(), "first_use", &first_use)));
  ASSERT_TRUE(succeeded(call(b.module_load_all, module.get())));
  const Stream s = make_stream();
  int* const p = allocate<int>(1);
  start_recording();
  ASSERT_TRUE(succeeded(begin(s)));
  ASSERT_TRUE(succeeded(launch(s, first_use, {}, p)));
  Graph graph;
  ASSERT_TRUE(succeeded(end(s, &graph)));
  const std::vector<Recorded> records = stop_recording();
  ASSERT_EQ(records.size(), 1U);  // and no copy or set of a loader
  EXPECT_EQ(records[0].name, "first_use");
  const Exec exec = instantiate(graph);
  module.reset();  // the graph keeps what it needs
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  int value = 0;
  ASSERT_TRUE(succeeded(copy(s, &value, p, sizeof(value))));
  ASSERT_TRUE(succeeded(synchronize(s)));
  EXPECT_EQ(value, 12);
}

TEST_F(Cases, CAP_17_HostFunctionRunsOnEveryReplay) {
  const Stream s = make_stream();
  std::atomic<int> counter{0};
  ASSERT_TRUE(succeeded(begin(s)));
  ASSERT_TRUE(succeeded(launch(s, kernel("nop"), {})));
  ASSERT_TRUE(succeeded(call(
      b.host_function, s.get(), +[](void* c) { ++*static_cast<std::atomic<int>*>(c); },
      static_cast<void*>(&counter))));
  ASSERT_TRUE(succeeded(launch(s, kernel("nop"), {})));
  Graph graph;
  ASSERT_TRUE(succeeded(end(s, &graph)));
  EXPECT_EQ(kinds(graph), (std::vector<std::uint32_t>{LOCKSTEP_NODE_KERNEL, LOCKSTEP_NODE_HOST,
                                                      LOCKSTEP_NODE_KERNEL}));
  const Exec exec = instantiate(graph);
  EXPECT_EQ(counter, 0);
  graph.reset();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  ASSERT_TRUE(succeeded(synchronize(s)));
  EXPECT_EQ(counter, 5);
}

TEST_F(CaptureScenarios, EndFromAnotherThread) {
  for (const std::uint32_t mode :
       {LOCKSTEP_CAPTURE_GLOBAL, LOCKSTEP_CAPTURE_THREAD_LOCAL, LOCKSTEP_CAPTURE_RELAXED}) {
    const Stream s = make_stream();
    ASSERT_TRUE(succeeded(begin(s, mode)));
    ASSERT_TRUE(succeeded(launch(s, kernel("nop"), {})));
    Graph graph;
    Result ended;
    std::thread([&] { ended = end(s, &graph); }).join();
    if (mode == LOCKSTEP_CAPTURE_RELAXED) {
      EXPECT_TRUE(succeeded(ended));
      EXPECT_EQ(node_count(graph), 1U);
    } else {
      EXPECT_EQ(ended.native, 908);
      EXPECT_EQ(ended.rule, std::uint32_t{LOCKSTEP_CAPTURE_RULE_WRONG_THREAD});
    }
    EXPECT_EQ(status(s), LOCKSTEP_CAPTURE_NOT_CAPTURING);
    EXPECT_TRUE(usable(s));
  }
}

TEST_F(CaptureScenarios, EndOnAJoinedStreamInvalidatesButLeavesTheEndToTheOrigin) {
  const Stream s1 = make_stream();
  const Stream s2 = make_stream();
  const Event e = make_event();
  ASSERT_TRUE(succeeded(begin(s1)));
  ASSERT_TRUE(succeeded(record(e, s1)));
  ASSERT_TRUE(succeeded(wait(s2, e)));
  const Result wrong = end(s2, nullptr);
  EXPECT_EQ(wrong.native, 903);
  EXPECT_EQ(wrong.rule, std::uint32_t{LOCKSTEP_CAPTURE_RULE_UNMATCHED});
  EXPECT_TRUE(mentions(wrong, number_of(b, s1))) << wrong.message;
  EXPECT_EQ(status(s1), LOCKSTEP_CAPTURE_IS_INVALIDATED);
  EXPECT_EQ(status(s2), LOCKSTEP_CAPTURE_IS_INVALIDATED);
  EXPECT_EQ(end(s1, nullptr).native, 901);
  EXPECT_TRUE(usable(s1));
  EXPECT_TRUE(usable(s2));
}

TEST_F(CaptureScenarios, DestroyingTheOriginEndsTheCapture) {
  Stream s1 = make_stream();
  const Stream s2 = make_stream();
  const Event e = make_event();
  ASSERT_TRUE(succeeded(begin(s1)));
  ASSERT_TRUE(succeeded(record(e, s1)));
  ASSERT_TRUE(succeeded(wait(s2, e)));
  s1.reset();
  EXPECT_EQ(status(s2), LOCKSTEP_CAPTURE_NOT_CAPTURING);
  EXPECT_NE(allocate<int>(1), nullptr);  // the thread is not restricted any more
  EXPECT_EQ(end(s2, nullptr).native, 401);
  EXPECT_TRUE(usable(s2));
}

TEST_F(CaptureScenarios, JoiningWithoutWorkLeavesNothingUnjoined) {
  const Stream s1 = make_stream();
  const Stream s2 = make_stream();
  const Event e = make_event();
  ASSERT_TRUE(succeeded(begin(s1)));
  ASSERT_TRUE(succeeded(launch(s1, kernel("nop"), {})));
  ASSERT_TRUE(succeeded(record(e, s1)));
  ASSERT_TRUE(succeeded(wait(s2, e)));
  EXPECT_EQ(status(s2), LOCKSTEP_CAPTURE_ACTIVE);
  Graph graph;
  ASSERT_TRUE(succeeded(end(s1, &graph)));
  EXPECT_EQ(node_count(graph), 1U);
}

TEST_F(CaptureScenarios, ForkOverThreeStreamsHasTheEdgesAsDrawn) {
  const Stream s[3] = {make_stream(), make_stream(), make_stream()};
  const Event e[3] = {make_event(), make_event(), make_event()};
  const auto go = [&](int stream) { ASSERT_TRUE(succeeded(launch(s[stream], kernel("nop"), {}))); };
  ASSERT_TRUE(succeeded(begin(s[0])));
  go(0);
  ASSERT_TRUE(succeeded(record(e[0], s[0])));
  ASSERT_TRUE(succeeded(wait(s[1], e[0])));
  ASSERT_TRUE(succeeded(wait(s[2], e[0])));
  for (const int stream : {1, 2, 1, 2, 0}) go(stream);
  for (const int stream : {1, 2}) {
    ASSERT_TRUE(succeeded(record(e[stream], s[stream])));
    ASSERT_TRUE(succeeded(wait(s[0], e[stream])));
  }
  go(0);
  Graph graph;
  ASSERT_TRUE(succeeded(end(s[0], &graph)));
  EXPECT_EQ(edges(graph), (std::vector<std::pair<std::uint32_t, std::uint32_t>>{
                              {0, 1}, {0, 2}, {0, 5}, {1, 3}, {2, 4}, {3, 6}, {4, 6}, {5, 6}}));
}

TEST_F(CaptureScenarios, TheDriverKeepsRedundantEdges) {
  const Stream s1 = make_stream();
  const Stream s2 = make_stream();
  const Event e = make_event();
  const Event f = make_event();
  ASSERT_TRUE(succeeded(begin(s1)));
  ASSERT_TRUE(succeeded(launch(s1, kernel("nop"), {})));
  ASSERT_TRUE(succeeded(record(e, s1)));
  ASSERT_TRUE(succeeded(wait(s2, e)));
  ASSERT_TRUE(succeeded(launch(s2, kernel("nop"), {})));
  ASSERT_TRUE(succeeded(record(f, s2)));
  ASSERT_TRUE(succeeded(wait(s1, f)));
  ASSERT_TRUE(succeeded(launch(s1, kernel("nop"), {})));
  Graph graph;
  ASSERT_TRUE(succeeded(end(s1, &graph)));
  EXPECT_EQ(edges(graph),
            (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 1}, {0, 2}, {1, 2}}));
}

TEST_F(CaptureScenarios, CaptureIdsAreNeverUsedTwice) {
  const Stream s = make_stream();
  std::uint64_t former = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(succeeded(begin(s)));
    std::uint32_t state = 0;
    std::uint64_t id = 0;
    ASSERT_TRUE(succeeded(call(b.capture_status, s.get(), &state, &id)));
    EXPECT_GT(id, former);
    former = id;
    ASSERT_TRUE(succeeded(end(s, nullptr)));
  }
}

TEST_F(CaptureScenarios, CapturedCopiesReadTheirSourceAtEachReplay) {
  const Stream s = make_stream();
  int* const p = allocate<int>(1);
  int pageable = 1;
  ASSERT_TRUE(succeeded(begin(s)));
  ASSERT_TRUE(succeeded(copy(s, p, &pageable, sizeof(int))));
  Graph graph;
  ASSERT_TRUE(succeeded(end(s, &graph)));
  const Exec exec = instantiate(graph);
  for (const int value : {2, 3}) {
    pageable = value;
    ASSERT_TRUE(succeeded(launch_graph(exec, s)));
    int seen = 0;
    ASSERT_TRUE(succeeded(copy(s, &seen, p, sizeof(int))));
    ASSERT_TRUE(succeeded(synchronize(s)));
    EXPECT_EQ(seen, value);
  }
}

}  // namespace
}  // namespace lockstep::host_test
