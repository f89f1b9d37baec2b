// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backend.h>
#include <lockstep/device.h>
#include <lockstep/error.h>

#include <gmock/gmock.h>

#include "support/fake_backend/fake_plugins.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::FakeDevice;
using ::testing::HasSubstr;

class Graphs : public ::testing::Test {
 protected:
  Graphs()
      : stream(fake.device.create_stream()),
        module(fake.device.compile("fake", {.kernels = {"add_one"}})),
        add_one(module.kernel("add_one")),
        buffer(fake.device.allocate<int>(4)) {}

  std::vector<int> values() {
    std::vector<int> host(4);
    stream.copy_and_wait(host, buffer);
    return host;
  }

  FakeDevice fake;
  Stream stream;
  Module module;
  Kernel add_one;
  Buffer<int> buffer;
};

TEST_F(Graphs, HandBuiltOneListsItsNodesAndRuns) {
  Graph graph = fake.device.create_graph();
  FillRegion fill;
  fill.destination = buffer.data();
  fill.extent = {4, 1, 1};
  fill.value = 10;
  fill.value_size = 4;
  const GraphNode first = graph.add_fill({}, fill);
  const GraphNode left = graph.add_kernel({first}, add_one, {}, buffer.subview(0, 2), 2u);
  const GraphNode right =
      graph.add_kernel({first}, add_one, {.block = 32}, buffer.subview(2, 2), 2u);
  const std::vector<GraphNode> both = {left, right};
  int calls = 0;
  graph.add_host_function(both, [&] { ++calls; });
  EXPECT_EQ(graph.node_count(), 4u);
  using Edge = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(graph.edges(), (std::vector<Edge>{{0, 1}, {0, 2}, {1, 3}, {2, 3}}));
  const std::vector<GraphNodeInfo> nodes = graph.nodes();
  EXPECT_EQ(nodes[0].kind, NodeKind::kSet);
  EXPECT_EQ(nodes[0].entry.memset_byte_size, 16u);
  EXPECT_EQ(nodes[0].entry.memset_value, 10u);
  EXPECT_EQ(nodes[2].kind, NodeKind::kKernel);
  EXPECT_EQ(nodes[2].entry.name, "_Z7add_onePij");
  EXPECT_EQ(nodes[2].entry.block_x, 32u);
  EXPECT_NE(nodes[2].entry.semantic_hash, nodes[1].entry.semantic_hash);
  graph.instantiate().launch(stream);
  EXPECT_EQ(values(), std::vector<int>(4, 11));
  EXPECT_EQ(calls, 1);
}

TEST_F(Graphs, DependenciesHaveToBeNodes) {
  Graph graph = fake.device.create_graph();
  graph.add_empty({});
  const std::vector<GraphNode> wrong = {GraphNode{1}};
  try {
    graph.add_empty(wrong);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("dependency 1 is no node of this graph, which has 1"));
  }
  EXPECT_EQ(graph.node_count(), 1u);
}

