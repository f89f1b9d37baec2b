// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "unit/host/host_fixture.h"

namespace lockstep::host_test {
namespace {

using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

class Graphs : public HostTest {
 public:
  Graph create() {
    lockstep_graph* raw = nullptr;
    EXPECT_TRUE(succeeded(call(b.graph_create, device, &raw)));
    return Graph(raw);
  }
  Result add(const Graph& graph, const lockstep_node_desc& desc,
             std::vector<std::uint32_t> dependencies, std::uint32_t* node) {
    return call(b.graph_add_node, graph.get(), &desc,
                static_cast<const std::uint32_t*>(dependencies.data()),
                static_cast<std::uint32_t>(dependencies.size()), node);
  }
  static lockstep_node_desc node_desc(std::uint32_t kind) {
    lockstep_node_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.kind = kind;
    return desc;
  }
  template <typename... Arguments>
  std::uint32_t add_kernel(const Graph& graph, const char* name,
                           std::vector<std::uint32_t> dependencies, Arguments... arguments) {
    const std::array<const void*, sizeof...(Arguments) + 1> pointers{&arguments..., nullptr};
    lockstep_launch_desc launch_desc{};
    launch_desc.struct_size = sizeof(launch_desc);
    launch_desc.kernel = kernel(name);
    launch_desc.grid = launch_desc.block = {1, 1, 1};
    launch_desc.arguments = pointers.data();
    launch_desc.argument_count = sizeof...(Arguments);
    lockstep_node_desc desc = node_desc(LOCKSTEP_NODE_KERNEL);
    desc.launch = &launch_desc;
    std::uint32_t node = 99;
    EXPECT_TRUE(succeeded(add(graph, desc, std::move(dependencies), &node)));
    return node;
  }
  std::uint32_t add_plain(const Graph& graph, std::uint32_t kind,
                          std::vector<std::uint32_t> dependencies) {
    std::uint32_t node = 99;
    EXPECT_TRUE(succeeded(add(graph, node_desc(kind), std::move(dependencies), &node)));
    return node;
  }
  DefinedGraph definition(const Exec& exec) {
    std::uint32_t version = 0;
    const std::uint64_t identity = b.graph_exec_identity(exec.get(), &version);
    for (const DefinedGraph& defined : defined_graphs()) {
      if (defined.graph == identity && defined.version == version) return defined;
    }
    ADD_FAILURE() << "graph " << identity << " version " << version << " was never defined";
    return {};
  }
  Graph capture(const Stream& s, int kernels, int* p, int value) {
    EXPECT_TRUE(succeeded(begin(s)));
    for (int i = 0; i < kernels; ++i) {
      EXPECT_TRUE(succeeded(launch(s, kernel("add"), {}, p, value)));
    }
    Graph graph;
    EXPECT_TRUE(succeeded(end(s, &graph)));
    return graph;
  }
};
class GraphCases : public Graphs {};

TEST_F(Graphs, BuiltByHandInAnyShape) {
  const Stream s = make_stream();
  int* const p = allocate<int>(4);
  int* const q = p + 1;
  int host = 0;
  const Graph graph = create();
  lockstep_set_desc set_desc{};
  set_desc.struct_size = sizeof(set_desc);
  set_desc.destination = p;
  set_desc.width = 4;
  set_desc.height = set_desc.depth = 1;
  set_desc.value_size = 4;
  lockstep_node_desc desc = node_desc(LOCKSTEP_NODE_SET);
  desc.set = &set_desc;
  std::uint32_t zero = 99;
  ASSERT_TRUE(succeeded(add(graph, desc, {}, &zero)));
  const std::uint32_t left = add_kernel(graph, "add", {zero}, p, 3);
  const std::uint32_t right = add_kernel(graph, "add", {zero}, q, 4);
  const std::uint32_t joined = add_plain(graph, LOCKSTEP_NODE_EMPTY, {right, left, left});
  const lockstep_copy_desc copy_back = copy_desc(&host, q, sizeof(int));
  desc = node_desc(LOCKSTEP_NODE_COPY);
  desc.copy = &copy_back;
  std::uint32_t back = 99;
  ASSERT_TRUE(succeeded(add(graph, desc, {joined}, &back)));
  EXPECT_EQ(edges(graph), (Edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}}));
  EXPECT_EQ(kinds(graph), (std::vector<std::uint32_t>{LOCKSTEP_NODE_SET, LOCKSTEP_NODE_KERNEL,
                                                      LOCKSTEP_NODE_KERNEL, LOCKSTEP_NODE_EMPTY,
                                                      LOCKSTEP_NODE_COPY}));
  const Exec exec = instantiate(graph);
  add_kernel(graph, "add", {zero}, p, 100);  // of no concern to the executable
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  EXPECT_EQ(read(s, p, 4), (std::vector<int>{3, 4, 0, 0}));
  EXPECT_EQ(host, 4);

