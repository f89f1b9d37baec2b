// SPDX-License-Identifier: Apache-2.0
// verify() end to end on the host backend: programs that run, values that are compared.
#include <lockstep/lockstep.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <stdexcept>

#include "verify_programs.h"

namespace lockstep::testing_verify {
namespace {

using ::testing::HasSubstr;

constexpr unsigned kCount = 256;

constexpr std::string_view kSource = R"(
extern "C" __global__ void scale(float* y, const float* x, float a, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
extern "C" __global__ void accumulate(float* total, const float* x, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) total[i] += x[i];
}
extern "C" __global__ void stamp(unsigned* counter, unsigned* out) {
  if (threadIdx.x == 0) out[0] = counter[0]++;
}
)";

class VerifyValues : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    device_ = new Device(Device::open("host"));
    module_ = new Module(device_->compile(kSource, {.kernels = {"scale", "accumulate", "stamp"}}));
  }
  static void TearDownTestSuite() {
    delete module_;
    delete device_;
    module_ = nullptr;
    device_ = nullptr;
  }

  void SetUp() override {
    stream_ = device_->create_stream();
    x_ = device_->allocate<float>(kCount);
    y_ = device_->allocate<float>(kCount);
    host_x_.resize(kCount);
    std::iota(host_x_.begin(), host_x_.end(), 1.0f);
    stream_.copy_and_wait(x_, host_x_);
    stream_.fill(y_, 0.0f);
    stream_.synchronize();
  }

  static Kernel kernel_named(const std::string& name) { return module_->kernel(name); }

  void scale(const StreamRef& stream, float factor = 2.0f, unsigned n = kCount) const {
    stream.launch(kernel_named("scale"), {.grid = 4, .block = 64}, y_, x_, factor, n);
  }

  GraphExec capture(const std::function<void(const StreamRef&)>& step) {
    return stream_.capture([&](StreamRef& stream) { step(stream); }).instantiate();
  }

  VerifyOptions values_of_y() const {
    VerifyOptions options;
    options.level = VerifyLevel::kValues;
    options.outputs = {as_bytes(y_)};
    return options;
  }

  static Device* device_;
  static Module* module_;
  Stream stream_;
  Buffer<float> x_, y_;
  std::vector<float> host_x_;
};

Device* VerifyValues::device_ = nullptr;
Module* VerifyValues::module_ = nullptr;

TEST_F(VerifyValues, CorrectGraphIsVerifiedUpToValues) {
  const GraphExec replay = capture([&](const StreamRef& stream) { scale(stream); });
  const VerifyReport report = verify(
      replay, [&](Stream& stream) { scale(stream); }, values_of_y());
  EXPECT_TRUE(report.ok()) << to_text(report);
  EXPECT_EQ(report.verified, VerifyLevel::kValues);
  EXPECT_TRUE(report.findings.empty()) << to_text(report);
  EXPECT_EQ(to_text(report), "replay verified (L0-L4): 1 entry\n");

  const VerifyReport arguments = verify(replay, [&](Stream& stream) { scale(stream); });
  EXPECT_EQ(arguments.verified, VerifyLevel::kArguments) << to_text(arguments);
}

TEST_F(VerifyValues, CopiesAndSetsAreVerifiedWithTheirBuffers) {
  const auto step = [&](const StreamRef& stream) {
    stream.fill(y_, 1.0f);
    stream.copy(y_, x_);
    scale(stream);
  };
  const VerifyReport report = verify(
      capture(step), [&](Stream& stream) { step(stream); }, values_of_y());
  EXPECT_EQ(report.verified, VerifyLevel::kValues) << to_text(report);
  EXPECT_EQ(report.eager.size(), 3u);
}

TEST_F(VerifyValues, WrongScalarAndWrongBufferOfACapture) {
  const auto step = [&](Stream& stream) { scale(stream); };
  const VerifyReport scalar =
      verify(capture([&](const StreamRef& stream) { scale(stream, 3.0f); }), step, values_of_y());
  EXPECT_EQ(scalar.verified, VerifyLevel::kOrder);
  EXPECT_NE(find(scalar, VerifyLevel::kArguments, "scalar"), nullptr) << to_text(scalar);
  // Values are told as well: 2·x and 3·x.
  EXPECT_NE(find(scalar, VerifyLevel::kValues, "value"), nullptr) << to_text(scalar);

  const VerifyReport buffer =
      verify(capture([&](const StreamRef& stream) {
               stream.launch(kernel_named("scale"), {.grid = 4, .block = 64}, y_, y_, 2.0f, kCount);
             }),
             step);
  EXPECT_EQ(buffer.verified, VerifyLevel::kOrder);
  EXPECT_NE(find(buffer, VerifyLevel::kArguments, "buffer"), nullptr) << to_text(buffer);
}

