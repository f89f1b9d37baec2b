// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <gtest/gtest.h>
#include <string_view>
#include <thread>

namespace lockstep::testing {
namespace {

constexpr char kSource[] = R"(
#include <lockstep/kernel.h>
extern "C" __global__ void add(int* p, int value) { *p += value; }
)";

constexpr bool kSanitized = std::string_view(LOCKSTEP_ROBUST_SANITIZE) != "";
constexpr int kThreads = 8;
constexpr int kStreams = 8;
constexpr int kLaunches = 1000;

/// What every thread shares, and a place for what went wrong in one.
struct Shared {
  Device device = Device::open("host");
  Kernel add = device.compile(kSource, {.kernels = {"add"}}).kernel("add");
  std::atomic<bool> stop{false};
};

/// One thread's streams and values. Launches are spread over the streams in turn.
struct Lane {
  explicit Lane(const Shared& shared) {
    for (int i = 0; i < kStreams; ++i) {
      streams.push_back(shared.device.create_stream());
      values.push_back(shared.device.allocate<int>(1));
      streams.back().fill(values.back(), 0);
    }
  }
  void launch(const Shared& shared, int count) const {
    for (int i = 0; i < count; ++i) {
      for (std::size_t s = 0; s < streams.size(); ++s) {
        streams[s].launch(shared.add, {}, values[s], static_cast<int>(s) + 1);
      }
      if (i % 50 == 49) streams[static_cast<std::size_t>(i) % streams.size()].synchronize();
    }
  }
  void expect(int launches) const {
    for (std::size_t s = 0; s < streams.size(); ++s) {
      std::vector<int> result(1);
      streams[s].copy_and_wait(result, values[s]);
      EXPECT_EQ(result[0], launches * (static_cast<int>(s) + 1)) << "stream " << s;
    }
  }
  std::vector<Stream> streams;
  std::vector<Buffer<int>> values;
};

/// Runs them all at once; an exception in one is a failure, not the end of the process.
void run_together(const std::vector<std::function<void()>>& bodies) {
  std::barrier begin(static_cast<std::ptrdiff_t>(bodies.size()));
  std::vector<std::thread> threads;
  for (const auto& body : bodies) {
    threads.emplace_back([&begin, &body] {
      begin.arrive_and_wait();
      try {
        body();
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, EveryLaunchRunsOnceAndIsRecordedOnce) {
  Shared shared;
  std::vector<Lane> lanes;
  for (int i = 0; i < kThreads; ++i) lanes.emplace_back(shared);
  shared.device.synchronize();
  LaunchTrace trace;
  std::vector<std::function<void()>> bodies;
  std::vector<std::size_t> own_counts(kThreads);
  for (std::size_t i = 0; i < kThreads; ++i) {
    bodies.emplace_back([&, i] {
      TraceFilter mine;
      mine.threads = {Tracer::this_thread()};
      LaunchTrace own(mine);
      lanes[i].launch(shared, kLaunches);
      own_counts[i] = own.take().size();
    });
  }
  run_together(bodies);
  const std::vector<LaunchTraceEntry> entries = trace.take();
  EXPECT_EQ(entries.size(), static_cast<std::size_t>(kThreads) * kStreams * kLaunches);
  for (const std::size_t count : own_counts) {
    EXPECT_EQ(count, static_cast<std::size_t>(kStreams) * kLaunches);
  }
  std::vector<std::size_t> by_stream(kThreads * kStreams);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    ASSERT_LT(entries[i].stream_index, by_stream.size());
    ++by_stream[entries[i].stream_index];
    if (i > 0) {
      ASSERT_LT(entries[i - 1].sequence, entries[i].sequence);
    }
  }
  for (const std::size_t count : by_stream) EXPECT_EQ(count, static_cast<std::size_t>(kLaunches));
  for (const Lane& lane : lanes) lane.expect(kLaunches);
}

/// What the threads beside a capture do until it is over.
std::vector<std::function<void()>> bystanders(Shared& shared) {
  const auto until_stopped = [&shared](auto body) {
    return [&shared, body] {
      int rounds = 0;
      while (!shared.stop || rounds == 0) body(rounds++);
    };
  };
  std::vector<std::function<void()>> bodies;
  for (int i = 0; i < 3; ++i) {
    bodies.emplace_back([&shared] {
      const Lane lane(shared);
      int launched = 0;
      for (; !shared.stop || launched == 0; launched += 5) lane.launch(shared, 5);
      lane.expect(launched);
    });
  }
  bodies.emplace_back(until_stopped([&shared](int round) {
    const Buffer<int> buffer =
        shared.device.allocate<int>(1 + static_cast<std::size_t>(round) % 99);
    const Buffer<int> pinned = shared.device.allocate_pinned<int>(16);
    const Stream stream = shared.device.create_stream();
    stream.fill(buffer, round);
    stream.synchronize();
  }));
  bodies.emplace_back([&shared] {
    const Lane lane(shared);
    const Event event = shared.device.create_event();
    lane.streams[0].record(event);
    while (!shared.stop) {
      static_cast<void>(event.query());
      static_cast<void>(lane.streams[1].query());
      static_cast<void>(shared.device.memory_info());
    }
  });
  bodies.emplace_back(until_stopped([&shared](int) {
    LaunchTrace trace;
    const Stream stream = shared.device.create_stream();
    const Buffer<int> value = shared.device.allocate<int>(1);
    stream.launch(shared.add, {}, value, 1);
    stream.synchronize();
    EXPECT_GE(trace.snapshot().entries.size(), 1u);
    EXPECT_GE(trace.take().size(), 1u);
  }));
  bodies.emplace_back(until_stopped([&shared](int) {
    const Stream a = shared.device.create_stream(), b = shared.device.create_stream();
    const Event event = shared.device.create_event();
    const Buffer<int> value = shared.device.allocate<int>(1);
    a.fill(value, 5);
    a.record(event);
    b.wait(event);
    std::vector<int> result(1);
    b.copy_and_wait(result, value);
    EXPECT_EQ(result[0], 5);
  }));
  return bodies;
}

TEST(Threads, CaptureIsLeftAloneByAllTheOthers) {
  Shared shared;
  std::vector<std::function<void()>> bodies = bystanders(shared);
  bodies.emplace_back([&shared] {
    constexpr int kCaptures = kSanitized ? 20 : 200;
    Stream stream = shared.device.create_stream();
    const Stream fork = shared.device.create_stream();
    const Event out = shared.device.create_event(), back = shared.device.create_event();
    const Buffer<int> value = shared.device.allocate<int>(1),
                      other = shared.device.allocate<int>(1);
    stream.fill(value, 0);
    stream.fill(other, 0);
    stream.synchronize();
    try {
      for (int round = 0; round < kCaptures; ++round) {
        const Graph graph = stream.capture([&](StreamRef& s) {
          s.launch(shared.add, {}, value, 1);
          s.record(out);
          fork.wait(out);
          fork.launch(shared.add, {}, other, 2);
          fork.record(back);
          s.launch(shared.add, {}, value, 1);
          s.wait(back);
          s.launch(shared.add, {}, value, 1);
        });
        EXPECT_EQ(graph.node_count(), 4u);
        EXPECT_EQ(graph.edges().size(), 4u);
        const GraphExec exec = graph.instantiate();
        exec.launch(stream);
        exec.launch(stream);
      }
      std::vector<int> result(1);
      stream.copy_and_wait(result, value);
      EXPECT_EQ(result[0], 6 * kCaptures);
      stream.copy_and_wait(result, other);
      EXPECT_EQ(result[0], 4 * kCaptures);
    } catch (...) {
      shared.stop = true;  // or the others would never end
      throw;
    }
    shared.stop = true;
  });
  run_together(bodies);
}

}  // namespace
}  // namespace lockstep::testing