  const DefinedGraph defined = definition(exec);
  ASSERT_EQ(defined.nodes.size(), 5U);
  EXPECT_EQ(text_of(defined.nodes[0].name), "hostMemsetD32Async");
  EXPECT_EQ(text_of(defined.nodes[1].name), "add");
  EXPECT_EQ(defined.nodes[3].kind, std::uint32_t{LOCKSTEP_RECORD_MARK});
  EXPECT_EQ(text_of(defined.nodes[3].name), "empty");
  EXPECT_EQ(text_of(defined.nodes[4].name), "hostMemcpyDtoHAsync");
  EXPECT_EQ(defined.edges.size(), 5U);
}

TEST_F(Graphs, WrongNodesAreRefused) {
  const Graph graph = create();
  std::uint32_t node = 0;
  add_plain(graph, LOCKSTEP_NODE_EMPTY, {});
  EXPECT_EQ(add(graph, node_desc(LOCKSTEP_NODE_EMPTY), {1}, &node).native, 1);
  EXPECT_EQ(add(graph, node_desc(LOCKSTEP_NODE_KERNEL), {}, &node).native, 1);
  EXPECT_EQ(add(graph, node_desc(LOCKSTEP_NODE_HOST), {}, &node).native, 1);
  EXPECT_EQ(add(graph, node_desc(LOCKSTEP_NODE_EVENT_WAIT), {}, &node).native, 1);
  EXPECT_EQ(add(graph, node_desc(77), {}, &node).native, 1);
  EXPECT_EQ(add(graph, node_desc(LOCKSTEP_NODE_ALLOC), {}, &node).code, LOCKSTEP_E_NOT_SUPPORTED);
  EXPECT_EQ(node_count(graph), 1U);
  lockstep_node_info info{};
  info.struct_size = sizeof(info);
  EXPECT_EQ(call(b.graph_node, graph.get(), 1U, &info).native, 1);
}

TEST_F(Graphs, IndependentBranchesRunAtTheSameTime) {
  const Stream s = make_stream();
  int* const flags = allocate<int>(2, LOCKSTEP_MEMORY_PINNED);
  int* const other = flags + 1;
  const Graph graph = create();
  const std::uint32_t root = add_plain(graph, LOCKSTEP_NODE_EMPTY, {});
  add_kernel(graph, "meet", {root}, flags, other);
  add_kernel(graph, "meet", {root}, other, flags);
  const Exec exec = instantiate(graph);
  for (int i = 0; i < 3; ++i) {
    flags[0] = flags[1] = 0;
    ASSERT_TRUE(succeeded(launch_graph(exec, s)));
    ASSERT_TRUE(succeeded(synchronize(s)));
  }
}

