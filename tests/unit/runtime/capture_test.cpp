// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backend.h>
#include <lockstep/device.h>
#include <lockstep/error.h>

#include <gmock/gmock.h>
#include <numeric>
#include <thread>

#include "support/fake_backend/fake_plugins.h"

namespace lockstep {
namespace {

using testing::FakeDevice;
using ::testing::HasSubstr;

class CaptureRules : public ::testing::Test {
 protected:
  CaptureRules()
      : stream(fake.device.create_stream()),
        module(fake.device.compile("fake", {.kernels = {"add_one"}})),
        add_one(module.kernel("add_one")),
        buffer(fake.device.allocate<int>(4)) {}

  Error end_error(const StreamRef& s) {
    try {
      s.end_capture();
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorCode::kOk, "ended well");
  }

  FakeDevice fake;
  Stream stream;
  Module module;
  Kernel add_one;
  Buffer<int> buffer;
};

TEST_F(CaptureRules, NothingRunsAndModulesAreLoadedBefore) {
  EXPECT_EQ(fake.control.loads, 0);
  const Graph graph = stream.capture([&](Stream& s) {
    EXPECT_EQ(fake.control.loads, 1);
    EXPECT_EQ(s.capture_status(), CaptureStatus::kActive);
    s.launch(add_one, {}, buffer, 4u);
  });
  EXPECT_EQ(fake.control.launches, 0);
  EXPECT_EQ(graph.node_count(), 1u);
  EXPECT_EQ(stream.capture_status(), CaptureStatus::kNone);
  stream.capture([&](Stream& s) { s.launch(add_one, {}, buffer, 4u); });
  EXPECT_EQ(fake.control.loads, 1);  // once a module
}

TEST_F(CaptureRules, ThrowingFunctionLeavesTheStreamUsable) {
  EXPECT_THROW(stream.capture([&](StreamRef& s) {
    s.launch(add_one, {}, buffer, 4u);
    throw std::runtime_error("mine");
  }),
               std::runtime_error);
  EXPECT_EQ(stream.capture_status(), CaptureStatus::kNone);
  EXPECT_EQ(fake.control.graphs, 0);
  stream.launch(add_one, {}, buffer, 4u);
  EXPECT_EQ(fake.control.launches, 1);
}

TEST_F(CaptureRules, ErrorNamesTheCallThatInvalidated) {
  stream.begin_capture();
  EXPECT_THROW(fake.device.allocate<int>(1), Error);
  EXPECT_EQ(stream.capture_status(), CaptureStatus::kInvalidated);
  EXPECT_THROW(stream.synchronize(), Error);  // comes second: is not the culprit
  const Error error = end_error(stream);
  EXPECT_EQ(error.code(), ErrorCode::kCaptureInvalidated);
  EXPECT_THAT(error.what(), HasSubstr("capture of stream #" + std::to_string(stream.identity()) +
                                      " invalidated by Device::allocate (fakeMalloc) of 4 bytes of "
                                      "device memory on thread "));
  EXPECT_EQ(error.context().call, "fakeEndCapture");
  stream.launch(add_one, {}, buffer, 4u);
  EXPECT_EQ(fake.control.launches, 1);
}

TEST_F(CaptureRules, ErrorNamesTheThread) {
  stream.begin_capture();
  const Stream other = fake.device.create_stream();
  std::thread([&] { EXPECT_THROW(other.query(), Error); }).join();
  const std::string first = end_error(stream).what();
  EXPECT_THAT(first, HasSubstr("invalidated by Stream::query (fakeStreamQuery) on stream #" +
                               std::to_string(other.identity()) + " on thread "));
  stream.begin_capture();
  EXPECT_THROW(other.query(), Error);
  const std::string second = end_error(stream).what();
  EXPECT_NE(first, second);  // another thread
}

TEST_F(CaptureRules, InvalidationByStrangersIsSaid) {
  stream.begin_capture();
  testing::FakeFailure failure;
  failure.slot = "set";
  failure.code = LOCKSTEP_E_INVALID_ARGUMENT;  // no capture code: not noted
  failure.invalidates = true;
  fake.control.fail_next(failure);
  EXPECT_THROW(stream.fill(buffer, 1), Error);
  EXPECT_THAT(end_error(stream).what(), HasSubstr("not made through this library"));
}

// CAP-01: the stream whose work was not joined is named.
TEST_F(CaptureRules, UnjoinedStreamIsNamed) {
  const Stream forked = fake.device.create_stream();
  const Stream joined = fake.device.create_stream();
  const Event event = fake.device.create_event(), back = fake.device.create_event();
  testing::FakeFailure failure;
  failure.slot = "capture_end";
  failure.code = LOCKSTEP_E_ILLEGAL_DURING_CAPTURE;
  failure.rule = LOCKSTEP_CAPTURE_RULE_UNJOINED;
  failure.call = "fakeEndCapture";
  fake.control.fail_next(failure);
  stream.begin_capture();
  stream.launch(add_one, {}, buffer, 4u);
  stream.record(event);
  forked.wait(event);
  joined.wait(event);
  forked.launch(add_one, {}, buffer, 4u);
  joined.launch(add_one, {}, buffer, 4u);
  joined.record(back);
  stream.wait(back);
  const Error error = end_error(stream);
  EXPECT_EQ(error.code(), ErrorCode::kIllegalDuringCapture);
  EXPECT_THAT(error.what(), HasSubstr("work on stream #" + std::to_string(forked.identity()) +
                                      " was never joined back"));
  EXPECT_THAT(error.what(), HasSubstr("let the stream that began the capture wait for it"));
}

TEST_F(CaptureRules, FreesWaitUntilTheCaptureIsOver) {
  const int before = fake.control.allocations;
  Buffer<int> temporary = fake.device.allocate<int>(4);
  std::vector<int> values = {1, 2, 3, 4};
  stream.capture([&](StreamRef& s) {
    s.fill(buffer, 1);
    { const Buffer<int> gone = std::move(temporary); }
    EXPECT_EQ(fake.control.allocations, before + 1);
  });
  EXPECT_EQ(fake.control.illegal_frees, 0);
  EXPECT_EQ(fake.control.allocations, before);
}

TEST_F(CaptureRules, BuffersOfNodesAreKeptAlive) {
  const int before = fake.control.allocations;
  GraphExec exec;
  {
    const Buffer<int> filled = fake.device.allocate<int>(4), copied = fake.device.allocate<int>(4);
    Buffer<int> launched = fake.device.allocate<int>(4);
    exec = stream
               .capture([&](StreamRef& s) {
                 s.fill(filled, 1);
                 s.copy(copied, filled);
                 s.launch(add_one, {}, launched.subview(1, 2), 2u);
               })
               .instantiate();
  }
  EXPECT_EQ(fake.control.allocations, before + 3);
  exec.launch(stream);
  exec = GraphExec();
  stream.synchronize();
  EXPECT_EQ(fake.control.allocations, before);
}

TEST_F(CaptureRules, BuffersStayUntilTheLastLaunchIsDone) {
  const int before = fake.control.allocations;
  GraphExec exec;
  {
    const Buffer<int> filled = fake.device.allocate<int>(4);
    exec = stream.capture([&](StreamRef& s) { s.fill(filled, 1); }).instantiate();
  }
  exec.launch(stream);
  fake.control.busy = true;
  exec = GraphExec();
  stream.synchronize();
  EXPECT_EQ(fake.control.allocations, before + 1);
  fake.control.busy = false;
  stream.synchronize();
  EXPECT_EQ(fake.control.allocations, before);
}

// REP-07: a temporary source is snapshotted.
TEST_F(CaptureRules, PageableSourcesAreSnapshots) {
  Graph graph;
  {
    std::vector<int> source = {1, 2, 3, 4};
    graph = stream.capture([&](StreamRef& s) { s.copy(buffer, source); });
    source.assign({9, 9, 9, 9});
  }
  const std::vector<HostSlot> slots = graph.host_slots();
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_EQ(slots[0].kind, HostSlot::Kind::kSnapshot);
  EXPECT_EQ(slots[0].bytes, 16u);
  EXPECT_EQ(slots[0].node, 0u);
  const GraphExec exec = graph.instantiate();
  graph = Graph();
  for (int round = 0; round < 2; ++round) {
    stream.fill(buffer, 0);
    exec.launch(stream);
    std::vector<int> values(4);
    stream.copy_and_wait(values, buffer);
    EXPECT_EQ(values, std::vector<int>({1, 2, 3, 4}));
  }
}

TEST_F(CaptureRules, PitchedSourcesAreSnapshotsOfTheirRows) {
  std::vector<int> source = {1, 2, -1, 3, 4, -1};
  CopyRegion region;
  region.destination = buffer.data();
  region.source = source.data();
  region.extent = {8, 2, 1};
  region.source_pitch = 12;
  const Graph graph = stream.capture([&](StreamRef& s) { s.copy(region); });
  source.assign(6, 0);
  EXPECT_EQ(graph.host_slots().at(0).bytes, 16u);
  graph.instantiate().launch(stream);
  std::vector<int> values(4);
  stream.copy_and_wait(values, buffer);
  EXPECT_EQ(values, std::vector<int>({1, 2, 3, 4}));
}

TEST_F(CaptureRules, LargeSourcesAreRefusedAndTheCaptureGoesOn) {
  std::vector<int> source(4);
  const Graph graph = stream.capture(
      [&](StreamRef& s) {
        s.launch(add_one, {}, buffer, 4u);
        try {
          s.copy(buffer, source);
          ADD_FAILURE() << "captured";
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kIllegalDuringCapture);
          EXPECT_THAT(error.what(),
                      HasSubstr("16 bytes of pageable host memory, more than the 15"));
        }
      },
      {.host_destinations = {}, .snapshot_limit_bytes = 15});
  EXPECT_EQ(graph.node_count(), 1u);
}

TEST_F(CaptureRules, PageableDestinationsHaveToBeDeclared) {
  std::vector<int> target(4), other(4);
  CaptureOptions options;
  options.host_destinations = {std::as_writable_bytes(std::span(target))};
  const Graph graph = stream.capture(
      [&](StreamRef& s) {
        s.copy(target, buffer);
        EXPECT_THROW(s.copy(other, buffer), Error);
      },
      options);
  ASSERT_EQ(graph.host_slots().size(), 1u);
  EXPECT_EQ(graph.host_slots()[0].kind, HostSlot::Kind::kDeclared);
  EXPECT_EQ(graph.host_slots()[0].address, target.data());
  stream.fill(buffer, 6);
  graph.instantiate().launch(stream);
  EXPECT_EQ(target, std::vector<int>(4, 6));
}

TEST_F(CaptureRules, PinnedBuffersAreLiveSlots) {
  GraphExec exec;
  std::span<int> host;
  {
    const Buffer<int> pinned = fake.device.allocate_pinned<int>(4);
    host = pinned.span();
    const Graph graph = stream.capture([&](StreamRef& s) { s.copy(buffer, pinned); });
    EXPECT_EQ(graph.host_slots().at(0).kind, HostSlot::Kind::kLive);
    EXPECT_EQ(graph.host_slots().at(0).address, pinned.data());
    exec = graph.instantiate();
  }
  for (int round = 1; round < 4; ++round) {
    std::iota(host.begin(), host.end(), round);
    exec.launch(stream);
    std::vector<int> values(4);
    stream.copy_and_wait(values, buffer);
    EXPECT_EQ(values[3], round + 3);
  }
}

TEST_F(CaptureRules, WhatADriverLosesIsListed) {
  fake.control.loses_sets = true;
  const Graph graph = stream.capture([&](StreamRef& s) {
    s.launch(add_one, {}, buffer, 4u);
    s.fill(buffer, 3);
  });
  const std::vector<std::string> differences = graph.capture_differences();
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_THAT(differences[0], HasSubstr("node 1: recorded "));
  EXPECT_THAT(differences[0], HasSubstr("16 B"));
}

TEST_F(CaptureRules, FaithfulGraphsShowNoDifferences) {
  const Graph graph = stream.capture([&](StreamRef& s) {
    s.launch(add_one, {}, buffer, 4u);
    s.fill(buffer, 3);
    s.copy(buffer.subview(0, 2), BufferView<const int>(buffer.subview(2, 2)));
    s.host_function([] {});
  });
  EXPECT_EQ(graph.node_count(), 4u);
  EXPECT_EQ(graph.capture_differences(), std::vector<std::string>());
}

TEST_F(CaptureRules, HostFunctionsRunAtEachReplayAndOutliveTheirOwner) {
  auto counter = std::make_shared<int>(0);
  GraphExec exec;
  {
    Graph graph = stream.capture([&](StreamRef& s) { s.host_function([counter] { ++*counter; }); });
    exec = graph.instantiate();
  }
  EXPECT_EQ(*counter, 0);
  for (int i = 0; i < 5; ++i) exec.launch(stream);
  EXPECT_EQ(*counter, 5);
  exec = GraphExec();
  stream.synchronize();
  EXPECT_EQ(counter.use_count(), 1);
}

TEST_F(CaptureRules, WhatAHostFunctionThrowsSurfacesAtSynchronise) {
  stream.host_function([] { throw std::runtime_error("from the callback"); });
  try {
    stream.synchronize();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLaunchFailed);
    EXPECT_THAT(error.what(), HasSubstr("from the callback"));
  }
  stream.synchronize();
}

TEST_F(CaptureRules, AForkedStreamMayGoBeforeTheJoin) {
  const Event event = fake.device.create_event(), back = fake.device.create_event();
  const int before = fake.control.streams;
  const Graph graph = stream.capture([&](StreamRef& s) {
    s.launch(add_one, {}, buffer, 4u);
    s.record(event);
    {
      const Stream forked = fake.device.create_stream();
      forked.wait(event);
      forked.launch(add_one, {}, buffer, 4u);
      forked.record(back);
    }
    s.wait(back);
  });
  EXPECT_EQ(graph.node_count(), 2u);
  EXPECT_EQ(fake.control.streams, before);
}

}  // namespace
}  // namespace lockstep
