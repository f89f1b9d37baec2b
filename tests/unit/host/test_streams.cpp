// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "unit/host/host_fixture.h"

namespace lockstep::host_test {
namespace {

class Streams : public HostTest {
 public:
  int* flag_memory(int count = 1) {
    int* const flags = allocate<int>(static_cast<std::size_t>(count), LOCKSTEP_MEMORY_PINNED);
    std::memset(flags, 0, static_cast<std::size_t>(count) * sizeof(int));
    return flags;
  }
  static void raise(int* flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }
};

// A host function that waits until it is let go.
class Gate {
 public:
  static void function(void* gate) {
    auto* self = static_cast<Gate*>(gate);
    std::unique_lock lock(self->mutex_);
    self->condition_.wait(lock, [&] { return self->open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    condition_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool open_ = false;
};

TEST_F(Streams, WorkIsDoneInOrderAndLater) {
  const Stream s = make_stream();
  int* const p = allocate<int>(1);
  int* const flag = flag_memory();
  ASSERT_TRUE(succeeded(launch(s, kernel("spin"), {}, flag)));
  ASSERT_TRUE(succeeded(launch(s, kernel("store"), {}, p, 1)));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(succeeded(launch(s, kernel("add"), {}, p, 1)));
  }
  EXPECT_EQ(call(b.stream_query, s.get()).code, LOCKSTEP_E_NOT_READY);
  raise(flag);
  EXPECT_EQ(read(s, p, 1)[0], 1001);
  EXPECT_TRUE(succeeded(call(b.stream_query, s.get())));
}

TEST_F(Streams, KernelsOfTwoStreamsRunAtTheSameTime) {
  const Stream s1 = make_stream();
  const Stream s2 = make_stream();
  int* const flags = flag_memory(2);
  int* const first = flags;
  int* const second = flags + 1;
  ASSERT_TRUE(succeeded(launch(s1, kernel("meet"), {}, first, second)));
  ASSERT_TRUE(succeeded(launch(s2, kernel("meet"), {}, second, first)));
  EXPECT_TRUE(succeeded(synchronize(s1)));
  EXPECT_TRUE(succeeded(synchronize(s2)));
}

// More streams than threads, all blocked by something another stream has to do first.
TEST_F(Streams, SixtyFourStreamsThatWaitForEachOther) {
  constexpr int kCount = 64;
  std::vector<Stream> streams;
  std::vector<Event> events;
  int* const p = allocate<int>(1);
  int* const flag = flag_memory();
  Gate gate;
  for (int i = 0; i < kCount; ++i) {
    streams.push_back(make_stream());
    events.push_back(make_event());
  }
  ASSERT_TRUE(succeeded(set(streams[0], p, 0, 4, 1)));
  ASSERT_TRUE(succeeded(
      call(b.host_function, streams[0].get(), &Gate::function, static_cast<void*>(&gate))));
  ASSERT_TRUE(succeeded(launch(streams[0], kernel("spin"), {}, flag)));
  for (int i = 0; i < kCount; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i > 0) {
      ASSERT_TRUE(succeeded(wait(streams[at], events[at - 1])));
    }
    ASSERT_TRUE(succeeded(launch(streams[at], kernel("add"), {}, p, 1)));
    ASSERT_TRUE(succeeded(record(events[at], streams[at])));
  }
  const Stream beside = make_stream();
  ASSERT_TRUE(usable(beside));  // nobody holds it up
  EXPECT_EQ(call(b.event_query, events.back().get()).code, LOCKSTEP_E_NOT_READY);
  gate.open();
  raise(flag);
  EXPECT_EQ(read(streams.back(), p, 1)[0], kCount);
}

TEST_F(Streams, HostFunctionsAndSpinningKernelsOnEveryStream) {
  constexpr int kCount = 64;
  std::vector<Stream> streams;
  int* const flags = flag_memory(kCount);
  Gate gate;
  for (int i = 0; i < kCount; ++i) {
    streams.push_back(make_stream());
    int* const flag = flags + i;
    if (i % 2 == 0) {
      ASSERT_TRUE(succeeded(
          call(b.host_function, streams.back().get(), &Gate::function, static_cast<void*>(&gate))));
    } else {
      ASSERT_TRUE(succeeded(launch(streams.back(), kernel("spin"), {}, flag)));
    }
  }
  const Stream last = make_stream();
  for (int i = 1; i < kCount; i += 2) {
    ASSERT_TRUE(succeeded(set(last, flags + i, 1, 4, 1)));
  }
  EXPECT_TRUE(succeeded(synchronize(last)));
  gate.open();
  EXPECT_TRUE(succeeded(call(b.device_synchronize, device)));
}

TEST_F(Streams, AnEventBindsItsLatestRecordWhenTheWaitIsMade) {
  const Stream s1 = make_stream();
  const Stream s2 = make_stream();
  const Event e = make_event();
  int* const flags = flag_memory(2);
  int* const p = allocate<int>(1);
  int* const first = flags;
  int* const second = flags + 1;
  EXPECT_TRUE(succeeded(call(b.event_query, e.get())));  // never recorded
  EXPECT_TRUE(succeeded(call(b.event_synchronize, e.get())));
  ASSERT_TRUE(succeeded(wait(s2, e)));
  ASSERT_TRUE(succeeded(launch(s1, kernel("spin"), {}, first)));
  ASSERT_TRUE(succeeded(record(e, s1)));
  ASSERT_TRUE(succeeded(wait(s2, e)));
  ASSERT_TRUE(succeeded(launch(s2, kernel("store"), {}, p, 5)));
  ASSERT_TRUE(succeeded(launch(s1, kernel("spin"), {}, second)));
  ASSERT_TRUE(succeeded(record(e, s1)));  // later than the wait: of no concern to it
  EXPECT_EQ(call(b.stream_query, s2.get()).code, LOCKSTEP_E_NOT_READY);
  raise(first);
  EXPECT_TRUE(succeeded(synchronize(s2)));
  EXPECT_EQ(call(b.event_query, e.get()).code, LOCKSTEP_E_NOT_READY);
  raise(second);
  EXPECT_TRUE(succeeded(call(b.event_synchronize, e.get())));
}

TEST_F(Streams, EventsTellTheTimeBetweenThem) {
  const Stream s = make_stream();
  const Event begin = make_event(LOCKSTEP_EVENT_TIMING);
  const Event end = make_event(LOCKSTEP_EVENT_TIMING);
  const Event plain = make_event();
  int* const flag = flag_memory();
  double ms = -1;
  EXPECT_EQ(call(b.event_elapsed, begin.get(), end.get(), &ms).native, 1);
  ASSERT_TRUE(succeeded(record(begin, s)));
  ASSERT_TRUE(succeeded(launch(s, kernel("spin"), {}, flag)));
  ASSERT_TRUE(succeeded(record(end, s)));
  ASSERT_TRUE(succeeded(record(plain, s)));
  EXPECT_EQ(call(b.event_elapsed, begin.get(), end.get(), &ms).code, LOCKSTEP_E_NOT_READY);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  raise(flag);
  ASSERT_TRUE(succeeded(synchronize(s)));
  ASSERT_TRUE(succeeded(call(b.event_elapsed, begin.get(), end.get(), &ms)));
  EXPECT_GT(ms, 0.0);
  EXPECT_EQ(call(b.event_elapsed, plain.get(), end.get(), &ms).native, 1);
}

TEST_F(Streams, LegacyStreamStandsBetweenBlockingStreams) {
  const Stream legacy = special(LOCKSTEP_STREAM_LEGACY);
  const Stream b1 = make_stream(true);
  const Stream b2 = make_stream(true);
  const Stream apart = make_stream(false);
  int* const flag = flag_memory();
  int* const p = allocate<int>(1);
  ASSERT_TRUE(succeeded(launch(b1, kernel("spin"), {}, flag)));
  ASSERT_TRUE(succeeded(launch(b1, kernel("store"), {}, p, 1)));
  ASSERT_TRUE(succeeded(launch(legacy, kernel("add"), {}, p, 10)));
  ASSERT_TRUE(succeeded(launch(b2, kernel("add"), {}, p, 100)));
  EXPECT_TRUE(usable(apart));
  EXPECT_EQ(call(b.stream_query, b2.get()).code, LOCKSTEP_E_NOT_READY);
  EXPECT_EQ(call(b.stream_query, legacy.get()).code, LOCKSTEP_E_NOT_READY);
  raise(flag);
  EXPECT_EQ(read(b2, p, 1)[0], 111);
}

TEST_F(Cases, TRC_07_SpecialStreamsHaveOneIdentityEach) {
  const auto identity = [&](std::uint32_t which) {
    const Stream stream = special(which);
    EXPECT_TRUE(usable(stream));
    return b.stream_identity(stream.get());
  };
  const std::uint64_t legacy = identity(LOCKSTEP_STREAM_LEGACY);
  EXPECT_EQ(identity(LOCKSTEP_STREAM_LEGACY), legacy);
  std::uint64_t threads[2] = {};
  for (std::uint64_t& id : threads) {
    std::thread([&] {
      id = identity(LOCKSTEP_STREAM_PER_THREAD);
      EXPECT_EQ(identity(LOCKSTEP_STREAM_PER_THREAD), id);
      const Stream again = special(LOCKSTEP_STREAM_LEGACY);
      EXPECT_EQ(b.stream_identity(again.get()), legacy);
    }).join();
  }
  EXPECT_NE(threads[0], threads[1]);
  EXPECT_NE(threads[0], legacy);
  lockstep_stream* none = nullptr;
  EXPECT_EQ(call(b.stream_special, device, 9U, &none).code, LOCKSTEP_E_INVALID_ARGUMENT);
}

TEST_F(Cases, TRC_11_SixStreamsKeepTheirIdentities) {
  std::vector<Stream> streams;
  for (int i = 0; i < 6; ++i) streams.push_back(make_stream());
  start_recording();
  for (int round = 0; round < 2; ++round) {
    for (const Stream& s : streams) ASSERT_TRUE(succeeded(launch(s, kernel("nop"), {})));
  }
  const std::vector<Recorded> records = stop_recording();
  ASSERT_EQ(records.size(), 12U);
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].record.stream, b.stream_identity(streams[i % 6].get()));
  }
  const std::uint64_t former = b.stream_identity(streams[5].get());
  streams.pop_back();
  EXPECT_GT(b.stream_identity(make_stream().get()), former);
}

