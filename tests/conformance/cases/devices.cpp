// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backend.h>

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

// What the makers of an architecture say; a processor has no warps. Nothing is known of others.
std::optional<std::int64_t> warp_size_of(const std::string& arch) {
  if (arch.rfind("gfx9", 0) == 0) return 64;
  if (arch.rfind("gfx1", 0) == 0 || arch.rfind("sm_", 0) == 0) return 32;
  return arch == "x86_64" ? std::optional<std::int64_t>(1) : std::nullopt;
}

ls::Trace trace_of_block(const Environment& env, std::uint32_t block) {
  const ls::Kernel fill = env.kernel("fill_index"), count = env.kernel("count_threads");
  const ls::Stream stream = env.device().create_stream();
  const auto values = env.device().allocate<int>(64);
  const auto counter = env.device().allocate<unsigned int>(1);
  std::vector<unsigned int> counted(1);
  ls::LaunchTrace trace;
  stream.fill(counter, 0U);
  stream.launch(fill, {.grid = 2, .block = 32}, values, 64);
  stream.launch(count, {.grid = 2, .block = block}, counter);
  stream.launch(fill, {.grid = 1, .block = 64}, values, 64);
  stream.copy_and_wait(counted, counter);
  expect_equal(counted[0], 2 * block, "threads that ran");
  return trace.trace();
}

// A program ported from warps of 32 derives its block from the width: the two traces differ in the
// one record, by its block, and in nothing else.
void warp_size_is_told(const Environment& env) {
  env.require_kernels();
  const auto warp = env.device().attribute(LOCKSTEP_ATTR_WARP_SIZE);
  expect(warp.has_value() && (*warp == 1 || *warp == 32 || *warp == 64), "1, 32 or 64 threads");
  expect_equal(*warp, warp_size_of(env.device().arch()).value_or(*warp),
               "warp size of " + env.device().arch());
  // A kernel that strides by its own warpSize has to mean the same.
  const ls::Kernel told =
      env.device()
          .compile("extern \"C\" __global__ void told(int* out) { *out = warpSize; }",
                   {.kernels = {"told"}})
          .kernel("told");
  const ls::Stream stream = env.device().create_stream();
  const auto out = env.device().allocate<int>(1);
  std::vector<int> seen(1);
  stream.launch(told, {.grid = 1, .block = 1}, out);
  stream.copy_and_wait(seen, out);
  expect_equal(static_cast<std::int64_t>(seen[0]), *warp, "warpSize of kernels");
  const auto block = static_cast<std::uint32_t>(4 * *warp);
  const std::uint32_t other = *warp == 32 ? 256 : 128;
  const ls::Trace left = trace_of_block(env, other), right = trace_of_block(env, block);
  const ls::DiffReport report = ls::diff(left, right);
  expect(!report.equal && report.matched + 1 == report.left_entries &&
             report.left_entries == report.right_entries && report.changes.size() == 1,
         "blocks of " + std::to_string(other) + " and " + std::to_string(block) +
             " are one difference");
  const std::string text = ls::to_text(report, ls::view(left), ls::view(right));
  for (const std::uint32_t threads : {other, block}) {
    const std::string words = "2×1×1 / " + std::to_string(threads) + "×1×1";
    const std::size_t at = text.find(words);
    expect(at != text.npos && text.find(words, at + 1) == text.npos,
           "the record is shown as " + words + ":\n" + text);
  }
}

}  // namespace

