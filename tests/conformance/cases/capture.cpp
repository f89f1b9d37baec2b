// SPDX-License-Identifier: Apache-2.0
// What a capture records, what it leaves alone, and how it ends.
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

/// A stream that takes plain work again after a capture went wrong.
void expect_usable(const Environment& env, const ls::Stream& stream, const std::string& name) {
  expect(stream.capture_status() == ls::CaptureStatus::kNone, name + " does not capture any more");
  const auto value = make_buffer(env.device(), std::vector<int>{1});
  stream.launch(env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, *value, 4, 1);
  stream.synchronize();
  expect_equal(read(*value), std::vector<int>{5}, "value after a plain launch on " + name);
}

void add_one(const Environment& env, const ls::StreamRef& stream, const ls::Buffer<int>& value) {
  stream.launch(env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, value, 1, 1);
}

}  // namespace

void add_capture_cases() {
  add_rule_case("CAP_01.unjoined_fork", [](const Environment& env) {
    ls::Stream s1 = env.device().create_stream(), s2 = env.device().create_stream();
    const ls::Event e = env.device().create_event(), f = env.device().create_event();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    s1.begin_capture();
    add_one(env, s1, *value);
    s1.record(e);
    s2.wait(e);
    add_one(env, s2, *value);
    const ls::Error error = expect_error(ls::ErrorCode::kIllegalDuringCapture, "an unjoined fork",
                                         [&] { (void)s1.end_capture(); });
    expect(std::string(error.what()).find("#" + std::to_string(s2.identity())) != std::string::npos,
           std::string("the message names the forked stream #") + std::to_string(s2.identity()) +
               ": " + error.what());
    expect_usable(env, s1, "s1");
    expect_usable(env, s2, "s2");

    ls::LaunchTrace trace;
    s1.begin_capture();
    add_one(env, s1, *value);
    s1.record(e);
    s2.wait(e);
    add_one(env, s2, *value);
    s2.record(f);
    s1.wait(f);
    const ls::Graph graph = s1.end_capture();
    const ls::Trace recording = trace.trace();
    expect_equal(graph.node_count(), 2u, "nodes");
    expect(graph.edges() == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 1}},
           "one edge from A to B");
    std::vector<std::uint32_t> streams;
    for (const auto& entry : recording.entries) {
      if (entry.kind == ls::OperationKind::kKernelLaunch) streams.push_back(entry.stream_index);
    }
    expect_equal(streams, std::vector<std::uint32_t>{0, 1}, "stream index");
    s1.synchronize();
    expect_equal(read(*value), std::vector<int>{0}, "value: nothing ran during capture");
  });

  add_rule_case("CAP_02.nothing_runs_at_capture", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto d = make_buffer(env.device(), std::vector<int>{5});
    ls::LaunchTrace capture_trace;
    const ls::Graph graph = stream.capture([&](ls::Stream& s) {
      s.launch(env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *d, 7, 10);
    });
    expect_equal(capture_trace.take().size(), 0u, "executed entries between begin and end");
    env.device().synchronize();  // whatever ran in spite of the capture is done now
    expect_equal(read(*d), std::vector<int>{5}, "value after capture");
    const ls::GraphExec exec = graph.instantiate();
    ls::LaunchTrace trace;
    exec.launch(stream);
    stream.synchronize();
    const auto entries = trace.take();
    expect_equal(read(*d), std::vector<int>{7}, "value after replay");
    expect_equal(entries.size(), 1u, "executed entries of the replay");
    expect(entries.at(0).kind == ls::OperationKind::kKernelLaunch &&
               entries.at(0).name == env.kernel("spin_then_set").name(),
           "the replay's entry is the kernel: " + ls::to_string(entries.at(0)));
  });

  add_rule_case("CAP_05.captures_must_not_merge", [](const Environment& env) {
    ls::Stream s1 = env.device().create_stream(), s2 = env.device().create_stream();
    const ls::Event e = env.device().create_event();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    s1.begin_capture();
    s2.begin_capture();
    add_one(env, s1, *value);
    add_one(env, s2, *value);
    s1.record(e);
    expect_error(ls::ErrorCode::kIllegalDuringCapture, "a wait that merges two captures",
                 [&] { s2.wait(e); });
    expect(s1.capture_status() == ls::CaptureStatus::kInvalidated,
           "the first capture is invalidated");
    expect(s2.capture_status() == ls::CaptureStatus::kInvalidated,
           "the second capture is invalidated");
    bool begun = true;
    try {
      s1.begin_capture();
    } catch (const ls::Error&) {
      begun = false;
    }
    expect(!begun, "a begin on an invalidated stream is refused");
    expect(s1.capture_status() == ls::CaptureStatus::kInvalidated,
           "and leaves it as it is: its end is still to come");
    expect_error(ls::ErrorCode::kCaptureInvalidated, "the first end",
                 [&] { (void)s1.end_capture(); });
    expect_error(ls::ErrorCode::kCaptureInvalidated, "the second end",
                 [&] { (void)s2.end_capture(); });
    expect_usable(env, s1, "s1");
    expect_usable(env, s2, "s2");
  });

  add_rule_case("CAP_05.forked_stream_destroyed", [](const Environment& env) {
    ls::Stream s1 = env.device().create_stream();
    const ls::Event e = env.device().create_event();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    s1.begin_capture();
    add_one(env, s1, *value);
    s1.record(e);
    {
      const ls::Stream s2 = env.device().create_stream();
      s2.wait(e);
      add_one(env, s2, *value);
    }
    expect(s1.capture_status() == ls::CaptureStatus::kActive, "the origin still captures");
    expect_error(ls::ErrorCode::kIllegalDuringCapture, "the end without the join",
                 [&] { (void)s1.end_capture(); });
    expect_usable(env, s1, "s1");
  });

  add_rule_case("CAP_05.origin_destroyed", [](const Environment& env) {
    for (const auto mode : {ls::CaptureMode::kThreadLocal, ls::CaptureMode::kGlobal}) {
      const auto value = make_buffer(env.device(), std::vector<int>{0});
      {
        const ls::Stream lost = env.device().create_stream();
        ls::CaptureOptions options;
        options.mode = mode;
        lost.begin_capture(options);
        add_one(env, lost, *value);
      }
      // The thread is not restricted any more, and nothing ran.
      expect_equal(read(*value), std::vector<int>{0}, "value");
      env.device().synchronize();
    }
  });

  // CAP-10: a watchdog thread that polls events outside the capture leaves a thread-local one
  // alone.
  add_rule_case("CAP_10.polling_thread", [](const Environment& env) {
    ls::Stream s1 = env.device().create_stream();
    const ls::Stream s2 = env.device().create_stream();
    const ls::Event event = env.device().create_event();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    s2.record(event);
    s2.synchronize();
    for (int round = 0; round < 100; ++round) {
      std::atomic<bool> stop = false;
      std::atomic<int> polls = 0, failures = 0;
      // Joins by itself, also when the capture is refused.
      std::jthread watchdog([&](const std::stop_token& token) {
        while (!stop.load() && !token.stop_requested()) {
          try {
            (void)event.query();
          } catch (const ls::Error&) {
            ++failures;
          }
          ++polls;
        }
      });
      const ls::Graph graph = s1.capture([&](ls::Stream& s) {
        const int before = polls.load();
        for (int i = 0; i < 5; ++i) add_one(env, s, *value);
        while (polls.load() < before + 2) std::this_thread::yield();
      });
      stop = true;
      watchdog.join();
      expect_equal(failures.load(), 0, "failed polls in round " + std::to_string(round));
      expect_equal(graph.node_count(), 5u, "nodes in round " + std::to_string(round));
    }
  });

  add_rule_case("CAP_13.empty_capture_is_reported", [](const Environment& env) {
    ls::Stream s1 = env.device().create_stream();
    const ls::Stream s2 = env.device().create_stream();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::Graph graph = s1.capture([&](ls::Stream&) { add_one(env, s2, *value); });
    s2.synchronize();
    expect_equal(read(*value), std::vector<int>{1}, "the launch on the other stream ran");
    expect_equal(graph.node_count(), 0u, "nodes");
    expect_error(ls::ErrorCode::kMismatch, "instantiating an empty graph",
                 [&] { (void)graph.instantiate(); });
    const ls::GraphExec exec = graph.instantiate({.allow_empty = true});
    for (int input = 10; input <= 30; input += 10) {
      write(*value, std::vector<int>{input});
      exec.launch(s1);
      s1.synchronize();
      expect_equal(read(*value), std::vector<int>{input}, "value after a replay of nothing");
    }
    const ls::VerifyReport report =
        ls::verify(exec, [&](ls::Stream& s) { add_one(env, s, *value); });
    expect(!report.ok(), "an empty graph is never verified");
    const std::string text = ls::to_text(report);
    expect(text.find("eager has 1 kernel, replay has 0") != std::string::npos,
           "the report says what is missing: " + text);
  });

  // CAP-14: the first use of a kernel inside a capture, without a warm-up.
  add_rule_case("CAP_14.first_use_inside_a_capture", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::Module module =
        env.device().compile("__global__ void fresh(int* x) { *x += 1; }",
                             {.kernels = {"fresh"}, .options = {"-DNEVER_SEEN_BEFORE"}});
    const ls::Kernel fresh = module.kernel("fresh");
    ls::LaunchTrace trace;
    const ls::Graph graph =
        stream.capture([&](ls::Stream& s) { s.launch(fresh, {.grid = 1, .block = 1}, *value); });
    for (const auto& entry : trace.trace().entries) {
      expect(entry.kind != ls::OperationKind::kMemcpy && entry.kind != ls::OperationKind::kMemset,
             "no copy or set of a load in the trace");
    }
    expect_equal(graph.node_count(), 1u, "nodes");
    graph.instantiate().launch(stream);
    stream.synchronize();
    expect_equal(read(*value), std::vector<int>{1}, "value");
  });

  add_rule_case("CAP_17.host_function_runs_at_each_replay", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    auto counter = std::make_shared<std::atomic<int>>(0);
    std::weak_ptr<std::atomic<int>> watch = counter;
    {
      ls::GraphExec exec;
      {
        const ls::Graph graph = stream.capture([&](ls::Stream& s) {
          add_one(env, s, *value);
          s.host_function([counter] { ++*counter; });
          add_one(env, s, *value);
        });
        exec = graph.instantiate();
      }
      expect_equal(counter->load(), 0, "calls after capture");
      ls::LaunchTrace trace;
      for (int i = 0; i < 4; ++i) exec.launch(stream);
      using Kind = ls::OperationKind;
      const auto entries = trace.take({.kinds = {Kind::kKernelLaunch, Kind::kHostFunc}});
      expect_equal(entries.size(), 12u, "kernels and host functions of four replays");
      for (std::size_t i = 0; i < entries.size(); ++i) {
        expect(entries[i].kind == (i % 3 == 1 ? Kind::kHostFunc : Kind::kKernelLaunch),
               "kernel, host function, kernel at " + std::to_string(i) + ": " +
                   ls::to_string(entries[i]));
      }
      counter.reset();  // the graph alone owns the callback's data now
      exec.launch(stream);
      stream.synchronize();
      const auto alive = watch.lock();
      expect(alive != nullptr, "the graph keeps the callback's data");
      expect_equal(alive->load(), 5, "calls after five replays");
    }
    expect_equal(read(*value), std::vector<int>{10}, "value");
  });

  // REP-07: a captured copy from pageable memory reads what stood there at capture.
  add_rule_case("REP_07.pageable_source_is_a_snapshot", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto d = make_buffer(env.device(), std::vector<int>(3, 0));
    ls::Graph graph;
    {
      std::vector<int> h = {1, 2, 3};
      graph = stream.capture([&](ls::Stream& s) { s.copy(*d, h); });
      h.assign({-1, -1, -1});
    }
    const auto slots = graph.host_slots();
    expect_equal(slots.size(), 1u, "host slots");
    expect(slots.at(0).kind == ls::HostSlot::Kind::kSnapshot && slots.at(0).bytes == 12,
           "the slot is a snapshot of 12 bytes");
    graph.instantiate().launch(stream);
    stream.synchronize();
    expect_equal(read(*d), std::vector<int>{1, 2, 3}, "value");
  });

  add_rule_case("REP_07.pinned_source_is_live", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto d = make_buffer(env.device(), std::vector<int>(2, 0));
    ls::GraphExec exec;
    int* live = nullptr;
    {
      const auto pinned = env.device().allocate_pinned<int>(2);
      live = pinned.data();
      live[0] = live[1] = 1;
      const ls::Graph graph = stream.capture([&](ls::Stream& s) { s.copy(*d, pinned); });
      expect(
          graph.host_slots().size() == 1 && graph.host_slots()[0].kind == ls::HostSlot::Kind::kLive,
          "a live slot");
      exec = graph.instantiate();
    }  // the graph keeps the pinned memory
    live[0] = 8;
    live[1] = 9;
    exec.launch(stream);
    stream.synchronize();
    expect_equal(read(*d), std::vector<int>{8, 9}, "value at replay");
  });

  add_rule_case("REP_07.large_and_undeclared_memory_is_refused", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto d = env.device().allocate<char>(4096);
    std::vector<char> large(4096), out(4096, 1);
    expect_error(ls::ErrorCode::kIllegalDuringCapture, "a source over the snapshot limit", [&] {
      (void)stream.capture([&](ls::Stream& s) { s.copy(d, large); },
                           {.host_destinations = {}, .snapshot_limit_bytes = 1024});
    });
    expect_error(ls::ErrorCode::kIllegalDuringCapture, "a destination that was not declared",
                 [&] { (void)stream.capture([&](ls::Stream& s) { s.copy(out, d); }); });
    expect_usable(env, stream, "the stream");
    ls::CaptureOptions options;
    options.host_destinations = {std::as_writable_bytes(std::span(out))};
    const ls::GraphExec exec =
        stream.capture([&](ls::Stream& s) { s.copy(out, d); }, options).instantiate();
    stream.fill(d, 'x');
    exec.launch(stream);
    stream.synchronize();
    expect_equal(out, std::vector<char>(4096, 'x'), "declared destination");
  });

  add_rule_case("capture.ends_when_the_function_throws", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    bool caught = false;
    try {
      (void)stream.capture([&](ls::Stream& s) {
        add_one(env, s, *value);
        throw std::out_of_range("of the user's own");
      });
    } catch (const std::out_of_range& error) {
      caught = std::string(error.what()) == "of the user's own";
    }
    expect(caught, "the user's exception comes through");
    expect_usable(env, stream, "the stream");
    expect_equal(read(*value), std::vector<int>{0}, "value");
  });

  add_rule_case("capture.survives_the_recorder", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::Graph graph = stream.capture([&](ls::Stream& s) {
      ls::LaunchTrace trace;
      add_one(env, s, *value);
      (void)trace.take();
      ls::Tracer::begin();
      add_one(env, s, *value);
      (void)ls::Tracer::take();
    });
    expect_equal(graph.node_count(), 2u, "nodes");
  });

  add_rule_case("capture.buffers_stay_alive", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const auto out = make_buffer(env.device(), std::vector<std::uint32_t>(4, 0));
    ls::GraphExec exec;
    {
      const auto temporary = make_buffer(env.device(), std::vector<std::uint32_t>{4, 3, 2, 1});
      exec =
          stream
              .capture([&](ls::Stream& s) {
                s.launch(env.kernel("copy_words"), {.grid = 1, .block = 32}, *temporary, *out, 4);
              })
              .instantiate();
    }
    exec.launch(stream);
    stream.synchronize();
    expect_equal(read(*out), std::vector<std::uint32_t>{4, 3, 2, 1}, "value");
  });

  add_rule_case("capture.stale_raw_pointer_is_reported", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    ls::GraphExec exec;
    {
      const auto buffer = env.device().allocate<int>(64);
      int* raw = buffer.data();
      exec = stream
                 .capture([&](ls::Stream& s) {
                   s.launch(env.kernel("fill_index"), {.grid = 1, .block = 64}, raw, 64);
                 })
                 .instantiate();
      exec.launch(stream);
      stream.synchronize();
    }
    const ls::Error error = expect_error(ls::ErrorCode::kStaleBuffer, "a launch after the free",
                                         [&] { exec.launch(stream); });
    expect(std::string(error.what()).find("argument 0") != std::string::npos,
           "the message names the argument");
    stream.synchronize();
  });
}

}  // namespace conformance