TEST_F(Cases, TRC_13_WorkIsRecordedWhenItIsEnqueued) {
  const Stream s = make_stream();
  int* const flag = allocate<int>(1, LOCKSTEP_MEMORY_PINNED);
  *flag = 0;
  start_recording();
  ASSERT_TRUE(succeeded(launch(s, kernel("spin"), {}, flag)));
  const std::vector<Recorded> records = stop_recording();  // it still runs
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].name, "spin");
  EXPECT_TRUE(records[0].ended);
  __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
  ASSERT_TRUE(succeeded(synchronize(s)));
}

TEST_F(Streams, AFailedKernelFailsItsStreamForGood) {
  const Stream s = make_stream();
  const Stream sound = make_stream();
  const Event e = make_event();
  int* const p = allocate<int>(1);
  ASSERT_TRUE(succeeded(set(s, p, 4, 4, 1)));
  ASSERT_TRUE(succeeded(launch(s, kernel("must_be"), {}, p, 5)));
  ASSERT_TRUE(succeeded(launch(s, kernel("store"), {}, p, 9)));
  ASSERT_TRUE(succeeded(record(e, s)));
  const Result first = synchronize(s);
  EXPECT_EQ(first.code, LOCKSTEP_E_LAUNCH_FAILED);
  EXPECT_EQ(first.native, 710);
  EXPECT_NE(first.message.find("must_be"), std::string::npos) << first.message;
  EXPECT_EQ(synchronize(s).message, first.message);
  EXPECT_EQ(call(b.stream_query, s.get()).code, LOCKSTEP_E_LAUNCH_FAILED);
  EXPECT_EQ(call(b.event_synchronize, e.get()).code, LOCKSTEP_E_LAUNCH_FAILED);
  EXPECT_EQ(call(b.device_synchronize, device).code, LOCKSTEP_E_LAUNCH_FAILED);
  EXPECT_EQ(read(sound, p, 1)[0], 4) << "work after the failure was executed";
  EXPECT_TRUE(usable(sound));
}