TEST_F(Graphs, LaunchesOfOneExecutableFollowEachOther) {
  const Stream s1 = make_stream();
  const Stream s2 = make_stream();
  int* const p = allocate<int>(1);
  ASSERT_TRUE(succeeded(set(s1, p, 0, 4, 1)));
  ASSERT_TRUE(succeeded(synchronize(s1)));
  const Graph graph = capture(s1, 20, p, 1);  // plain additions: they would get lost
  Exec exec = instantiate(graph);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(succeeded(launch_graph(exec, s1)));
    ASSERT_TRUE(succeeded(launch_graph(exec, s2)));
  }
  exec.reset();  // launches in flight complete
  ASSERT_TRUE(succeeded(synchronize(s1)));
  ASSERT_TRUE(succeeded(synchronize(s2)));
  EXPECT_EQ(read(s1, p, 1)[0], 800);
}

TEST_F(Graphs, ChildGraphsAreClonedAndInlined) {
  const Stream s = make_stream();
  int* const p = allocate<int>(1);
  ASSERT_TRUE(succeeded(set(s, p, 1, 4, 1)));
  const Graph child = create();
  const std::uint32_t first = add_kernel(child, "add", {}, p, 1);
  add_kernel(child, "scale<int, 3>", {first}, p);
  const Graph graph = create();
  const std::uint32_t before = add_kernel(graph, "add", {}, p, 1);
  lockstep_node_desc desc = node_desc(LOCKSTEP_NODE_CHILD_GRAPH);
  desc.child = child.get();
  std::uint32_t node = 0;
  ASSERT_TRUE(succeeded(add(graph, desc, {before}, &node)));
  add_kernel(graph, "add", {node}, p, 5);
  add_kernel(child, "add", {}, p, 1000);  // after it was cloned
  lockstep_node_info info{};
  info.struct_size = sizeof(info);
  ASSERT_TRUE(succeeded(call(b.graph_node, graph.get(), node, &info)));
  EXPECT_EQ(info.kind, std::uint32_t{LOCKSTEP_NODE_CHILD_GRAPH});
  EXPECT_EQ(info.record, nullptr);
  std::uint32_t count = 0;
  ASSERT_TRUE(succeeded(call(b.graph_node_count, info.child, &count)));
  EXPECT_EQ(count, 2U);
  const Exec exec = instantiate(graph);
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  EXPECT_EQ(read(s, p, 1)[0], (1 + 1 + 1) * 3 + 5);
  const DefinedGraph defined = definition(exec);
  ASSERT_EQ(defined.nodes.size(), 4U);
  Edges flat;
  for (const auto& edge : defined.edges) flat.emplace_back(edge.from, edge.to);
  EXPECT_EQ(flat, (Edges{{0, 1}, {1, 2}, {2, 3}}));
  lockstep_graph* raw = nullptr;
  ASSERT_TRUE(succeeded(call(b.graph_clone, graph.get(), &raw)));
  const Graph clone(raw);
  EXPECT_EQ(edges(clone), edges(graph));
  EXPECT_EQ(call(b.graph_exec_set_enabled, exec.get(), node, 0U).native, 1);
}

TEST_F(Graphs, EventNodesRecordAndWait) {
  const Stream s1 = make_stream();
  const Stream s2 = make_stream();
  const Event from_outside = make_event();
  const Event from_graph = make_event();
  int* const flag = allocate<int>(1, LOCKSTEP_MEMORY_PINNED);
  *flag = 0;
  int* const p = allocate<int>(1);
  const Graph graph = create();
  lockstep_node_desc desc = node_desc(LOCKSTEP_NODE_EVENT_WAIT);
  desc.event = from_outside.get();
  std::uint32_t waits = 0;
  ASSERT_TRUE(succeeded(add(graph, desc, {}, &waits)));
  const std::uint32_t stores = add_kernel(graph, "store", {waits}, p, 6);
  desc = node_desc(LOCKSTEP_NODE_EVENT_RECORD);
  desc.event = from_graph.get();
  std::uint32_t records = 0;
  ASSERT_TRUE(succeeded(add(graph, desc, {stores}, &records)));
  const Exec exec = instantiate(graph);
  ASSERT_TRUE(succeeded(launch(s2, kernel("spin"), {}, flag)));
  ASSERT_TRUE(succeeded(record(from_outside, s2)));
  ASSERT_TRUE(succeeded(launch_graph(exec, s1)));
  EXPECT_EQ(call(b.event_query, from_graph.get()).code, LOCKSTEP_E_NOT_READY);
  const Stream s3 = make_stream();
  ASSERT_TRUE(succeeded(wait(s3, from_graph)));
  __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
  EXPECT_EQ(read(s3, p, 1)[0], 6);
}

