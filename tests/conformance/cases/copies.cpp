// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

std::vector<std::uint8_t> pattern(std::size_t count, unsigned seed) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::uint8_t>((i * 7 + seed * 13 + i / 251) & 0xFF);
  return bytes;
}

/// Device to device of `count` bytes at odd offsets, so that no alignment helps.
Work device_copy(const Environment& env, std::size_t count) {
  auto from = make_buffer(env.device(), pattern(count + 3, 1));
  auto to = make_buffer(env.device(), std::vector<std::uint8_t>(count + 5, 0xEE));
  return {[=](ls::Stream& stream) { stream.copy(to->subview(5, count), from->subview(3, count)); },
          [=] {
            std::vector<std::uint8_t> expected(5, 0xEE);
            const auto source = pattern(count + 3, 1);
            expected.insert(expected.end(), source.begin() + 3, source.end());
            expect_equal(read(*to), expected, "byte");
          },
          [=] { write(*to, std::vector<std::uint8_t>(count + 5, 0xEE)); }};
}

/// A window of rows × planes out of a pitched volume into another with other pitches.
Work region_copy(const Environment& env, ls::Extent extent) {
  constexpr std::uint64_t source_pitch = 40, source_slice = 40 * 7, pitch = 56, slice = 56 * 5;
  auto from = make_buffer(env.device(), pattern(source_slice * 4, 2));
  auto to = make_buffer(env.device(), std::vector<std::uint8_t>(slice * 4, 0xAA));
  return {[=](ls::Stream& stream) {
            ls::CopyRegion region;
            region.source = from->data();
            region.destination = to->data();
            region.extent = extent;
            region.source_pitch = source_pitch;
            region.source_slice_pitch = source_slice;
            region.destination_pitch = pitch;
            region.destination_slice_pitch = slice;
            stream.copy(region);
          },
          [=] {
            const auto source = pattern(source_slice * 4, 2);
            std::vector<std::uint8_t> expected(slice * 4, 0xAA);
            for (std::uint64_t z = 0; z < extent.depth; ++z) {
              for (std::uint64_t y = 0; y < extent.height; ++y) {
                for (std::uint64_t x = 0; x < extent.width; ++x) {
                  expected[z * slice + y * pitch + x] =
                      source[z * source_slice + y * source_pitch + x];
                }
              }
            }
            expect_equal(read(*to), expected, "byte");
          },
          [=] { write(*to, std::vector<std::uint8_t>(slice * 4, 0xAA)); }};
}

}  // namespace