// Whether the work was done before the stream went or after, somebody is told, and once.
TEST_F(Streams, TheFailureOfADestroyedStreamReachesTheDevice) {
  const Stream sound = make_stream();
  int* const p = allocate<int>(1);
  int* const flag = flag_memory();
  ASSERT_TRUE(succeeded(set(sound, p, 4, 4, 1)));
  ASSERT_TRUE(succeeded(synchronize(sound)));
  enum { kDestroyFirst, kBoth, kLikelyDone, kAsked, kWays };
  for (int round = 0; round < 100; ++round) {
    const int way = round % kWays;
    Stream s = make_stream();
    *flag = 0;
    ASSERT_TRUE(succeeded(launch(s, kernel("spin"), {}, flag)));
    ASSERT_TRUE(succeeded(launch(s, kernel("must_be"), {}, p, 5)));
    if (way != kDestroyFirst) raise(flag);
    if (way == kLikelyDone) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    while (way == kAsked && call(b.stream_query, s.get()).code == LOCKSTEP_E_NOT_READY) {
    }
    s.reset();
    if (way == kDestroyFirst) raise(flag);
    if (way != kAsked) {
      const Result told = call(b.device_synchronize, device);
      ASSERT_EQ(told.code, LOCKSTEP_E_LAUNCH_FAILED) << way;
      ASSERT_NE(told.message.find("must_be"), std::string::npos) << told.message;
    }
    ASSERT_TRUE(succeeded(call(b.device_synchronize, device))) << way;
  }
}

