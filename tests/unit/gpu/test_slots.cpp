// SPDX-License-Identifier: Apache-2.0
// The slots of backends/gpu over a fake driver: what is recorded and bound, how captures end, and
// what is done for libraries that may not be trusted.
#include "slots_fixture.h"

namespace {

using lockstep::gpu_test::fake;
using smoke::Answer;
using smoke::call;
using smoke::Entry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using SlotsTest = lockstep::gpu_test::SlotsTest;

TEST_F(SlotsTest, EverySlotOfTheTableIsFilled) {
  const auto* words = reinterpret_cast<const std::uintptr_t*>(&b_.initialize);
  const auto* end = reinterpret_cast<const std::uintptr_t*>(&b_ + 1);
  for (std::size_t index = 0; words + index < end; ++index) {
    EXPECT_NE(words[index], 0U) << "slot " << index;
  }
}

TEST_F(SlotsTest, NothingIsReportedWhileRecordingIsOff) {
  EXPECT_TRUE(launch(one_).ok());
  EXPECT_TRUE(copy(one_, 16).ok());
  EXPECT_TRUE(smoke::take().empty());
  EXPECT_EQ(fake().calls.size(), 2U);
}

TEST_F(SlotsTest, ALaunchCarriesItsArgumentsAndTheirTypes) {
  smoke::g_active = 1;
  EXPECT_TRUE(launch(one_).ok());
  const std::vector<Entry> entries = smoke::take();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].name, "kernel");
  EXPECT_EQ(entries[0].flags, 0U);
  EXPECT_EQ(entries[0].node, -1);
  EXPECT_EQ(entries[0].record.stream, b_.stream_identity(one_));
  ASSERT_EQ(entries[0].arguments.size(), 2U);
  EXPECT_THAT(entries[0].tags, ElementsAre(1, 0));
}

// A null for a pointer, say, which is passed as a number.
TEST_F(SlotsTest, TheFirstLaunchIsNoRuleForOthers) {
  const std::uint64_t null = 0;
  const int number = 7;
  const void* arguments[] = {&null, &number};
  const lockstep_parameter typed[] = {{0, 8, 0, {}}, {0, 4, 0, {}}};
  lockstep_launch_desc desc{};
  desc.struct_size = sizeof desc;
  desc.kernel = kernel_;
  desc.grid = desc.block = {1, 1, 1};
  desc.arguments = arguments;
  desc.argument_count = 2;
  desc.parameters = typed;
  EXPECT_TRUE(call(b_.launch, one_, &desc).ok());
  lockstep_kernel_info info{};
  info.struct_size = sizeof info;
  EXPECT_TRUE(call(b_.kernel_info, kernel_, &info).ok());
  ASSERT_EQ(info.parameter_count, 2U);
  EXPECT_EQ(info.parameters[0].tag, 255);
  smoke::g_active = 1;
  EXPECT_TRUE(launch(one_).ok());
  begin(one_);
  EXPECT_TRUE(launch(one_).ok());
  lockstep_graph* graph = nullptr;
  EXPECT_TRUE(call(b_.capture_end, one_, &graph).ok());
  for (const Entry& entry : smoke::take()) EXPECT_THAT(entry.tags, ElementsAre(1, 0));
  b_.graph_destroy(graph);
}

TEST_F(SlotsTest, AFailedCallIsRecordedAsFailed) {
  smoke::g_active = 1;
  fake().next_result = 719;
  EXPECT_EQ(launch(one_).code, LOCKSTEP_E_LAUNCH_FAILED);
  const std::vector<Entry> entries = smoke::take();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].flags, std::uint32_t{LOCKSTEP_RECORD_FAILED});
}