TEST_F(Graphs, ChildGraphsAreInlinedInTheDefinition) {
  Graph child = fake.device.create_graph();
  const GraphNode a = child.add_kernel({}, add_one, {.grid = 2}, buffer, 4u);
  child.add_kernel({a}, add_one, {.grid = 3}, buffer, 4u);
  Graph graph = fake.device.create_graph();
  const std::vector<GraphNode> none;
  const GraphNode before = graph.add_kernel({}, add_one, {.grid = 1}, buffer, 4u);
  const std::vector<GraphNode> after_before = {before};
  const GraphNode inner = graph.add_child(after_before, child);
  const std::vector<GraphNode> after_inner = {inner};
  const GraphNode hollow = graph.add_child(after_inner, fake.device.create_graph());
  const std::vector<GraphNode> after_hollow = {hollow};
  graph.add_kernel(after_hollow, add_one, {.grid = 4}, buffer, 4u);
  const GraphDefinition definition = graph.definition();
  ASSERT_EQ(definition.nodes.size(), 5u);
  EXPECT_EQ(definition.nodes[1].grid_x, 2u);
  EXPECT_EQ(definition.nodes[2].grid_x, 3u);
  EXPECT_EQ(definition.nodes[3].name, "empty");
  EXPECT_EQ(definition.nodes[4].grid_x, 4u);
  using Edge = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(definition.edges, (std::vector<Edge>{{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
  EXPECT_EQ(graph.nodes()[1].kind, NodeKind::kChildGraph);
  graph.instantiate().launch(stream);
  EXPECT_EQ(values(), std::vector<int>(4, 4));
}

// CAP-13: a graph that does nothing is an error unless it is wanted.
TEST_F(Graphs, EmptyOneIsAMismatchByDefault) {
  const Graph graph = stream.capture([](StreamRef&) {});
  try {
    graph.instantiate();
    ADD_FAILURE() << "instantiated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_THAT(error.what(), HasSubstr("wrong stream or device"));
  }
  graph.instantiate({.allow_empty = true}).launch(stream);
}

TEST_F(Graphs, FreedMemoryOfRawPointersIsReported) {
  Buffer<int> other = fake.device.allocate<int>(4);
  int* const raw = other.data();
  const GraphExec exec = stream
                             .capture([&](StreamRef& s) {
                               s.launch(add_one, {}, buffer, 4u);
                               s.launch(add_one, {}, raw, 4u);
                             })
                             .instantiate();
  exec.launch(stream);
  EXPECT_EQ(fake.control.launches, 2);
  { const Buffer<int> gone = std::move(other); }
  char address[32];
  snprintf(address, sizeof(address), "0x%zx", reinterpret_cast<std::size_t>(raw));
  for (int round = 0; round < 2; ++round) {
    try {
      exec.launch(stream);
      ADD_FAILURE() << "launched";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kStaleBuffer);
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("node 1"), HasSubstr("argument 0"), HasSubstr(address)));
    }
  }
  EXPECT_EQ(fake.control.launches, 2);
}

TEST_F(Graphs, MemoryReusedAtTheSameAddressIsStaleToo) {
  Buffer<int> other = fake.device.allocate<int>(4);
  int* const raw = other.data();
  const GraphExec exec =
      stream.capture([&](StreamRef& s) { s.launch(add_one, {}, raw, 4u); }).instantiate();
  { const Buffer<int> gone = std::move(other); }
  std::vector<Buffer<int>> kept;
  bool reused = false;
  for (int i = 0; i < 64 && !reused; ++i) {
    kept.push_back(fake.device.allocate<int>(4));
    reused = kept.back().data() == raw;
  }
  EXPECT_THROW(exec.launch(stream), Error);  // whether or not the address came back
}

TEST_F(Graphs, FreeingSomethingElseIsNoMatter) {
  Buffer<int> other = fake.device.allocate<int>(4);
  int* const raw = buffer.data() + 1;
  const GraphExec exec =
      stream.capture([&](StreamRef& s) { s.launch(add_one, {}, raw, 2u); }).instantiate();
  { const Buffer<int> gone = std::move(other); }
  exec.launch(stream);
  EXPECT_EQ(values(), std::vector<int>({0, 1, 1, 0}));
}

// REP-21: an update that the driver cannot do instantiates anew, once.
TEST_F(Graphs, UpdateInstantiatesAnewOnceWhereNeeded) {
  const auto chain = [&](int count) {
    return stream.capture([&](StreamRef& s) {
      for (int i = 0; i < count; ++i) s.launch(add_one, {}, buffer, 4u);
    });
  };
  GraphExec exec = chain(3).instantiate();
  const std::uint64_t identity = exec.identity();
  EXPECT_EQ(exec.version(), 1u);
  GraphExec::UpdateResult result = exec.update(chain(3));
  EXPECT_FALSE(result.reinstantiated);
  EXPECT_EQ(result.reason, "");
  EXPECT_EQ(exec.version(), 2u);
  EXPECT_EQ(fake.control.instantiations, 1);
  result = exec.update(chain(4));
  EXPECT_TRUE(result.reinstantiated);
  EXPECT_EQ(result.reason, "the topology changed");
  EXPECT_EQ(exec.version(), 3u);
  EXPECT_EQ(exec.reinstantiations(), 1u);
  EXPECT_EQ(fake.control.instantiations, 2);
  EXPECT_EQ(fake.control.executables, 1);
  fake.control.update_result = LOCKSTEP_UPDATE_FUNCTION_CHANGED;
  EXPECT_EQ(exec.update(chain(4)).reason, "a node's kernel changed");
  EXPECT_EQ(exec.reinstantiations(), 2u);
  EXPECT_EQ(exec.identity(), identity);
  exec.launch(stream);
  EXPECT_EQ(values(), std::vector<int>(4, 4));
}

TEST_F(Graphs, FailedReinstantiationLeavesTheFormerOne) {
  GraphExec exec =
      stream.capture([&](StreamRef& s) { s.launch(add_one, {}, buffer, 4u); }).instantiate();
  const Graph two = stream.capture([&](StreamRef& s) {
    s.launch(add_one, {}, buffer, 4u);
    s.launch(add_one, {}, buffer, 4u);
  });
  testing::FakeFailure failure;
  failure.slot = "graph_instantiate";
  failure.code = LOCKSTEP_E_OUT_OF_MEMORY;
  fake.control.fail_next(failure);
  EXPECT_THROW(exec.update(two), Error);
  EXPECT_EQ(exec.version(), 1u);
  EXPECT_EQ(exec.reinstantiations(), 0u);
  exec.launch(stream);
  EXPECT_EQ(values(), std::vector<int>(4, 1));
}

TEST_F(Graphs, CloneIsIndependent) {
  Graph graph = fake.device.create_graph();
  graph.add_kernel({}, add_one, {}, buffer, 4u);
  const Graph copy = graph.clone();
  graph.add_kernel({}, add_one, {}, buffer, 4u);
  EXPECT_EQ(copy.node_count(), 1u);
  EXPECT_EQ(graph.node_count(), 2u);
}

TEST_F(Graphs, NativeGraphsNeedABackendThatTakesThem) {
  int native = 0;
  try {
    Graph::from_native(fake.device, &native);
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
  }
  EXPECT_EQ(fake.control.graphs, 0);
}

}  // namespace
}  // namespace lockstep
