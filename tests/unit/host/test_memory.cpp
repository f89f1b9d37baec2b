// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "unit/host/host_fixture.h"

namespace lockstep::host_test {
namespace {

class Memory : public HostTest {};

TEST_F(Cases, MEM_01_SetWithAnExtentSmallerThanThePitch) {
  const Stream s = make_stream();
  int* const p = allocate<int>(64);
  std::vector<int> values(64);
  std::iota(values.begin(), values.end(), 1);
  ASSERT_TRUE(succeeded(copy(s, p, values.data(), 256)));
  start_recording();
  ASSERT_TRUE(succeeded(set_2d(s, p, 0, 4, {3, 3, 4}, 16, 64)));
  const std::vector<Recorded> records = stop_recording();
  const std::vector<int> after = read(s, p, 64);
  for (int z = 0; z < 4; ++z) {
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 4; ++x) {
        const std::size_t i = static_cast<std::size_t>(z * 16 + y * 4 + x);
        EXPECT_EQ(after[i], x < 3 && y < 3 ? 0 : values[i]) << x << "," << y << "," << z;
      }
    }
  }
  ASSERT_EQ(records.size(), 4U);  // one entry a plane
  for (std::size_t z = 0; z < 4; ++z) {
    const auto& entry = records[z].record.of.set;
    EXPECT_EQ(records[z].name, "hostMemsetD2D32Async");
    EXPECT_EQ(entry.width, 12U);
    EXPECT_EQ(entry.height, 3U);
    EXPECT_EQ(entry.pitch, 16U);
    EXPECT_EQ(entry.destination, reinterpret_cast<std::uintptr_t>(p) + 64 * z);
  }
}

