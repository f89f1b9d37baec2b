// SPDX-License-Identifier: Apache-2.0
// Cases from the field that belong to no one part: each was somebody's bad day.
#include <lockstep/backend.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

void launch(const Environment& env, const ls::StreamRef& stream, const ls::Buffer<int>& value,
            const ls::LaunchConfig& config = {.grid = 1, .block = 1}) {
  stream.launch(env.kernel("add_constant<int>"), config, value, 1, 1);
}

std::size_t kernels_in(const std::vector<ls::LaunchTraceEntry>& entries) {
  std::size_t count = 0;
  for (const auto& entry : entries) count += entry.kind == ls::OperationKind::kKernelLaunch ? 1 : 0;
  return count;
}

void add_capture_field_cases() {
  // CAP-07: the legacy stream is used while another stream captures.
  add_rule_case("CAP_07.blocking_stream_captures", [](const Environment& env) {
    for (const bool set : {false, true}) {
      const auto value = make_buffer(env.device(), std::vector<int>{0});
      ls::Stream stream = env.device().create_stream({.non_blocking = false});
      const ls::StreamRef legacy = env.device().legacy_stream();
      stream.begin_capture();
      launch(env, stream, *value);
      const ls::Error error =
          expect_error(ls::ErrorCode::kIllegalDuringCapture, "the legacy stream", [&] {
            if (set) {
              legacy.fill(*value, 7);
            } else {
              launch(env, legacy, *value);
            }
          });
      expect(std::string(error.what()).find("legacy stream") != std::string::npos,
             std::string("the message speaks of the legacy stream: ") + error.what());
      expect_error(ls::ErrorCode::kCaptureInvalidated, "the end of the capture",
                   [&] { (void)stream.end_capture(); });
      launch(env, stream, *value);
      launch(env, legacy, *value);
      env.device().synchronize();
      expect_equal(read(*value), std::vector<int>{2}, "value after both were used again");
    }
  });
  add_rule_case("CAP_07.non_blocking_stream_captures", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    ls::Stream stream = env.device().create_stream();
    const ls::StreamRef legacy = env.device().legacy_stream();
    ls::LaunchTrace trace;
    stream.begin_capture();
    launch(env, stream, *value);
    launch(env, legacy, *value);
    const ls::Graph graph = stream.end_capture();
    env.device().synchronize();
    expect_equal(graph.node_count(), 1u, "nodes");
    expect_equal(kernels_in(trace.take()), 1u, "kernels that ran: the legacy stream's");
    expect_equal(read(*value), std::vector<int>{1}, "value");
  });

  // REP-04: a buffer is moved after the capture.
  add_rule_case("REP_04.moved_buffer_is_refused_each_time", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    ls::GraphExec exec;
    {
      const auto moved = env.device().allocate<int>(64);
      int* raw = moved.data();
      exec = stream
                 .capture([&](ls::StreamRef& s) {
                   s.launch(env.kernel("fill_index"), {.grid = 1, .block = 64}, raw, 64);
                 })
                 .instantiate();
    }
    for (int again = 0; again < 3; ++again) {
      expect_error(ls::ErrorCode::kStaleBuffer, "a launch after the buffer moved",
                   [&] { exec.launch(stream); });
    }
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    launch(env, stream, *value);
    stream.synchronize();
    expect_equal(read(*value), std::vector<int>{1}, "the stream works on");
  });

  // REP-06: scratch memory inside of a capture is nodes of its own, and does not pile up.
  add_rule_case("REP_06.scratch_memory_is_listed_apart", [](const Environment& env) {
    if (env.device().attribute(LOCKSTEP_ATTR_GRAPH_MEMORY_NODES).value_or(0) == 0) {
      throw NotApplicable("the device has no memory nodes");
    }
    ls::Stream stream = env.device().create_stream();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    std::uint64_t after_two = 0, after_twenty = 0;
    for (int round = 1; round <= 20; ++round) {
      const ls::Graph graph = stream.capture([&](ls::StreamRef& s) {
        const auto scratch = env.device().allocate_async<int>(1 << 20, stream);
        s.fill(scratch, 1);
        launch(env, s, *value);
      });
      expect_equal(graph.node_count(), 4u, "allocation, set, kernel, free");
      ls::LaunchTrace trace;
      graph.instantiate().launch(stream);
      stream.synchronize();
      const auto entries = trace.take();
      expect_equal(entries.size(), 2u, "entries of core kinds a replay");
      if (round == 2) after_two = env.device().memory_info().free_bytes;
      if (round == 20) after_twenty = env.device().memory_info().free_bytes;
    }
    expect_equal(read(*value), std::vector<int>{20}, "value");
    // Others use the device too: a tenth of what 18 leaks would be.
    expect(after_twenty + (std::uint64_t{18} << 22) / 10 + (std::uint64_t{256} << 20) >= after_two,
           "memory stays what it was after two captures");
  });

  // REP-23: what hangs can be seen to hang, and ends when it is told to.
  add_rule_case("REP_23.a_graph_that_waits_is_polled", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    auto release = std::make_shared<std::atomic<bool>>(false);
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::GraphExec exec = stream
                                   .capture([&](ls::StreamRef& s) {
                                     s.host_function([release] {
                                       while (!*release)
                                         std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                     });
                                     launch(env, s, *value);
                                   })
                                   .instantiate();
    exec.launch(stream);
    for (int poll = 0; poll < 20; ++poll) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      expect(!stream.query(), "the stream is not done while the graph waits");
    }
    *release = true;
    stream.synchronize();
    expect_equal(read(*value), std::vector<int>{1}, "value");
  });
}