TEST_F(SlotsTest, EmptyCopiesAreRecordedAndNotSent) {
  smoke::g_active = 1;
  begin(one_);
  EXPECT_TRUE(copy(one_, 0).ok());
  EXPECT_TRUE(copy(one_, 8).ok());
  lockstep_graph* graph = nullptr;
  EXPECT_TRUE(call(b_.capture_end, one_, &graph).ok());
  const std::vector<Entry> entries = smoke::take();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].record.of.copy.width, 0U);
  EXPECT_EQ(entries[0].node, -1);
  EXPECT_EQ(entries[1].node, 0);
  EXPECT_EQ(fake().calls.size(), 1U);
  b_.graph_destroy(graph);
}

TEST_F(SlotsTest, CapturedCallsAreBoundInCreationOrder) {
  begin(one_);
  EXPECT_TRUE(launch(one_).ok());
  smoke::g_active = 1;  // recording may begin in the middle
  fake().capture_foreign_node(b_.stream_native(one_));
  fork();
  EXPECT_TRUE(launch(two_).ok());
  EXPECT_TRUE(launch(one_).ok());
  EXPECT_TRUE(call(b_.event_record, event_, two_).ok());
  EXPECT_TRUE(call(b_.stream_wait_event, one_, event_).ok());
  EXPECT_TRUE(launch(one_).ok());
  lockstep_graph* graph = nullptr;
  ASSERT_TRUE(call(b_.capture_end, one_, &graph).ok());
  // record, wait, launch, launch, record, wait, launch; 0 was not recorded, 1 is the foreign one.
  EXPECT_THAT(captured_nodes(), ElementsAre(-1, -1, 2, 3, -1, -1, 4));
  std::uint32_t count = 0;
  EXPECT_TRUE(call(b_.graph_node_count, graph, &count).ok());
  EXPECT_EQ(count, 5U);
  lockstep_node_info info{};
  info.struct_size = sizeof info;
  EXPECT_TRUE(call(b_.graph_node, graph, 1U, &info).ok());
  EXPECT_EQ(info.kind, std::uint32_t{LOCKSTEP_NODE_EMPTY});
  lockstep_graph_edge edges[8];
  EXPECT_TRUE(call(b_.graph_edges, graph, edges, 8U, &count).ok());
  ASSERT_EQ(count, 5U);
  EXPECT_EQ(edges[4].from, 3U);
  EXPECT_EQ(edges[4].to, 4U);
  b_.graph_destroy(graph);
}

// What a stream of a known capture took was captured, also when the driver does not say so.
TEST_F(SlotsTest, ACapturedCallOfUnknownNodeIsNoEagerOne) {
  begin(one_);
  EXPECT_TRUE(launch(one_).ok());
  smoke::g_active = 1;
  fake().questions_until_failure = 1;
  EXPECT_TRUE(launch(one_).ok());
  EXPECT_EQ(fake().questions_until_failure, 0);
  EXPECT_TRUE(launch(one_).ok());
  lockstep_graph* graph = nullptr;
  ASSERT_TRUE(call(b_.capture_end, one_, &graph).ok());
  EXPECT_THAT(captured_nodes(), ElementsAre(-1, 2));  // its node is the one between
  std::uint32_t count = 0;
  EXPECT_TRUE(call(b_.graph_node_count, graph, &count).ok());
  EXPECT_EQ(count, 3U);
  b_.graph_destroy(graph);
}

TEST_F(SlotsTest, UnjoinedWorkNamesItsStreamOnly) {
  lockstep_stream* joined = make_stream();
  begin(one_);
  EXPECT_TRUE(launch(one_).ok());
  fork();
  EXPECT_TRUE(call(b_.stream_wait_event, joined, event_).ok());
  EXPECT_TRUE(launch(two_).ok());
  EXPECT_TRUE(launch(joined).ok());
  EXPECT_TRUE(call(b_.event_record, event_, joined).ok());
  EXPECT_TRUE(call(b_.stream_wait_event, one_, event_).ok());
  lockstep_graph* graph = nullptr;
  const Answer end = call(b_.capture_end, one_, &graph);
  EXPECT_EQ(end.code, LOCKSTEP_E_ILLEGAL_DURING_CAPTURE);
  EXPECT_EQ(end.error.capture_rule, std::uint32_t{LOCKSTEP_CAPTURE_RULE_UNJOINED});
  EXPECT_EQ(graph, nullptr);
  const std::string message = end.error.message;
  const std::string list = message.substr(message.find("never joined:"));
  EXPECT_THAT(list, HasSubstr(stream_text(two_) + " "));
  EXPECT_EQ(list.find(stream_text(joined) + " "), std::string::npos) << list;
  b_.stream_destroy(joined);
}

