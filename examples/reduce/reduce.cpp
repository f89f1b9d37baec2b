// SPDX-License-Identifier: Apache-2.0
// A two-stage reduction with integer atomics: bit for bit the same on every backend.
#include <lockstep/lockstep.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <numeric>
#include <vector>

#include "example.h"
#include "reduce_kernels.embed.h"

namespace {

namespace ls = lockstep;

constexpr int kCount = 1'000'003;
constexpr std::uint32_t kBlocks = 64;
constexpr std::uint32_t kThreads = 256;
constexpr std::size_t kBins = 16;

int run(const example::Options& options) {
  std::vector<int> values(kCount);
  std::uint32_t state = 12345;
  for (int& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<int>(state >> 12) - (1 << 19);
  }

  const ls::Device device = ls::Device::open(options.device);
  const ls::Module module =
      device.compile(reduce_kernels,
                     {.kernels = {"reduce_blocks", "reduce_partials"}, .source_name = "reduce.cu"});
  const ls::Kernel blocks = module.kernel("reduce_blocks"),
                   partials = module.kernel("reduce_partials");
  ls::Stream stream = device.create_stream();
  const auto device_values = device.allocate<int>(kCount);
  const auto partial = device.allocate<long long>(kBlocks), total = device.allocate<long long>(1);
  const auto extremes = device.allocate<int>(2);
  const auto histogram = device.allocate<std::uint32_t>(kBins);

  const auto step = [&](ls::Stream& s) {
    s.fill(extremes.subview(0, 1), std::numeric_limits<int>::max());
    s.fill(extremes.subview(1, 1), std::numeric_limits<int>::min());
    s.fill(histogram, 0u);
    s.launch(blocks, {.grid = kBlocks, .block = kThreads}, device_values, kCount, partial, extremes,
             histogram);
    s.launch(partials, {.grid = 1, .block = kThreads}, partial, static_cast<int>(kBlocks), total);
  };

  ls::LaunchTrace trace;
  stream.copy(device_values, values);
  step(stream);
  std::vector<long long> sum(1);
  std::vector<int> range(2);
  std::vector<std::uint32_t> bins(kBins);
  stream.copy(sum, total);
  stream.copy(range, extremes);
  stream.copy(bins, histogram);
  stream.synchronize();
  const ls::Trace recording = trace.trace();

  std::vector<std::uint32_t> expected_bins(kBins);
  for (const int value : values) ++expected_bins[static_cast<std::size_t>(value) & (kBins - 1)];
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  const bool right_sums = sum[0] == std::accumulate(values.begin(), values.end(), 0LL) &&
                          range[0] == *smallest && range[1] == *largest && bins == expected_bins;

  const ls::GraphExec graph = stream.capture(step).instantiate();
  std::vector<long long> replayed(1);
  const std::vector<long long> nothing(1);
  stream.copy(total, nothing);
  graph.launch(stream);
  stream.copy_and_wait(replayed, total);
  const bool right = right_sums && replayed == sum;
  ls::VerifyOptions verify;
  verify.level = ls::VerifyLevel::kValues;
  verify.outputs = {ls::as_bytes(total), ls::as_bytes(extremes), ls::as_bytes(histogram)};
  const ls::VerifyReport report = ls::verify(graph, step, verify);

  example::print_device(device);
  std::cout << "sum " << sum[0] << ", range " << range[0] << " to " << range[1]
            << (right ? " (right)" : " (WRONG)") << ", "
            << (report.ok() ? "replay verified (L0-L4)" : "replay NOT verified") << '\n';
  if (!report.ok()) std::cout << report;
  std::vector<float> results = {static_cast<float>(sum[0]), static_cast<float>(range[0]),
                                static_cast<float>(range[1])};
  results.insert(results.end(), bins.begin(), bins.end());
  example::write_values(options, "reduce", results);
  if (!options.output.empty())
    ls::write_trace(options.output / "reduce.jsonl", recording, {.force = true});
  return right && report.ok() ? example::kDone : example::kDifferent;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Two-stage reduction with integer atomics.", {}, run);
}
