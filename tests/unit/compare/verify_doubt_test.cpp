// SPDX-License-Identifier: Apache-2.0
// Order that cannot be followed is neither verified nor failed: traces made by hand, and programs
// on the host backend.
#include <lockstep/lockstep.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "verify_programs.h"

namespace lockstep::testing_verify {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

enum class Outcome { kVerified, kFailed, kUndecided };

Outcome outcome(const VerifyReport& report) {
  if (report.ok()) return Outcome::kVerified;
  const bool undecided = find(report, VerifyLevel::kOrder, "undecided") != nullptr;
  EXPECT_EQ(report.verified, VerifyLevel::kMultiset) << to_text(report);
  EXPECT_NE(undecided, find(report, VerifyLevel::kOrder, "order") != nullptr) << to_text(report);
  return undecided ? Outcome::kUndecided : Outcome::kFailed;
}

/// Of eager against a replay that has no order; one that has the order is always verified.
Outcome without_order(const Trace& eager) {
  EXPECT_TRUE(
      verify_traces(eager, chain_of({kernel("first"), kernel("second")}), VerifyLevel::kOrder)
          .ok());
  return outcome(
      verify_traces(eager, graph_of({kernel("first"), kernel("second")}, {}), VerifyLevel::kOrder));
}

LaunchTraceEntry of_thread(std::uint32_t thread, LaunchTraceEntry entry) {
  entry.thread_index = thread;
  return entry;
}
LaunchTraceEntry sync(std::uint32_t stream, const std::string& name = "cuStreamSynchronize") {
  return other(OperationKind::kSynchronize, stream, -1, name);
}

/// A trace that launches graph i by the entry launch_of(i).
LaunchTraceEntry launch_of(std::int32_t graph, std::uint32_t stream) {
  LaunchTraceEntry entry = other(OperationKind::kGraphLaunch, stream, -1, "hostGraphLaunch");
  entry.graph = graph;
  entry.graph_version = 1;
  return entry;
}
void define(Trace& trace, std::int32_t number, std::vector<LaunchTraceEntry> nodes) {
  GraphDefinition graph = chain_of(std::move(nodes)).graphs.begin()->second;
  graph.graph = number;
  trace.graphs.emplace(std::pair(number, 1u), std::move(graph));
}

/// "first" and a node that records event `recorded`; on stream 2 a wait for `waited`, then
/// "second".
Trace recorded_by_node(std::int64_t recorded, std::int64_t waited) {
  Trace trace = trace_of({launch_of(0, 1), wait(waited, 2), kernel("second", 2)});
  define(trace, 0, {kernel("first"), record(recorded, 0)});
  return trace;
}

TEST(VerifyDoubt, WaitsOfOtherThreads) {
  const auto program = [](std::uint32_t thread) {
    return trace_of({kernel("first", 1), of_thread(thread, sync(1)), kernel("second", 2)});
  };
  EXPECT_EQ(without_order(program(0)), Outcome::kFailed);
  EXPECT_EQ(without_order(program(1)), Outcome::kUndecided);
  // Only where it makes a difference.
  EXPECT_EQ(
      without_order(trace_of({kernel("first", 1), of_thread(1, sync(3)), kernel("second", 2)})),
      Outcome::kVerified);
  EXPECT_EQ(
      without_order(trace_of({of_thread(1, sync(1)), kernel("first", 1), kernel("second", 2)})),
      Outcome::kVerified);
  EXPECT_EQ(without_order(trace_of(
                {kernel("first", 1), of_thread(1, sync(1)), sync(1), kernel("second", 2)})),
            Outcome::kFailed);

  const VerifyReport report =
      verify_traces(program(1), graph_of({kernel("first"), kernel("second")}, {}));
  EXPECT_THAT(to_text(report),
              AllOf(HasSubstr("not verified: L2 (order) could not be decided; holds up to L1"),
                    HasSubstr("eager may guarantee that #0 (kernel  first"),
                    HasSubstr("eager: synchronize  cuStreamSynchronize of thread 1 (entry 1 as "
                              "enqueued) waits on one thread, and another then enqueues kernel  "
                              "second"),
                    HasSubstr("Wait on the thread that enqueues")));
  EXPECT_THAT(to_json(report), HasSubstr(R"("what":"undecided")"));
}

TEST(VerifyDoubt, OrderThatReplayMayHaveIsNotAFailure) {
  const Trace eager = trace_of({kernel("first"), kernel("second")});
  const auto replay = [](const LaunchTraceEntry& between) {
    return trace_of({kernel("first", 1), between, kernel("second", 2)});
  };
  EXPECT_EQ(outcome(verify_traces(eager, replay(sync(1)), VerifyLevel::kOrder)),
            Outcome::kVerified);
  EXPECT_EQ(outcome(verify_traces(eager, replay(of_thread(1, sync(1))), VerifyLevel::kOrder)),
            Outcome::kUndecided);
  EXPECT_EQ(outcome(verify_traces(eager, replay(sync(3)), VerifyLevel::kOrder)), Outcome::kFailed);
}

TEST(VerifyDoubt, OneSureFailureIsAFailure) {
  const Trace eager = trace_of(
      {kernel("first", 1), of_thread(1, sync(1)), kernel("second", 2), kernel("third", 2)});
  const std::vector<LaunchTraceEntry> nodes = {kernel("first"), kernel("second"), kernel("third")};
  EXPECT_EQ(outcome(verify_traces(eager, graph_of(nodes, {}), VerifyLevel::kOrder)),
            Outcome::kFailed);
  EXPECT_EQ(outcome(verify_traces(eager, graph_of(nodes, {{1, 2}}), VerifyLevel::kOrder)),
            Outcome::kUndecided);
  EXPECT_EQ(outcome(verify_traces(eager, chain_of(nodes), VerifyLevel::kOrder)),
            Outcome::kVerified);
}

TEST(VerifyDoubt, RecordedQueries) {
  EXPECT_EQ(
      without_order(trace_of({kernel("first", 1), sync(1, "cuStreamQuery"), kernel("second", 2)})),
      Outcome::kUndecided);
  EXPECT_EQ(
      without_order(trace_of({kernel("first", 1), sync(2, "cuStreamQuery"), kernel("second", 2)})),
      Outcome::kVerified);
}

TEST(VerifyDoubt, StreamMemoryOperations) {
  const auto memop = [](std::uint32_t stream) {
    return other(OperationKind::kStreamMemOp, stream, -1, "cuStreamWriteValue32");
  };
  EXPECT_EQ(without_order(trace_of({kernel("first", 1), memop(1), memop(2), kernel("second", 2)})),
            Outcome::kUndecided);
  EXPECT_EQ(without_order(trace_of({kernel("first", 1), memop(1), kernel("second", 2), memop(2)})),
            Outcome::kVerified);
}

TEST(VerifyDoubt, EventsThatNodesRecord) {
  EXPECT_EQ(without_order(recorded_by_node(4, 4)), Outcome::kFailed);
  EXPECT_EQ(without_order(recorded_by_node(4, 5)), Outcome::kVerified);
  // The node does not say which event it records (plugins of drivers that do not tell).
  EXPECT_EQ(without_order(recorded_by_node(-1, -1)), Outcome::kUndecided);
  EXPECT_EQ(without_order(recorded_by_node(-1, 5)), Outcome::kUndecided);

  // A stream's record that came later is certain; one that came before may have been replaced.
  const auto recorded_twice = [](bool later) {
    std::vector<LaunchTraceEntry> entries = {kernel("first", 1), record(7, 1), wait(7, 2),
                                             kernel("second", 2)};
    entries.insert(entries.begin() + (later ? 0 : 2), launch_of(0, 3));
    Trace trace = trace_of(entries);
    define(trace, 0, {record(-1, 0)});
    return trace;
  };
  EXPECT_EQ(without_order(recorded_twice(true)), Outcome::kFailed);
  EXPECT_EQ(without_order(recorded_twice(false)), Outcome::kUndecided);
}

TEST(VerifyDoubt, EventsThatNodesWaitFor) {
  const auto waited_by_node = [](std::vector<LaunchTraceEntry> before, std::int64_t waited) {
    before.push_back(launch_of(1, 2));
    Trace trace = trace_of(std::move(before));
    define(trace, 0, {kernel("first"), record(4, 0)});
    define(trace, 1, {wait(waited, 0), kernel("second")});
    return trace;
  };
  const LaunchTraceEntry first = kernel("first", 1);
  EXPECT_EQ(without_order(waited_by_node({launch_of(0, 1)}, 4)), Outcome::kFailed);
  EXPECT_EQ(without_order(waited_by_node({launch_of(0, 1)}, 5)), Outcome::kVerified);
  EXPECT_EQ(without_order(waited_by_node({launch_of(0, 1)}, -1)), Outcome::kUndecided);
  // Nodes name events, streams records of them: whether it is one event is not known.
  EXPECT_EQ(without_order(waited_by_node({first, record(7, 1)}, 4)), Outcome::kUndecided);
  EXPECT_EQ(without_order(waited_by_node({launch_of(0, 1), record(7, 3)}, 4)), Outcome::kUndecided);
  // Recorded too early, or never.
  EXPECT_EQ(without_order(waited_by_node({record(7, 1), first}, 4)), Outcome::kVerified);
  EXPECT_EQ(without_order(waited_by_node({first}, 4)), Outcome::kVerified);
}

TEST(VerifyDoubt, WaitsBindNoRecordOfTheirOwnLaunch) {
  const std::vector<LaunchTraceEntry> nodes = {kernel("first"), record(4, 0), wait(4, 0),
                                               kernel("second")};
  const Trace replay = graph_of(nodes, {{0, 1}, {2, 3}});
  const Trace eager = trace_of({kernel("first"), kernel("second")});
  EXPECT_EQ(outcome(verify_traces(eager, replay, VerifyLevel::kOrder)), Outcome::kUndecided);
  EXPECT_EQ(outcome(verify_traces(eager, chain_of(nodes), VerifyLevel::kOrder)),
            Outcome::kVerified);
}

/// The program `step(first, second)` on the host backend against a graph of two kernels, with and
/// without the order. Only the relation of the two streams differs from step to step.
class VerifyDoubtProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = Device::open("host");
    module_ = device_.compile(
        R"(__global__ void first(int* x) { x[0] = 1; } __global__ void second(int* x) { x[1] = 2; })",
        {.kernels = {"first", "second"}});
    x_ = device_.allocate<int>(2);
    a_ = device_.create_stream();
    b_ = device_.create_stream();
    event_ = device_.create_event();
  }

  void first(const StreamRef& stream) const { stream.launch(module_.kernel("first"), {}, x_); }
  void second(const StreamRef& stream) const { stream.launch(module_.kernel("second"), {}, x_); }

  VerifyReport run(const std::function<void()>& step, bool ordered) {
    Graph graph = device_.create_graph();
    const GraphNode node =
        graph.add_kernel(std::vector<GraphNode>{}, module_.kernel("first"), {}, x_);
    graph.add_kernel(ordered ? std::vector<GraphNode>{node} : std::vector<GraphNode>{},
                     module_.kernel("second"), {}, x_);
    return verify(graph.instantiate(), [&](Stream&) { step(); });
  }
  Outcome without_order(const std::function<void()>& step) {
    EXPECT_TRUE(run(step, true).ok()) << to_text(run(step, true));
    return outcome(run(step, false));
  }
  void poll(const auto& what) const {
    while (!what.query()) std::this_thread::yield();
  }

  Device device_;
  Module module_;
  Buffer<int> x_;
  Stream a_, b_;
  Event event_;
};