TEST_F(SlotsTest, TheCallThatInvalidatedACaptureIsNamedAtItsEnd) {
  begin(one_);
  begin(two_);
  EXPECT_EQ(call(b_.stream_synchronize, one_).error.capture_rule,
            std::uint32_t{LOCKSTEP_CAPTURE_RULE_UNSUPPORTED});
  lockstep_graph* graph = nullptr;
  const Answer end = call(b_.capture_end, one_, &graph);
  EXPECT_EQ(end.code, LOCKSTEP_E_CAPTURE_INVALIDATED);
  EXPECT_THAT(
      std::string(end.error.message),
      HasSubstr("; by " + std::string(fake().call_name(lockstep::gpu::Call::kStreamSynchronize))));
  EXPECT_TRUE(call(b_.capture_end, two_, &graph).ok());  // the other one was left alone
  b_.graph_destroy(graph);
}

TEST_F(SlotsTest, AStreamThatCapturesIsNotAskedForItsNumber) {
  begin(one_);
  fake().id_questions_while_capturing = 0;
  lockstep_stream* again = nullptr;
  ASSERT_TRUE(call(b_.stream_from_native, device_, b_.stream_native(one_), &again).ok());
  EXPECT_EQ(b_.stream_identity(again), b_.stream_identity(one_));
  b_.stream_destroy(again);
  lockstep_graph* graph = nullptr;
  EXPECT_TRUE(call(b_.capture_end, one_, &graph).ok());
  b_.graph_destroy(graph);
  EXPECT_EQ(fake().id_questions_while_capturing, 0);
}

TEST_F(SlotsTest, AHandleThatIsUsedAgainIsAnotherStream) {
  lockstep_stream* first = make_stream();
  const std::uint64_t identity = b_.stream_identity(first);
  b_.stream_destroy(first);
  lockstep_stream* second = make_stream();  // most likely at the same address
  EXPECT_NE(b_.stream_identity(second), identity);
  b_.stream_destroy(second);
}

// As before ROCm 7.2, which has no number for a stream that is never used again.
TEST_F(SlotsTest, AStreamMadeWhereABorrowedOneWasIsAnotherOne) {
  fake().tells_stream_ids = false;
  void* native = nullptr;
  ASSERT_EQ(fake().stream_create(true, 0, &native), 0);
  lockstep_stream *borrowed = nullptr, *again = nullptr;
  ASSERT_TRUE(call(b_.stream_from_native, device_, native, &borrowed).ok());
  const std::uint64_t identity = b_.stream_identity(borrowed);
  b_.stream_destroy(borrowed);
  ASSERT_TRUE(call(b_.stream_from_native, device_, native, &again).ok());
  EXPECT_EQ(b_.stream_identity(again), identity);  // borrowed twice, it is still one
  b_.stream_destroy(again);
  ASSERT_EQ(fake().stream_destroy(native), 0);
  fake().next_stream = native;
  smoke::g_defined_streams.clear();
  lockstep_stream* const own = make_stream();
  ASSERT_EQ(b_.stream_native(own), native);
  EXPECT_NE(b_.stream_identity(own), identity);
  EXPECT_THAT(smoke::g_defined_streams, ElementsAre(b_.stream_identity(own)));
  ASSERT_TRUE(call(b_.stream_from_native, device_, native, &again).ok());
  EXPECT_EQ(b_.stream_identity(again), b_.stream_identity(own));
  b_.stream_destroy(again);
  b_.stream_destroy(own);
}

