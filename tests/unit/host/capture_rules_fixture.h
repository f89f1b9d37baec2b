// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit/host/host_fixture.h"

namespace lockstep::host_test {

inline constexpr std::uint32_t kModes[] = {LOCKSTEP_CAPTURE_GLOBAL, LOCKSTEP_CAPTURE_THREAD_LOCAL,
                                           LOCKSTEP_CAPTURE_RELAXED};
inline constexpr const char* kModeNames[] = {"global", "thread-local", "relaxed"};

// One call made while a stream captures, and everything that such calls need.
class CaptureRulesTest : public HostTest {
 public:
  struct Row {
    const char* call;
    std::function<Result(CaptureRulesTest&)> act;
    std::int64_t codes[3];             // global, thread-local, relaxed
    bool survives[3];                  // still capturing afterwards
    std::vector<std::uint32_t> nodes;  // of the graph when it survived
  };

  using HostTest::b;
  using HostTest::device;
  Stream s, other, idle, legacy, per_thread;
  Event before, fresh;
  int* memory = nullptr;
  int* pinned = nullptr;
  int* earlier = nullptr;  // an allocation made before, which the row may free
  int pageable[4] = {1, 2, 3, 4};
  Graph other_graph;
  Exec other_exec;
  std::vector<void*> made;  // by rows that allocate

  void prepare(bool blocking) {
    s = make_stream(blocking);
    other = make_stream();
    idle = make_stream();
    legacy = special(LOCKSTEP_STREAM_LEGACY);
    per_thread = special(LOCKSTEP_STREAM_PER_THREAD);
    before = make_event();
    fresh = make_event();
    memory = allocate<int>(16);
    pinned = allocate<int>(16, LOCKSTEP_MEMORY_PINNED);
    ASSERT_TRUE(succeeded(record(before, other)));
    ASSERT_TRUE(succeeded(synchronize(other)));
    ASSERT_TRUE(succeeded(begin(other)));
    ASSERT_TRUE(succeeded(nop(other)));
    ASSERT_TRUE(succeeded(end(other, &other_graph)));
    other_exec = instantiate(other_graph);
  }
  Result nop(const Stream& stream) { return launch(stream, kernel("nop"), {}); }
  Result allocation(std::uint32_t kind, lockstep_stream* stream = nullptr) {
    lockstep_allocation_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.bytes = 4096;
    desc.memory_kind = kind;
    desc.stream = stream;
    void* pointer = nullptr;
    Result result = call(b.memory_allocate, device, &desc, &pointer);
    if (result.ok() && stream == nullptr) made.push_back(pointer);
    last = pointer;
    return result;
  }
  Result free(void* pointer, lockstep_stream* stream) {
    return call(b.memory_free, device, pointer, stream);
  }
  Result copy_1d(const Stream& stream, void* to, const void* from, std::uint64_t bytes) {
    return copy(stream, to, from, bytes);
  }
  Result set_1d(const Stream& stream, std::uint64_t bytes) {
    return set(stream, memory, 1, 1, bytes);
  }
  Result copy_2d() {
    lockstep_copy_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.source = pageable;
    desc.destination = memory;
    desc.width = 4;
    desc.height = 2;
    desc.depth = 1;
    desc.source_pitch = desc.destination_pitch = 8;
    desc.source_device = desc.destination_device = -1;
    return call(b.copy, s.get(), &desc);
  }
  Result status_of(const Stream& stream) {
    std::uint32_t state = 0;
    std::uint64_t id = 0;
    return call(b.capture_status, stream.get(), &state, &id);
  }
  template <typename Body>
  Result on_other_thread(const Body& body) {
    Result result;
    std::thread([&] { result = body(); }).join();
    return result;
  }
  Result record_then(Result (*then)(CaptureRulesTest&)) {
    Result recorded = record(fresh, s);
    return recorded.ok() ? then(*this) : recorded;
  }
  Result compile_and_launch(bool and_launch) {
    Module module;
    Result result = compile("extern \"C\" __global__ void late() {}", {"late"}, &module);
    if (!result.ok() || !and_launch) return result;
    lockstep_kernel* late = nullptr;
    result = call(b.module_kernel, module.get(), "late", &late);
    if (result.ok()) result = launch(s, late, {});
    modules.push_back(std::move(module));
    return result;
  }

  void run(const Row& row, bool blocking) {
    for (int mode = 0; mode < 3; ++mode) {
      SCOPED_TRACE(std::string(row.call) + ", " + kModeNames[mode] +
                   (blocking ? ", blocking" : ", non-blocking"));
      prepare(blocking);
      ASSERT_TRUE(succeeded(allocation(LOCKSTEP_MEMORY_DEVICE)));
      earlier = static_cast<int*>(last);
      ASSERT_TRUE(succeeded(begin(s, kModes[mode])));
      ASSERT_TRUE(succeeded(nop(s)));
      const Result result = row.act(*this);
      EXPECT_EQ(result.native, row.codes[mode]) << result.message;
      EXPECT_EQ(status(s),
                row.survives[mode] ? LOCKSTEP_CAPTURE_ACTIVE : LOCKSTEP_CAPTURE_IS_INVALIDATED);
      Graph graph;
      const Result ended = end(s, &graph);
      EXPECT_EQ(ended.native, row.survives[mode] ? 0 : 901) << ended.message;
      if (graph != nullptr) {
        EXPECT_EQ(kinds(graph), row.nodes);
      } else {
        EXPECT_EQ(ended.code, LOCKSTEP_E_CAPTURE_INVALIDATED);
        // The end tells which call it was.
        EXPECT_NE(ended.message.find(result.call.substr(0, 10)), std::string::npos)
            << ended.message;
      }
      EXPECT_TRUE(usable(s));
      for (void* pointer : made) EXPECT_TRUE(succeeded(free(pointer, nullptr)));
      made.clear();
    }
  }

  void* last = nullptr;
  std::vector<Module> modules;
};

}  // namespace lockstep::host_test