TEST_F(VerifyDoubtProgram, Polling) {
  EXPECT_EQ(without_order([&] { first(a_), poll(a_), second(b_); }), Outcome::kUndecided);
  EXPECT_EQ(without_order([&] { first(a_), a_.record(event_), poll(event_), second(b_); }),
            Outcome::kUndecided);
  // Of what does not matter: another stream, an event recorded before, after everything.
  EXPECT_EQ(without_order([&] { first(a_), poll(b_), second(b_); }), Outcome::kVerified);
  EXPECT_EQ(without_order([&] { a_.record(event_), first(a_), poll(event_), second(b_); }),
            Outcome::kVerified);
  EXPECT_EQ(without_order([&] { first(a_), second(b_), poll(a_), poll(b_); }), Outcome::kVerified);
  EXPECT_EQ(without_order([&] { first(a_), poll(a_), a_.synchronize(), second(b_); }),
            Outcome::kFailed);
  EXPECT_THAT(to_text(run([&] { first(a_), poll(a_), second(b_); }, false)),
              AllOf(HasSubstr("Stream::query"), HasSubstr("Synchronise instead")));
}

TEST_F(VerifyDoubtProgram, OtherThreads) {
  const auto elsewhere = [](const auto& work) { std::thread(work).join(); };
  EXPECT_EQ(without_order([&] { first(a_), elsewhere([&] { a_.synchronize(); }), second(b_); }),
            Outcome::kUndecided);
  EXPECT_EQ(
      without_order([&] { first(a_), elsewhere([&] { device_.synchronize(); }), second(b_); }),
      Outcome::kUndecided);
  EXPECT_EQ(without_order([&] { first(a_), elsewhere([&] { poll(a_); }), second(b_); }),
            Outcome::kUndecided);
  EXPECT_EQ(without_order([&] {
              first(a_), elsewhere([&] { a_.record(event_), event_.synchronize(); }), second(b_);
            }),
            Outcome::kUndecided);
  Stream unrelated = device_.create_stream();
  EXPECT_EQ(
      without_order([&] { first(a_), elsewhere([&] { unrelated.synchronize(); }), second(b_); }),
      Outcome::kVerified);
  // What another thread verifies is its own affair.
  EXPECT_EQ(without_order([&] {
              first(a_);
              elsewhere([&] {
                Stream own = device_.create_stream();
                const GraphExec alone =
                    own.capture([&](const StreamRef& stream) { first(stream); }).instantiate();
                EXPECT_TRUE(verify(alone, [&](Stream& stream) { first(stream); }).ok());
              });
              second(b_);
            }),
            Outcome::kVerified);
}