TEST_F(SlotsTest, AForeignGraphIsListedAndLeftToItsOwner) {
  void* native = nullptr;
  ASSERT_EQ(fake().graph_create(&native), 0);
  void* node = nullptr;
  ASSERT_EQ(fake().graph_add_empty(native, {}, &node), 0);
  lockstep_graph* graph = nullptr;
  ASSERT_TRUE(call(b_.graph_from_native, device_, native, &graph).ok());
  std::uint32_t count = 0;
  EXPECT_TRUE(call(b_.graph_node_count, graph, &count).ok());
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(b_.graph_native(graph), native);
  b_.graph_destroy(graph);
  std::size_t still = 0;
  EXPECT_EQ(fake().graph_node_count(native, &still), 0);
  EXPECT_EQ(still, 1U);
  fake().graph_destroy(native);
  EXPECT_EQ(call(b_.graph_from_native, device_, static_cast<void*>(nullptr), &graph).code,
            LOCKSTEP_E_INVALID_ARGUMENT);
}

TEST_F(SlotsTest, AFailedFreeLeavesTheAllocationKnown) {
  fake().next_result = 900;
  EXPECT_FALSE(call(b_.memory_free, device_, memory_, static_cast<lockstep_stream*>(nullptr)).ok());
  lockstep_pointer_info info{};
  info.struct_size = sizeof info;
  EXPECT_TRUE(call(b_.pointer_info, device_, static_cast<const void*>(memory_), &info).ok());
  EXPECT_EQ(info.memory_kind, std::uint32_t{LOCKSTEP_MEMORY_DEVICE});
  EXPECT_EQ(info.bytes, 256U);
}

TEST_F(SlotsTest, AModuleOfAnOpenCaptureIsUnloadedLater) {
  lockstep_module* const module = make_module();
  ASSERT_NE(module, nullptr);
  begin(one_);
  b_.module_destroy(module);
  EXPECT_TRUE(fake().calls.empty());
  lockstep_graph* graph = nullptr;
  EXPECT_TRUE(call(b_.capture_end, one_, &graph).ok());
  b_.graph_destroy(graph);
  EXPECT_THAT(fake().calls, ElementsAre("unload"));
}