// A captured copy reads the host memory as it was at capture: only values can tell.
TEST_F(VerifyValues, ReplayOfOldInputIsFoundByValues) {
  std::vector<float> input = host_x_;
  const auto step = [&](const StreamRef& stream) {
    stream.copy(x_, input);
    scale(stream);
  };
  const GraphExec replay = capture(step);
  VerifyOptions options = values_of_y();
  options.set_inputs = [&](StreamRef&) { input[5] = 1000.0f; };
  const VerifyReport report = verify(
      replay, [&](Stream& stream) { step(stream); }, options);
  EXPECT_EQ(report.verified, VerifyLevel::kArguments) << to_text(report);
  const VerifyFinding* value = find(report, VerifyLevel::kValues, "value");
  ASSERT_NE(value, nullptr) << to_text(report);
  // 2000.0f is 0x44fa0000, 12.0f is 0x41400000.
  EXPECT_EQ(value->message,
            "output 0: 2 of 1024 bytes differ; first at offset 22: 0xfa in eager, 0x40 in replay");
  EXPECT_THAT(to_text(report), HasSubstr("not verified: L4 (values) does not hold"));
}

TEST_F(VerifyValues, OutputThatReplayDoesNotWrite) {
  Buffer<float> other = device_->allocate<float>(kCount);
  const GraphExec replay = capture([&](const StreamRef& stream) {
    stream.launch(kernel_named("scale"), {.grid = 4, .block = 64}, other, x_, 2.0f, kCount);
  });
  // The bijection allows another buffer; the poison shows that y was never written.
  const VerifyReport report = verify(
      replay, [&](Stream& stream) { scale(stream); }, values_of_y());
  EXPECT_EQ(report.verified, VerifyLevel::kArguments) << to_text(report);
  ASSERT_NE(find(report, VerifyLevel::kValues, "value"), nullptr);
  EXPECT_THAT(find(report, VerifyLevel::kValues, "value")->message,
              HasSubstr("1024 of 1024 bytes differ; first at offset 0: 0x00 in eager, 0xff in "
                        "replay (as before the run: probably not written)"));
}

TEST_F(VerifyValues, BytesThatEagerDoesNotWriteAreLeftOutAndSaid) {
  const auto half = [&](const StreamRef& stream) { scale(stream, 2.0f, kCount / 2); };
  const VerifyReport report = verify(
      capture(half), [&](Stream& stream) { half(stream); }, values_of_y());
  EXPECT_EQ(report.verified, VerifyLevel::kValues) << to_text(report);
  ASSERT_NE(find(report, VerifyLevel::kValues, "unwritten", true), nullptr);
  EXPECT_THAT(find(report, VerifyLevel::kValues, "unwritten", true)->message,
              HasSubstr("does not write 512 of 1024 bytes, which were left out; first at offset "
                        "512"));

  const auto nothing = [&](const StreamRef& stream) { scale(stream, 2.0f, 0); };
  const VerifyReport none = verify(
      capture(nothing), [&](Stream& stream) { nothing(stream); }, values_of_y());
  EXPECT_EQ(none.verified, VerifyLevel::kArguments);
  EXPECT_NE(find(none, VerifyLevel::kValues, "unwritten"), nullptr) << to_text(none);
}

TEST_F(VerifyValues, NondeterministicBytes) {
  Buffer<unsigned> counter = device_->allocate<unsigned>(1), out = device_->allocate<unsigned>(1);
  stream_.fill(counter, 1u);
  stream_.synchronize();
  const auto step = [&](const StreamRef& stream) {
    stream.launch(kernel_named("stamp"), {.grid = 1, .block = 1}, counter, out);
  };
  VerifyOptions options;
  options.level = VerifyLevel::kValues;
  options.outputs = {as_bytes(out)};
  const GraphExec replay = capture(step);
  const VerifyReport some = verify(
      replay, [&](Stream& stream) { step(stream); }, options);
  EXPECT_EQ(some.verified, VerifyLevel::kValues) << to_text(some);
  ASSERT_NE(find(some, VerifyLevel::kValues, "nondeterministic", true), nullptr);
  EXPECT_THAT(find(some, VerifyLevel::kValues, "nondeterministic", true)->message,
              HasSubstr("1 of 4 bytes differ between two eager runs"));

  options.outputs = {as_bytes(out).subview(0, 1)};
  const VerifyReport all = verify(
      replay, [&](Stream& stream) { step(stream); }, options);
  EXPECT_EQ(all.verified, VerifyLevel::kArguments);
  ASSERT_NE(find(all, VerifyLevel::kValues, "nondeterministic"), nullptr) << to_text(all);
  EXPECT_THAT(find(all, VerifyLevel::kValues, "nondeterministic")->message,
              HasSubstr("memory that the step also reads belongs in VerifyOptions::in_place"));
}

