// SPDX-License-Identifier: Apache-2.0
// What is recorded: one entry a call, equal for equal work.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

std::vector<std::uint64_t> hashes(const std::vector<ls::LaunchTraceEntry>& entries) {
  std::vector<std::uint64_t> result;
  for (const auto& entry : entries) result.push_back(entry.semantic_hash);
  return result;
}

}  // namespace

void add_trace_cases() {
  add_rule_case("trace.one_entry_a_call", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto a = env.device().allocate<int>(64), b = env.device().allocate<int>(64);
    std::vector<int> host(64, 2);
    ls::LaunchTrace trace;
    stream.copy(a, host);
    stream.fill(b, 7);
    stream.launch(env.kernel("fill_index"),
                  {.grid = {2, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 128}, a, 64);
    stream.copy(b, a);
    stream.copy(host, b);
    stream.synchronize();
    const auto entries = trace.take();
    expect_equal(entries.size(), 5u, "entries");
    expect(
        entries.at(0).memcpy_kind == ls::MemcpyKind::kHtoD && entries.at(0).memcpy_byte_size == 256,
        "0: HtoD of 256 bytes");
    expect(entries.at(1).kind == ls::OperationKind::kMemset &&
               entries.at(1).memset_byte_size == 256 && entries.at(1).memset_value == 7 &&
               entries.at(1).memset_value_size == 4,
           "1: a set of 64 words");
    const auto& kernel = entries.at(2);
    expect(kernel.kind == ls::OperationKind::kKernelLaunch &&
               kernel.name == env.kernel("fill_index").name(),
           "2: the kernel");
    expect(kernel.grid() == ls::Dim3(2, 1, 1) && kernel.block() == ls::Dim3(32, 1, 1) &&
               kernel.shared_mem_bytes == 128,
           "2: grid, block and shared memory");
    expect(entries.at(3).memcpy_kind == ls::MemcpyKind::kDtoD, "3: DtoD");
    expect(entries.at(4).memcpy_kind == ls::MemcpyKind::kDtoH, "4: DtoH");
    for (const auto& entry : entries) {
      expect(entry.semantic_hash == ls::semantic_hash(entry) && entry.semantic_hash != 0,
             "the hash is that of the fields");
    }
    for (std::size_t i = 1; i < entries.size(); ++i) {
      expect(entries.at(i).sequence > entries.at(i - 1).sequence, "enqueue order");
    }
  });

  // TRC-18: units are blocks, whatever the launch call.
  add_rule_case("TRC_18.launch_shape", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto out = env.device().allocate<std::uint32_t>(6 * 24 * 64);
    const ls::LaunchConfig config{.grid = {2, 3, 4}, .block = {8, 4, 2}, .shared_bytes = 1024};
    ls::Graph graph = env.device().create_graph();
    graph.add_kernel({}, env.kernel("record_index"), config, out);
    const ls::GraphExec exec = graph.instantiate();
    ls::LaunchTrace trace;
    stream.launch(env.kernel("record_index"), config, out);
    exec.launch(stream);
    stream.synchronize();
    const auto entries = trace.take();
    expect_equal(entries.size(), 2u, "entries");
    for (const auto& entry : entries) {
      expect(entry.grid() == ls::Dim3(2, 3, 4) && entry.block() == ls::Dim3(8, 4, 2) &&
                 entry.shared_mem_bytes == 1024,
             "grid, block, shared memory: " + ls::to_string(entry));
    }
    expect_equal(entries.at(0).semantic_hash, entries.at(1).semantic_hash,
                 "hash of launch and node");
  });

  // TRC-02: all work of a graph launch is in the trace, in a valid order.
  add_rule_case("TRC_02.graph_launch_is_expanded", [](const Environment& env) {
    const auto value = env.device().allocate<int>(8), copy = env.device().allocate<int>(8);
    ls::Graph graph = env.device().create_graph();
    std::vector<ls::GraphNode> last;
    for (int i = 0; i < 24; ++i) {
      last = {graph.add_kernel(last, env.kernel("add_constant<int>"), {.grid = 1, .block = 1},
                               value, i, 1)};
    }
    for (int i = 0; i < 7; ++i) {
      ls::CopyRegion region;
      region.source = value.data();
      region.destination = copy.data();
      region.extent = {static_cast<std::uint64_t>(4 * (i + 1)), 1, 1};
      last = {graph.add_copy(last, region)};
    }
    const ls::GraphExec exec = graph.instantiate();
    const ls::Stream stream = env.device().create_stream();
    ls::LaunchTrace trace;
    exec.launch(stream);
    stream.synchronize();
    const auto entries = trace.take();
    expect_equal(entries.size(), 31u, "entries");
    for (std::size_t i = 0; i < 31; ++i) {
      expect_equal(entries.at(i).node, static_cast<std::int32_t>(i),
                   "node of entry " + std::to_string(i));
      expect(entries.at(i).has(ls::EntryFlag::kReplayed),
             "entries of a graph launch are marked as replayed");
    }
  });

  add_rule_case("trace.equal_work_gives_equal_hashes", [](const Environment& env) {
    const auto run = [&] {
      const ls::Stream stream = env.device().create_stream();
      const auto padding = env.device().allocate<int>(1000);  // other addresses than the last time
      const auto a = env.device().allocate<float>(256), b = env.device().allocate<float>(256);
      ls::LaunchTrace trace;
      stream.fill(a, 1.0f);
      stream.launch(env.kernel("saxpy"), {.grid = 1, .block = 256}, 2.0f, a, b, 256);
      stream.synchronize();
      return trace.take();
    };
    const auto first = run(), second = run();
    expect(hashes(first) == hashes(second), "semantic hashes of the same work");
    expect_equal(first.at(1).argument_hash, second.at(1).argument_hash,
                 "argument hash of the same work");
    expect(first.at(1).argument_hash != 0, "a typed launch has an argument hash");
  });

  add_rule_case("trace.captured_entries_did_not_run", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto value = env.device().allocate<int>(4);
    ls::LaunchTrace trace;
    const ls::Graph graph = stream.capture([&](ls::Stream& s) { s.fill(value, 3); });
    const ls::Trace recording = trace.trace();
    std::size_t captured = 0;
    for (const auto& entry : recording.entries) {
      if (entry.kind == ls::OperationKind::kMemset)
        captured += entry.has(ls::EntryFlag::kCaptured) ? 1u : 0u;
    }
    expect_equal(captured, 1u, "captured sets");
    expect_equal(ls::view(recording).size(), 0u, "entries of the executed view");
  });

  add_rule_case("trace.begin_and_take", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto value = env.device().allocate<int>(4);
    (void)ls::Tracer::take();
    expect_equal(ls::Tracer::take().size(), 0u, "take without begin");
    ls::Tracer::begin();
    stream.fill(value, 1);
    ls::Tracer::begin();  // starts anew
    stream.fill(value, 2);
    const auto entries = ls::Tracer::take();
    expect_equal(entries.size(), 1u, "entries since the second begin");
    expect_equal(entries.at(0).memset_value, 2u, "value of the recorded set");
    stream.fill(value, 3);
    expect_equal(ls::Tracer::take().size(), 0u, "a second take");
    stream.synchronize();
  });

  add_rule_case("trace.nested_scopes", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto value = env.device().allocate<int>(4);
    ls::LaunchTrace outer;
    stream.fill(value, 1);
    std::vector<ls::LaunchTraceEntry> inner_entries;
    {
      ls::LaunchTrace inner;
      stream.fill(value, 2);
      inner_entries = inner.take();
    }
    stream.fill(value, 3);
    expect_equal(inner_entries.size(), 1u, "entries of the inner scope");
    expect_equal(outer.take().size(), 3u, "entries of the outer scope");
    stream.synchronize();
  });

  // TRC-13: what was enqueued is there without any synchronise.
  add_rule_case("TRC_13.no_synchronise_needed", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto value = env.device().allocate<int>(4);
    ls::LaunchTrace trace;
    stream.launch(env.kernel("spin_then_set"), {.grid = 1, .block = 1}, value, 1, 3000000);
    expect_equal(trace.take().size(), 1u, "entries while the kernel runs");
    stream.synchronize();
  });

  add_rule_case("TRC_13.other_device", [](const Environment& env) {
    const ls::Device& second = env.second_device();
    const ls::Stream stream = second.create_stream();
    const auto value = second.allocate<int>(4);
    const ls::Kernel kernel = env.kernel("spin_then_set", second);
    ls::LaunchTrace trace;
    stream.launch(kernel, {.grid = 1, .block = 1}, value, 1, 3000000);
    const auto entries = trace.take();  // the first device is the current one, if any is
    expect_equal(entries.size(), 1u, "entries while the kernel runs");
    expect_equal(entries.at(0).device, second.ordinal(), "device of the entry");
    stream.synchronize();
  });

  // TRC-10: idle gaps and short sessions lose nothing.
  add_rule_case("TRC_10.many_short_sessions", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto value = env.device().allocate<int>(4);
    for (int session = 0; session < 50; ++session) {
      ls::LaunchTrace trace;
      stream.fill(value, session);
      if (session % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stream.fill(value, session + 1);
      expect_equal(trace.take().size(), 2u, "entries of session " + std::to_string(session));
    }
    stream.synchronize();
  });

  // TRC-07: the special streams have an index each, and a thread's stream is its own.
  add_rule_case("TRC_07.special_streams", [](const Environment& env) {
    const auto value = env.device().allocate<int>(4);
    ls::LaunchTrace trace;
    env.device().legacy_stream().fill(value, 1);
    env.device().legacy_stream().fill(value, 1);
    env.device().per_thread_stream().fill(value, 2);
    std::thread([&] { env.device().per_thread_stream().fill(value, 3); }).join();
    env.device().per_thread_stream().fill(value, 4);
    const auto entries = trace.take();
    env.device().synchronize();
    std::vector<std::uint32_t> streams;
    for (const auto& entry : entries) streams.push_back(entry.stream_index);
    expect_equal(streams, std::vector<std::uint32_t>{0, 0, 1, 2, 1}, "stream index");
  });

  add_rule_case("trace.recreated_stream_is_a_new_one", [](const Environment& env) {
    const auto value = env.device().allocate<int>(4);
    ls::LaunchTrace trace;
    for (int i = 0; i < 3; ++i) {
      const ls::Stream stream = env.device().create_stream();
      stream.fill(value, i);
      stream.synchronize();
    }
    const auto entries = trace.take();
    for (std::size_t i = 0; i < 3; ++i) {
      expect_equal(entries.at(i).stream_index, static_cast<std::uint32_t>(i), "stream index");
    }
  });

  add_rule_case("trace.failed_calls_are_marked", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto value = env.device().allocate<int>(4);
    ls::LaunchTrace trace;
    ls::CopyRegion region;
    region.source = value.data();
    region.destination = value.data();
    region.extent = {std::uint64_t{1} << 40, 1, 1};
    expect_error(ls::ErrorCode::kInvalidArgument, "a copy past the end",
                 [&] { stream.copy(region); });
    stream.fill(value, 1);
    expect_equal(trace.take().size(), 1u, "entries of the executed view");
    stream.synchronize();
  });

  add_rule_case("trace.threads_are_in_order_of_enqueue", [](const Environment& env) {
    const auto value = env.device().allocate<int>(8);
    ls::LaunchTrace trace;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const ls::Stream stream = env.device().create_stream();
        for (int i = 0; i < 200; ++i) stream.fill(value.subview(t, 1), i);
        stream.synchronize();
      });
    }
    for (auto& thread : threads) thread.join();
    const auto entries = trace.take();
    expect_equal(entries.size(), 800u, "entries");
    std::vector<std::uint32_t> next(4, 0);
    for (const auto& entry : entries) {
      expect_equal(entry.memset_value, next.at(entry.stream_index)++,
                   "value in the order of its stream");
    }
  });
}

}  // namespace conformance