TEST_F(GraphCases, REP_21_UpdateTellsWhyItCannotBeDone) {
  const Stream s = make_stream();
  int* const p = allocate<int>(1);
  ASSERT_TRUE(succeeded(set(s, p, 0, 4, 1)));
  const Graph three = capture(s, 3, p, 1);
  const Exec exec = instantiate(three);
  std::uint32_t version = 0;
  const std::uint64_t identity = b.graph_exec_identity(exec.get(), &version);
  EXPECT_EQ(version, 1U);
  const auto update = [&](const Graph& graph) {
    std::uint32_t result = 99;
    EXPECT_TRUE(succeeded(call(b.graph_exec_update, exec.get(), graph.get(), &result)));
    return result;
  };
  EXPECT_EQ(update(capture(s, 4, p, 1)), std::uint32_t{LOCKSTEP_UPDATE_TOPOLOGY_CHANGED});
  ASSERT_TRUE(succeeded(begin(s)));
  ASSERT_TRUE(succeeded(set(s, p, 0, 4, 1)));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(succeeded(launch(s, kernel("add"), {}, p, 1)));
  Graph other_kinds;
  ASSERT_TRUE(succeeded(end(s, &other_kinds)));
  EXPECT_EQ(update(other_kinds), std::uint32_t{LOCKSTEP_UPDATE_NODE_TYPE_CHANGED});
  // As before, and nothing is left behind for the next call.
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  EXPECT_EQ(read(s, p, 1)[0], 3);
  EXPECT_EQ(b.graph_exec_identity(exec.get(), &version), identity);
  EXPECT_EQ(version, 1U);
  EXPECT_EQ(update(capture(s, 3, p, 10)), std::uint32_t{LOCKSTEP_UPDATE_DONE});
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  EXPECT_EQ(read(s, p, 1)[0], 33);
  ASSERT_TRUE(succeeded(begin(s)));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(succeeded(launch(s, kernel("scale<int, 3>"), {}, p)));
  Graph other_functions;
  ASSERT_TRUE(succeeded(end(s, &other_functions)));
  EXPECT_EQ(update(other_functions), std::uint32_t{LOCKSTEP_UPDATE_DONE});
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  EXPECT_EQ(read(s, p, 1)[0], 33 * 27);
  EXPECT_EQ(b.graph_exec_identity(exec.get(), &version), identity);
  EXPECT_EQ(version, 3U);
  EXPECT_EQ(text_of(definition(exec).nodes.at(0).name), "_Z5scaleIiLi3EEvPT_");
}

