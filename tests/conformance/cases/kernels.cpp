// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

struct CharAndInt {
  char c;
  int i;
};

std::uint16_t as_bits(float value, bool bfloat) {
  // Exact for the small values used here: no rounding is needed.
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (bfloat) return static_cast<std::uint16_t>(bits >> 16);
  if (bits == 0) return 0;
  const std::uint32_t sign = bits >> 31, exponent = ((bits >> 23) & 0xFF) - 127 + 15,
                      mantissa = (bits >> 13) & 0x3FF;
  return static_cast<std::uint16_t>(sign << 15 | exponent << 10 | mantissa);
}

Work tiled_product(const Environment& env, int n) {
  const auto size = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  std::vector<float> a(size), b(size), expected(size, 0.0f);
  for (std::size_t i = 0; i < size; ++i) {
    a[i] = static_cast<float>(i % 7);
    b[i] = static_cast<float>(i % 5);
  }
  const auto width = static_cast<std::size_t>(n);
  for (std::size_t row = 0; row < width; ++row) {
    for (std::size_t k = 0; k < width; ++k) {
      for (std::size_t column = 0; column < width; ++column) {
        expected[row * width + column] += a[row * width + k] * b[k * width + column];
      }
    }
  }
  auto device_a = make_buffer(env.device(), a), device_b = make_buffer(env.device(), b);
  auto device_c = make_buffer(env.device(), std::vector<float>(size, -1.0f));
  const ls::Kernel kernel = env.kernel("tiled_product");
  const auto blocks = static_cast<std::uint32_t>(n / 16);
  return {[=](ls::Stream& stream) {
            stream.launch(kernel, {.grid = {blocks, blocks}, .block = {16, 16}}, *device_a,
                          *device_b, *device_c, n);
          },
          [=] { expect_equal(read(*device_c), expected, "product"); },
          [=] { write(*device_c, std::vector<float>(size, -1.0f)); }};
}

/// Every thread of a 3-D launch finds its own coordinates.
Work coordinates(const Environment& env, ls::Dim3 grid, ls::Dim3 block) {
  const std::size_t threads = std::size_t{grid.x} * grid.y * grid.z * block.x * block.y * block.z;
  auto out = make_buffer(env.device(), std::vector<std::uint32_t>(6 * threads, 0xFFFFFFFFu));
  const ls::Kernel kernel = env.kernel("record_index");
  return {[=](ls::Stream& stream) { stream.launch(kernel, {.grid = grid, .block = block}, *out); },
          [=] {
            std::vector<std::uint32_t> expected;
            for (std::uint32_t bz = 0; bz < grid.z; ++bz)
              for (std::uint32_t by = 0; by < grid.y; ++by)
                for (std::uint32_t bx = 0; bx < grid.x; ++bx)
                  for (std::uint32_t tz = 0; tz < block.z; ++tz)
                    for (std::uint32_t ty = 0; ty < block.y; ++ty)
                      for (std::uint32_t tx = 0; tx < block.x; ++tx)
                        expected.insert(expected.end(), {bx, by, bz, tx, ty, tz});
            expect_equal(read(*out), expected, "coordinate");
          },
          [=] { write(*out, std::vector<std::uint32_t>(6 * threads, 0xFFFFFFFFu)); }};
}

Work reverse(const Environment& env, const char* name, std::uint32_t block,
             std::uint64_t shared_bytes) {
  const auto count = static_cast<int>(block);
  std::vector<int> values(block);
  std::iota(values.begin(), values.end(), 0);
  auto buffer = make_buffer(env.device(), values);
  const ls::Kernel kernel = env.kernel(name);
  return {[=](ls::Stream& stream) {
            stream.launch(kernel, {.grid = 1, .block = block, .shared_bytes = shared_bytes},
                          *buffer, count);
          },
          [=] {
            expect_equal(read(*buffer), std::vector<int>(values.rbegin(), values.rend()), "value");
          },
          [=] { write(*buffer, values); }};
}

}  // namespace