TEST_F(VerifyDoubtProgram, EventsOfNodes) {
  const auto graph_of_first = [&] {
    Graph graph = device_.create_graph();
    const GraphNode node =
        graph.add_kernel(std::vector<GraphNode>{}, module_.kernel("first"), {}, x_);
    graph.add_event_record(std::vector<GraphNode>{node}, event_);
    return graph.instantiate();
  };
  Graph graph = device_.create_graph();
  const GraphNode node = graph.add_event_wait(std::vector<GraphNode>{}, event_);
  graph.add_kernel(std::vector<GraphNode>{node}, module_.kernel("second"), {}, x_);
  const GraphExec records = graph_of_first(), waits = graph.instantiate();

  EXPECT_EQ(without_order([&] { records.launch(a_), b_.wait(event_), second(b_); }),
            Outcome::kFailed);
  EXPECT_EQ(without_order([&] { records.launch(a_), event_.synchronize(), second(b_); }),
            Outcome::kFailed);
  EXPECT_EQ(without_order([&] { records.launch(a_), poll(event_), second(b_); }),
            Outcome::kUndecided);
  EXPECT_EQ(without_order([&] { records.launch(a_), waits.launch(b_); }), Outcome::kFailed);
  EXPECT_EQ(without_order([&] { first(a_), a_.record(event_), waits.launch(b_); }),
            Outcome::kUndecided);
  EXPECT_EQ(without_order([&] { first(a_), waits.launch(b_); }), Outcome::kVerified);
}

}  // namespace
}  // namespace lockstep::testing_verify