void add_device_cases() {
  add_rule_case("device.describes_itself", [](const Environment& env) {
    const ls::Device& device = env.device();
    expect(!device.name().empty() && !device.arch().empty(),
           "a device has a name and an architecture");
    expect(device.memory_bytes() > 0, "a device has memory");
    expect_equal(device.simulated(), device.name().rfind("SIMULATED ", 0) == 0,
                 "simulated devices say so in their name");
    expect_equal(device.id(), device.backend() + ":" + std::to_string(device.ordinal()), "id");
    expect(ls::Device::open(device.id()) == device, "opening it by its id gives the same device");
  });

  add_rule_case("PORT_01.warp_size_is_told_and_a_block_made_of_it_is_one_difference",
                warp_size_is_told);

  add_rule_case("device.unknown_attribute_is_absent", [](const Environment& env) {
    expect(!env.device().attribute(99999).has_value(),
           "an attribute that does not exist has no value");
  });

  add_rule_case("device.ordinal_out_of_range_is_refused", [](const Environment& env) {
    try {
      (void)ls::Device::open(env.device().backend() + ":4095");
    } catch (const ls::Error& error) {
      expect(error.code() == ls::ErrorCode::kUnavailable ||
                 error.code() == ls::ErrorCode::kInvalidArgument,
             "unavailable or invalid argument");
      expect(std::string(error.what()).find("4095") != std::string::npos,
             "the message names the ordinal");
      return;
    }
    fail("device 4095 was opened");
  });

  add_rule_case("device.objects_of_another_device_are_refused", [](const Environment& env) {
    const ls::Device& second = env.second_device();
    const auto value = second.allocate<int>(1);
    const ls::Stream stream = second.create_stream();
    expect_error(
        ls::ErrorCode::kInvalidArgument, "a kernel of device 0 on a stream of device 1", [&] {
          stream.launch(env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, value, 1, 1);
        });
  });

  add_rule_case("device.second_device_works", [](const Environment& env) {
    const ls::Device& second = env.second_device();
    const auto value = make_buffer(second, std::vector<int>{1});
    const ls::Stream stream = second.create_stream();
    ls::LaunchTrace trace;
    stream.launch(env.kernel("add_constant<int>", second), {.grid = 1, .block = 1}, *value, 2, 1);
    stream.synchronize();
    const auto entries = trace.take();
    expect_equal(read(*value), std::vector<int>{3}, "value");
    expect_equal(entries.at(0).device, second.ordinal(), "device of the entry");
  });

  add_rule_case("device.work_on_two_devices_at_once", [](const Environment& env) {
    const ls::Device& second = env.second_device();
    const auto a = make_buffer(env.device(), std::vector<int>{0}),
               b = make_buffer(second, std::vector<int>{0});
    const ls::Stream first_stream = env.device().create_stream(),
                     second_stream = second.create_stream();
    for (int i = 0; i < 100; ++i) {
      first_stream.launch(env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, *a, 1, 1);
      second_stream.launch(env.kernel("add_constant<int>", second), {.grid = 1, .block = 1}, *b, 2,
                           1);
    }
    first_stream.synchronize();
    second_stream.synchronize();
    expect_equal(read(*a), std::vector<int>{100}, "value of the first device");
    expect_equal(read(*b), std::vector<int>{200}, "value of the second device");
  });

  // MEM-09: a peer copy waits for the work of its source that it was ordered behind.
  add_rule_case("MEM_09.peer_copy", [](const Environment& env) {
    const ls::Device& second = env.second_device();
    if (env.device().can_access_peer(second)) env.device().enable_peer_access(second);
    if (second.can_access_peer(env.device())) second.enable_peer_access(env.device());
    const auto source = make_buffer(env.device(), std::vector<int>{0});
    const auto destination = make_buffer(second, std::vector<int>{0});
    const ls::Stream writer = env.device().create_stream(), copier = second.create_stream();
    const ls::Event written = env.device().create_event();
    for (int round = 1; round <= 100; ++round) {
      writer.launch(env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *source, round, 100000);
      writer.record(written);
      copier.wait(written);
      ls::LaunchTrace trace;
      copier.copy(*destination, *source);
      copier.synchronize();
      expect_equal(read(*destination), std::vector<int>{round}, "value on the second device");
      const auto entries = trace.take();
      expect(entries.at(0).memcpy_kind == ls::MemcpyKind::kDtoD &&
                 entries.at(0).device == env.device().ordinal() &&
                 entries.at(0).peer_device == second.ordinal(),
             "one peer copy with both devices: " + ls::to_string(entries.at(0)));
    }
  });

  add_rule_case("capture.forks_to_another_device", [](const Environment& env) {
    const ls::Device& second = env.second_device();
    const auto a = make_buffer(env.device(), std::vector<int>{0}),
               b = make_buffer(second, std::vector<int>{0});
    const ls::Kernel add = env.kernel("add_constant<int>"),
                     add_there = env.kernel("add_constant<int>", second);
    ls::Stream here = env.device().create_stream(), there = second.create_stream();
    const ls::Event forked = env.device().create_event(), joined = second.create_event();
    const ls::Graph graph = here.capture([&](ls::StreamRef& s) {
      s.launch(add, {.grid = 1, .block = 1}, *a, 1, 1);
      s.record(forked);
      there.wait(forked);
      there.launch(add_there, {.grid = 1, .block = 1}, *b, 2, 1);
      there.record(joined);
      s.wait(joined);
      s.launch(add, {.grid = 1, .block = 1}, *a, 4, 1);
    });
    using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
    expect_equal(graph.node_count(), 3u, "nodes on both devices");
    expect(graph.edges() == Edges{{0, 1}, {0, 2}, {1, 2}} || graph.edges() == Edges{{0, 1}, {1, 2}},
           "the other device's kernel is between those of the first");
    expect_equal(read(*b), std::vector<int>{0}, "nothing ran at capture");
    const ls::GraphExec exec = graph.instantiate();
    for (int replay = 1; replay <= 3; ++replay) {
      exec.launch(here);
      here.synchronize();
      expect_equal(read(*a), std::vector<int>{5 * replay}, "value of the first device");
      expect_equal(read(*b), std::vector<int>{2 * replay}, "value of the second device");
    }
    there.launch(add_there, {.grid = 1, .block = 1}, *b, 1, 1);
    there.synchronize();  // usable again
  });

  add_rule_case("capture.copies_to_another_device", [](const Environment& env) {
    const ls::Device& second = env.second_device();
    if (env.device().can_access_peer(second)) env.device().enable_peer_access(second);
    if (second.can_access_peer(env.device())) second.enable_peer_access(env.device());
    const auto source = make_buffer(env.device(), std::vector<int>{0});
    const auto destination = make_buffer(second, std::vector<int>{0});
    const ls::Kernel add = env.kernel("add_constant<int>");
    ls::Stream stream = env.device().create_stream();
    const ls::GraphExec exec = stream
                                   .capture([&](ls::StreamRef& s) {
                                     s.launch(add, {.grid = 1, .block = 1}, *source, 3, 1);
                                     s.copy(*destination, *source);
                                   })
                                   .instantiate();
    for (int replay = 1; replay <= 3; ++replay) {
      exec.launch(stream);
      stream.synchronize();
      expect_equal(read(*destination), std::vector<int>{3 * replay}, "value on the second device");
    }
  });

  add_rule_case("capture.one_a_device_at_once", [](const Environment& env) {
    const ls::Device& second = env.second_device();
    const auto a = make_buffer(env.device(), std::vector<int>{0}),
               b = make_buffer(second, std::vector<int>{0});
    const ls::Kernel add = env.kernel("add_constant<int>"),
                     add_there = env.kernel("add_constant<int>", second);
    ls::Stream here = env.device().create_stream(), there = second.create_stream();
    here.begin_capture();
    there.begin_capture();
    for (int i = 0; i < 4; ++i) {
      here.launch(add, {.grid = 1, .block = 1}, *a, 1, 1);
      there.launch(add_there, {.grid = 1, .block = 1}, *b, 2, 1);
    }
    const ls::Graph first = here.end_capture(), other = there.end_capture();
    expect_equal(first.node_count(), 4u, "nodes of the first device's graph");
    expect_equal(other.node_count(), 4u, "nodes of the second device's graph");
    first.instantiate().launch(here);
    other.instantiate().launch(there);
    here.synchronize();
    there.synchronize();
    expect_equal(read(*a), std::vector<int>{4}, "value of the first device");
    expect_equal(read(*b), std::vector<int>{8}, "value of the second device");
  });

  add_rule_case("device.many_threads", [](const Environment& env) {
    env.require_kernels();
    std::vector<std::thread> threads;
    std::vector<std::string> errors(8);
    for (std::size_t t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        try {
          const auto value = make_buffer(env.device(), std::vector<int>{0});
          const ls::Stream stream = env.device().create_stream();
          for (int i = 0; i < 100; ++i) {
            stream.launch(env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, *value, 1, 1);
          }
          stream.synchronize();
          expect_equal(read(*value), std::vector<int>{100}, "value");
        } catch (const std::exception& error) {
          errors[t] = error.what();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    for (const std::string& error : errors) expect_equal(error, std::string(), "error of a thread");
  });
}

}  // namespace conformance