void add_copy_cases() {
  for (const std::size_t count : {1u, 13u, 4097u, 3u << 20}) {
    add_work_case("copy.device_to_device_" + std::to_string(count),
                  [count](const Environment& env) { return device_copy(env, count); });
  }
  add_work_case("copy.rows", [](const Environment& env) { return region_copy(env, {23, 4, 1}); });
  add_work_case("copy.planes", [](const Environment& env) { return region_copy(env, {17, 3, 4}); });
  add_work_case("copy.one_row", [](const Environment& env) {
    return region_copy(env, {40, 1, 1});
  });

  add_work_case("copy.pinned_up_and_down", [](const Environment& env) {
    auto up = std::make_shared<ls::Buffer<int>>(env.device().allocate_pinned<int>(1000));
    auto down = std::make_shared<ls::Buffer<int>>(env.device().allocate_pinned<int>(1000));
    auto device = std::make_shared<ls::Buffer<int>>(env.device().allocate<int>(1000));
    std::iota(up->span().begin(), up->span().end(), 100);
    return Work{[=](ls::Stream& stream) {
                  stream.copy(*device, *up);
                  stream.copy(*down, *device);
                },
                [=] {
                  for (std::size_t i = 0; i < 1000; ++i) {
                    expect_equal(down->span()[i], static_cast<int>(100 + i), "value");
                  }
                },
                [=] { std::fill(down->span().begin(), down->span().end(), -1); }};
  });

  add_work_case("copy.pageable_source", [](const Environment& env) {
    auto values = std::make_shared<std::vector<int>>(5000);
    std::iota(values->begin(), values->end(), -17);
    auto device = std::make_shared<ls::Buffer<int>>(env.device().allocate<int>(values->size()));
    return Work{[=](ls::Stream& stream) { stream.copy(*device, *values); },
                [=] { expect_equal(read(*device), *values, "value"); },
                [=] { write(*device, std::vector<int>(values->size(), 0)); }};
  });

  // MEM-05: copies and sets of nothing succeed, do nothing, and make no node.
  add_work_case("MEM_05.zero_sizes", [](const Environment& env) {
    auto a = make_buffer(env.device(), std::vector<int>(8, 1));
    auto b = make_buffer(env.device(), std::vector<int>(8, 2));
    auto host = std::make_shared<std::vector<int>>(8, 3);
    return Work{[=](ls::Stream& stream) {
                  stream.copy(a->subview(0, 0), b->subview(0, 0));
                  stream.copy(a->subview(8, 0), b->subview(8, 0));
                  stream.fill(a->subview(3, 0), 7);
                  stream.copy(ls::CopyRegion{});  // null pointers
                  ls::CopyRegion nothing;         // each direction
                  const void* const sources[] = {host->data(), a->data()};
                  void* const destinations[] = {host->data() + 4, b->data()};
                  for (const void* source : sources) {
                    for (void* destination : destinations) {
                      nothing.source = source;
                      nothing.destination = destination;
                      nothing.extent = {0, 1, 1};
                      stream.copy(nothing);
                    }
                  }
                  stream.fill(ls::FillRegion{});
                  ls::CopyRegion rows;
                  rows.source = b->data();
                  rows.destination = a->data();
                  rows.extent = {4, 0, 1};  // no rows
                  rows.source_pitch = rows.destination_pitch = 8;
                  stream.copy(rows);
                },
                [=] {
                  expect_equal(read(*a), std::vector<int>(8, 1), "untouched value");
                  expect_equal(read(*b), std::vector<int>(8, 2), "untouched value");
                  expect_equal(*host, std::vector<int>(8, 3), "untouched host value");
                }};
  });

  add_rule_case("MEM_05.zero_sizes_are_recorded", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto buffer = env.device().allocate<int>(8);
    ls::LaunchTrace trace;
    stream.copy(buffer.subview(0, 0), buffer.subview(4, 0));
    stream.fill(buffer.subview(0, 0), 7);
    const ls::Trace recording = trace.trace();
    std::size_t empty = 0;
    for (const auto& entry : recording.entries) empty += entry.is_empty_operation() ? 1 : 0;
    expect_equal(empty, 2u, "empty entries recorded");
    expect_equal(ls::view(recording).size(), 0u, "entries of the executed view");
  });

  // MEM-07: the direction is that of the allocations; a declared one that disagrees is an error.
  add_rule_case("MEM_07.declared_direction_is_checked", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto device = env.device().allocate<int>(4);
    const auto pinned = env.device().allocate_pinned<int>(4);
    std::vector<int> pageable(4, 3);
    ls::CopyRegion region;
    region.source = pageable.data();
    region.destination = device.data();
    region.extent = {16, 1, 1};
    region.expected = ls::MemcpyKind::kDtoH;
    expect_error(ls::ErrorCode::kInvalidArgument, "HtoD declared as DtoH",
                 [&] { stream.copy(region); });
    region.expected = ls::MemcpyKind::kHtoD;
    stream.copy(region);
    region.destination = pinned.data();
    expect_error(ls::ErrorCode::kInvalidArgument, "HtoH declared as HtoD",
                 [&] { stream.copy(region); });
    region.expected = ls::MemcpyKind::kNone;
    ls::LaunchTrace trace;
    stream.copy(region);
    stream.synchronize();
    const auto entries = trace.take();
    expect_equal(entries.size(), 1u, "entries");
    expect(entries.at(0).memcpy_kind == ls::MemcpyKind::kHtoH, "a copy to pinned memory is HtoH");
  });

  add_rule_case("copy.past_the_end_is_refused", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto small = env.device().allocate<char>(100), large = env.device().allocate<char>(200);
    ls::CopyRegion region;
    region.source = large.data();
    region.destination = small.data();
    region.extent = {(std::uint64_t{1} << 40), 1, 1};
    expect_error(ls::ErrorCode::kInvalidArgument, "a copy past the end",
                 [&] { stream.copy(region); });
    const std::vector<char> pageable(64);
    for (const ls::Extent& extent : kPastTheAddressSpace) {
      region.extent = extent;
      for (const void* source :
           {static_cast<const void*>(large.data()), static_cast<const void*>(pageable.data())}) {
        region.source = source;
        expect_error(ls::ErrorCode::kInvalidArgument, "a copy past the address space",
                     [&] { stream.copy(region); });
      }
    }
    stream.synchronize();
  });

  add_rule_case("copy.counts_must_agree", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto buffer = env.device().allocate<int>(4);
    const std::vector<int> five(5);
    const ls::Error error = expect_error(ls::ErrorCode::kInvalidArgument, "5 into 4",
                                         [&] { stream.copy(buffer, five); });
    expect(std::string(error.what()).find("20") != std::string::npos,
           "the message names the sizes");
  });

  add_rule_case("copy.pitch_below_width_is_refused", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    const auto a = env.device().allocate<char>(4096), b = env.device().allocate<char>(4096);
    ls::CopyRegion region;
    region.source = a.data();
    region.destination = b.data();
    region.extent = {64, 4, 1};
    region.source_pitch = 32;
    region.destination_pitch = 64;
    expect_error(ls::ErrorCode::kInvalidArgument, "pitch 32 under width 64",
                 [&] { stream.copy(region); });
  });

  // REP-10: a blocking upload is seen by the next launch on any stream. The sizes of the report,
  // and the one at which NVIDIA's own blocking copy was stale most often.
  for (const std::size_t bytes :
       {std::size_t{64} << 10, std::size_t{256} << 10, std::size_t{1} << 20, std::size_t{1146880},
        std::size_t{64} << 20}) {
    add_rule_case(
        "REP_10.blocking_upload_" + std::to_string(bytes), [bytes](const Environment& env) {
          const std::size_t words = bytes / sizeof(std::uint32_t);
          const auto device = env.device().allocate<std::uint32_t>(words);
          const auto tail = env.device().allocate<std::uint32_t>(16);
          const ls::Stream upload = env.device().create_stream(),
                           reader = env.device().create_stream();
          std::vector<std::uint32_t> values(words);
          const std::uint32_t rounds = env.rounds(bytes > (1u << 24) ? 2 : 20, 200);
          for (std::uint32_t round = 1; round <= rounds; ++round) {
            std::fill(values.begin(), values.end(), round);
            upload.copy_and_wait(device, values);
            reader.launch(env.kernel("copy_words"), {.grid = 1, .block = 32},
                          device.subview(words - 16, 16), tail, 16);
            reader.synchronize();
            expect_equal(read(tail), std::vector<std::uint32_t>(16, round), "uploaded word");
          }
        });
  }
}

}  // namespace conformance
