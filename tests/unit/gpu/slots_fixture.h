// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "backends/gpu/table.h"
#include "fake_driver.h"
#include "gpu/smoke_host.h"

// The slots of backends/gpu over the fake driver, with a kernel, some memory, two streams and an
// event to work with.
namespace lockstep::gpu_test {

inline FakeDriver& fake() {
  static auto* const driver = new FakeDriver;
  return *driver;
}
inline const lockstep_backend& backend() {
  static const lockstep_recorder recorder = smoke::make_recorder();
  static const lockstep_host host{
      sizeof host, LOCKSTEP_BACKEND_ABI_MIN, LOCKSTEP_BACKEND_ABI_MAX, "test", nullptr, &recorder};
  static const lockstep_backend* const table = [] {
    const lockstep_backend* made = gpu::query(fake(), &host, nullptr);
    made->initialize(nullptr);
    return made;
  }();
  return *table;
}

class SlotsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(b_.device_open(0, &device_, nullptr), LOCKSTEP_OK);
    module_ = make_module("source");
    ASSERT_EQ(b_.module_kernel(module_, "kernel", &kernel_, nullptr), LOCKSTEP_OK);
    lockstep_allocation_desc memory{};
    memory.struct_size = sizeof memory;
    memory.bytes = 256;
    memory.memory_kind = LOCKSTEP_MEMORY_DEVICE;
    ASSERT_EQ(b_.memory_allocate(device_, &memory, &memory_, nullptr), LOCKSTEP_OK);
    one_ = make_stream();
    two_ = make_stream();
    ASSERT_EQ(b_.event_create(device_, 0, &event_, nullptr), LOCKSTEP_OK);
    smoke::take();
    fake().calls.clear();
  }
  void TearDown() override {
    smoke::g_active = 0;
    b_.event_destroy(event_);
    b_.stream_destroy(one_);
    b_.stream_destroy(two_);
    b_.memory_free(device_, memory_, nullptr, nullptr);
    b_.module_destroy(module_);
    b_.device_close(device_);
    fake().made_traits = FakeDriver().made_traits;
    fake().tells_stream_ids = true;
  }
  lockstep_stream* make_stream() {
    lockstep_stream_desc desc{sizeof desc, LOCKSTEP_STREAM_NON_BLOCKING, 0};
    lockstep_stream* made = nullptr;
    EXPECT_EQ(b_.stream_create(device_, &desc, &made, nullptr), LOCKSTEP_OK);
    return made;
  }
  lockstep_module* make_module(const char* source = "other") {
    lockstep_module_desc desc{};
    desc.struct_size = sizeof desc;
    desc.format = LOCKSTEP_MODULE_SOURCE;
    desc.data = source;
    desc.bytes = std::strlen(source);
    lockstep_module* made = nullptr;
    EXPECT_EQ(b_.module_create(device_, &desc, &made, nullptr), LOCKSTEP_OK);
    return made;
  }
  // The nodes of what was recorded, all of it in a capture.
  static std::vector<std::int32_t> captured_nodes() {
    std::vector<std::int32_t> nodes;
    for (const smoke::Entry& entry : smoke::take()) {
      EXPECT_NE(entry.flags & LOCKSTEP_RECORD_CAPTURED, 0U);
      EXPECT_NE(entry.graph, 0U);
      nodes.push_back(entry.node);
    }
    return nodes;
  }
  smoke::Answer launch(lockstep_stream* stream, lockstep_dim3 grid = {1, 1, 1}) {
    const int number = 7;
    const void* arguments[] = {&memory_, &number};
    const lockstep_parameter typed[] = {{0, 8, 1, {}}, {0, 4, 0, {}}};
    lockstep_launch_desc desc{};
    desc.struct_size = sizeof desc;
    desc.kernel = kernel_;
    desc.grid = grid;
    desc.block = {1, 1, 1};
    desc.arguments = arguments;
    desc.argument_count = 2;
    desc.parameters = typed;
    return smoke::call(b_.launch, stream, &desc);
  }
  smoke::Answer copy(lockstep_stream* stream, std::uint64_t bytes) {
    const lockstep_copy_desc desc = upload(bytes);
    return smoke::call(b_.copy, stream, &desc);
  }
  // From host memory to memory_.
  lockstep_copy_desc upload(std::uint64_t bytes) const {
    static char host[256];
    return smoke::copy_desc(memory_, host, bytes);
  }
  void fork() {
    ASSERT_TRUE(smoke::call(b_.event_record, event_, one_).ok());
    ASSERT_TRUE(smoke::call(b_.stream_wait_event, two_, event_).ok());
  }
  void begin(lockstep_stream* stream) {
    ASSERT_TRUE(
        smoke::call(b_.capture_begin, stream, std::uint32_t{LOCKSTEP_CAPTURE_THREAD_LOCAL}).ok());
  }
  std::string stream_text(lockstep_stream* stream) const {
    return "stream " + std::to_string(b_.stream_identity(stream));
  }

  const lockstep_backend& b_ = backend();
  lockstep_device* device_ = nullptr;
  lockstep_module* module_ = nullptr;
  lockstep_kernel* kernel_ = nullptr;
  lockstep_stream *one_ = nullptr, *two_ = nullptr;
  lockstep_event* event_ = nullptr;
  void* memory_ = nullptr;
};

}  // namespace lockstep::gpu_test
