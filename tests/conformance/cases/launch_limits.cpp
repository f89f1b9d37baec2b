// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

/// BIG-01: launches at and past each limit, eagerly and as a graph node: the same answer.
void expect_refused(const Environment& env, const std::string& what,
                    const ls::LaunchConfig& config) {
  const ls::Stream stream = env.device().create_stream();
  const auto counter = make_buffer(env.device(), std::vector<std::uint32_t>{0});
  const ls::Kernel kernel = env.kernel("count_threads");
  const ls::Error eager = expect_error(ls::ErrorCode::kInvalidArgument, what + " (eager)",
                                       [&] { stream.launch(kernel, config, *counter); });
  expect(!std::string(eager.what()).empty(), "the refusal has words");
  ls::Graph graph = env.device().create_graph();
  expect_error(ls::ErrorCode::kInvalidArgument, what + " (graph node)",
               [&] { graph.add_kernel({}, kernel, config, *counter); });
  expect_equal(graph.node_count(), 0u, "nodes after a refused one");
  stream.synchronize();
  expect_equal(read(*counter), std::vector<std::uint32_t>{0}, "threads that ran");
}

}  // namespace

void add_launch_limit_cases() {
  add_work_case("BIG_01.grid_y_at_the_limit", [](const Environment& env) {
    const std::uint32_t y =
        env.device().limits().max_grid.y < 65535u ? env.device().limits().max_grid.y : 65535u;
    auto counter = make_buffer(env.device(), std::vector<std::uint32_t>{0});
    const ls::Kernel kernel = env.kernel("count_threads");
    return Work{
        [=](ls::Stream& stream) {
          stream.launch(kernel, {.grid = {1, y, 1}, .block = 1}, *counter);
        },
        [=] { expect_equal(read(*counter), std::vector<std::uint32_t>{y}, "threads that ran"); },
        [=] { write(*counter, std::vector<std::uint32_t>{0}); }};
  });
  // 2^31 - 1 blocks take a machine without a GPU most of a minute: only the full suite runs them.
  add_rule_case("BIG_01.grid_x_at_the_limit", [](const Environment& env) {
    const std::uint32_t x = env.rounds(1u << 20, 2147483647u);
    const ls::Module module = env.device().compile(
        "__global__ void last_block(unsigned* out) { if (blockIdx.x == gridDim.x - 1) *out = "
        "blockIdx.x; }",
        {.kernels = {"last_block"}});
    const auto out = make_buffer(env.device(), std::vector<std::uint32_t>{0});
    const ls::Stream stream = env.device().create_stream();
    ls::LaunchTrace trace;
    stream.launch(module.kernel("last_block"), {.grid = x, .block = 1}, *out);
    stream.synchronize();
    expect_equal(read(*out), std::vector<std::uint32_t>{x - 1}, "index of the last block");
    expect_equal(trace.take().at(0).grid_x, x, "grid of the entry");
    ls::Graph graph = env.device().create_graph();
    graph.add_kernel({}, module.kernel("last_block"), {.grid = 2147483647u, .block = 1}, *out);
    expect_equal(graph.node_count(), 1u, "nodes of the largest grid");
  });
  add_rule_case("BIG_01.grid_past_the_limit", [](const Environment& env) {
    const ls::Dim3 limit = env.device().limits().max_grid;
    if (limit.y < 0xFFFFFFFFu)
      expect_refused(env, "grid y past the limit", {.grid = {1, limit.y + 1, 1}, .block = 1});
    if (limit.z < 0xFFFFFFFFu)
      expect_refused(env, "grid z past the limit", {.grid = {1, 1, limit.z + 1}, .block = 1});
    if (limit.x < 0xFFFFFFFFu)
      expect_refused(env, "grid x past the limit", {.grid = {limit.x + 1, 1, 1}, .block = 1});
  });
  add_rule_case("BIG_01.limits_are_those_of_the_device", [](const Environment& env) {
    env.require_kernels();
    const auto& limits = env.device().limits();
    expect(limits.max_grid.y >= 65535 && limits.max_grid.z >= 65535, "grid y and z reach 65535");
    expect(limits.max_grid.x >= 2147483647u, "grid x reaches 2^31 - 1");
    expect(limits.max_threads_per_block >= 1024 && limits.max_block.x >= 1024 &&
               limits.max_block.z >= 64,
           "blocks reach 1024 threads and 64 deep");
  });
  add_rule_case("BIG_01.zero_sizes_are_refused", [](const Environment& env) {
    expect_refused(env, "grid x 0", {.grid = {0, 1, 1}, .block = 1});
    expect_refused(env, "grid y 0", {.grid = {1, 0, 1}, .block = 1});
    expect_refused(env, "block z 0", {.grid = 1, .block = {1, 1, 0}});
  });
  add_rule_case("BIG_01.block_past_the_limit", [](const Environment& env) {
    const auto& limits = env.device().limits();
    expect_refused(env, "a thread too many",
                   {.grid = 1, .block = limits.max_threads_per_block + 1});
    expect_refused(env, "block z past the limit",
                   {.grid = 1, .block = {1, 1, limits.max_block.z + 1}});
    expect_refused(env, "a product past the limit",
                   {.grid = 1, .block = {limits.max_threads_per_block, 2, 1}});
  });
  add_rule_case("BIG_01.shared_memory_past_the_limit", [](const Environment& env) {
    const auto& limits = env.device().limits();
    expect_refused(env, "shared memory past every limit",
                   {.grid = 1,
                    .block = 1,
                    .shared_bytes = std::uint64_t{limits.max_shared_per_block_optin} + 1});
    if (limits.max_shared_per_block < limits.max_shared_per_block_optin) {
      expect_refused(
          env, "shared memory without opting in",
          {.grid = 1, .block = 1, .shared_bytes = std::uint64_t{limits.max_shared_per_block} + 1});
    }
  });
  add_rule_case("kernel.shared_memory_opt_in", [](const Environment& env) {
    const auto& limits = env.device().limits();
    const ls::Module module = env.device().compile(
        "__global__ void last(int* out, int n) { extern __shared__ int s[]; s[n - 1] = 6; *out = "
        "s[n - 1]; }",
        {.kernels = {"last"}});
    const ls::Kernel kernel = module.kernel("last");
    const auto out = make_buffer(env.device(), std::vector<int>{0});
    const ls::Stream stream = env.device().create_stream();
    const std::uint32_t bytes = limits.max_shared_per_block_optin;
    kernel.set_max_dynamic_shared(bytes);
    stream.launch(kernel, {.grid = 1, .block = 1, .shared_bytes = bytes}, *out,
                  static_cast<int>(bytes / sizeof(int)));
    stream.synchronize();
    expect_equal(read(*out), std::vector<int>{6}, "value at the end of the shared memory");
    expect_error(ls::ErrorCode::kInvalidArgument, "an opt-in past the limit",
                 [&] { kernel.set_max_dynamic_shared(bytes + 1024); });
  });
}

}  // namespace conformance