TEST_F(Streams, DestroyedStreamsFinishTheirWork) {
  int* const p = allocate<int>(1);
  int* const flag = flag_memory();
  Stream s = make_stream();
  const Event e = make_event();
  ASSERT_TRUE(succeeded(launch(s, kernel("spin"), {}, flag)));
  ASSERT_TRUE(succeeded(launch(s, kernel("store"), {}, p, 8)));
  ASSERT_TRUE(succeeded(record(e, s)));
  s.reset();
  raise(flag);
  ASSERT_TRUE(succeeded(call(b.event_synchronize, e.get())));
  EXPECT_EQ(read(make_stream(), p, 1)[0], 8);
}

TEST_F(Streams, HostFunctionsMayNotCallTheDevice) {
  struct Attempt {
    Streams* test;
    Result result;
  } attempt{this, {}};
  const Stream s = make_stream();
  ASSERT_TRUE(succeeded(call(
      b.host_function, s.get(),
      +[](void* data) {
        auto* a = static_cast<Attempt*>(data);
        a->result = call(a->test->b.device_synchronize, a->test->device);
      },
      static_cast<void*>(&attempt))));
  ASSERT_TRUE(succeeded(synchronize(s)));
  EXPECT_EQ(attempt.result.code, LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_EQ(attempt.result.native, 800);
}

// A kernel that never ends: the host can poll with a limit, and let others work meanwhile.
TEST_F(Cases, REP_23_AGraphThatHangsCanBePolled) {
  const Stream s = make_stream();
  int* const flag = allocate<int>(1, LOCKSTEP_MEMORY_PINNED);
  *flag = 0;
  ASSERT_TRUE(succeeded(begin(s)));
  ASSERT_TRUE(succeeded(launch(s, kernel("spin"), {}, flag)));
  Graph graph;
  ASSERT_TRUE(succeeded(end(s, &graph)));
  const Exec exec = instantiate(graph);
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(call(b.stream_query, s.get()).code, LOCKSTEP_E_NOT_READY);
  }
  EXPECT_TRUE(usable(make_stream()));
  __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
  EXPECT_TRUE(succeeded(synchronize(s)));
}

TEST_F(Streams, ManyThreadsUseManyStreams) {
  constexpr int kThreads = 8;
  std::vector<std::thread> threads;
  unsigned long long* const total = allocate<unsigned long long>(1);
  const Stream first = make_stream();
  ASSERT_TRUE(succeeded(set(first, total, 0, 4, 2)));
  ASSERT_TRUE(succeeded(synchronize(first)));
  lockstep_kernel* const count = kernel("count_threads");
  std::atomic<int> failures{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Stream own = make_stream(t % 2 == 0);
      const Event e = make_event();
      for (int i = 0; i < 50; ++i) {
        if (!launch(own, count, {{8, 1, 1}, {32, 1, 1}, 0}, total).ok()) ++failures;
        if (!record(e, own).ok()) ++failures;
        if (!wait(first, e).ok()) ++failures;
      }
      if (!synchronize(own).ok()) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(read(first, total, 1)[0], 8ULL * 50 * 8 * 32);
}

TEST_F(Streams, NativeHandlesAreRefused) {
  lockstep_stream* stream = nullptr;
  lockstep_event* event = nullptr;
  lockstep_graph* graph = nullptr;
  void* const native = &stream;
  EXPECT_EQ(call(b.stream_from_native, device, native, &stream).code, LOCKSTEP_E_NOT_SUPPORTED);
  EXPECT_EQ(call(b.event_from_native, device, native, &event).code, LOCKSTEP_E_NOT_SUPPORTED);
  EXPECT_EQ(call(b.graph_from_native, device, native, &graph).code, LOCKSTEP_E_NOT_SUPPORTED);
  EXPECT_EQ(b.stream_native(make_stream().get()), nullptr);
}

}  // namespace
}  // namespace lockstep::host_test