void add_kernel_cases() {
  add_work_case("kernel.saxpy", [](const Environment& env) {
    constexpr int n = 100001;
    std::vector<float> x(n), y(n, 1.0f), expected(n);
    for (int i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i % 1000);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 2.0f * x[i] + 1.0f;
    auto device_x = make_buffer(env.device(), x), device_y = make_buffer(env.device(), y);
    const ls::Kernel kernel = env.kernel("saxpy");
    return Work{[=](ls::Stream& stream) {
                  stream.launch(kernel, {.grid = (n + 255) / 256, .block = 256}, 2.0f, *device_x,
                                *device_y, n);
                },
                [=] { expect_equal(read(*device_y), expected, "value"); },
                [=] { write(*device_y, y); }};
  });
  add_work_case("kernel.coordinates_1d",
                [](const Environment& env) { return coordinates(env, {5}, {33}); });
  add_work_case("TRC_18.coordinates_3d", [](const Environment& env) {
    return coordinates(env, {2, 3, 4}, {8, 4, 2});
  });
  add_work_case("kernel.dynamic_shared_memory", [](const Environment& env) {
    return reverse(env, "dynamic_reverse", 200, 200 * sizeof(int));
  });
  add_work_case("kernel.static_shared_memory",
                [](const Environment& env) { return reverse(env, "static_reverse", 256, 0); });
  add_work_case("kernel.full_block", [](const Environment& env) {
    return reverse(env, "dynamic_reverse", env.device().limits().max_threads_per_block,
                   env.device().limits().max_threads_per_block * sizeof(int));
  });
  for (const int n : {16, 48, 128}) {
    add_work_case("kernel.tiled_product_" + std::to_string(n),
                  [n](const Environment& env) { return tiled_product(env, n); });
  }

  add_work_case("kernel.block_sums", [](const Environment& env) {
    std::vector<int> values(1000);
    std::iota(values.begin(), values.end(), 1);
    auto device = make_buffer(env.device(), values),
         sums = make_buffer(env.device(), std::vector<int>(8, -1));
    const ls::Kernel kernel = env.kernel("block_sum");
    return Work{[=](ls::Stream& stream) {
                  stream.launch(kernel, {.grid = 8, .block = 128}, *device, *sums, 1000);
                },
                [=] {
                  const std::vector<int> result = read(*sums);
                  expect_equal(std::accumulate(result.begin(), result.end(), 0), 500500,
                               "sum of all blocks");
                },
                [=] { write(*sums, std::vector<int>(8, -1)); }};
  });

  // REP-19: argument sizes, alignment and bytes survive, in a graph too.
  add_work_case("REP_19.argument_layout", [](const Environment& env) {
    auto out = make_buffer(env.device(), std::vector<float>(8, 0.0f));
    const ls::Kernel kernel = env.kernel("all_arguments");
    return Work{[=](ls::Stream& stream) {
                  stream.launch(kernel, {.grid = 1, .block = 1}, *out, 4000000u,
                                static_cast<unsigned char>(200), 0.5, CharAndInt{'A', -7}, true,
                                static_cast<short>(-300), 123456LL);
                },
                [=] {
                  expect_equal(read(*out),
                               std::vector<float>{4000000.0f, 200.0f, 0.5f, 65.0f, -7.0f, 1.0f,
                                                  -300.0f, 123456.0f},
                               "argument");
                },
                [=] { write(*out, std::vector<float>(8, 0.0f)); }};
  });

  add_rule_case("REP_19.hand_built_graph", [](const Environment& env) {
    const auto out = make_buffer(env.device(), std::vector<float>(8, 0.0f));
    const ls::Kernel kernel = env.kernel("all_arguments");
    ls::Graph graph = env.device().create_graph();
    const auto with_arguments = [&](const auto& add) {
      add(*out, 4000000u, static_cast<unsigned char>(200), 0.5, CharAndInt{'A', -7}, true,
          static_cast<short>(-300), 123456LL);
    };
    with_arguments([&](const auto&... arguments) {
      graph.add_kernel({}, kernel, {.grid = 1, .block = 1}, arguments...);
    });
    const ls::GraphExec exec = graph.instantiate();
    const ls::Stream stream = env.device().create_stream();
    ls::LaunchTrace trace;
    with_arguments([&](const auto&... arguments) {
      stream.launch(kernel, {.grid = 1, .block = 1}, arguments...);
    });
    stream.synchronize();
    const std::vector<float> eager = read(*out);
    write(*out, std::vector<float>(8, 0.0f));
    exec.launch(stream);
    stream.synchronize();
    expect_equal(read(*out), eager, "what replay wrote");
    expect_equal(eager.at(0), 4000000.0f, "a 32-bit argument");
    ls::ViewOptions kernels;
    kernels.kinds = {ls::OperationKind::kKernelLaunch};
    const auto entries = trace.take(kernels);
    expect_equal(entries.size(), 2u, "kernels");
    const std::vector<std::size_t> sizes = {8, 4, 1, 8, 8, 1, 2, 8};
    for (const auto& entry : entries) {
      expect_equal(entry.arguments.size(), sizes.size(), "arguments recorded");
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        expect_equal(std::size_t{entry.arguments[i].size}, sizes[i],
                     "bytes of argument " + std::to_string(i));
      }
    }
  });

  add_work_case("kernel.atomics", [](const Environment& env) {
    const std::vector<int> initial = {0, 1 << 30, -(1 << 30), 7, 0, 0};
    auto cells = make_buffer(env.device(), initial);
    const ls::Kernel kernel = env.kernel("atomics");
    return Work{
        [=](ls::Stream& stream) { stream.launch(kernel, {.grid = 16, .block = 64}, *cells); },
        [=] {
          expect_equal(read(*cells), std::vector<int>{1023 * 512, 0, 1023, 8, 99, 255}, "cell");
        },
        [=] { write(*cells, initial); }};
  });

  add_work_case("kernel.templates", [](const Environment& env) {
    auto a = make_buffer(env.device(), std::vector<float>(100, 2.0f));
    const ls::Kernel scale = env.kernel("scale<float, 3>"), add = env.kernel("add_constant<float>");
    return Work{[=](ls::Stream& stream) {
                  stream.launch(scale, {.grid = 1, .block = 128}, *a, 100);
                  stream.launch(add, {.grid = 1, .block = 128}, *a, 0.25f, 100);
                },
                [=] { expect_equal(read(*a), std::vector<float>(100, 6.25f), "value"); },
                [=] { write(*a, std::vector<float>(100, 2.0f)); }};
  });

  add_work_case("kernel.half_and_bfloat16", [](const Environment& env) {
    const std::vector<float> values = {0.0f, 0.5f, 1.0f, -2.0f, 96.0f};
    std::vector<std::uint16_t> half, bfloat;
    std::vector<float> expected;
    for (const float value : values) {
      half.push_back(as_bits(value, false));
      bfloat.push_back(as_bits(value, true));
      expected.push_back(2.0f * value);
    }
    auto a = make_buffer(env.device(), half), b = make_buffer(env.device(), bfloat);
    auto out = make_buffer(env.device(), std::vector<float>(values.size(), -1.0f));
    const ls::Kernel kernel = env.kernel("half_sum");
    return Work{[=](ls::Stream& stream) {
                  stream.launch(kernel, {.grid = 1, .block = 32}, *a, *b, *out,
                                static_cast<int>(values.size()));
                },
                [=] { expect_equal(read(*out), expected, "sum"); },
                [=] { write(*out, std::vector<float>(values.size(), -1.0f)); }};
  });

  add_work_case("kernel.constant_memory", [](const Environment& env) {
    auto out = make_buffer(env.device(), std::vector<int>(4, 0));
    const ls::Kernel kernel = env.kernel("read_constant");
    return Work{[=](ls::Stream& stream) { stream.launch(kernel, {.grid = 1, .block = 32}, *out); },
                [=] {
                  expect_equal(read(*out), std::vector<int>{11, 22, 33, 44}, "constant");
                },
                [=] { write(*out, std::vector<int>(4, 0)); }};
  });

  add_work_case("kernel.threads_may_leave_before_a_barrier", [](const Environment& env) {
    auto out = make_buffer(env.device(), std::vector<int>(64, 0));
    const ls::Kernel kernel = env.kernel("first_past_the_post");
    return Work{[=](ls::Stream& stream) { stream.launch(kernel, {.grid = 1, .block = 64}, *out); },
                [=] {
                  std::vector<int> expected(64, 0);
                  for (int i = 0; i < 48; ++i) expected[static_cast<std::size_t>(i)] = 5 + i;
                  expect_equal(read(*out), expected, "value");
                },
                [=] { write(*out, std::vector<int>(64, 0)); }};
  });

  add_rule_case("kernel.names_are_mangled", [](const Environment& env) {
    expect_equal(env.kernel("saxpy").name(), "_Z5saxpyfPKfPfi", "name of saxpy");
    expect_equal(env.kernel("scale<float, 3>").name(), "_Z5scaleIfLi3EEvPT_i",
                 "name of a template");
  });

  add_rule_case("kernel.unknown_name_lists_what_there_is", [](const Environment& env) {
    const ls::Module module = env.device().compile(
        "__global__ void one() {}\n__global__ void two() {}", {.kernels = {"one", "two"}});
    const ls::Error error = expect_error(ls::ErrorCode::kNotFound, "kernel three",
                                         [&] { (void)module.kernel("three"); });
    expect(std::string(error.what()).find("two") != std::string::npos,
           "the message lists the kernels");
  });

  add_rule_case("kernel.compile_error_has_position", [](const Environment& env) {
    const ls::Error error = expect_error(ls::ErrorCode::kCompilationFailed, "bad source", [&] {
      (void)env.device().compile("\n\n__global__ void broken() { undeclared_thing(); }",
                                 {.kernels = {"broken"}, .source_name = "broken.cu"});
    });
    const std::string text = error.what();
    expect(text.find("broken.cu") != std::string::npos && text.find('3') != std::string::npos &&
               text.find("undeclared_thing") != std::string::npos,
           "the log names file, line and identifier: " + text);
  });

  add_rule_case("kernel.arguments_are_checked", [](const Environment& env) {
    const ls::Kernel kernel = env.kernel("saxpy");
    const ls::Stream stream = env.device().create_stream();
    const auto x = env.device().allocate<float>(4), y = env.device().allocate<float>(4);
    const ls::LaunchConfig config{.grid = 1, .block = 32};
    expect_error(ls::ErrorCode::kInvalidArgument, "three arguments of four",
                 [&] { stream.launch(kernel, config, 2.0f, x, y); });
    const ls::Error size = expect_error(ls::ErrorCode::kInvalidArgument, "a double for a float",
                                        [&] { stream.launch(kernel, config, 2.0, x, y, 4); });
    expect(std::string(size.what()).find("argument 0") != std::string::npos,
           "the message names argument 0");
    stream.synchronize();
  });

  add_rule_case("kernel.arguments_are_copied_at_the_call", [](const Environment& env) {
    const auto out = make_buffer(env.device(), std::vector<int>{0});
    const ls::Stream stream = env.device().create_stream();
    const ls::Kernel add = env.kernel("add_constant<int>");
    stream.launch(env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *out, 0, 300000);
    for (int value = 1; value <= 10; ++value)
      stream.launch(add, {.grid = 1, .block = 1}, *out, value, 1);
    stream.synchronize();
    expect_equal(read(*out), std::vector<int>{55}, "value");
  });

  add_rule_case("kernel.global_variables", [](const Environment& env) {
    const ls::Module module = env.device().compile(
        "__device__ int counter = 3;\n__global__ void bump() { counter += 4; }",
        {.kernels = {"bump"}});
    const ls::Stream stream = env.device().create_stream();
    stream.launch(module.kernel("bump"), {.grid = 1, .block = 1});
    const auto [address, bytes] = module.global("counter");
    expect_equal(bytes, sizeof(int), "bytes of the variable");
    const auto pinned = env.device().allocate_pinned<int>(1);
    ls::CopyRegion region;
    region.source = address;
    region.destination = pinned.data();
    region.extent = {sizeof(int), 1, 1};
    stream.copy(region);
    stream.synchronize();
    expect_equal(pinned.span()[0], 7, "value of the variable");
    expect_error(ls::ErrorCode::kNotFound, "a variable that is not there",
                 [&] { (void)module.global("nothing"); });
  });
}

}  // namespace conformance
