// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

template <typename T>
void add_plain_set(const std::string& name, T value, std::size_t count) {
  add_work_case("set." + name, [value, count](const Environment& env) {
    auto buffer = make_buffer(env.device(), std::vector<T>(count + 2, T{1}));
    return Work{[=](ls::Stream& stream) { stream.fill(buffer->subview(1, count), value); },
                [=] {
                  std::vector<T> expected(count + 2, value);
                  expected.front() = expected.back() = T{1};
                  expect_equal(read(*buffer), expected, "element");
                },
                [=] { write(*buffer, std::vector<T>(count + 2, T{1})); }};
  });
}

}  // namespace

void add_set_cases() {
  add_plain_set<std::uint8_t>("bytes_1", 0x5A, 1);
  add_plain_set<std::uint8_t>("bytes_4099", 0xFF, 4099);
  add_plain_set<std::uint16_t>("halves_1001", 0xBEEF, 1001);
  add_plain_set<std::uint32_t>("words_100003", 0xDEADBEEFu, 100003);
  add_plain_set<float>("floats", 1.5f, 777);

  // MEM-01: a 3-D set smaller than the pitch touches what it says and nothing else.
  add_work_case("MEM_01.set_3d_inside_a_pitch", [](const Environment& env) {
    std::vector<int> values(64);
    for (int i = 0; i < 64; ++i)
      values[static_cast<std::size_t>(i)] = (i / 16) * 16 + ((i / 4) % 4) * 4 + i % 4 + 1;
    auto buffer = make_buffer(env.device(), values);
    return Work{[=](ls::Stream& stream) {
                  ls::FillRegion region;
                  region.destination = buffer->data();
                  region.extent = {3, 3, 4};
                  region.pitch = 16;
                  region.slice_pitch = 64;
                  region.value = 0;
                  region.value_size = 4;
                  stream.fill(region);
                },
                [=] {
                  const std::vector<int> result = read(*buffer);
                  std::size_t zeros = 0;
                  for (std::size_t i = 0; i < 64; ++i) {
                    const bool inside = i % 4 < 3 && (i / 4) % 4 < 3;
                    expect_equal(result[i], inside ? 0 : values[i], "cell " + std::to_string(i));
                    zeros += result[i] == 0 ? 1u : 0u;
                  }
                  expect_equal(zeros, 36u, "zeros");
                },
                [=] { write(*buffer, values); }};
  });

  add_rule_case("MEM_01.one_entry_a_plane", [](const Environment& env) {
    const auto buffer = env.device().allocate<int>(64);
    const ls::Stream stream = env.device().create_stream();
    ls::FillRegion region;
    region.destination = buffer.data();
    region.extent = {3, 3, 4};
    region.pitch = 16;
    region.slice_pitch = 64;
    region.value_size = 4;
    ls::LaunchTrace trace;
    stream.fill(region);
    const auto entries = trace.take();
    expect_equal(entries.size(), 4u, "entries");
    for (const auto& entry : entries) {
      expect(entry.kind == ls::OperationKind::kMemset, "each entry is a set");
      expect(entry.extent == ls::Extent{12, 3, 1}, "each plane is 12 bytes wide and 3 rows high");
      expect_equal(entry.memset_byte_size, 36u, "bytes a plane");
    }
  });

  // MEM-03: values are masked to their size; a misaligned word set writes nothing.
  add_rule_case("MEM_03.widths_and_alignment", [](const Environment& env) {
    const auto buffer = make_buffer(env.device(), std::vector<std::uint8_t>(32, 0x77));
    const ls::Stream stream = env.device().create_stream();
    ls::FillRegion region;
    region.destination = buffer->data();
    region.extent = {7, 1, 1};
    region.value = 1;
    region.value_size = 1;
    ls::LaunchTrace trace;
    stream.fill(region);
    region.destination = buffer->data() + 8;
    region.extent = {4, 1, 1};
    region.value = 0x1FF;
    stream.fill(region);
    region.destination = buffer->data() + 16;
    region.extent = {2, 1, 1};
    region.value = 1;
    region.value_size = 4;
    stream.fill(region);
    region.destination = buffer->data() + 26;
    region.extent = {1, 1, 1};
    expect_error(ls::ErrorCode::kInvalidArgument, "a word set at offset 26",
                 [&] { stream.fill(region); });
    stream.synchronize();
    std::vector<std::uint8_t> expected(32, 0x77);
    for (int i = 0; i < 7; ++i) expected[static_cast<std::size_t>(i)] = 1;
    for (int i = 8; i < 12; ++i) expected[static_cast<std::size_t>(i)] = 0xFF;
    for (int i = 16; i < 24; ++i) expected[static_cast<std::size_t>(i)] = i % 4 == 0 ? 1 : 0;
    expect_equal(read(*buffer), expected, "byte");
    const auto entries = trace.take();
    expect(entries.size() >= 3, "three sets are recorded");
    expect_equal(entries.at(1).memset_value, 0xFFu, "value masked to a byte");
    expect_equal(entries.at(1).memset_value_size, 1u, "value size");
    expect_equal(entries.at(2).memset_byte_size, 8u, "bytes of two words");
    expect_equal(entries.at(2).memset_value_size, 4u, "value size");
  });

  // Rows that begin and end anywhere: releases of AMD's runtime write behind the end of short ones.
  add_rule_case("set.short_rows_of_every_alignment", [](const Environment& env) {
    constexpr std::size_t kRegion = 64, kRows = 4;
    struct Shape {
      std::size_t offset, unit, width, pitch;
    };
    std::vector<Shape> shapes;
    for (const std::size_t unit : {1U, 2U, 4U}) {
      for (std::size_t offset = 0; offset < 8; offset += unit) {
        for (std::size_t width = 1; width <= 3; ++width) {
          shapes.push_back({offset, unit, width, width * unit});  // contiguous
          shapes.push_back({offset, unit, width, (width + 1) * unit});
        }
      }
    }
    const auto buffer =
        make_buffer(env.device(), std::vector<std::uint8_t>(kRegion * shapes.size(), 0x77));
    std::vector<std::uint8_t> expected(kRegion * shapes.size(), 0x77);
    const ls::Stream stream = env.device().create_stream();
    constexpr std::uint32_t kValue = 0x44332211;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Shape& shape = shapes[i];
      ls::FillRegion region;
      region.destination = buffer->data() + i * kRegion + shape.offset;
      region.extent = {shape.width, kRows, 1};
      region.pitch = shape.pitch;
      region.value = kValue;
      region.value_size = static_cast<std::uint32_t>(shape.unit);
      stream.fill(region);
      for (std::size_t byte = 0; byte < kRows * shape.width * shape.unit; ++byte) {
        const std::size_t row = byte / (shape.width * shape.unit);
        const std::size_t column = byte % (shape.width * shape.unit);
        expected[i * kRegion + shape.offset + row * shape.pitch + column] =
            static_cast<std::uint8_t>(kValue >> (8 * (column % shape.unit)));
      }
    }
    stream.synchronize();
    expect_equal(read(*buffer), expected, "byte");
  });

  add_rule_case("set.pitch_below_width_is_refused", [](const Environment& env) {
    const auto buffer = env.device().allocate<int>(1024);
    const ls::Stream stream = env.device().create_stream();
    ls::FillRegion region;
    region.destination = buffer.data();
    region.extent = {16, 4, 1};
    region.pitch = 32;
    region.value_size = 4;
    expect_error(ls::ErrorCode::kInvalidArgument, "pitch 32 under width 64",
                 [&] { stream.fill(region); });
    region.pitch = 0;
    region.extent = {(std::uint64_t{1} << 62) + 1, 1, 1};  // 4 bytes where 64 bits are counted with
    expect_error(ls::ErrorCode::kInvalidArgument, "a row past the address space",
                 [&] { stream.fill(region); });
  });

  add_rule_case("set.value_size_is_checked", [](const Environment& env) {
    const auto buffer = env.device().allocate<int>(16);
    const ls::Stream stream = env.device().create_stream();
    ls::FillRegion region;
    region.destination = buffer.data();
    region.extent = {1, 1, 1};
    region.value_size = 3;
    expect_error(ls::ErrorCode::kInvalidArgument, "value size 3", [&] { stream.fill(region); });
  });

  add_rule_case("set.equal_patterns_are_equal", [](const Environment& env) {
    const auto buffer = env.device().allocate<std::uint32_t>(64);
    const ls::Stream stream = env.device().create_stream();
    ls::LaunchTrace trace;
    stream.fill(buffer, 0u);
    ls::FillRegion region;
    region.destination = buffer.data();
    region.extent = {256, 1, 1};
    region.value_size = 1;
    stream.fill(region);
    const auto entries = trace.take();
    expect_equal(entries.size(), 2u, "entries");
    expect_equal(entries.at(0).semantic_hash, entries.at(1).semantic_hash,
                 "hash of a 32-bit and an 8-bit zero set");
  });
}

}  // namespace conformance