TEST_F(VerifyValues, InPlaceMemoryIsRestoredBeforeEveryRunAndAfterTheLast) {
  stream_.fill(y_, 10.0f);
  stream_.synchronize();
  const auto step = [&](const StreamRef& stream) {
    stream.launch(kernel_named("accumulate"), {.grid = 4, .block = 64}, y_, x_, kCount);
  };
  VerifyOptions options = values_of_y();
  options.in_place = {as_bytes(y_)};
  const GraphExec replay = capture(step);
  const VerifyReport report = verify(
      replay, [&](Stream& stream) { step(stream); }, options);
  EXPECT_EQ(report.verified, VerifyLevel::kValues) << to_text(report);
  EXPECT_TRUE(report.findings.empty()) << to_text(report);
  std::vector<float> left(kCount);
  stream_.copy_and_wait(left, y_);
  EXPECT_EQ(left, std::vector<float>(kCount, 10.0f));
}

TEST_F(VerifyValues, WhatLiesBesideInPlaceMemoryIsPoisonedToo) {
  Buffer<float> other = device_->allocate<float>(kCount);
  const GraphExec replay = capture([&](const StreamRef& stream) {
    stream.launch(kernel_named("scale"), {.grid = 4, .block = 64}, other, x_, 2.0f, kCount);
  });
  VerifyOptions options = values_of_y();
  options.in_place = {as_bytes(y_).subview(512, 4)};
  const VerifyReport report = verify(
      replay, [&](Stream& stream) { scale(stream); }, options);
  EXPECT_EQ(report.verified, VerifyLevel::kArguments) << to_text(report);
  ASSERT_NE(find(report, VerifyLevel::kValues, "value"), nullptr);
  EXPECT_THAT(find(report, VerifyLevel::kValues, "value")->message,
              HasSubstr("bytes differ; first at offset 0"));
}

TEST_F(VerifyValues, InPlaceMemoryThatEagerDoesNotChangeIsSaid) {
  const auto step = [&](const StreamRef& stream) { scale(stream); };
  step(stream_);
  stream_.synchronize();  // y holds already what the step writes
  VerifyOptions options = values_of_y();
  options.in_place = {as_bytes(y_)};
  const VerifyReport report = verify(
      capture(step), [&](Stream& stream) { step(stream); }, options);
  EXPECT_EQ(report.verified, VerifyLevel::kValues) << to_text(report);
  ASSERT_NE(find(report, VerifyLevel::kValues, "unchanged", true), nullptr) << to_text(report);
  EXPECT_THAT(find(report, VerifyLevel::kValues, "unchanged", true)->message,
              HasSubstr("eager leaves all 1024 bytes as they were"));
}

TEST_F(VerifyValues, TracesOfTheCallerSeeNothing) {
  const GraphExec replay = capture([&](const StreamRef& stream) { scale(stream); });
  Tracer::begin();
  LaunchTrace open;
  EXPECT_TRUE(verify(
                  replay, [&](Stream& stream) { scale(stream); }, values_of_y())
                  .ok());
  EXPECT_THROW(verify(replay, [](Stream&) { throw std::runtime_error("step"); }),
               std::runtime_error);
  scale(stream_, 5.0f);
  stream_.synchronize();
  ViewOptions everything;
  everything.kind = ViewOptions::Kind::kEnqueued;
  everything.core_kinds_only = false;
  // One launch and one synchronise: the caller's own.
  const auto seen = open.take(everything);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].name, "scale");
  EXPECT_EQ(seen[0].stream_index, 0u);
  EXPECT_EQ(seen[1].kind, OperationKind::kSynchronize);
  EXPECT_EQ(Tracer::take().size(), 1u);
}

