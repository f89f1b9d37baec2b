// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "framework/case.h"

namespace conformance {

void add_memory_cases() {
  for (const std::size_t count : {1u, 7u, 4096u, 1u << 20}) {
    add_rule_case("memory.device_holds_" + std::to_string(count) + "_words",
                  [count](const Environment& env) {
                    std::vector<std::uint32_t> values(count);
                    for (std::size_t i = 0; i < count; ++i)
                      values[i] = static_cast<std::uint32_t>(i * 2654435761u);
                    const auto buffer = make_buffer(env.device(), values);
                    expect_equal(read(*buffer), values, "word");
                  });
  }

  add_rule_case("memory.empty_buffer", [](const Environment& env) {
    const auto buffer = env.device().allocate<int>(0);
    expect(buffer.empty(), "a buffer of 0 elements is empty");
    const ls::Stream stream = env.device().create_stream();
    stream.fill(buffer, 1);
    stream.synchronize();
  });

  add_rule_case("memory.size_overflow_is_refused", [](const Environment& env) {
    expect_error(ls::ErrorCode::kInvalidArgument, "2^63 doubles",
                 [&] { (void)env.device().allocate<double>(std::size_t{1} << 63); });
  });

  add_rule_case("memory.too_much_is_out_of_memory", [](const Environment& env) {
    const std::size_t words = (std::size_t{1} << 50) / sizeof(int);
    expect_error(ls::ErrorCode::kOutOfMemory, "2^50 bytes",
                 [&] { (void)env.device().allocate<int>(words); });
    const auto after = env.device().allocate<int>(16);  // the failure left the device usable
    expect_equal(after.size(), 16u, "elements after the failure");
  });

  add_rule_case("memory.pinned_is_host_memory", [](const Environment& env) {
    const auto pinned = env.device().allocate_pinned<int>(64);
    const auto device = env.device().allocate<int>(64);
    for (int i = 0; i < 64; ++i) pinned.span()[static_cast<std::size_t>(i)] = 3 * i;
    const ls::Stream stream = env.device().create_stream();
    stream.copy(device, pinned);
    stream.fill(pinned, 0);
    stream.copy(pinned, device);
    stream.synchronize();
    for (int i = 0; i < 64; ++i)
      expect_equal(pinned.span()[static_cast<std::size_t>(i)], 3 * i, "pinned value");
  });

  add_rule_case("memory.pointer_info_tells_kinds", [](const Environment& env) {
    const auto device = env.device().allocate<char>(1000);
    const auto pinned = env.device().allocate_pinned<char>(1000);
    std::vector<char> pageable(1000);
    const auto inside = env.device().pointer_info(device.data() + 999);
    expect(inside.kind == ls::MemoryKind::kDevice,
           "the last byte of a device buffer is device memory");
    expect_equal(inside.base, reinterpret_cast<std::uintptr_t>(device.data()),
                 "base of an inner pointer");
    expect_equal(inside.device, env.device().ordinal(), "device of a device pointer");
    expect(env.device().pointer_info(pinned.data() + 1).kind == ls::MemoryKind::kPinned,
           "pinned memory is known");
    expect(env.device().pointer_info(pageable.data()).kind == ls::MemoryKind::kUnknown,
           "pageable memory is unknown");
  });

  add_rule_case("memory.registered_is_pinned", [](const Environment& env) {
    std::vector<int> values(4096, 5);
    {
      const auto registered = env.device().register_host<int>(values);
      expect(env.device().pointer_info(values.data()).kind == ls::MemoryKind::kPinned,
             "registered memory is pinned");
      const auto device = env.device().allocate<int>(values.size());
      const ls::Stream stream = env.device().create_stream();
      stream.copy(device, registered);
      stream.synchronize();
      expect_equal(read(device), values, "value");
    }
    expect(env.device().pointer_info(values.data()).kind == ls::MemoryKind::kUnknown,
           "unregistered memory is pageable again");
  });

  add_rule_case("memory.view_keeps_memory", [](const Environment& env) {
    ls::BufferView<int> view;
    {
      const auto buffer = env.device().allocate<int>(128);
      write(buffer, std::vector<int>(128, 9));
      view = buffer.subview(64, 64);
    }
    expect_equal(read(view), std::vector<int>(64, 9), "value after the owner went");
  });

  add_rule_case("memory.subview_bounds", [](const Environment& env) {
    const auto buffer = env.device().allocate<int>(10);
    expect_equal(buffer.subview(10, 0).size(), 0u, "an empty view at the end");
    expect_error(ls::ErrorCode::kInvalidArgument, "subview(5, 6) of 10",
                 [&] { (void)buffer.subview(5, 6); });
    expect_error(ls::ErrorCode::kInvalidArgument, "a count that wraps",
                 [&] { (void)buffer.subview(1, std::numeric_limits<std::size_t>::max()); });
  });

  add_rule_case("memory.device_span_is_refused", [](const Environment& env) {
    const auto buffer = env.device().allocate<int>(10);
    expect_error(ls::ErrorCode::kInvalidArgument, "span() of device memory",
                 [&] { (void)buffer.span(); });
  });

  add_rule_case("memory.stream_ordered", [](const Environment& env) {
    env.require_kernels();
    const ls::Stream stream = env.device().create_stream();
    std::vector<int> out(256);
    {
      const auto buffer = env.device().allocate_async<int>(256, stream);
      stream.launch(env.kernel("fill_index"), {.grid = 1, .block = 256}, buffer, 256);
      stream.copy(out, buffer);
    }  // freed in stream order, behind the copy
    stream.synchronize();
    for (int i = 0; i < 256; ++i) expect_equal(out[static_cast<std::size_t>(i)], i, "value");
  });

  add_rule_case("memory.many_allocations_are_apart", [](const Environment& env) {
    std::vector<std::shared_ptr<ls::Buffer<int>>> buffers;
    for (int i = 0; i < 200; ++i)
      buffers.push_back(make_buffer(env.device(), std::vector<int>(17, i)));
    for (int i = 0; i < 200; i += 2) buffers[static_cast<std::size_t>(i)].reset();
    for (int i = 1; i < 200; i += 2) {
      expect_equal(read(*buffers[static_cast<std::size_t>(i)]), std::vector<int>(17, i), "value");
    }
  });

  add_rule_case("memory.info_is_plausible", [](const Environment& env) {
    const auto info = env.device().memory_info();
    expect(info.total_bytes > 0 && info.free_bytes <= info.total_bytes,
           "free is at most total, total is not 0");
  });
}

}  // namespace conformance
