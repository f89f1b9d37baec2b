// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device.h>
#include <lockstep/error.h>
#include <lockstep/tracer.h>

#include <cstdlib>
#include <gmock/gmock.h>

namespace lockstep {
namespace {

// The plugin that people copy has to do what it says.
class Template : public ::testing::Test {
 protected:
  Template() {
    setenv("LOCKSTEP_BACKEND_PATH", LOCKSTEP_TEMPLATE_PLUGIN, 1);
    device = Device::open("template");
    unsetenv("LOCKSTEP_BACKEND_PATH");
  }
  Device device;
};

TEST_F(Template, MovesMemoryInOrder) {
  const Stream stream = device.create_stream();
  const Buffer<int> left = device.allocate<int>(3), right = device.allocate<int>(3);
  const Event event = device.create_event();
  LaunchTrace trace;
  stream.copy(left, std::vector<int>({1, 2, 3}));
  stream.copy(right, left);
  stream.fill(left, 9);
  stream.record(event);
  std::vector<int> from_left(3), from_right(3);
  stream.copy(from_left, left);
  stream.copy(from_right, right);
  stream.synchronize();
  EXPECT_EQ(from_left, std::vector<int>({9, 9, 9}));
  EXPECT_EQ(from_right, std::vector<int>({1, 2, 3}));
  EXPECT_TRUE(event.query());
  std::vector<std::string> done;
  for (const LaunchTraceEntry& entry : trace.take()) {
    done.push_back(
        entry.kind == OperationKind::kMemset ? "set" : std::string(to_string(entry.memcpy_kind)));
  }
  EXPECT_EQ(done, std::vector<std::string>({"HtoD", "DtoD", "set", "DtoH", "DtoH"}));
}

// MEM-01: 3 of 4 ints in 3 of 4 rows of 4 planes; one entry a plane.
TEST_F(Template, SetsInThreeDimensionsStayWithinTheirExtent) {
  const Stream stream = device.create_stream();
  const Buffer<int> buffer = device.allocate<int>(64);
  std::vector<int> values(64);
  for (int i = 0; i < 64; ++i) values[static_cast<std::size_t>(i)] = i + 1;
  stream.copy(buffer, values);
  FillRegion region;
  region.destination = buffer.data();
  region.extent = {3, 3, 4};
  region.pitch = 16;
  region.slice_pitch = 64;
  region.value_size = 4;
  LaunchTrace trace;
  stream.fill(region);
  EXPECT_EQ(trace.take().size(), 4u);
  stream.copy_and_wait(values, buffer);
  for (int i = 0; i < 64; ++i) {
    const bool inside = i % 4 < 3 && i / 4 % 4 < 3;
    EXPECT_EQ(values[static_cast<std::size_t>(i)], inside ? 0 : i + 1) << i;
  }
}

TEST_F(Template, RefusesTheRest) {
  EXPECT_TRUE(device.simulated());
  const auto code_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kOk;
  };
  const Stream stream = device.create_stream();
  EXPECT_EQ(code_of([&] { device.compile("fake", {}); }), ErrorCode::kNotSupported);
  EXPECT_EQ(code_of([&] { stream.begin_capture(); }), ErrorCode::kNotSupported);
  EXPECT_EQ(code_of([&] { stream.host_function([] {}); }), ErrorCode::kNotSupported);
  EXPECT_EQ(code_of([&] { device.create_graph(); }), ErrorCode::kNotSupported);
  EXPECT_EQ(code_of([&] { device.allocate_async<int>(1, stream); }), ErrorCode::kNotSupported);
  EXPECT_EQ(code_of([&] { device.legacy_stream(); }), ErrorCode::kNotSupported);
}

}  // namespace
}  // namespace lockstep