TEST_F(VerifyValues, CaptureOfTheWrongStreamIsNotVerified) {
  Stream wrong = device_->create_stream();
  const Graph empty = wrong.capture([&](StreamRef&) { scale(stream_); });
  const GraphExec replay = empty.instantiate({.allow_empty = true});
  const VerifyReport report = verify(replay, [&](Stream& stream) { scale(stream); });
  EXPECT_EQ(report.verified, std::nullopt);
  ASSERT_NE(find(report, VerifyLevel::kCounts, "empty"), nullptr) << to_text(report);
  EXPECT_EQ(find(report, VerifyLevel::kCounts, "empty")->message,
            "eager has 1 kernel, replay has 0");
}

TEST_F(VerifyValues, ForkAndJoinAndAMissingEdge) {
  const Stream side = device_->create_stream();
  const Event forked = device_->create_event(), joined = device_->create_event();
  Buffer<float> z = device_->allocate<float>(kCount);
  const auto step = [&](const StreamRef& stream) {
    scale(stream);
    stream.record(forked);
    side.wait(forked);
    side.launch(kernel_named("scale"), {.grid = 4, .block = 64}, z, y_, 4.0f, kCount);
    side.record(joined);
    stream.wait(joined);
    stream.launch(kernel_named("accumulate"), {.grid = 4, .block = 64}, y_, z, kCount);
  };
  const VerifyReport good = verify(
      capture(step), [&](Stream& stream) { step(stream); }, values_of_y());
  EXPECT_EQ(good.verified, VerifyLevel::kValues) << to_text(good);

  Graph built = device_->create_graph();
  const LaunchConfig config{.grid = 4, .block = 64};
  const GraphNode first = built.add_kernel({}, kernel_named("scale"), config, y_, x_, 2.0f, kCount);
  const GraphNode second = built.add_kernel({}, kernel_named("scale"), config, z, y_, 4.0f, kCount);
  built.add_kernel({first, second}, kernel_named("accumulate"), config, y_, z, kCount);
  const VerifyReport missing = verify(built.instantiate(), [&](Stream& stream) { step(stream); });
  EXPECT_EQ(missing.verified, VerifyLevel::kMultiset) << to_text(missing);
  EXPECT_NE(find(missing, VerifyLevel::kOrder, "order"), nullptr);
}

// What the host waited for orders what it enqueues later, as the recorder writes it down.
TEST_F(VerifyValues, HostWaitsOrderLaterWork) {
  const Stream side = device_->create_stream();
  const Event event = device_->create_event(), early = device_->create_event();
  Buffer<float> z = device_->allocate<float>(kCount);
  const LaunchConfig config{.grid = 4, .block = 64};
  Graph unordered = device_->create_graph();
  unordered.add_kernel({}, kernel_named("scale"), config, y_, x_, 2.0f, kCount);
  unordered.add_kernel({}, kernel_named("accumulate"), config, z, x_, kCount);
  const GraphExec replay = unordered.instantiate();
  const auto verified_with = [&](const std::function<void(Stream&)>& host_wait) {
    return verify(replay,
                  [&](Stream& stream) {
                    stream.record(early);
                    scale(stream);
                    stream.record(event);
                    host_wait(stream);
                    side.launch(kernel_named("accumulate"), config, z, x_, kCount);
                  })
        .verified;
  };
  EXPECT_EQ(verified_with([](Stream&) {}), VerifyLevel::kArguments);
  EXPECT_EQ(verified_with([&](Stream&) { early.synchronize(); }), VerifyLevel::kArguments);
  EXPECT_EQ(verified_with([&](Stream&) { side.synchronize(); }), VerifyLevel::kArguments);
  EXPECT_EQ(verified_with([&](Stream&) { event.synchronize(); }), VerifyLevel::kMultiset);
  EXPECT_EQ(verified_with([](Stream& stream) { stream.synchronize(); }), VerifyLevel::kMultiset);
  EXPECT_EQ(verified_with([&](Stream&) { device_->synchronize(); }), VerifyLevel::kMultiset);
}

TEST_F(VerifyValues, WhatCannotBeRunIsRefused) {
  const GraphExec replay = capture([&](const StreamRef& stream) { scale(stream); });
  const auto step = [&](Stream& stream) { scale(stream); };
  const auto code_of = [&](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kOk;
  };
  VerifyOptions options;
  options.level = VerifyLevel::kValues;
  EXPECT_EQ(code_of([&] { verify(replay, step, options); }), ErrorCode::kInvalidArgument);
  options.outputs = {BufferView<std::byte>()};
  EXPECT_EQ(code_of([&] { verify(replay, step, options); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { verify(GraphExec(), step); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { verify(replay, {}); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep::testing_verify
