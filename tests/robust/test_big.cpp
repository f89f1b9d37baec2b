// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "robust/robust_test.h"

namespace lockstep::testing {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kBytes = 4 * kGiB + (1 << 16);

constexpr char kSource[] = R"(
extern "C" __global__ void put(unsigned char* p, unsigned long long first, int value) {
  p[first + threadIdx.x] = (unsigned char)(value + threadIdx.x);
}
)";

struct Large {
  Device device = Device::open("host");
  Stream stream = device.create_stream();
  Buffer<std::uint8_t> memory =
      device.allocate<std::uint8_t>(kBytes);  // pages nobody touches cost nothing

  std::vector<std::uint8_t> read(std::uint64_t offset, std::size_t count) const {
    std::vector<std::uint8_t> values(count);
    stream.copy_and_wait(values, memory.subview(offset, count));
    return values;
  }
};

// Pains: offsets, pitches and sizes past 2^31 or 2^32 that somebody keeps in 32 bits.
TEST(Cases, BIG_01_OffsetsPastFourGibibytes) {
  const Large large;
  const Kernel put = large.device.compile(kSource, {.kernels = {"put"}}).kernel("put");
  // Where a cut offset would lead to; fresh memory may hold anything.
  large.stream.fill(large.memory.subview(0, 4096), std::uint8_t{0});
  large.stream.fill(large.memory.subview(4 * kGiB, 4096), std::uint8_t{0});
  large.stream.fill(large.memory.subview(4 * kGiB + 100, 4), std::uint8_t{9});
  large.stream.copy(large.memory.subview(2 * kGiB + 3, 4), large.memory.subview(4 * kGiB + 100, 4));
  large.stream.launch(put, {.grid = 1, .block = 4}, large.memory,
                      static_cast<unsigned long long>(4 * kGiB + 200), 1);
  EXPECT_EQ(large.read(4 * kGiB + 99, 6), (std::vector<std::uint8_t>{0, 9, 9, 9, 9, 0}));
  EXPECT_EQ(large.read(2 * kGiB + 3, 4), std::vector<std::uint8_t>(4, 9));
  EXPECT_EQ(large.read(4 * kGiB + 200, 4), (std::vector<std::uint8_t>{1, 2, 3, 4}));
  EXPECT_EQ(large.read(100, 4), std::vector<std::uint8_t>(4, 0)) << "offset cut to 32 bits";
  EXPECT_EQ(large.read(200, 4), std::vector<std::uint8_t>(4, 0)) << "index cut to 32 bits";

  EXPECT_EQ(large.read(24, 1)[0], 0);

  // Rows a GiB apart.
  FillRegion rows;
  rows.destination = large.memory.data() + 8;
  rows.extent = {16, 5, 1};
  rows.pitch = kGiB;
  rows.value = 5;
  rows.value_size = 1;
  large.stream.fill(rows);
  for (std::uint64_t row = 0; row < 5; ++row) {
    EXPECT_EQ(large.read(row * kGiB + 8, 16), std::vector<std::uint8_t>(16, 5)) << "row " << row;
  }
}

TEST(Cases, BIG_01_SizesPastFourGibibytes) {
  if (sanitized()) GTEST_SKIP() << "checking each of 4 GiB takes a sanitizer a minute";
  const Large large;
  const std::uint64_t free_bytes = large.device.memory_info().free_bytes;
  if (free_bytes < 2 * kBytes) {
    GTEST_SKIP() << "needs " << 2 * kBytes << " bytes of memory, " << free_bytes << " are free";
  }
  LaunchTrace trace;
  large.stream.fill(large.memory, std::uint8_t{7});
  large.stream.synchronize();
  const std::vector<LaunchTraceEntry> entries = trace.take();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].memset_byte_size, kBytes);
  EXPECT_EQ(entries[0].extent, (Extent{kBytes, 1, 1}));
  EXPECT_EQ(to_json(entries[0]).find("\"bytes\":" + std::to_string(kBytes)) == std::string::npos,
            false);
  for (const std::uint64_t offset : {std::uint64_t{0}, 2 * kGiB, 4 * kGiB - 1, kBytes - 1}) {
    EXPECT_EQ(large.read(offset, 1)[0], 7) << offset;
  }
}

}  // namespace
}  // namespace lockstep::testing