TEST_F(GraphCases, HIPG_02_ADisabledNodeStillOrdersItsNeighbours) {
  constexpr int kCount = 20'000;
  const Stream s = make_stream();
  int* const values = allocate<int>(kCount);
  int* const out = allocate<int>(1);
  const int count = kCount;
  const Graph graph = create();
  std::vector<std::uint32_t> chains;
  const std::uint32_t start = add_plain(graph, LOCKSTEP_NODE_EMPTY, {});
  for (int i = 0; i < 5; ++i) chains.push_back(add_kernel(graph, "nop", {start}));
  const std::uint32_t writes = add_kernel(graph, "fill_slowly", {start}, values, count);
  const std::uint32_t disabled = add_kernel(graph, "store", {writes}, values, 500);
  const std::uint32_t reads =
      add_kernel(graph, "sum_of", {disabled, chains[2]}, out, values, count);
  const Exec exec = instantiate(graph);
  ASSERT_TRUE(succeeded(call(b.graph_exec_set_enabled, exec.get(), disabled, 0U)));
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(succeeded(set(s, values, 0, 4, kCount)));
    ASSERT_TRUE(succeeded(launch_graph(exec, s)));
    ASSERT_EQ(read(s, out, 1)[0], kCount);
  }
  const DefinedGraph defined = definition(exec);
  EXPECT_EQ(defined.version, 2U);
  for (std::uint32_t i = 0; i < defined.nodes.size(); ++i) {
    EXPECT_EQ(defined.nodes[i].flags, i == disabled ? std::uint32_t{LOCKSTEP_RECORD_DISABLED} : 0U);
  }
  EXPECT_TRUE(std::any_of(defined.edges.begin(), defined.edges.end(), [&](const auto& edge) {
    return edge.from == disabled && edge.to == reads;
  }));
  ASSERT_TRUE(succeeded(call(b.graph_exec_set_enabled, exec.get(), disabled, 1U)));
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  EXPECT_EQ(read(s, out, 1)[0], kCount - 1 + 500);
  EXPECT_EQ(call(b.graph_exec_set_enabled, exec.get(), start, 0U).native, 1);
  EXPECT_EQ(call(b.graph_exec_set_enabled, exec.get(), 99U, 0U).native, 1);
}

TEST_F(GraphCases, REP_07_NodesOwnTheirArguments) {
  const Stream s = make_stream();
  int* const p = allocate<int>(1);
  ASSERT_TRUE(succeeded(begin(s)));
  {
    int value = 21;
    const void* arguments[] = {&p, &value};
    ASSERT_TRUE(succeeded(launch_raw(s.get(), kernel("store"), {}, arguments, 2)));
    value = 22;
  }
  // A copy from a pinned slot reads what is in it at each replay.
  int* const slot = [&] {
    std::uint32_t mode = LOCKSTEP_CAPTURE_RELAXED;
    EXPECT_TRUE(succeeded(call(b.capture_thread_mode, device, &mode)));
    int* const pinned = allocate<int>(1, LOCKSTEP_MEMORY_PINNED);
    EXPECT_TRUE(succeeded(call(b.capture_thread_mode, device, &mode)));
    return pinned;
  }();
  Graph graph;
  ASSERT_TRUE(succeeded(copy(s, slot, p, sizeof(int))));
  ASSERT_TRUE(succeeded(end(s, &graph)));
  const Exec exec = instantiate(graph);
  graph.reset();
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  ASSERT_TRUE(succeeded(synchronize(s)));
  EXPECT_EQ(*slot, 21);
}

TEST_F(Graphs, FailuresOfNodesReachTheStream) {
  const Stream s = make_stream();
  int* const p = allocate<int>(1);
  ASSERT_TRUE(succeeded(set(s, p, 1, 4, 1)));
  const Graph graph = create();
  const std::uint32_t fails = add_kernel(graph, "must_be", {}, p, 2);
  add_kernel(graph, "store", {fails}, p, 3);
  const Exec exec = instantiate(graph);
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  EXPECT_EQ(synchronize(s).code, LOCKSTEP_E_LAUNCH_FAILED);
  EXPECT_EQ(read(make_stream(), p, 1)[0], 1);
}