TEST_F(Cases, MEM_03_ValueSizesAndAlignment) {
  const Stream s = make_stream();
  auto* const p = allocate<unsigned char>(16);
  ASSERT_TRUE(succeeded(set(s, p, 0xEE, 1, 16)));
  start_recording();
  ASSERT_TRUE(succeeded(set(s, p, 1, 1, 7)));
  EXPECT_EQ(read(s, p, 8), (std::vector<unsigned char>{1, 1, 1, 1, 1, 1, 1, 0xEE}));
  ASSERT_TRUE(succeeded(set(s, p, 0x1FF, 1, 4)));
  EXPECT_EQ(read(s, p, 5), (std::vector<unsigned char>{0xFF, 0xFF, 0xFF, 0xFF, 1}));
  ASSERT_TRUE(succeeded(set(s, p, 1, 4, 2)));
  EXPECT_EQ(read(s, reinterpret_cast<std::uint32_t*>(p), 2), (std::vector<std::uint32_t>{1, 1}));
  ASSERT_TRUE(succeeded(set(s, p + 8, 0x12345, 2, 2)));
  EXPECT_EQ(read(s, reinterpret_cast<std::uint16_t*>(p + 8), 3),
            (std::vector<std::uint16_t>{0x2345, 0x2345, 0xEEEE}));
  const std::vector<Recorded> records = stop_recording();
  std::vector<std::array<std::uint64_t, 3>> sets;  // value, value size, bytes
  for (const Recorded& r : records) {
    if (r.record.kind != LOCKSTEP_RECORD_MEMSET) continue;
    sets.push_back({r.record.of.set.value, r.record.of.set.value_size, r.record.of.set.width});
  }
  EXPECT_EQ(sets, (std::vector<std::array<std::uint64_t, 3>>{
                      {1, 1, 7}, {0xFF, 1, 4}, {1, 4, 8}, {0x2345, 2, 4}}));
  const Result misaligned = set(s, p + 2, 7, 4, 1);
  EXPECT_EQ(misaligned.code, LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_EQ(misaligned.native, 1);
  EXPECT_EQ(read(s, reinterpret_cast<std::uint32_t*>(p), 2), (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(set(s, p + 1, 7, 2, 1).code, LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_EQ(set(s, p, 7, 3, 1).code, LOCKSTEP_E_INVALID_ARGUMENT);
}

TEST_F(Cases, MEM_05_EmptyCopiesAndSetsSucceedAndAreRecorded) {
  const Stream s = make_stream();
  auto* const p = allocate<unsigned char>(16);
  auto* const q = allocate<unsigned char>(16);
  unsigned char h[16] = {};
  ASSERT_TRUE(succeeded(set(s, p, 9, 1, 16)));
  for (const bool capturing : {false, true}) {
    if (capturing) {
      ASSERT_TRUE(succeeded(begin(s)));
    }
    start_recording();
    EXPECT_TRUE(succeeded(copy(s, p, h, 0)));
    EXPECT_TRUE(succeeded(copy(s, h, p, 0)));
    EXPECT_TRUE(succeeded(copy(s, q, p, 0)));
    EXPECT_TRUE(succeeded(copy(s, nullptr, nullptr, 0)));
    EXPECT_TRUE(succeeded(set(s, p, 1, 1, 0)));
    EXPECT_TRUE(succeeded(set(s, nullptr, 1, 4, 0)));
    lockstep_copy_desc rows = copy_desc(p, h, 4, 0);
    rows.source_pitch = rows.destination_pitch = 8;
    EXPECT_TRUE(succeeded(call(b.copy, s.get(), &rows)));
    EXPECT_TRUE(succeeded(set_2d(s, p, 1, 1, {4, 0, 1}, 8, 0)));
    const std::vector<Recorded> records = stop_recording();
    ASSERT_EQ(records.size(), 8U);
    const char* const names[] = {
        "hostMemcpyHtoDAsync", "hostMemcpyDtoHAsync", "hostMemcpyDtoDAsync", "hostMemcpyHtoHAsync",
        "hostMemsetD8Async",   "hostMemsetD32Async",  "hostMemcpyHtoDAsync", "hostMemsetD8Async"};
    for (std::size_t i = 0; i < 8; ++i) {
      const lockstep_record& r = records[i].record;
      EXPECT_EQ(records[i].name, names[i]);
      EXPECT_EQ(records[i].flags, capturing ? std::uint32_t{LOCKSTEP_RECORD_CAPTURED} : 0U);
      EXPECT_EQ(records[i].node, -1);
      const bool is_copy = r.kind == LOCKSTEP_RECORD_MEMCPY;
      EXPECT_EQ(is_copy ? r.of.copy.width : r.of.set.width, 0U);
      EXPECT_EQ(is_copy ? r.of.copy.height : r.of.set.height, 1U);
    }
    if (capturing) {
      Graph graph;
      ASSERT_TRUE(succeeded(end(s, &graph)));
      EXPECT_EQ(node_count(graph), 0U);
    }
  }
  EXPECT_EQ(read(s, p, 16), std::vector<unsigned char>(16, 9));
  EXPECT_EQ(copy(s, nullptr, h, 4).code, LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_EQ(set(s, nullptr, 0, 1, 4).code, LOCKSTEP_E_INVALID_ARGUMENT);
}

TEST_F(Cases, MEM_07_DirectionFollowsTheAllocations) {
  const Stream s = make_stream();
  auto* const d = allocate<unsigned char>(16);
  auto* const pinned = allocate<unsigned char>(16, LOCKSTEP_MEMORY_PINNED);
  unsigned char host[16] = {};
  const auto direction = [&](void* to, const void* from, std::uint32_t expected) {
    start_recording();
    const Result result = copy(s, to, from, 16, expected);
    const std::vector<Recorded> records = stop_recording();
    if (!result.ok()) {
      EXPECT_EQ(result.code, LOCKSTEP_E_INVALID_ARGUMENT);
      EXPECT_TRUE(records.empty());
      return 99U;
    }
    return records.at(0).record.of.copy.direction;
  };
  EXPECT_EQ(direction(d, host, LOCKSTEP_COPY_DTOH), 99U);
  EXPECT_EQ(direction(d, host, LOCKSTEP_COPY_NONE), 1U);
  EXPECT_EQ(direction(d, host, LOCKSTEP_COPY_HTOD), 1U);
  EXPECT_EQ(direction(pinned, host, LOCKSTEP_COPY_HTOD), 99U);
  EXPECT_EQ(direction(pinned, host, LOCKSTEP_COPY_NONE), 4U);
  EXPECT_EQ(direction(pinned, d, LOCKSTEP_COPY_NONE), 2U);
  EXPECT_EQ(direction(d, d, LOCKSTEP_COPY_DTOD), 3U);
  EXPECT_EQ(direction(d, d, 17), 99U);
  const Result wrong = copy(s, d, host, 16, LOCKSTEP_COPY_DTOH);
  EXPECT_NE(wrong.message.find("declared device to host, but by its allocations it is host to "
                               "device"),
            std::string::npos)
      << wrong.message;
}

TEST_F(Cases, REP_10_AnUploadIsSeenByTheNextLaunchOnAnyStream) {
  const Stream up = make_stream();
  const Stream down = make_stream();
  constexpr std::size_t kCount = 400'000;
  int* const p = allocate<int>(kCount);
  int* const out = allocate<int>(1);
  std::vector<int> values(kCount);
  for (int round = 1; round <= 20; ++round) {
    std::fill(values.begin(), values.end(), round);
    ASSERT_TRUE(succeeded(copy(up, p, values.data(), kCount * sizeof(int))));
    ASSERT_TRUE(succeeded(synchronize(up)));
    const int* const last = p + kCount - 1;
    ASSERT_TRUE(succeeded(launch(down, kernel("move"), {}, out, last)));
    EXPECT_EQ(read(down, out, 1)[0], round);
  }
}

TEST_F(Memory, PageableSourcesMayBeReusedAtOnce) {
  const Stream s = make_stream();
  int* const flag = allocate<int>(1, LOCKSTEP_MEMORY_PINNED);
  int* const p = allocate<int>(2);
  *flag = 0;
  int value = 1;
  ASSERT_TRUE(succeeded(launch(s, kernel("spin"), {}, flag)));
  ASSERT_TRUE(succeeded(copy(s, p, &value, sizeof(int))));  // cannot have been executed yet
  value = 2;
  ASSERT_TRUE(succeeded(copy(s, p + 1, &value, sizeof(int))));
  value = 3;
  *static_cast<volatile int*>(flag) = 1;
  EXPECT_EQ(read(s, p, 2), (std::vector<int>{1, 2}));
}

TEST_F(Memory, AccessesPastTheEndAreRefused) {
  const Stream s = make_stream();
  auto* const p = allocate<unsigned char>(64);
  unsigned char host[128] = {};
  EXPECT_TRUE(succeeded(copy(s, p, host, 64)));
  const Result past = copy(s, p + 1, host, 64);
  EXPECT_EQ(past.native, 1);
  EXPECT_NE(past.message.find("64 bytes"), std::string::npos) << past.message;
  EXPECT_EQ(copy(s, host, p, 65).native, 1);
  EXPECT_EQ(set(s, p + 60, 0, 1, 5).native, 1);
  EXPECT_TRUE(succeeded(set(s, p + 60, 0, 1, 4)));
  // Rows of 8 every 16: the last one ends at 56.
  lockstep_copy_desc rows = copy_desc(p, host, 8, 4);
  rows.destination_pitch = 16;
  EXPECT_TRUE(succeeded(call(b.copy, s.get(), &rows)));
  rows.height = 5;
  EXPECT_EQ(call(b.copy, s.get(), &rows).native, 1);
  rows.height = 4;
  rows.destination_pitch = 7;
  EXPECT_EQ(call(b.copy, s.get(), &rows).native, 1);
  EXPECT_EQ(set_2d(s, p, 0, 1, {8, 2, 1}, 7, 0).native, 1);
  EXPECT_EQ(set_2d(s, p, 0, 1, {8, 2, 2}, 8, 15).native, 1);
  lockstep_copy_desc huge = copy_desc(p, host, UINT64_MAX / 2, 4);
  EXPECT_EQ(call(b.copy, s.get(), &huge).native, 1);
  EXPECT_EQ(set(s, host, 0, 1, 4).native, 1);  // pageable memory
  EXPECT_TRUE(succeeded(synchronize(s)));
}

TEST_F(Memory, CopiesOfPlanesAndRows) {
  const Stream s = make_stream();
  auto* const p = allocate<unsigned char>(2 * 3 * 8);
  std::array<unsigned char, 12> from{};
  std::iota(from.begin(), from.end(), static_cast<unsigned char>(1));
  ASSERT_TRUE(succeeded(set(s, p, 0, 1, 48)));
  lockstep_copy_desc desc = copy_desc(p, from.data(), 2, 3, 2);
  desc.destination_pitch = 8;
  desc.destination_slice_pitch = 24;
  start_recording();
  ASSERT_TRUE(succeeded(call(b.copy, s.get(), &desc)));
  const std::vector<Recorded> records = stop_recording();
  EXPECT_EQ(records.at(0).name, "hostMemcpy3DAsync");
  EXPECT_EQ(records.at(0).record.of.copy.depth, 2U);
  EXPECT_EQ(records.at(0).record.of.copy.source_pitch, 2U);
  EXPECT_EQ(records.at(0).record.of.copy.destination_slice_pitch, 24U);
  const std::vector<unsigned char> after = read(s, p, 48);
  for (std::size_t z = 0; z < 2; ++z) {
    for (std::size_t y = 0; y < 3; ++y) {
      for (std::size_t x = 0; x < 8; ++x) {
        EXPECT_EQ(after[z * 24 + y * 8 + x], x < 2 ? from[z * 6 + y * 2 + x] : 0);
      }
    }
  }
  // Overlapping, device to device.
  std::array<unsigned char, 8> run = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_TRUE(succeeded(copy(s, p, run.data(), 8)));
  ASSERT_TRUE(succeeded(copy(s, p + 1, p, 7)));
  EXPECT_EQ(read(s, p, 8), (std::vector<unsigned char>{1, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(Memory, PointersAreKnownByTheirAllocation) {
  auto* const d = allocate<unsigned char>(100);
  auto* const pinned = allocate<unsigned char>(100, LOCKSTEP_MEMORY_PINNED);
  std::vector<unsigned char> own(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(d) % 256, 0U);
  EXPECT_EQ(info_of(d + 99).memory_kind, std::uint32_t{LOCKSTEP_MEMORY_DEVICE});
  EXPECT_EQ(info_of(d + 99).base, reinterpret_cast<std::uintptr_t>(d));
  EXPECT_EQ(info_of(d + 99).bytes, 100U);
  EXPECT_EQ(info_of(d + 99).device, 0);
  EXPECT_NE(info_of(d + 100).base, reinterpret_cast<std::uintptr_t>(d));
  EXPECT_EQ(info_of(pinned).memory_kind, std::uint32_t{LOCKSTEP_MEMORY_PINNED});
  EXPECT_EQ(info_of(own.data()).memory_kind, std::uint32_t{LOCKSTEP_MEMORY_UNKNOWN});
  EXPECT_EQ(info_of(own.data()).device, -1);
  void* const start = own.data();
  ASSERT_TRUE(succeeded(call(b.memory_register, device, start, std::uint64_t{100})));
  EXPECT_EQ(info_of(own.data() + 50).memory_kind, std::uint32_t{LOCKSTEP_MEMORY_PINNED});
  EXPECT_EQ(call(b.memory_register, device, start, std::uint64_t{10}).native, 1);
  EXPECT_EQ(call(b.memory_free, device, start, static_cast<lockstep_stream*>(nullptr)).native, 1);
  ASSERT_TRUE(succeeded(call(b.memory_unregister, device, start)));
  EXPECT_EQ(call(b.memory_unregister, device, start).native, 1);
  EXPECT_EQ(info_of(own.data()).memory_kind, std::uint32_t{LOCKSTEP_MEMORY_UNKNOWN});
}

TEST_F(Memory, AllocationsAreCountedReportedAndCheckedWhenFreed) {
  std::uint64_t free_before = 0;
  std::uint64_t free_after = 0;
  std::uint64_t total = 0;
  lockstep_stream* const none = nullptr;
  ASSERT_TRUE(succeeded(call(b.device_memory, device, &free_before, &total)));
  lockstep_allocation_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.bytes = 1 << 20;
  desc.memory_kind = LOCKSTEP_MEMORY_DEVICE;
  void* p = nullptr;
  const std::size_t reports = memory_reports().size();
  ASSERT_TRUE(succeeded(call(b.memory_allocate, device, &desc, &p)));
  ASSERT_TRUE(succeeded(call(b.device_memory, device, &free_after, &total)));
  EXPECT_EQ(free_before - free_after, std::uint64_t{1 << 20});
  void* const inside = static_cast<char*>(p) + 16;
  EXPECT_EQ(call(b.memory_free, device, inside, none).native, 1);
  ASSERT_TRUE(succeeded(call(b.memory_free, device, p, none)));
  EXPECT_EQ(call(b.memory_free, device, p, none).native, 1);
  ASSERT_TRUE(succeeded(call(b.memory_free, device, static_cast<void*>(nullptr), none)));
  const std::vector<lockstep_record> all = memory_reports();
  ASSERT_EQ(all.size(), reports + 2);
  EXPECT_EQ(all[reports].kind, std::uint32_t{LOCKSTEP_RECORD_ALLOC});
  EXPECT_EQ(all[reports + 1].kind, std::uint32_t{LOCKSTEP_RECORD_FREE});
  EXPECT_EQ(all[reports].of.memory.address, reinterpret_cast<std::uintptr_t>(p));
  EXPECT_EQ(all[reports].of.memory.allocation, all[reports + 1].of.memory.allocation);
  EXPECT_EQ(all[reports].of.memory.bytes, std::uint64_t{1 << 20});

  desc.bytes = total + 1;
  const Result too_much = call(b.memory_allocate, device, &desc, &p);
  EXPECT_EQ(too_much.code, LOCKSTEP_E_OUT_OF_MEMORY);
  desc.bytes = 0;
  EXPECT_EQ(call(b.memory_allocate, device, &desc, &p).native, 1);
  desc.bytes = 16;
  desc.memory_kind = LOCKSTEP_MEMORY_MANAGED;
  EXPECT_EQ(call(b.memory_allocate, device, &desc, &p).code, LOCKSTEP_E_NOT_SUPPORTED);
}

TEST_F(Memory, StreamOrderedMemoryIsFreedInOrder) {
  const Stream s = make_stream();
  int* const flag = allocate<int>(1, LOCKSTEP_MEMORY_PINNED);
  int* const out = allocate<int>(1);
  *flag = 0;
  lockstep_allocation_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.bytes = 4;
  desc.memory_kind = LOCKSTEP_MEMORY_DEVICE;
  desc.stream = s.get();
  void* p = nullptr;
  ASSERT_TRUE(succeeded(launch(s, kernel("spin"), {}, flag)));
  ASSERT_TRUE(succeeded(call(b.memory_allocate, device, &desc, &p)));
  int* const q = static_cast<int*>(p);
  ASSERT_TRUE(succeeded(launch(s, kernel("store"), {}, q, 17)));
  ASSERT_TRUE(succeeded(launch(s, kernel("move"), {}, out, q)));
  ASSERT_TRUE(succeeded(call(b.memory_free, device, p, s.get())));
  EXPECT_EQ(call(b.memory_free, device, p, s.get()).native, 1);
  *static_cast<volatile int*>(flag) = 1;
  EXPECT_EQ(read(s, out, 1)[0], 17);
  const std::vector<lockstep_record> reports = memory_reports();
  const lockstep_record& allocated = reports.at(reports.size() - 2);
  const lockstep_record& freed = reports.back();
  EXPECT_EQ(text_of(allocated.name), "hostMemAllocAsync");
  EXPECT_EQ(text_of(freed.name), "hostMemFreeAsync");
  EXPECT_EQ(allocated.stream, b.stream_identity(s.get()));
  EXPECT_EQ(freed.stream, allocated.stream);
  EXPECT_EQ(freed.of.memory.allocation, allocated.of.memory.allocation);
}

TEST_F(Memory, VariablesOfAModuleAreDeviceMemory) {
  Module module;
  ASSERT_TRUE(
      succeeded(compile("__device__ int answer = 42;\n"
                        "extern \"C\" __global__ void twice() { answer *= 2; }",
                        {"twice"}, &module)));
  void* address = nullptr;
  std::uint64_t bytes = 0;
  ASSERT_TRUE(succeeded(call(b.module_global, module.get(), "answer", &address, &bytes)));
  EXPECT_EQ(bytes, 4U);
  EXPECT_EQ(info_of(address).memory_kind, std::uint32_t{LOCKSTEP_MEMORY_DEVICE});
  const Stream s = make_stream();
  lockstep_kernel* twice = nullptr;
  ASSERT_TRUE(succeeded(call(b.module_kernel, module.get(), "twice", &twice)));
  ASSERT_TRUE(succeeded(launch(s, twice, {})));
  EXPECT_EQ(read(s, static_cast<int*>(address), 1)[0], 84);
  EXPECT_EQ(call(b.module_global, module.get(), "question", &address, &bytes).code,
            LOCKSTEP_E_NOT_FOUND);
  void* const gone = address;
  module.reset();
  EXPECT_EQ(info_of(gone).memory_kind, std::uint32_t{LOCKSTEP_MEMORY_UNKNOWN});
}

constexpr const char* kVariable =
    "__device__ int result[4];\n"
    "extern \"C\" __global__ void fill(int v) { for (int i = 0; i < 4; ++i) result[i] = v + i; }\n";

// The memory of a variable goes with its module: what copies from there or sets it keeps it.
TEST_F(Memory, VariablesStayForTheWorkThatUsesThem) {
  Module module;
  ASSERT_TRUE(succeeded(compile(kVariable, {"fill"}, &module)));
  void* address = nullptr;
  std::uint64_t bytes = 0;
  lockstep_kernel* fill = nullptr;
  ASSERT_TRUE(succeeded(call(b.module_global, module.get(), "result", &address, &bytes)));
  ASSERT_TRUE(succeeded(call(b.module_kernel, module.get(), "fill", &fill)));
  ASSERT_EQ(bytes, 16U);
  const Stream s = make_stream();
  int* const flag = allocate<int>(1, LOCKSTEP_MEMORY_PINNED);
  int* const out = allocate<int>(8, LOCKSTEP_MEMORY_PINNED);
  *flag = 0;
  ASSERT_TRUE(succeeded(launch(s, kernel("spin"), {}, flag)));
  ASSERT_TRUE(succeeded(launch(s, fill, {}, 30)));
  ASSERT_TRUE(succeeded(copy(s, out, address, 16)));
  ASSERT_TRUE(succeeded(set(s, address, 7, 4, 2)));
  const int pageable[1] = {9};
  ASSERT_TRUE(succeeded(copy(s, static_cast<int*>(address) + 3, pageable, 4)));
  ASSERT_TRUE(succeeded(copy(s, out + 4, address, 16)));
  module.reset();
  __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
  ASSERT_TRUE(succeeded(synchronize(s)));
  EXPECT_EQ(std::vector<int>(out, out + 8), (std::vector<int>{30, 31, 32, 33, 7, 7, 32, 9}));
  EXPECT_EQ(info_of(address).memory_kind, std::uint32_t{LOCKSTEP_MEMORY_UNKNOWN});
}

TEST_F(Memory, VariablesStayForTheGraphsThatUseThem) {
  Module module;
  ASSERT_TRUE(succeeded(compile(kVariable, {"fill"}, &module)));
  void* address = nullptr;
  std::uint64_t bytes = 0;
  ASSERT_TRUE(succeeded(call(b.module_global, module.get(), "result", &address, &bytes)));
  const Stream s = make_stream();
  int* const out = allocate<int>(4, LOCKSTEP_MEMORY_PINNED);
  ASSERT_TRUE(succeeded(begin(s)));
  ASSERT_TRUE(succeeded(set(s, address, 5, 4, 4)));
  ASSERT_TRUE(succeeded(copy(s, out, address, 16)));
  Graph graph;
  ASSERT_TRUE(succeeded(end(s, &graph)));
  Exec exec = instantiate(graph);
  module.reset();
  graph.reset();
  for (int round = 0; round < 2; ++round) {
    std::fill_n(out, 4, 0);
    ASSERT_TRUE(succeeded(launch_graph(exec, s)));
    ASSERT_TRUE(succeeded(synchronize(s)));
    EXPECT_EQ(std::vector<int>(out, out + 4), std::vector<int>(4, 5));
  }
  EXPECT_NE(info_of(address).memory_kind, std::uint32_t{LOCKSTEP_MEMORY_UNKNOWN});
  exec.reset();
  EXPECT_EQ(info_of(address).memory_kind, std::uint32_t{LOCKSTEP_MEMORY_UNKNOWN});
}

}  // namespace
}  // namespace lockstep::host_test
