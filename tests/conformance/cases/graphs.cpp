// SPDX-License-Identifier: Apache-2.0
// Graphs built by hand, what they list, and how they run.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

ls::GraphNode add_constant(const Environment& env, ls::Graph& graph,
                           std::vector<ls::GraphNode> dependencies, const ls::Buffer<int>& value,
                           int constant) {
  return graph.add_kernel(dependencies, env.kernel("add_constant<int>"), {.grid = 1, .block = 1},
                          value, constant, 1);
}

}  // namespace

void add_graph_cases() {
  add_rule_case("graph.by_hand", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0}),
               copy = make_buffer(env.device(), std::vector<int>{0});
    ls::Graph graph = env.device().create_graph();
    ls::FillRegion fill;
    fill.destination = value->data();
    fill.extent = {1, 1, 1};
    fill.value = 10;
    fill.value_size = 4;
    const ls::GraphNode set = graph.add_fill({}, fill);
    const ls::GraphNode add = add_constant(env, graph, {set}, *value, 5);
    const ls::GraphNode join = graph.add_empty(std::vector{add});
    std::atomic<int> calls = 0;
    const ls::GraphNode host = graph.add_host_function(std::vector{join}, [&] { ++calls; });
    ls::CopyRegion region;
    region.source = value->data();
    region.destination = copy->data();
    region.extent = {4, 1, 1};
    graph.add_copy(std::vector{host}, region);
    graph.keep_alive(value->allocation());
    expect_equal(graph.node_count(), 5u, "nodes");
    expect(graph.edges() == Edges{{0, 1}, {1, 2}, {2, 3}, {3, 4}}, "edges in order");
    const auto nodes = graph.nodes();
    expect(nodes.at(0).kind == ls::NodeKind::kSet && nodes.at(1).kind == ls::NodeKind::kKernel &&
               nodes.at(2).kind == ls::NodeKind::kEmpty &&
               nodes.at(3).kind == ls::NodeKind::kHost && nodes.at(4).kind == ls::NodeKind::kCopy,
           "kinds of the nodes in creation order");
    expect_equal(nodes.at(1).entry.name, env.kernel("add_constant<int>").name(),
                 "name of the kernel node");
    expect_equal(nodes.at(0).entry.memset_value, 10u, "value of the set node");
    const ls::Stream stream = env.device().create_stream();
    const ls::GraphExec exec = graph.instantiate();
    for (int i = 0; i < 3; ++i) exec.launch(stream);
    stream.synchronize();
    expect_equal(read(*copy), std::vector<int>{15}, "value");
    expect_equal(calls.load(), 3, "calls of the host function");
  });

  // Launched again while the launch before is under way, and when it is over; in a child graph,
  // too.
  add_rule_case("graph.host_functions_run_in_their_place", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const auto pinned = env.device().allocate_pinned<int>(1);
    struct Seen {  // a driver that is wrong may call late
      std::mutex mutex;
      std::vector<int> numbers;
    };
    const auto seen = std::make_shared<Seen>();
    const auto numbers = [&] {
      const std::lock_guard lock(seen->mutex);
      return seen->numbers;
    };
    ls::Graph graph = env.device().create_graph();
    const ls::GraphNode add = add_constant(env, graph, {}, *value, 1);
    ls::CopyRegion region;
    region.source = value->data();
    region.destination = pinned.data();
    region.extent = {sizeof(int), 1, 1};
    const ls::GraphNode copy = graph.add_copy(std::vector{add}, region);
    const ls::GraphNode host =
        graph.add_host_function(std::vector{copy}, [seen, number = pinned.data()] {
          const std::lock_guard lock(seen->mutex);
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          seen->numbers.push_back(*number);
        });
    add_constant(env, graph, {host}, *value, 10);
    graph.keep_alive(value->allocation());
    graph.keep_alive(pinned.allocation());
    ls::Graph parent = env.device().create_graph();
    parent.add_child({}, graph);
    const ls::Stream stream = env.device().create_stream();
    for (const ls::Graph& each : {graph, parent}) {
      write(*value, std::vector<int>{0});
      const ls::GraphExec exec = each.instantiate();
      for (int i = 0; i < 4; ++i) exec.launch(stream);
      stream.synchronize();
      expect_equal(numbers(), std::vector<int>{1, 12, 23, 34}, "what the host function saw");
      exec.launch(stream);
      stream.synchronize();
      expect_equal(numbers(), std::vector<int>{1, 12, 23, 34, 45}, "what it saw in a later launch");
      expect_equal(read(*value), std::vector<int>{55}, "value behind the host function");
      seen->numbers.clear();
    }
  });

  add_rule_case("graph.diamond_keeps_its_order", [](const Environment& env) {
    const auto a = make_buffer(env.device(), std::vector<int>{0}),
               b = make_buffer(env.device(), std::vector<int>{0}),
               c = make_buffer(env.device(), std::vector<int>{0});
    const ls::Kernel set = env.kernel("spin_then_set"), copy = env.kernel("copy_words");
    ls::Graph graph = env.device().create_graph();
    const ls::LaunchConfig one{.grid = 1, .block = 1};
    const auto top = graph.add_kernel({}, set, one, *a, 6, 200000);
    const auto left = graph.add_kernel({top}, copy, one, *a, *b, 1);
    const auto right = graph.add_kernel({top}, copy, one, *a, *c, 1);
    graph.add_kernel({left, right}, env.kernel("add_constant<int>"), one, *b, 1, 1);
    const ls::Stream stream = env.device().create_stream();
    const ls::GraphExec exec = graph.instantiate();
    for (int i = 0; i < 10; ++i) exec.launch(stream);
    stream.synchronize();
    expect_equal(read(*b), std::vector<int>{7}, "left value");
    expect_equal(read(*c), std::vector<int>{6}, "right value");
    expect(graph.edges() == Edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}}, "edges of the diamond");
  });

  add_rule_case("graph.same_kernel_with_own_arguments", [](const Environment& env) {
    std::vector<std::shared_ptr<ls::Buffer<int>>> values;
    ls::Graph graph = env.device().create_graph();
    for (int i = 0; i < 16; ++i) {
      values.push_back(make_buffer(env.device(), std::vector<int>{0}));
      int constant = 100 + i;  // gone before the launch: nodes own their copies
      add_constant(env, graph, {}, *values.back(), constant);
      constant = -1;
    }
    const ls::Stream stream = env.device().create_stream();
    graph.instantiate().launch(stream);
    stream.synchronize();
    for (int i = 0; i < 16; ++i) {
      expect_equal(read(*values[static_cast<std::size_t>(i)]), std::vector<int>{100 + i}, "value");
    }
  });

  add_rule_case("graph.launches_follow_each_other", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    ls::Graph graph = env.device().create_graph();
    auto last = add_constant(env, graph, {}, *value, 1);
    for (int i = 0; i < 9; ++i) last = add_constant(env, graph, {last}, *value, 1);
    const ls::GraphExec exec = graph.instantiate();
    const ls::Stream first = env.device().create_stream(), second = env.device().create_stream();
    for (int i = 0; i < 20; ++i) {
      exec.launch(first);
      exec.launch(second);
    }
    first.synchronize();
    second.synchronize();
    expect_equal(read(*value), std::vector<int>{400}, "value");
  });

  add_rule_case("graph.child", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    ls::Graph child = env.device().create_graph();
    const auto first = add_constant(env, child, {}, *value, 10);
    add_constant(env, child, {first}, *value, 20);
    ls::Graph parent = env.device().create_graph();
    const auto before = add_constant(env, parent, {}, *value, 1);
    const auto inner = parent.add_child(std::vector{before}, child);
    add_constant(env, parent, {inner}, *value, 3);
    add_constant(env, child, {}, *value, 5000);  // the parent has a copy
    const ls::GraphDefinition definition = parent.definition();
    expect_equal(definition.nodes.size(), 4u, "nodes with the child inlined");
    const ls::Stream stream = env.device().create_stream();
    ls::LaunchTrace trace;
    parent.instantiate().launch(stream);
    stream.synchronize();
    expect_equal(read(*value), std::vector<int>{34}, "value");
    expect_equal(trace.take().size() >= 4, true, "the child's nodes are recorded");
  });

  // Two levels deep, and again in a clone: some drivers cannot tell what a copy node copies.
  add_rule_case("graph.child_copies", [](const Environment& env) {
    const auto a = make_buffer(env.device(), std::vector<int>{1, 2, 3, 4}),
               b = make_buffer(env.device(), std::vector<int>{0, 0, 0, 0}),
               c = make_buffer(env.device(), std::vector<int>{0, 0, 0, 0});
    const auto region = [](const ls::Buffer<int>& from, const ls::Buffer<int>& to,
                           std::uint64_t count) {
      ls::CopyRegion copy;
      copy.source = from.data();
      copy.destination = to.data();
      copy.extent = {count * sizeof(int), 1, 1};
      return copy;
    };
    ls::Graph innermost = env.device().create_graph(), child = env.device().create_graph(),
              parent = env.device().create_graph();
    innermost.add_copy({}, region(*b, *c, 2));
    const ls::GraphNode first = child.add_copy({}, region(*a, *b, 3));
    child.add_child(std::vector{first}, innermost);
    parent.add_child({}, child);
    const ls::Stream stream = env.device().create_stream();
    for (const ls::Graph& graph : {parent, parent.clone()}) {
      write(*c, std::vector<int>{0, 0, 0, 0});
      ls::LaunchTrace trace;
      graph.instantiate().launch(stream);
      stream.synchronize();
      std::vector<std::uint64_t> bytes;
      for (const auto& entry : trace.take()) {
        expect(entry.kind == ls::OperationKind::kMemcpy, "every entry is a copy");
        expect(entry.memcpy_kind == ls::MemcpyKind::kDtoD, "between device memory");
        bytes.push_back(entry.memcpy_byte_size);
      }
      expect(bytes == std::vector<std::uint64_t>{12, 8}, "the bytes of both copies, in order");
      expect_equal(read(*c), std::vector<int>{1, 2, 0, 0}, "values");
      expect_equal(graph.definition().nodes.at(1).memcpy_byte_size, std::uint64_t{8},
                   "bytes of the innermost copy in the definition");
    }
  });

  add_rule_case("graph.clone_is_independent", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    ls::Graph graph = env.device().create_graph();
    add_constant(env, graph, {}, *value, 1);
    const ls::Graph copy = graph.clone();
    add_constant(env, graph, {}, *value, 100);
    expect_equal(copy.node_count(), 1u, "nodes of the clone");
    const ls::Stream stream = env.device().create_stream();
    copy.instantiate().launch(stream);
    stream.synchronize();
    expect_equal(read(*value), std::vector<int>{1}, "value");
  });

  add_rule_case("graph.executable_is_a_snapshot", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    ls::Graph graph = env.device().create_graph();
    add_constant(env, graph, {}, *value, 1);
    const ls::GraphExec exec = graph.instantiate();
    add_constant(env, graph, {}, *value, 100);
    const ls::Stream stream = env.device().create_stream();
    exec.launch(stream);
    stream.synchronize();
    expect_equal(read(*value), std::vector<int>{1}, "value");
  });

  // HIPG-02: a node that is switched off still orders its neighbours.
  add_rule_case("HIPG_02.disabled_node_keeps_order", [](const Environment& env) {
    const auto a = make_buffer(env.device(), std::vector<int>{0}),
               b = make_buffer(env.device(), std::vector<int>{0}),
               c = make_buffer(env.device(), std::vector<int>{0});
    ls::Graph graph = env.device().create_graph();
    const ls::LaunchConfig one{.grid = 1, .block = 1};
    const auto writer = graph.add_kernel({}, env.kernel("spin_then_set"), one, *a, 9, 300000);
    const auto middle = graph.add_kernel({writer}, env.kernel("add_constant<int>"), one, *c, 1, 1);
    graph.add_kernel({middle}, env.kernel("copy_words"), one, *a, *b, 1);
    ls::GraphExec exec = graph.instantiate();
    exec.set_enabled(middle, false);
    const ls::Stream stream = env.device().create_stream();
    for (int round = 0; round < 10; ++round) {
      write(*b, std::vector<int>{0});
      ls::LaunchTrace trace;
      exec.launch(stream);
      stream.synchronize();
      expect_equal(read(*b), std::vector<int>{9}, "value read behind the disabled node");
      std::size_t kernels = 0;
      for (const auto& entry : trace.take())
        kernels += entry.kind == ls::OperationKind::kKernelLaunch ? 1u : 0u;
      expect_equal(kernels, 2u, "kernels executed");
    }
    expect_equal(read(*c), std::vector<int>{0}, "the disabled node did nothing");
    exec.set_enabled(middle, true);
    exec.launch(stream);
    stream.synchronize();
    expect_equal(read(*c), std::vector<int>{1}, "the node switched on again");
  });

  add_rule_case("graph.nodes_that_cannot_be_are_refused", [](const Environment& env) {
    const auto value = env.device().allocate<int>(1);
    ls::Graph graph = env.device().create_graph();
    expect_error(ls::ErrorCode::kInvalidArgument, "a dependency on node 3 of an empty graph", [&] {
      graph.add_kernel({ls::GraphNode{3}}, env.kernel("add_constant<int>"), {.grid = 1, .block = 1},
                       value, 1, 1);
    });
    const std::vector<char> pageable(64);
    ls::CopyRegion region;
    region.destination = value.data();
    for (const ls::Extent& extent : kPastTheAddressSpace) {
      region.extent = extent;
      for (const void* source :
           {static_cast<const void*>(value.data()), static_cast<const void*>(pageable.data())}) {
        region.source = source;
        expect_error(ls::ErrorCode::kInvalidArgument, "a node that copies past the address space",
                     [&] { graph.add_copy({}, region); });
      }
    }
    expect_equal(graph.node_count(), 0u, "nodes");
  });

  add_rule_case("graph.destroyed_with_a_launch_in_flight", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::Stream stream = env.device().create_stream();
    {
      ls::Graph graph = env.device().create_graph();
      graph.add_kernel({}, env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *value, 4,
                       2000000);
      graph.instantiate().launch(stream);
    }
    stream.synchronize();
    expect_equal(read(*value), std::vector<int>{4}, "value");
  });

  // HIPG-05: one captured copy is one node, every time.
  add_rule_case("HIPG_05.one_copy_is_one_node", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto a = env.device().allocate<int>(64), b = env.device().allocate<int>(64);
    for (int round = 0; round < 500; ++round) {
      const ls::Graph graph = stream.capture([&](ls::Stream& s) { s.copy(b, a); });
      expect_equal(graph.node_count(), 1u, "nodes");
    }
  });

  add_rule_case("graph.event_nodes_order_streams", [](const Environment& env) {
    const auto a = make_buffer(env.device(), std::vector<int>{0}),
               b = make_buffer(env.device(), std::vector<int>{0});
    const ls::Event event = env.device().create_event();
    ls::Graph graph = env.device().create_graph();
    const auto set =
        graph.add_kernel({}, env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *a, 5, 300000);
    graph.add_event_record(std::vector{set}, event);
    const ls::GraphExec exec = graph.instantiate();
    const ls::Stream first = env.device().create_stream(), second = env.device().create_stream();
    exec.launch(first);
    second.wait(event);
    second.launch(env.kernel("copy_words"), {.grid = 1, .block = 1}, *a, *b, 1);
    second.synchronize();
    expect_equal(read(*b), std::vector<int>{5}, "value read behind the graph's event");
    first.synchronize();
  });
}

}  // namespace conformance