TEST_F(SlotsTest, ChildGraphsAreInlinedWithTheirEdges) {
  lockstep_graph *child = nullptr, *parent = nullptr;
  ASSERT_TRUE(call(b_.graph_create, device_, &child).ok());
  ASSERT_TRUE(call(b_.graph_create, device_, &parent).ok());
  lockstep_node_desc empty{};
  empty.struct_size = sizeof empty;
  empty.kind = LOCKSTEP_NODE_EMPTY;
  lockstep_node_desc nested = empty;
  nested.kind = LOCKSTEP_NODE_CHILD_GRAPH;
  nested.child = child;
  std::uint32_t node = 0;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(call(b_.graph_add_node, child, &empty, nullptr, 0U, &node).ok());
  }
  const std::uint32_t first = 0, second = 1, missing = 9;
  ASSERT_TRUE(call(b_.graph_add_node, parent, &empty, nullptr, 0U, &node).ok());
  ASSERT_TRUE(call(b_.graph_add_node, parent, &nested, &first, 1U, &node).ok());
  ASSERT_TRUE(call(b_.graph_add_node, parent, &empty, &second, 1U, &node).ok());
  EXPECT_EQ(call(b_.graph_add_node, parent, &empty, &missing, 1U, &node).code,
            LOCKSTEP_E_INVALID_ARGUMENT);
  lockstep_graph_exec* exec = nullptr;
  ASSERT_TRUE(call(b_.graph_instantiate, parent, &exec).ok());
  const smoke::Defined defined = smoke::g_defined.back();
  EXPECT_EQ(defined.version, 1U);
  EXPECT_EQ(defined.nodes.size(), 4U);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (const lockstep_graph_edge& edge : defined.edges) edges.emplace_back(edge.from, edge.to);
  EXPECT_THAT(edges, ElementsAre(std::pair(0U, 1U), std::pair(0U, 2U), std::pair(1U, 3U),
                                 std::pair(2U, 3U)));
  // Several changes are one version, defined before the launch; a refused update is none.
  EXPECT_TRUE(call(b_.graph_exec_set_enabled, exec, 0U, 0U).ok());
  EXPECT_TRUE(call(b_.graph_exec_set_enabled, exec, 2U, 0U).ok());
  EXPECT_TRUE(call(b_.graph_exec_launch, exec, one_).ok());
  EXPECT_EQ(smoke::g_defined.back().version, 2U);
  EXPECT_NE(smoke::g_defined.back().nodes[3].flags & LOCKSTEP_RECORD_DISABLED, 0U);
  EXPECT_EQ(smoke::g_defined.back().nodes[1].flags & LOCKSTEP_RECORD_DISABLED, 0U);
  fake().next_result = LOCKSTEP_UPDATE_TOPOLOGY_CHANGED;
  std::uint32_t outcome = 0, version = 0;
  EXPECT_TRUE(call(b_.graph_exec_update, exec, child, &outcome).ok());
  EXPECT_EQ(outcome, std::uint32_t{LOCKSTEP_UPDATE_TOPOLOGY_CHANGED});
  b_.graph_exec_identity(exec, &version);
  EXPECT_EQ(version, 2U);
  b_.graph_exec_destroy(exec);
  b_.graph_destroy(parent);
  b_.graph_destroy(child);
}

// What AMD's releases need.

TEST_F(SlotsTest, BrokenStreamsAreReplacedWhereAFailedCaptureBreaksThem) {
  fake().made_traits.streams_survive_failed_capture = false;
  const std::uint64_t identity = b_.stream_identity(one_);
  begin(one_);
  fork();
  EXPECT_FALSE(call(b_.stream_synchronize, one_).ok());
  fake().streams_made = 0;
  lockstep_graph* graph = nullptr;
  EXPECT_FALSE(call(b_.capture_end, one_, &graph).ok());
  EXPECT_EQ(fake().streams_made, 2);
  EXPECT_EQ(b_.stream_identity(one_), identity);
  EXPECT_TRUE(launch(one_).ok());
  EXPECT_TRUE(launch(two_).ok());
  lockstep_stream* again = nullptr;
  ASSERT_TRUE(call(b_.stream_from_native, device_, b_.stream_native(one_), &again).ok());
  EXPECT_EQ(b_.stream_identity(again), identity);
  b_.stream_destroy(again);
}

