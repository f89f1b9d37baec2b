// SPDX-License-Identifier: Apache-2.0
// Capture and graphs on a real device.
#include <thread>

#include "smoke_device.h"

namespace smoke {

void test_graphs(lockstep_stream* stream, int* value) {
  lockstep_stream* side = make_stream();
  lockstep_event *fork_event = make_event(), *join_event = make_event();
  lockstep_set_desc zero = set_desc(value, 16, 0, 4);
  MUST(b->set, stream, &zero);
  MUST(b->stream_synchronize, stream);
  int host_calls = 0;
  // a: add, then fork: side twice on value[1]; join; a: add; host function; empty copy (no node).
  g_active = 1;
  MUST(b->capture_begin, stream, std::uint32_t{LOCKSTEP_CAPTURE_THREAD_LOCAL});
  CHECK(launch_on(stream, add_one, value).ok());
  MUST(b->event_record, fork_event, stream);
  MUST(b->stream_wait_event, side, fork_event);
  CHECK(launch_on(side, twice, value + 1).ok());
  MUST(b->event_record, join_event, side);
  CHECK(launch_on(stream, add_one, value + 1).ok());
  MUST(b->stream_wait_event, stream, join_event);
  CHECK(launch_on(stream, add_one, value).ok());
  MUST(
      b->host_function, stream, [](void* user) { ++*static_cast<int*>(user); },
      static_cast<void*>(&host_calls));
  CHECK(copy(stream, value, nullptr, 0).ok());
  const int uploaded = 41;
  CHECK(copy(stream, value + 2, &uploaded, 4).ok());
  lockstep_set_desc set = set_desc(value + 3, 2, 9, 4);
  MUST(b->set, stream, &set);
  std::uint32_t status = 9;
  std::uint64_t id = 0, side_id = 1;
  MUST(b->capture_status, stream, &status, &id);
  CHECK(status == LOCKSTEP_CAPTURE_ACTIVE);
  MUST(b->capture_status, side, &status, &side_id);
  CHECK(id == side_id);
  lockstep_graph* graph = nullptr;
  MUST(b->capture_end, stream, &graph);
  g_active = 0;
  std::vector<std::int32_t> bound;
  std::uint64_t graph_identity = 0;
  for (const Entry& entry : take()) {
    CHECK((entry.flags & LOCKSTEP_RECORD_CAPTURED) != 0);
    if (entry.node >= 0) bound.push_back(entry.node);
    if (graph_identity == 0) graph_identity = entry.graph;
    CHECK(entry.graph == graph_identity && graph_identity != 0);
  }
  CHECK(bound == std::vector<std::int32_t>({0, 1, 2, 3, 4, 5, 6}));
  CHECK(nodes_of(graph) == 7);
  CHECK(read_int(stream, value) == 0 && host_calls == 0);  // nothing ran
  std::vector<lockstep_graph_edge> edges(16);
  std::uint32_t edge_count = 0;
  MUST(b->graph_edges, graph, edges.data(), 16U, &edge_count);
  std::string drawn;
  for (std::uint32_t i = 0; i < edge_count; ++i) {
    drawn += std::to_string(edges[i].from) + ">" + std::to_string(edges[i].to) + " ";
  }
  check(drawn == "0>1 0>2 1>3 2>3 3>4 4>5 5>6 ", "edges", __LINE__, drawn);
  const std::uint32_t kinds[] = {LOCKSTEP_NODE_KERNEL, LOCKSTEP_NODE_KERNEL, LOCKSTEP_NODE_KERNEL,
                                 LOCKSTEP_NODE_KERNEL, LOCKSTEP_NODE_HOST,   LOCKSTEP_NODE_COPY,
                                 LOCKSTEP_NODE_SET};
  for (std::uint32_t i = 0; i < 7; ++i) {
    lockstep_node_info info{};
    info.struct_size = sizeof info;
    MUST(b->graph_node, graph, i, &info);
    CHECK(info.kind == kinds[i]);
    if (i == 1) CHECK(text_of(info.record->name) == "twice");
    if (i == 1) {
      CHECK(*static_cast<int* const*>(info.record->of.kernel.arguments[0]) == value + 1);
    }
    if (i == 5)
      CHECK(info.record->of.copy.direction == LOCKSTEP_COPY_HTOD &&
            info.record->of.copy.width == 4 && text_of(info.record->name) == "cuMemcpyHtoDAsync");
    if (i == 6)
      CHECK(info.record->of.set.width == 8 && info.record->of.set.value == 9 &&
            info.record->of.set.value_size == 4);
  }
  lockstep_graph_exec* exec = nullptr;
  MUST(b->graph_instantiate, graph, &exec);
  std::uint32_t version = 0;
  const std::uint64_t exec_identity = b->graph_exec_identity(exec, &version);
  CHECK(version == 1 && g_defined.back().graph == exec_identity &&
        g_defined.back().nodes.size() == 7 && g_defined.back().edges.size() == 7);
  for (int i = 0; i < 5; ++i) MUST(b->graph_exec_launch, exec, stream);
  CHECK(read_int(stream, value) == 10 && host_calls == 5 && read_int(stream, value + 2) == 41 &&
        read_int(stream, value + 4) == 9);
  // Disabling the first node: one version, defined at the next launch.
  MUST(b->graph_exec_set_enabled, exec, 0U, 0U);
  MUST(b->graph_exec_launch, exec, stream);
  CHECK(read_int(stream, value) == 11);
  b->graph_exec_identity(exec, &version);
  CHECK(version == 2 && (g_defined.back().nodes[0].flags & LOCKSTEP_RECORD_DISABLED) != 0);
  MUST(b->graph_exec_set_enabled, exec, 0U, 1U);

  // By hand: child graph of one kernel, then a set, a copy and an empty copy.
  lockstep_graph *child = nullptr, *hand = nullptr, *cloned = nullptr;
  MUST(b->graph_create, device, &child);
  MUST(b->graph_create, device, &hand);
  const void* arguments[] = {&value};
  const lockstep_launch_desc launch = launch_desc(add_one, 1, 1, arguments, 1);
  lockstep_node_desc node{};
  node.struct_size = sizeof node;
  node.kind = LOCKSTEP_NODE_KERNEL;
  node.launch = &launch;
  std::uint32_t made = 99;
  MUST(b->graph_add_node, child, &node, nullptr, 0U, &made);
  lockstep_node_desc set_node{};
  set_node.struct_size = sizeof set_node;
  set_node.kind = LOCKSTEP_NODE_SET;
  set_node.set = &zero;
  MUST(b->graph_add_node, hand, &set_node, nullptr, 0U, &made);
  lockstep_node_desc child_node{};
  child_node.struct_size = sizeof child_node;
  child_node.kind = LOCKSTEP_NODE_CHILD_GRAPH;
  child_node.child = child;
  std::uint32_t after = made;
  MUST(b->graph_add_node, hand, &child_node, &after, 1U, &made);
  lockstep_node_desc copy_node{};
  copy_node.struct_size = sizeof copy_node;
  copy_node.kind = LOCKSTEP_NODE_COPY;
  const lockstep_copy_desc moved = copy_desc(value + 8, value, 4);
  copy_node.copy = &moved;
  after = made;
  MUST(b->graph_add_node, hand, &copy_node, &after, 1U, &made);
  lockstep_copy_desc nothing = copy_desc(value, value + 1, 0);
  copy_node.copy = &nothing;
  after = made;
  MUST(b->graph_add_node, hand, &copy_node, &after, 1U, &made);
  CHECK(made == 3);
  lockstep_launch_desc too_wide = launch;
  too_wide.grid.y = 65536;
  node.launch = &too_wide;
  const Answer refused = call(b->graph_add_node, child, &node, nullptr, 0U, &made);
  CHECK(refused.code == LOCKSTEP_E_INVALID_ARGUMENT && says(refused, "grid y is 65536"));
  node.launch = &launch;
  MUST(b->graph_clone, hand, &cloned);
  CHECK(nodes_of(cloned) == 4);
  lockstep_node_info info{};
  info.struct_size = sizeof info;
  MUST(b->graph_node, hand, 1U, &info);
  CHECK(info.kind == LOCKSTEP_NODE_CHILD_GRAPH && info.record == nullptr &&
        nodes_of(info.child) == 1);
  lockstep_graph_exec* by_hand = nullptr;
  MUST(b->graph_instantiate, cloned, &by_hand);
  CHECK(g_defined.back().nodes.size() == 4 && g_defined.back().edges.size() == 3 &&
        g_defined.back().nodes[1].kind == LOCKSTEP_RECORD_KERNEL &&
        text_of(g_defined.back().nodes[3].name) == "empty");
  b->graph_destroy(cloned);  // the executable keeps what it needs
  MUST(b->graph_exec_launch, by_hand, stream);
  CHECK(read_int(stream, value + 8) == 1);

  // Update: same shape, one node more, another function, another type.
  lockstep_graph_exec* single = nullptr;
  MUST(b->graph_instantiate, child, &single);
  const auto one_node = [&](lockstep_kernel* kernel, int count) {
    lockstep_graph* other = nullptr;
    MUST(b->graph_create, device, &other);
    lockstep_launch_desc changed = launch_desc(kernel, 1, 1, arguments, 1);
    lockstep_node_desc desc{};
    desc.struct_size = sizeof desc;
    desc.kind = LOCKSTEP_NODE_KERNEL;
    desc.launch = &changed;
    for (int i = 0; i < count; ++i) MUST(b->graph_add_node, other, &desc, nullptr, 0U, &made);
    return other;
  };
  std::uint32_t outcome = 99;
  lockstep_graph* same = one_node(add_one, 1);
  MUST(b->graph_exec_update, single, same, &outcome);
  CHECK(outcome == LOCKSTEP_UPDATE_DONE);
  lockstep_graph* more = one_node(add_one, 2);
  MUST(b->graph_exec_update, single, more, &outcome);
  CHECK(outcome == LOCKSTEP_UPDATE_TOPOLOGY_CHANGED);
  lockstep_graph* other_function = one_node(twice, 1);
  MUST(b->graph_exec_update, single, other_function, &outcome);
  CHECK(outcome == LOCKSTEP_UPDATE_DONE);
  b->graph_exec_identity(single, &version);
  CHECK(version == 3 && text_of(g_defined.back().nodes[0].name) == "twice");
  MUST(b->graph_exec_launch, single, stream);
  CHECK(read_int(stream, value) == 2);
  for (lockstep_graph* each : {graph, child, hand, same, more, other_function})
    b->graph_destroy(each);
  for (lockstep_graph_exec* each : {exec, by_hand, single}) b->graph_exec_destroy(each);
  b->event_destroy(fork_event);
  b->event_destroy(join_event);
  b->stream_destroy(side);
}

// The main rows of the table that was measured on the driver: an illegal call, its rule, and what
// the end of the capture says of it.
void test_capture_rules(int* value) {
  const auto expect = [&](const char* name, std::uint32_t mode, bool non_blocking,
                          lockstep_capture_rule rule, std::uint32_t nodes, auto&& act) {
    lockstep_stream* s = make_stream(non_blocking);
    MUST(b->capture_begin, s, mode);
    CHECK(launch_on(s, add_one, value).ok());
    const Answer answer = act(s);
    check(answer.error.capture_rule == rule && answer.ok() == (rule == 0), name, __LINE__,
          answer.error.message);
    lockstep_graph* graph = nullptr;
    const Answer end = call(b->capture_end, s, &graph);
    if (rule == 0) {
      check(end.ok() && graph != nullptr && nodes_of(graph) == nodes, name, __LINE__,
            end.ok() ? std::to_string(nodes_of(graph)) : end.error.message);
    } else {
      check(end.code == LOCKSTEP_E_CAPTURE_INVALIDATED && graph == nullptr &&
                says(end, answer.error.call),
            name, __LINE__, end.error.message);
    }
    b->graph_destroy(graph);
    CHECK(launch_on(s, add_one, value).ok());
    MUST(b->stream_synchronize, s);
    b->stream_destroy(s);
  };
  constexpr std::uint32_t kG = LOCKSTEP_CAPTURE_GLOBAL, kT = LOCKSTEP_CAPTURE_THREAD_LOCAL,
                          kR = LOCKSTEP_CAPTURE_RELAXED;
  constexpr auto kUnsupported = LOCKSTEP_CAPTURE_RULE_UNSUPPORTED;
  lockstep_stream* other = make_stream();
  lockstep_event *before = make_event(), *captured = make_event();
  MUST(b->event_record, before, other);
  MUST(b->stream_synchronize, other);
  void* memory = nullptr;
  const auto synchronize = [&](lockstep_stream* s) { return call(b->stream_synchronize, s); };
  const auto query_event = [&](lockstep_stream*) { return call(b->event_query, before); };
  const auto plain = [&](lockstep_stream*) { return allocate(4096, &memory); };
  for (const std::uint32_t mode : {kG, kT, kR}) {
    expect("synchronize s", mode, true, kUnsupported, 0, synchronize);
    expect("query s", mode, true, kUnsupported, 0,
           [&](lockstep_stream* s) { return call(b->stream_query, s); });
    expect("device synchronize", mode, true, kUnsupported, 0,
           [&](lockstep_stream*) { return call(b->device_synchronize, device); });
    expect("captured event", mode, true, LOCKSTEP_CAPTURE_RULE_CAPTURED_EVENT, 0,
           [&](lockstep_stream* s) {
             call(b->event_record, captured, s);
             return call(b->event_query, captured);
           });
    expect("wait for an event outside", mode, true, LOCKSTEP_CAPTURE_RULE_ISOLATION, 0,
           [&](lockstep_stream* s) { return call(b->stream_wait_event, s, before); });
    expect("empty set", mode, true, 0, 1, [&](lockstep_stream* s) {
      const lockstep_set_desc desc = set_desc(value, 0, 0, 1);
      return call(b->set, s, &desc);
    });
    expect("stream create", mode, true, 0, 1, [&](lockstep_stream*) {
      b->stream_destroy(make_stream());
      return Answer{};
    });
    const bool relaxed = mode == kR;
    expect("event query before", mode, true, relaxed ? 0 : kUnsupported, 1, query_event);
    expect("plain allocation", mode, true, relaxed ? 0 : kUnsupported, 1, plain);
    expect("synchronize another", mode, true, relaxed ? 0 : kUnsupported, 1,
           [&](lockstep_stream*) { return call(b->stream_synchronize, other); });
    expect("ordered allocation", mode, true, 0, 3, [&](lockstep_stream* s) {
      void* ordered = nullptr;
      const Answer answer = allocate(4096, &ordered, LOCKSTEP_MEMORY_DEVICE, s);
      return answer.ok() ? call(b->memory_free, device, ordered, s) : answer;
    });
    lockstep_stream* legacy = nullptr;
    MUST(b->stream_special, device, std::uint32_t{LOCKSTEP_STREAM_LEGACY}, &legacy);
    const auto on_legacy = [&](lockstep_stream*) { return launch_on(legacy, add_one, value); };
    expect("legacy beside non-blocking", mode, true, 0, 1, on_legacy);
    expect("legacy beside blocking", mode, false, LOCKSTEP_CAPTURE_RULE_IMPLICIT, 0, on_legacy);
    CHECK(call(b->capture_begin, legacy, mode).error.capture_rule == kUnsupported);
    b->stream_destroy(legacy);
  }
  const auto in_thread = [&](auto&& act) {
    return [&](lockstep_stream* s) {
      Answer answer;
      std::thread([&] { answer = act(s); }).join();
      return answer;
    };
  };
  expect("thread allocates, global", kG, true, kUnsupported, 0, in_thread(plain));
  expect("thread allocates, thread-local", kT, true, 0, 1, in_thread(plain));
  expect("thread exchanged its mode (CAP-10)", kG, true, 0, 1, in_thread([&](lockstep_stream* s) {
           std::uint32_t mode = kT;
           const Answer changed = call(b->capture_thread_mode, device, &mode);
           CHECK(changed.ok() && mode == kG);
           return query_event(s);
         }));
  // Unjoined: the second stream is named (CAP-01); destroyed before the join (CAP-05).
  for (const bool destroy : {false, true}) {
    lockstep_stream *s1 = make_stream(), *s2 = make_stream();
    const std::string second = "stream " + std::to_string(b->stream_identity(s2));
    MUST(b->capture_begin, s1, kT);
    CHECK(launch_on(s1, add_one, value).ok());
    MUST(b->event_record, captured, s1);
    MUST(b->stream_wait_event, s2, captured);
    CHECK(launch_on(s2, add_one, value).ok());
    if (destroy) b->stream_destroy(s2);
    lockstep_graph* graph = nullptr;
    const Answer end = call(b->capture_end, s1, &graph);
    CHECK(end.error.capture_rule == LOCKSTEP_CAPTURE_RULE_UNJOINED && says(end, second.c_str()));
    std::printf("  %s\n", end.error.message);
    CHECK(launch_on(s1, add_one, value).ok() && (destroy || launch_on(s2, add_one, value).ok()));
    MUST(b->stream_synchronize, s1);
    b->stream_destroy(s1);
    if (!destroy) b->stream_destroy(s2);
  }
  // Two captures meet (CAP-05); begun twice; ended where nothing began; by another thread.
  lockstep_stream *s1 = make_stream(), *s2 = make_stream();
  lockstep_graph* graph = nullptr;
  MUST(b->capture_begin, s1, kT);
  MUST(b->capture_begin, s2, kT);
  CHECK(call(b->capture_begin, s1, kT).code == LOCKSTEP_E_INVALID_ARGUMENT);
  MUST(b->event_record, captured, s1);
  const Answer merged = call(b->stream_wait_event, s2, captured);
  CHECK(merged.error.capture_rule == LOCKSTEP_CAPTURE_RULE_MERGE);
  for (lockstep_stream* each : {s1, s2}) {
    const Answer end = call(b->capture_end, each, &graph);
    CHECK(end.error.capture_rule == LOCKSTEP_CAPTURE_RULE_INVALIDATED &&
          says(end, "cuStreamWaitEvent"));
  }
  CHECK(call(b->capture_end, s1, &graph).code == LOCKSTEP_E_INVALID_ARGUMENT);
  MUST(b->capture_begin, s1, kT);
  std::thread([&] {
    CHECK(call(b->capture_end, s1, &graph).error.capture_rule ==
          LOCKSTEP_CAPTURE_RULE_WRONG_THREAD);
  }).join();
  MUST(b->stream_synchronize, s1);
  MUST(b->capture_begin, s1, kT);
  MUST(b->capture_end, s1, &graph);
  CHECK(nodes_of(graph) == 0);
  b->graph_destroy(graph);
  for (lockstep_stream* each : {s1, s2, other}) b->stream_destroy(each);
  b->event_destroy(before);
  b->event_destroy(captured);
}

}  // namespace smoke
