// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "framework/case.h"

namespace conformance {

void add_event_cases() {
  add_rule_case("event.never_recorded_is_done", [](const Environment& env) {
    const ls::Event event = env.device().create_event();
    expect(event.query(), "an event that was never recorded is done");
    event.synchronize();
    const ls::Stream stream = env.device().create_stream();
    stream.wait(event);  // no effect
    stream.synchronize();
  });

  add_rule_case("event.orders_streams", [](const Environment& env) {
    for (int round = 0; round < 20; ++round) {
      const auto a = make_buffer(env.device(), std::vector<int>{0}),
                 b = make_buffer(env.device(), std::vector<int>{0});
      const ls::Stream first = env.device().create_stream(), second = env.device().create_stream();
      const ls::Event event = env.device().create_event({.timing = false});
      first.launch(env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *a, round + 1, 300000);
      first.record(event);
      second.wait(event);
      second.launch(env.kernel("copy_words"), {.grid = 1, .block = 1}, *a, *b, 1);
      second.synchronize();
      expect_equal(read(*b), std::vector<int>{round + 1}, "value seen behind the event");
    }
  });

  // A wait binds the record that is the latest when it is called, not a later one.
  add_rule_case("event.wait_binds_at_the_call", [](const Environment& env) {
    const ls::Stream first = env.device().create_stream(), second = env.device().create_stream();
    const ls::Event event = env.device().create_event();
    std::atomic<bool> release = false;
    first.record(event);
    second.wait(event);
    first.host_function([&] {
      while (!release.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    first.record(event);
    second.synchronize();  // hangs when the wait bound the second record
    release = true;
    first.synchronize();
  });

  add_rule_case("event.query_and_synchronise", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const ls::Event event = env.device().create_event();
    std::atomic<bool> release = false;
    stream.host_function([&] {
      while (!release.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    stream.record(event);
    const bool early = event.query();
    release = true;
    event.synchronize();
    expect(!early, "not done while the work before it waits");
    expect(event.query(), "done after synchronise");
  });

  add_rule_case("event.elapsed_time", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const ls::Event begin = env.device().create_event(), end = env.device().create_event();
    stream.record(begin);
    stream.host_function([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    stream.record(end);
    stream.synchronize();
    const double ms = end.elapsed_since(begin).count();
    expect(ms >= 15.0,
           "20 ms of sleep between two events were seen as " + std::to_string(ms) + " ms");
    expect(begin.elapsed_since(begin).count() == 0.0, "no time from an event to itself");
  });

  add_rule_case("event.elapsed_needs_records_and_timing", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const ls::Event recorded = env.device().create_event(), never = env.device().create_event();
    const ls::Event untimed = env.device().create_event({.timing = false});
    stream.record(recorded);
    stream.record(untimed);
    stream.synchronize();
    expect_error(ls::ErrorCode::kInvalidArgument, "an event never recorded",
                 [&] { (void)never.elapsed_since(recorded); });
    expect_error(ls::ErrorCode::kInvalidArgument, "an event without timing",
                 [&] { (void)untimed.elapsed_since(recorded); });
  });

  add_rule_case("event.waits_introduce_no_stream_index", [](const Environment& env) {
    const ls::Stream idle = env.device().create_stream(), busy = env.device().create_stream();
    const ls::Event event = env.device().create_event();
    const auto value = env.device().allocate<int>(1);
    ls::LaunchTrace trace;
    idle.record(event);
    busy.wait(event);
    busy.fill(value, 1);
    busy.synchronize();
    const auto entries = trace.take();
    expect_equal(entries.size(), 1u, "entries");
    expect_equal(entries.at(0).stream_index, 0u, "index of the only stream with work");
  });
}

}  // namespace conformance