// An update that looks at the number of edges only, and changes nodes before it refuses others.
TEST_F(SlotsTest, UpdatesAreComparedFirstAndChangedBackWhereTheDriverDoesNeither) {
  fake().made_traits.update_trusted = false;
  fake().updated_to.clear();
  lockstep_node_desc empty{};
  empty.struct_size = sizeof empty;
  empty.kind = LOCKSTEP_NODE_EMPTY;
  // Three nodes: the second behind the first, the third behind the one named.
  const auto three = [&](std::uint32_t third_after) {
    lockstep_graph* graph = nullptr;
    EXPECT_TRUE(call(b_.graph_create, device_, &graph).ok());
    const std::uint32_t first = 0;
    std::uint32_t node = 0;
    EXPECT_TRUE(call(b_.graph_add_node, graph, &empty, nullptr, 0U, &node).ok());
    EXPECT_TRUE(call(b_.graph_add_node, graph, &empty, &first, 1U, &node).ok());
    EXPECT_TRUE(call(b_.graph_add_node, graph, &empty, &third_after, 1U, &node).ok());
    return graph;
  };
  lockstep_graph *const fan = three(0), *const chain = three(1), *const other = three(0);
  lockstep_graph_exec* exec = nullptr;
  ASSERT_TRUE(call(b_.graph_instantiate, fan, &exec).ok());
  std::uint32_t outcome = 0, version = 0;
  EXPECT_TRUE(call(b_.graph_exec_update, exec, chain, &outcome).ok());
  EXPECT_EQ(outcome, std::uint32_t{LOCKSTEP_UPDATE_TOPOLOGY_CHANGED});
  EXPECT_THAT(fake().updated_to, ElementsAre());
  // Refused in the middle: what it was is given back to it.
  fake().update_outcomes = {LOCKSTEP_UPDATE_PARAMETERS_CHANGED, LOCKSTEP_UPDATE_DONE};
  EXPECT_TRUE(call(b_.graph_exec_update, exec, other, &outcome).ok());
  EXPECT_EQ(outcome, std::uint32_t{LOCKSTEP_UPDATE_PARAMETERS_CHANGED});
  EXPECT_THAT(fake().updated_to, ElementsAre(b_.graph_native(other), b_.graph_native(fan)));
  b_.graph_exec_identity(exec, &version);
  EXPECT_EQ(version, 1U);
  EXPECT_TRUE(call(b_.graph_exec_launch, exec, one_).ok());
  // It cannot be given back: nothing is launched that nobody knows.
  fake().update_outcomes = {LOCKSTEP_UPDATE_PARAMETERS_CHANGED, LOCKSTEP_UPDATE_NOT_SUPPORTED};
  EXPECT_TRUE(call(b_.graph_exec_update, exec, other, &outcome).ok());
  EXPECT_EQ(outcome, std::uint32_t{LOCKSTEP_UPDATE_PARAMETERS_CHANGED});
  const auto launched = call(b_.graph_exec_launch, exec, one_);
  EXPECT_EQ(launched.code, LOCKSTEP_E_INTERNAL);
  EXPECT_THAT(std::string(launched.error.message), HasSubstr("instantiate the graph anew"));
  fake().made_traits.update_trusted = true;
  b_.graph_exec_destroy(exec);
  for (lockstep_graph* graph : {fan, chain, other}) b_.graph_destroy(graph);
}

TEST_F(SlotsTest, CopyNodesAreWhatWasRecordedWhereTheGetterLies) {
  fake().made_traits.copy_getter_trusted = false;
  begin(one_);
  EXPECT_TRUE(copy(one_, 24).ok());
  lockstep_graph* graph = nullptr;
  ASSERT_TRUE(call(b_.capture_end, one_, &graph).ok());
  lockstep_node_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(call(b_.graph_node, graph, 0U, &info).ok());
  EXPECT_EQ(info.record->of.copy.width, 24U);
  EXPECT_EQ(info.record->of.copy.direction, std::uint32_t{LOCKSTEP_COPY_HTOD});
  b_.graph_destroy(graph);
}

TEST_F(SlotsTest, LaunchesAreCheckedFirstWhereTheDriverTruncates) {
  fake().made_traits.check_launches_first = true;
  fake().made_traits.max_grid_times_block = 0xFFFFFFFF;
  const Answer zero = launch(one_, {1, 0, 1});
  EXPECT_EQ(zero.code, LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_THAT(std::string(zero.error.message), HasSubstr("grid y is 0"));
  EXPECT_THAT(std::string(launch(one_, {1, 1, 1025}).error.message),
              HasSubstr("grid z is 1025, this device allows 1024"));
  EXPECT_TRUE(fake().calls.empty());
}

TEST_F(SlotsTest, CapturingIsRefusedWhereLaunchesWouldRun) {
  fake().made_traits.captures = false;
  EXPECT_EQ(call(b_.capture_begin, one_, std::uint32_t{LOCKSTEP_CAPTURE_RELAXED}).code,
            LOCKSTEP_E_NOT_SUPPORTED);
}

}  // namespace
