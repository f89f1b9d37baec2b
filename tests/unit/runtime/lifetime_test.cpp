// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backend.h>
#include <lockstep/device.h>
#include <lockstep/error.h>

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "support/fake_backend/fake_plugins.h"

namespace lockstep {
namespace {

using testing::FakeDevice;
using testing::FakePlugins;

TEST(Lifetime, EveryObjectKeepsItsDeviceOpen) {
  FakePlugins plugins;
  plugins.add("fake");
  Device device = Device::open("fake");
  testing::FakeControl& control = plugins.control("fake");
  EXPECT_EQ(control.devices, 1);
  Stream stream = device.create_stream();
  Event event = device.create_event();
  Buffer<int> buffer = device.allocate<int>(1);
  Kernel kernel = device.compile("fake", {.kernels = {"nothing"}}).kernel("nothing");
  Graph graph = device.create_graph();
  device = Device();
  EXPECT_EQ(control.devices, 1);
  EXPECT_EQ(control.modules, 1);  // its kernel keeps it
  stream = Stream();
  event = Event();
  buffer = Buffer<int>();
  graph = Graph();
  EXPECT_EQ(control.devices, 1);
  kernel = Kernel();
  EXPECT_EQ(control.devices, 0);
  EXPECT_EQ(control.modules, 0);
  EXPECT_EQ(control.streams, 0);
  EXPECT_EQ(control.events, 0);
  EXPECT_EQ(control.graphs, 0);
  EXPECT_EQ(control.allocations, 0);
}

TEST(Lifetime, ViewsKeepTheirMemory) {
  FakeDevice fake;
  BufferView<const int> view;
  {
    const Buffer<int> buffer = fake.device.allocate<int>(4);
    view = buffer.subview(1, 2);
  }
  EXPECT_EQ(fake.control.allocations, 1);
  view = BufferView<const int>();
  EXPECT_EQ(fake.control.allocations, 0);
}

TEST(Lifetime, AGraphWhoseLaunchesAreDoneLetsGoOfItsBuffersAtOnce) {
  FakeDevice fake;
  Stream stream = fake.device.create_stream();
  {
    const Buffer<int> buffer = fake.device.allocate<int>(4);
    GraphExec exec = stream.capture([&](StreamRef& s) { s.fill(buffer, 1); }).instantiate();
    exec.launch(stream);
    stream.synchronize();
    EXPECT_EQ(fake.control.allocations, 1);
  }
  EXPECT_EQ(fake.control.allocations, 0);
}

// To ask a stream that captures would invalidate its capture.
TEST(Lifetime, NoCaptureBeginsWhileStreamsAreAskedWhetherTheyAreDone) {
  FakeDevice fake;
  Stream stream = fake.device.create_stream(), other = fake.device.create_stream();
  const Buffer<int> buffer = fake.device.allocate<int>(4);
  {
    GraphExec exec = stream.capture([&](StreamRef& s) { s.fill(buffer, 1); }).instantiate();
    exec.launch(stream);
    fake.control.busy = true;
  }
  std::atomic<bool> begun{false};
  bool begun_meanwhile = true;
  std::thread capturing;
  fake.control.on_query = [&] {
    if (capturing.joinable()) return;
    capturing = std::thread([&] {
      CaptureOptions options;
      options.mode = CaptureMode::kRelaxed;
      stream.begin_capture(options);
      begun = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    begun_meanwhile = begun;
  };
  other.synchronize();
  ASSERT_TRUE(capturing.joinable()) << "nobody was asked";
  capturing.join();
  EXPECT_FALSE(begun_meanwhile);
  EXPECT_EQ(stream.capture_status(), CaptureStatus::kActive);
  stream.fill(buffer, 2);
  EXPECT_EQ(stream.end_capture().node_count(), 1u);
}

TEST(Lifetime, RegisteredMemoryIsGivenBack) {
  FakeDevice fake;
  std::vector<int> memory(4);
  {
    const Buffer<int> registered = fake.device.register_host(std::span<int>(memory));
    EXPECT_EQ(registered.data(), memory.data());
    EXPECT_EQ(registered.memory_kind(), MemoryKind::kPinned);
    EXPECT_EQ(fake.control.registrations, 1);
  }
  EXPECT_EQ(fake.control.registrations, 0);
}

TEST(Lifetime, StreamOrderedMemoryKeepsItsStream) {
  FakeDevice fake;
  Buffer<int> buffer;
  {
    const Stream stream = fake.device.create_stream();
    buffer = fake.device.allocate_async<int>(4, stream);
  }
  EXPECT_EQ(fake.control.streams, 1);
  buffer = Buffer<int>();
  EXPECT_EQ(fake.control.streams, 0);
  EXPECT_EQ(fake.control.allocations, 0);
}

TEST(Lifetime, FailedOpenLeavesNothingBehind) {
  FakePlugins plugins;
  plugins.add("fake");
  { const Device device = Device::open("fake"); }
  testing::FakeControl& control = plugins.control("fake");
  testing::FakeFailure failure;
  failure.slot = "device_open";
  failure.code = LOCKSTEP_E_DEVICE_LOST;
  control.fail_next(failure);
  EXPECT_THROW(Device::open("fake"), Error);
  EXPECT_EQ(control.devices, 0);
  const Device again = Device::open("fake");
  EXPECT_EQ(control.devices, 1);
  EXPECT_EQ(control.initializations, 1);
}

TEST(Lifetime, ManyThreadsShareOneDevice) {
  FakeDevice fake;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const Device device = Device::open("fake");
      const Stream stream = device.create_stream();
      const Kernel kernel = device.compile("fake", {.kernels = {"nothing"}}).kernel("nothing");
      for (int round = 0; round < 50; ++round) {
        const Buffer<int> buffer = device.allocate<int>(2);
        stream.fill(buffer, round);
        stream.launch(kernel, {});
      }
      stream.synchronize();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake.control.launches, 400);
  EXPECT_EQ(fake.control.allocations, 0);
  EXPECT_EQ(fake.control.streams, 0);
  EXPECT_EQ(fake.control.devices, 1);
}

}  // namespace
}  // namespace lockstep