TEST_F(Graphs, AllocationNodes) {
  const Stream s = make_stream();
  int* const out = allocate<int>(1);
  lockstep_allocation_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.bytes = 4;
  desc.memory_kind = LOCKSTEP_MEMORY_DEVICE;
  desc.stream = s.get();
  const auto capture_allocation = [&](bool freed, void** memory) {
    EXPECT_TRUE(succeeded(begin(s)));
    EXPECT_TRUE(succeeded(call(b.memory_allocate, device, &desc, memory)));
    int* const q = static_cast<int*>(*memory);
    EXPECT_TRUE(succeeded(launch(s, kernel("store"), {}, q, 31)));
    EXPECT_TRUE(succeeded(launch(s, kernel("move"), {}, out, q)));
    if (freed) {
      EXPECT_TRUE(succeeded(call(b.memory_free, device, *memory, s.get())));
      EXPECT_EQ(call(b.memory_free, device, *memory, s.get()).native, 1);
    }
    Graph graph;
    EXPECT_TRUE(succeeded(end(s, &graph)));
    return graph;
  };
  void* memory = nullptr;
  const Graph balanced = capture_allocation(true, &memory);
  const Exec twice = instantiate(balanced);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(succeeded(launch_graph(twice, s)));
  EXPECT_EQ(read(s, out, 1)[0], 31);

  const Graph left = capture_allocation(false, &memory);
  const Exec exec = instantiate(left);
  lockstep_graph_exec* second = nullptr;
  EXPECT_EQ(call(b.graph_instantiate, left.get(), &second).native, 801);
  lockstep_graph* clone = nullptr;
  EXPECT_EQ(call(b.graph_clone, left.get(), &clone).native, 801);
  EXPECT_EQ(call(b.memory_free, device, memory, s.get()).native, 1);  // not allocated yet
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  EXPECT_EQ(launch_graph(exec, s).native, 1);  // it lives
  EXPECT_EQ(read(s, static_cast<int*>(memory), 1)[0], 31);
  ASSERT_TRUE(succeeded(call(b.memory_free, device, memory, s.get())));
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  ASSERT_TRUE(
      succeeded(call(b.memory_free, device, memory, static_cast<lockstep_stream*>(nullptr))));
  std::uint32_t result = 0;
  ASSERT_TRUE(succeeded(call(b.graph_exec_update, exec.get(), left.get(), &result)));
  EXPECT_EQ(result, std::uint32_t{LOCKSTEP_UPDATE_NOT_SUPPORTED});
}

// A launch is one thing in its stream's order, also when other threads use the stream.
TEST_F(Graphs, NothingOfAnotherThreadRunsBesideTheBranches) {
  const Stream s = make_stream();
  int* const p = allocate<int>(1);
  int* const values = allocate<int>(100);
  const Graph graph = create();
  const std::uint32_t first = add_kernel(graph, "store", {}, p, 1);
  const std::uint32_t quick = add_kernel(graph, "nop", {first});
  const std::uint32_t slow = add_kernel(graph, "fill_slowly", {first}, values, 100);
  add_kernel(graph, "store", {quick, slow}, p, 0);
  const Exec exec = instantiate(graph);
  ASSERT_TRUE(succeeded(set(s, p, 0, 4, 1)));
  ASSERT_TRUE(succeeded(synchronize(s)));
  lockstep_kernel* const must_be = kernel("must_be");
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      for (int i = 0; i < 4; ++i) EXPECT_TRUE(succeeded(launch(s, must_be, {}, p, 0)));
      if (!synchronize(s).ok()) return;
    }
  });
  for (int round = 0; round < 2000 && !HasFailure(); ++round) {
    EXPECT_TRUE(succeeded(launch_graph(exec, s)));
    EXPECT_TRUE(succeeded(synchronize(s)));
  }
  done = true;
  other.join();
}

TEST_F(Graphs, LaunchesAreRecordedOnceAndBoundToAVersion) {
  const Stream s = make_stream();
  int* const p = allocate<int>(1);
  const Graph graph = capture(s, 2, p, 1);
  const Exec exec = instantiate(graph);
  start_recording();
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  ASSERT_TRUE(succeeded(synchronize(s)));
  const std::vector<Recorded> records = stop_recording();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].name, "hostGraphLaunch");
  EXPECT_EQ(records[0].record.of.graph_launch.graph, b.graph_exec_identity(exec.get(), nullptr));
  EXPECT_EQ(records[0].record.of.graph_launch.version, 1U);
  EXPECT_EQ(records[0].record.stream, b.stream_identity(s.get()));
  EXPECT_EQ(records[1].name, "hostStreamSynchronize");
}

}  // namespace
}  // namespace lockstep::host_test
