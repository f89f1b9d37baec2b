// SPDX-License-Identifier: Apache-2.0
// What the nodes of a graph are said to do where the driver's getter of copies lies, as before ROCm
// 7: what was recorded, wherever the node has come to, and opaque where nobody recorded it.
#include "slots_fixture.h"

namespace {

using lockstep::gpu_test::fake;
using smoke::call;
using smoke::Entry;
using ::testing::ElementsAre;

class SlotsGraphTest : public lockstep::gpu_test::SlotsTest {
 protected:
  void SetUp() override {
    SlotsTest::SetUp();
    fake().made_traits.copy_getter_trusted = false;
  }
  lockstep_graph* make_graph() {
    lockstep_graph* made = nullptr;
    EXPECT_TRUE(call(b_.graph_create, device_, &made).ok());
    return made;
  }
  void add_copy(lockstep_graph* graph, std::uint64_t bytes) {
    const lockstep_copy_desc copy = upload(bytes);
    lockstep_node_desc desc{};
    desc.struct_size = sizeof desc;
    desc.kind = LOCKSTEP_NODE_COPY;
    desc.copy = &copy;
    std::uint32_t node = 0;
    ASSERT_TRUE(call(b_.graph_add_node, graph, &desc, nullptr, 0U, &node).ok());
  }
  void add_child(lockstep_graph* graph, lockstep_graph* child) {
    lockstep_node_desc desc{};
    desc.struct_size = sizeof desc;
    desc.kind = LOCKSTEP_NODE_CHILD_GRAPH;
    desc.child = child;
    std::uint32_t node = 0;
    ASSERT_TRUE(call(b_.graph_add_node, graph, &desc, nullptr, 0U, &node).ok());
  }
  lockstep_node_info node_of(lockstep_graph* graph, std::uint32_t node) {
    lockstep_node_info info{};
    info.struct_size = sizeof info;
    EXPECT_TRUE(call(b_.graph_node, graph, node, &info).ok());
    return info;
  }
  // The nodes that an executable made of it is defined by: the widths of copies, "opaque: <name>".
  std::vector<std::string> executed(lockstep_graph* graph) {
    lockstep_graph_exec* exec = nullptr;
    EXPECT_TRUE(call(b_.graph_instantiate, graph, &exec).ok());
    b_.graph_exec_destroy(exec);
    std::vector<std::string> texts;
    for (const lockstep_record& record : smoke::g_defined.back().nodes) {
      texts.push_back(record.kind == LOCKSTEP_RECORD_MEMCPY ? std::to_string(record.of.copy.width)
                      : record.kind == LOCKSTEP_RECORD_OPAQUE
                          ? "opaque: " + smoke::text_of(record.name)
                          : "kind " + std::to_string(record.kind));
    }
    return texts;
  }
};

TEST_F(SlotsGraphTest, CopiesInChildGraphsAreWhatWasRecorded) {
  lockstep_graph *innermost = make_graph(), *child = make_graph(), *parent = make_graph();
  add_copy(innermost, 8);
  add_child(child, innermost);
  add_copy(child, 24);
  add_child(parent, child);
  add_copy(child, 99);  // the parent has a copy
  // The fake driver lists what is inside backwards.
  EXPECT_THAT(executed(parent), ElementsAre("24", "8"));
  lockstep_graph* clone = nullptr;
  ASSERT_TRUE(call(b_.graph_clone, parent, &clone).ok());
  EXPECT_THAT(executed(clone), ElementsAre("24", "8"));
  // Looked at one level after the other, they are the same.
  lockstep_graph* const listed = node_of(parent, 0).child;
  ASSERT_NE(listed, nullptr);
  EXPECT_EQ(node_of(listed, 0).record->of.copy.width, 24U);
  EXPECT_EQ(node_of(listed, 0).record->of.copy.direction, std::uint32_t{LOCKSTEP_COPY_HTOD});
  lockstep_graph* const deeper = node_of(listed, 1).child;
  ASSERT_NE(deeper, nullptr);
  EXPECT_EQ(node_of(deeper, 0).record->of.copy.width, 8U);
  // And a graph that is looked at may become a child itself.
  lockstep_graph* const other = make_graph();
  add_child(other, listed);
  EXPECT_THAT(executed(other), ElementsAre("24", "8"));
  for (lockstep_graph* graph : {other, clone, parent, child, innermost}) b_.graph_destroy(graph);
}

TEST_F(SlotsGraphTest, ACopyThatNobodyRecordedIsOpaque) {
  begin(one_);
  fake().capture_foreign_node(b_.stream_native(one_), LOCKSTEP_NODE_COPY);
  EXPECT_TRUE(copy(one_, 24).ok());
  lockstep_graph* graph = nullptr;
  ASSERT_TRUE(call(b_.capture_end, one_, &graph).ok());
  EXPECT_THAT(executed(graph), ElementsAre("opaque: unknown copy", "24"));
  EXPECT_EQ(node_of(graph, 0).kind, std::uint32_t{LOCKSTEP_NODE_COPY});
  EXPECT_EQ(node_of(graph, 0).record->kind, std::uint32_t{LOCKSTEP_RECORD_OPAQUE});
  lockstep_graph* foreign = nullptr;
  ASSERT_TRUE(call(b_.graph_from_native, device_, b_.graph_native(graph), &foreign).ok());
  EXPECT_THAT(executed(foreign), ElementsAre("opaque: unknown copy", "opaque: unknown copy"));
  b_.graph_destroy(foreign);
  b_.graph_destroy(graph);
}

TEST_F(SlotsGraphTest, WhatTheGetterTellsIsTakenWhereItIsTrusted) {
  fake().made_traits.copy_getter_trusted = true;
  lockstep_graph *child = make_graph(), *parent = make_graph();
  add_copy(child, 8);
  add_child(parent, child);
  EXPECT_THAT(executed(parent), ElementsAre(std::to_string(0xBAD)));
  b_.graph_destroy(parent);
  b_.graph_destroy(child);
}

// Two threads, two streams of one capture: both calls have made their nodes before either of them
// is bound. Whoever comes first lists the other's node.
TEST_F(SlotsGraphTest, ANodeThatAnotherThreadListedIsBoundToItsCall) {
  begin(one_);
  fork();
  smoke::g_active = 1;
  fake().before_returning = [&] { EXPECT_TRUE(copy(two_, 16).ok()); };
  EXPECT_TRUE(copy(one_, 24).ok());
  ASSERT_TRUE(call(b_.event_record, event_, two_).ok());
  ASSERT_TRUE(call(b_.stream_wait_event, one_, event_).ok());
  lockstep_graph* graph = nullptr;
  ASSERT_TRUE(call(b_.capture_end, one_, &graph).ok());
  std::vector<std::int32_t> nodes;
  for (const Entry& entry : smoke::take()) {
    if (entry.record.kind == LOCKSTEP_RECORD_MEMCPY) nodes.push_back(entry.node);
  }
  EXPECT_THAT(nodes, ElementsAre(0, 1));
  EXPECT_THAT(executed(graph), ElementsAre("24", "16"));
  b_.graph_destroy(graph);
}

TEST_F(SlotsGraphTest, UnjoinedWorkIsCountedWhoeverListedItsNode) {
  begin(one_);
  fork();
  fake().before_returning = [&] { EXPECT_TRUE(copy(two_, 16).ok()); };
  EXPECT_TRUE(copy(two_, 24).ok());
  lockstep_graph* graph = nullptr;
  const smoke::Answer end = call(b_.capture_end, one_, &graph);
  EXPECT_EQ(end.code, LOCKSTEP_E_ILLEGAL_DURING_CAPTURE);
  EXPECT_THAT(std::string(end.error.message),
              ::testing::HasSubstr("never joined: " + stream_text(two_)));
}

}  // namespace
