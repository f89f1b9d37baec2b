// SPDX-License-Identifier: Apache-2.0
#include "unit/host/capture_rules_fixture.h"

// The table of what a call does to a capture, as measured with the CUDA driver: for each call, in
// each mode, on a capturing stream that synchronises with the legacy stream and on one that does
// not: the code, whether the capture survived, and the nodes of the graph.
namespace lockstep::host_test {
namespace {

using T = CaptureRulesTest;
using Row = CaptureRulesTest::Row;
constexpr std::uint32_t kKernelNode = LOCKSTEP_NODE_KERNEL;
const std::vector<std::uint32_t> kOne = {kKernelNode};
const std::vector<std::uint32_t> kWithCopy = {kKernelNode, LOCKSTEP_NODE_COPY};

// Rows that are alike for both kinds of stream.
std::vector<Row> common_rows() {
  return {
      {"allocate",
       [](T& t) { return t.allocation(LOCKSTEP_MEMORY_DEVICE); },
       {900, 900, 0},
       {false, false, true},
       kOne},
      {"copy from pageable",
       [](T& t) { return t.copy_1d(t.s, t.memory, t.pageable, 16); },
       {0, 0, 0},
       {true, true, true},
       kWithCopy},
      {"copy from pinned",
       [](T& t) { return t.copy_1d(t.s, t.memory, t.pinned, 16); },
       {0, 0, 0},
       {true, true, true},
       kWithCopy},
      {"copy to pageable",
       [](T& t) { return t.copy_1d(t.s, t.pageable, t.memory, 16); },
       {0, 0, 0},
       {true, true, true},
       kWithCopy},
      {"copy 0 bytes",
       [](T& t) { return t.copy_1d(t.s, t.memory, t.pageable, 0); },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"set 0 bytes", [](T& t) { return t.set_1d(t.s, 0); }, {0, 0, 0}, {true, true, true}, kOne},
      {"allocate and free in stream order",
       [](T& t) {
         Result r = t.allocation(LOCKSTEP_MEMORY_DEVICE, t.s.get());
         return r.ok() ? t.free(t.last, t.s.get()) : r;
       },
       {0, 0, 0},
       {true, true, true},
       {kKernelNode, LOCKSTEP_NODE_ALLOC, LOCKSTEP_NODE_FREE}},
      {"allocate in stream order, not freed",
       [](T& t) { return t.allocation(LOCKSTEP_MEMORY_DEVICE, t.s.get()); },
       {0, 0, 0},
       {true, true, true},
       {kKernelNode, LOCKSTEP_NODE_ALLOC}},
      {"free an earlier allocation in stream order",
       [](T& t) { return t.free(t.earlier, t.s.get()); },
       {1, 1, 1},
       {true, true, true},
       kOne},
      {"launch on the per-thread stream",
       [](T& t) { return t.nop(t.per_thread); },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"2-D copy", [](T& t) { return t.copy_2d(); }, {0, 0, 0}, {true, true, true}, kWithCopy},
      {"other thread: allocate",
       [](T& t) { return t.on_other_thread([&] { return t.allocation(LOCKSTEP_MEMORY_DEVICE); }); },
       {900, 0, 0},
       {false, true, true},
       kOne},
      {"other thread, relaxed by itself: allocate",
       [](T& t) {
         return t.on_other_thread([&] {
           std::uint32_t mode = LOCKSTEP_CAPTURE_RELAXED;
           Result r = call(t.b.capture_thread_mode, t.device, &mode);
           EXPECT_EQ(mode, LOCKSTEP_CAPTURE_GLOBAL);
           return r.ok() ? t.allocation(LOCKSTEP_MEMORY_DEVICE) : r;
         });
       },
       {0, 0, 0},
       {true, true, true},
       kOne},
  };
}

std::vector<Row> non_blocking_rows() {
  return {
      {"synchronize s",
       [](T& t) { return call(t.b.stream_synchronize, t.s.get()); },
       {900, 900, 900},
       {false, false, false},
       {}},
      {"query s",
       [](T& t) { return call(t.b.stream_query, t.s.get()); },
       {900, 900, 900},
       {false, false, false},
       {}},
      {"synchronize device",
       [](T& t) { return call(t.b.device_synchronize, t.device); },
       {900, 900, 900},
       {false, false, false},
       {}},
      {"synchronize other",
       [](T& t) { return call(t.b.stream_synchronize, t.other.get()); },
       {900, 900, 0},
       {false, false, true},
       kOne},
      {"query other",
       [](T& t) { return call(t.b.stream_query, t.other.get()); },
       {900, 900, 0},
       {false, false, true},
       kOne},
      {"allocate pinned",
       [](T& t) { return t.allocation(LOCKSTEP_MEMORY_PINNED); },
       {900, 900, 0},
       {false, false, true},
       kOne},
      {"register",
       [](T& t) {
         Result r = call(t.b.memory_register, t.device, static_cast<void*>(t.pageable),
                         std::uint64_t{sizeof(t.pageable)});
         if (r.ok()) {
           EXPECT_TRUE(
               succeeded(call(t.b.memory_unregister, t.device, static_cast<void*>(t.pageable))));
         }
         return r;
       },
       {900, 900, 0},
       {false, false, true},
       kOne},
      {"free",
       [](T& t) {
         t.made.clear();
         Result r = t.free(t.earlier, nullptr);
         if (!r.ok()) t.made.push_back(t.earlier);
         return r;
       },
       {900, 900, 0},
       {false, false, true},
       kOne},
      {"memory info",
       [](T& t) {
         std::uint64_t free = 0;
         std::uint64_t total = 0;
         return call(t.b.device_memory, t.device, &free, &total);
       },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"copy on the legacy stream",
       [](T& t) { return t.copy_1d(t.legacy, t.memory, t.pageable, 16); },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"query a captured event",
       [](T& t) {
         return t.record_then([](T& u) { return call(u.b.event_query, u.fresh.get()); });
       },
       {907, 907, 907},
       {false, false, false},
       {}},
      {"synchronize a captured event",
       [](T& t) {
         return t.record_then([](T& u) { return call(u.b.event_synchronize, u.fresh.get()); });
       },
       {907, 907, 907},
       {false, false, false},
       {}},
      {"query an earlier event",
       [](T& t) { return call(t.b.event_query, t.before.get()); },
       {900, 900, 0},
       {false, false, true},
       kOne},
      {"synchronize an earlier event",
       [](T& t) { return call(t.b.event_synchronize, t.before.get()); },
       {900, 900, 0},
       {false, false, true},
       kOne},
      {"query an event never recorded",
       [](T& t) { return call(t.b.event_query, t.fresh.get()); },
       {900, 900, 0},
       {false, false, true},
       kOne},
      {"wait for an earlier event",
       [](T& t) { return t.wait(t.s, t.before); },
       {905, 905, 905},
       {false, false, false},
       {}},
      {"wait for an event never recorded",
       [](T& t) { return t.wait(t.s, t.fresh); },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"create an event",
       [](T& t) {
         lockstep_event* event = nullptr;
         Result r = call(t.b.event_create, t.device, 0U, &event);
         t.b.event_destroy(event);
         return r;
       },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"host function",
       [](T& t) {
         return call(
             t.b.host_function, t.s.get(), +[](void*) {}, static_cast<void*>(nullptr));
       },
       {0, 0, 0},
       {true, true, true},
       {kKernelNode, LOCKSTEP_NODE_HOST}},
      {"load a module",
       [](T& t) { return t.compile_and_launch(false); },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"load a module and launch",
       [](T& t) { return t.compile_and_launch(true); },
       {0, 0, 0},
       {true, true, true},
       {kKernelNode, kKernelNode}},
      {"set the dynamic shared limit",
       [](T& t) { return call(t.b.kernel_set_max_dynamic_shared, t.kernel("nop"), 49152U); },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"create and destroy streams",
       [](T& t) {
         t.make_stream().reset();
         t.idle.reset();
         return Result{};
       },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"launch on the legacy stream",
       [](T& t) { return t.nop(t.legacy); },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"set on the legacy stream",
       [](T& t) { return t.set_1d(t.legacy, 4); },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"launch on another stream",
       [](T& t) { return t.nop(t.other); },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"ask whether the legacy stream captures",
       [](T& t) { return t.status_of(t.legacy); },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"begin again", [](T& t) { return t.begin(t.s); }, {401, 401, 401}, {true, true, true}, kOne},
      {"end another stream",
       [](T& t) { return t.end(t.other, nullptr); },
       {401, 401, 401},
       {true, true, true},
       kOne},
      {"launch a graph",
       [](T& t) { return t.launch_graph(t.other_exec, t.s); },
       {900, 900, 900},
       {false, false, false},
       {}},
      {"instantiate",
       [](T& t) {
         lockstep_graph_exec* exec = nullptr;
         Result r = call(t.b.graph_instantiate, t.other_graph.get(), &exec);
         if (r.ok()) t.b.graph_exec_destroy(exec);
         return r;
       },
       {900, 900, 0},
       {false, false, true},
       kOne},
      {"pointer info",
       [](T& t) {
         lockstep_pointer_info info{};
         info.struct_size = sizeof(info);
         return call(t.b.pointer_info, t.device, static_cast<const void*>(t.memory), &info);
       },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"other thread: synchronize other",
       [](T& t) {
         return t.on_other_thread([&] { return call(t.b.stream_synchronize, t.other.get()); });
       },
       {900, 0, 0},
       {false, true, true},
       kOne},
      {"other thread: query an earlier event",
       [](T& t) {
         return t.on_other_thread([&] { return call(t.b.event_query, t.before.get()); });
       },
       {900, 0, 0},
       {false, true, true},
       kOne},
      {"other thread: copy on the legacy stream",
       [](T& t) {
         return t.on_other_thread([&] { return t.copy_1d(t.legacy, t.memory, t.pageable, 16); });
       },
       {0, 0, 0},
       {true, true, true},
       kOne},
      {"other thread: launch on s",
       [](T& t) { return t.on_other_thread([&] { return t.nop(t.s); }); },
       {0, 0, 0},
       {true, true, true},
       {kKernelNode, kKernelNode}},
      {"other thread: synchronize device",
       [](T& t) {
         return t.on_other_thread([&] { return call(t.b.device_synchronize, t.device); });
       },
       {900, 900, 900},
       {false, false, false},
       {}},
      {"elapsed time",
       [](T& t) {
         Event timed = t.make_event(LOCKSTEP_EVENT_TIMING);
         Result r = t.record(timed, t.other);
         double ms = 0;
         while (r.ok() && (r = call(t.b.event_elapsed, timed.get(), timed.get(), &ms)).code ==
                              LOCKSTEP_E_NOT_READY) {
           r = Result{};
           std::this_thread::yield();
         }
         return r;
       },
       {0, 0, 0},
       {true, true, true},
       kOne},
  };
}

std::vector<Row> blocking_rows() {
  const std::int64_t k906 = 906;
  return {
      {"copy on the legacy stream",
       [](T& t) { return t.copy_1d(t.legacy, t.memory, t.pageable, 16); },
       {k906, k906, k906},
       {false, false, false},
       {}},
      {"copy from the device on the legacy stream",
       [](T& t) { return t.copy_1d(t.legacy, t.pageable, t.memory, 16); },
       {k906, k906, k906},
       {false, false, false},
       {}},
      {"set on the legacy stream",
       [](T& t) { return t.set_1d(t.legacy, 4); },
       {k906, k906, k906},
       {false, false, false},
       {}},
      {"launch on the legacy stream",
       [](T& t) { return t.nop(t.legacy); },
       {k906, k906, k906},
       {false, false, false},
       {}},
      {"ask whether the legacy stream captures",
       [](T& t) { return t.status_of(t.legacy); },
       {k906, k906, k906},
       {true, true, true},
       kOne},
      {"synchronize the legacy stream",
       [](T& t) { return call(t.b.stream_synchronize, t.legacy.get()); },
       {k906, k906, k906},
       {false, false, false},
       {}},
      {"query the legacy stream",
       [](T& t) { return call(t.b.stream_query, t.legacy.get()); },
       {k906, k906, k906},
       {false, false, false},
       {}},
      {"record on the legacy stream",
       [](T& t) { return t.record(t.fresh, t.legacy); },
       {k906, k906, k906},
       {false, false, false},
       {}},
      {"wait on the legacy stream",
       [](T& t) { return t.wait(t.legacy, t.before); },
       {k906, k906, k906},
       {false, false, false},
       {}},
      {"other thread: copy on the legacy stream",
       [](T& t) {
         return t.on_other_thread([&] { return t.copy_1d(t.legacy, t.memory, t.pageable, 16); });
       },
       {k906, k906, k906},
       {false, false, false},
       {}},
  };
}

TEST_F(CaptureRulesTest, EveryCallOnANonBlockingStream) {
  for (const Row& row : common_rows()) run(row, false);
  for (const Row& row : non_blocking_rows()) run(row, false);
}

TEST_F(CaptureRulesTest, EveryCallOnABlockingStream) {
  for (const Row& row : common_rows()) run(row, true);
  for (const Row& row : blocking_rows()) run(row, true);
}

// What the driver answers once a capture has been invalidated, and for events of ended captures.
TEST_F(CaptureRulesTest, InvalidatedAndEndedCaptures) {
  prepare(false);
  ASSERT_TRUE(succeeded(begin(s)));
  ASSERT_TRUE(succeeded(record(fresh, s)));
  EXPECT_EQ(synchronize(s).native, 900);
  EXPECT_EQ(begin(s).native, 401);
  EXPECT_EQ(nop(s).native, 901);
  EXPECT_EQ(record(fresh, s).native, 901);
  EXPECT_EQ(wait(other, fresh).native, 1);
  EXPECT_EQ(status(other), LOCKSTEP_CAPTURE_NOT_CAPTURING);
  EXPECT_EQ(synchronize(s).native, 900);
  EXPECT_EQ(end(s, nullptr).native, 901);

  ASSERT_TRUE(succeeded(begin(s)));
  ASSERT_TRUE(succeeded(nop(s)));
  ASSERT_TRUE(succeeded(record(fresh, s)));
  ASSERT_TRUE(succeeded(end(s, nullptr)));
  EXPECT_EQ(call(b.event_query, fresh.get()).native, 1);
  EXPECT_EQ(call(b.event_synchronize, fresh.get()).native, 1);
  EXPECT_EQ(wait(other, fresh).native, 1);
  ASSERT_TRUE(succeeded(begin(s)));
  EXPECT_EQ(wait(s, fresh).native, 1);
  EXPECT_EQ(status(s), LOCKSTEP_CAPTURE_IS_INVALIDATED);
  EXPECT_EQ(end(s, nullptr).native, 901);
  ASSERT_TRUE(succeeded(record(fresh, s)));
  EXPECT_TRUE(succeeded(call(b.event_synchronize, fresh.get())));
  EXPECT_TRUE(usable(s));
  EXPECT_TRUE(usable(other));
}

TEST_F(CaptureRulesTest, LegacyStreamNeverCaptures) {
  prepare(false);
  EXPECT_EQ(begin(legacy).native, 900);
  // Not even by an event of a capture on a non-blocking stream.
  ASSERT_TRUE(succeeded(begin(s)));
  ASSERT_TRUE(succeeded(record(fresh, s)));
  const Result joined = wait(legacy, fresh);
  EXPECT_EQ(joined.native, 906);
  EXPECT_EQ(joined.rule, std::uint32_t{LOCKSTEP_CAPTURE_RULE_IMPLICIT});
  EXPECT_EQ(status(s), LOCKSTEP_CAPTURE_IS_INVALIDATED);
  EXPECT_EQ(end(s, nullptr).native, 901);
  ASSERT_TRUE(succeeded(begin(per_thread)));
  ASSERT_TRUE(succeeded(nop(per_thread)));
  Graph graph;
  ASSERT_TRUE(succeeded(end(per_thread, &graph)));
  EXPECT_EQ(node_count(graph), 1U);
}

}  // namespace
}  // namespace lockstep::host_test
