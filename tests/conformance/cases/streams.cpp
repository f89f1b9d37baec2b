// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "framework/case.h"

namespace conformance {

void add_stream_cases() {
  add_work_case("stream.order_within_a_stream", [](const Environment& env) {
    auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::Kernel add = env.kernel("add_constant<int>"), scale = env.kernel("spin_then_set");
    return Work{[=](ls::Stream& stream) {
                  stream.launch(scale, {.grid = 1, .block = 1}, *value, 5, 200000);
                  for (int i = 0; i < 20; ++i)
                    stream.launch(add, {.grid = 1, .block = 1}, *value, i, 1);
                },
                [=] { expect_equal(read(*value), std::vector<int>{5 + 190}, "value"); }};
  });

  add_rule_case("stream.two_thousand_launches", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::Stream stream = env.device().create_stream();
    const ls::Kernel add = env.kernel("add_constant<int>");
    for (int i = 0; i < 2000; ++i) stream.launch(add, {.grid = 1, .block = 1}, *value, 1, 1);
    stream.synchronize();
    expect_equal(read(*value), std::vector<int>{2000}, "value");
  });

  add_rule_case("stream.sixty_four_streams", [](const Environment& env) {
    std::vector<ls::Stream> streams;
    std::vector<std::shared_ptr<ls::Buffer<int>>> values;
    for (int i = 0; i < 64; ++i) {
      streams.push_back(env.device().create_stream());
      values.push_back(make_buffer(env.device(), std::vector<int>{0}));
    }
    for (int round = 0; round < 10; ++round) {
      for (std::size_t i = 0; i < streams.size(); ++i) {
        streams[i].launch(env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, *values[i],
                          static_cast<int>(i), 1);
      }
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      streams[i].synchronize();
      expect_equal(read(*values[i]), std::vector<int>{static_cast<int>(10 * i)},
                   "value of stream " + std::to_string(i));
    }
  });

  add_work_case("stream.fork_and_join", [](const Environment& env) {
    auto a = make_buffer(env.device(), std::vector<int>{0});
    auto b = make_buffer(env.device(), std::vector<int>{0});
    auto other = std::make_shared<ls::Stream>(env.device().create_stream());
    const ls::Event forked = env.device().create_event(), joined = env.device().create_event();
    const ls::Kernel set = env.kernel("spin_then_set"), add = env.kernel("add_constant<int>"),
                     copy = env.kernel("copy_words");
    return Work{[=](ls::Stream& stream) {
                  stream.launch(set, {.grid = 1, .block = 1}, *a, 40, 300000);
                  stream.record(forked);
                  other->wait(forked);
                  other->launch(copy, {.grid = 1, .block = 1}, *a, *b, 1);
                  other->launch(add, {.grid = 1, .block = 1}, *b, 2, 1);
                  other->record(joined);
                  stream.wait(joined);
                  stream.launch(copy, {.grid = 1, .block = 1}, *b, *a, 1);
                },
                [=] { expect_equal(read(*a), std::vector<int>{42}, "value"); }};
  });

  add_rule_case("stream.legacy_waits_for_blocking_streams", [](const Environment& env) {
    const auto a = make_buffer(env.device(), std::vector<int>{0}),
               b = make_buffer(env.device(), std::vector<int>{0});
    const ls::Stream blocking = env.device().create_stream({.non_blocking = false});
    const ls::StreamRef legacy = env.device().legacy_stream();
    blocking.launch(env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *a, 7, 2000000);
    legacy.launch(env.kernel("copy_words"), {.grid = 1, .block = 1}, *a, *b, 1);
    blocking.launch(env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, *b, 1, 1);
    blocking.synchronize();
    expect_equal(read(*b), std::vector<int>{8}, "value through the legacy stream");
  });

  add_rule_case("stream.destroyed_with_work_in_flight", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    {
      const ls::Stream stream = env.device().create_stream();
      stream.launch(env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *value, 3, 2000000);
    }
    env.device().synchronize();
    expect_equal(read(*value), std::vector<int>{3}, "value");
  });

  add_rule_case("stream.identity_is_never_reused", [](const Environment& env) {
    std::uint64_t last = 0;
    for (int i = 0; i < 20; ++i) {
      const ls::Stream stream = env.device().create_stream();
      expect(stream.identity() > last, "a new stream has a new identity");
      last = stream.identity();
    }
  });

  add_rule_case("stream.query_tells_done", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    expect(stream.query(), "a stream without work is done");
    std::atomic<bool> release = false;
    stream.host_function([&] {
      while (!release.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    const bool early = stream.query();
    release = true;
    stream.synchronize();
    expect(!early, "a stream whose work waits is not done");
    expect(stream.query(), "after synchronise it is done");
  });

  add_rule_case("stream.host_functions_keep_order", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto pinned = env.device().allocate_pinned<int>(1);
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    std::vector<int> seen;
    for (int i = 0; i < 5; ++i) {
      stream.launch(env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *value, i, 3000000);
      stream.copy(pinned, *value);
      stream.host_function([&] { seen.push_back(pinned.span()[0]); });
    }
    stream.synchronize();
    expect_equal(seen, std::vector<int>{0, 1, 2, 3, 4}, "value seen by the host function");
  });

  add_rule_case("stream.runs_beside_a_waiting_stream", [](const Environment& env) {
    const ls::Stream waiting = env.device().create_stream(), running = env.device().create_stream();
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    std::atomic<bool> release = false;
    waiting.host_function([&] {
      while (!release.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    running.launch(env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, *value, 1, 1);
    running.synchronize();  // hangs when streams are not independent
    release = true;
    waiting.synchronize();
    expect_equal(read(*value), std::vector<int>{1}, "value");
  });

  add_rule_case("stream.per_thread_streams_are_apart", [](const Environment& env) {
    const std::uint64_t mine = env.device().per_thread_stream().identity();
    expect_equal(env.device().per_thread_stream().identity(), mine, "identity asked for again");
    std::uint64_t other = 0;
    std::thread([&] { other = env.device().per_thread_stream().identity(); }).join();
    expect(other != mine, "another thread has another stream");
    expect(env.device().legacy_stream().identity() != mine, "the legacy stream is another one");
  });

  // TRC-11: more streams than hardware queues stay apart in the trace.
  add_rule_case("TRC_11.six_streams", [](const Environment& env) {
    std::vector<ls::Stream> streams;
    for (int i = 0; i < 6; ++i) streams.push_back(env.device().create_stream());
    const auto value = env.device().allocate<int>(6);
    ls::LaunchTrace trace;
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < 6; ++i) {
        streams[i].launch(env.kernel("fill_index"), {.grid = 1, .block = 32}, value.subview(i, 1),
                          1);
      }
    }
    const auto entries = trace.take();
    env.device().synchronize();
    expect_equal(entries.size(), 12u, "entries");
    for (std::size_t i = 0; i < 12; ++i) {
      expect_equal(entries.at(i).stream_index, static_cast<std::uint32_t>(i % 6),
                   "stream of entry " + std::to_string(i));
    }
  });
}

}  // namespace conformance