void add_trace_field_cases() {
  // TRC-01 and REP-17: replays are as many kernels as they execute, and none besides.
  add_rule_case("TRC_01.every_replayed_kernel_is_recorded", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::GraphExec exec = stream
                                   .capture([&](ls::StreamRef& s) {
                                     for (int i = 0; i < 64; ++i) launch(env, s, *value);
                                   })
                                   .instantiate();
    ls::LaunchTrace trace;
    for (int i = 0; i < 8; ++i) exec.launch(stream);
    stream.synchronize();
    const auto entries = trace.take();
    expect_equal(entries.size(), 512u, "entries of 8 launches of 64 kernels");
    expect_equal(kernels_in(entries), 512u, "kernels among them");
    expect_equal(read(*value), std::vector<int>{512}, "kernels that ran");
  });

  // TRC-04: every way to launch, to copy and to set is one entry.
  add_rule_case("TRC_04.every_way_is_one_entry", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0, 0, 0, 0});
    const auto other = make_buffer(env.device(), std::vector<int>{0, 0, 0, 0});
    std::vector<int> host(4);
    ls::Stream stream = env.device().create_stream();
    ls::Graph graph = env.device().create_graph();
    graph.add_kernel({}, env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, *value, 1, 1);
    const ls::GraphExec exec = graph.instantiate();
    const bool cooperative =
        env.device().attribute(LOCKSTEP_ATTR_COOPERATIVE_LAUNCH).value_or(0) != 0;
    std::size_t kernels = 0;
    // A driver may lack the call for what its device can do; then it says so.
    const auto launch_where_offered = [&](const ls::LaunchConfig& config, const ls::StreamRef& on) {
      try {
        launch(env, on, *value, config);
        ++kernels;
      } catch (const ls::Error& error) {
        if (error.code() != ls::ErrorCode::kNotSupported) throw;
      }
    };
    ls::LaunchTrace trace;
    for (const ls::StreamRef& on :
         {ls::StreamRef(stream), env.device().legacy_stream(), env.device().per_thread_stream()}) {
      launch(env, on, *value);
      exec.launch(on);
      kernels += 2;
      launch_where_offered({.grid = 1, .block = 1, .priority = 0}, on);
      if (cooperative) launch_where_offered({.grid = 1, .block = 1, .cooperative = true}, on);
      on.synchronize();
    }
    stream.copy(*value, host);
    stream.copy(host, *value);
    stream.copy(*other, *value);
    stream.fill(*value, 0);
    stream.fill(*other, 5);
    stream.synchronize();
    const auto entries = trace.take();
    expect_equal(kernels_in(entries), kernels, "kernel entries");
    expect_equal(entries.size(), kernels + 5, "all entries");
  });
}

}  // namespace

void add_field_cases() {
  add_capture_field_cases();
  add_trace_field_cases();
}

}  // namespace conformance
