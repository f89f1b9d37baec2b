// SPDX-License-Identifier: Apache-2.0
// One attention head with shared memory and barriers, checked against double precision.
#include <lockstep/lockstep.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <vector>

#include "attention_kernels.embed.h"
#include "example.h"

namespace {

namespace ls = lockstep;

constexpr int kRows = 96;
constexpr int kKeys = 120;  // not a power of two, so that threads without a key exist
constexpr int kWidth = 64;
constexpr std::uint32_t kThreads = 128;

/// Reproducible values in [-1, 1) without a library whose sequence may change.
std::vector<float> values(std::size_t count, std::uint32_t seed) {
  std::vector<float> result(count);
  std::uint32_t state = seed;
  for (float& value : result) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1u << 23) - 1.0f;
  }
  return result;
}

std::vector<double> reference(const std::vector<float>& q, const std::vector<float>& k,
                              const std::vector<float>& v, double scale) {
  std::vector<double> result(static_cast<std::size_t>(kRows) * kWidth);
  for (int row = 0; row < kRows; ++row) {
    std::vector<double> weight(kKeys);
    double largest = -1e300, total = 0.0;
    for (int i = 0; i < kKeys; ++i) {
      double score = 0.0;
      for (int d = 0; d < kWidth; ++d)
        score += static_cast<double>(q[row * kWidth + d]) * k[i * kWidth + d];
      weight[i] = score * scale;
      largest = std::max(largest, weight[i]);
    }
    for (double& w : weight) total += w = std::exp(w - largest);
    for (int d = 0; d < kWidth; ++d) {
      double sum = 0.0;
      for (int i = 0; i < kKeys; ++i) sum += weight[i] * v[i * kWidth + d];
      result[row * kWidth + d] = sum / total;
    }
  }
  return result;
}

int run(const example::Options& options) {
  const ls::Device device = ls::Device::open(options.device);
  const ls::Kernel kernel =
      device.compile(attention_kernels, {.kernels = {"attention"}, .source_name = "attention.cu"})
          .kernel("attention");
  ls::Stream stream = device.create_stream();

  const auto q = values(kRows * kWidth, 1), k = values(kKeys * kWidth, 2),
             v = values(kKeys * kWidth, 3);
  const auto device_q = device.allocate<float>(q.size()),
             device_k = device.allocate<float>(k.size()),
             device_v = device.allocate<float>(v.size()),
             device_out = device.allocate<float>(q.size());
  const float scale = 1.0f / std::sqrt(static_cast<float>(kWidth));
  const auto step = [&](ls::Stream& s) {
    s.launch(kernel, {.grid = kRows, .block = kThreads, .shared_bytes = kWidth * sizeof(float)},
             device_q, device_k, device_v, device_out, kKeys, kWidth, scale);
  };

  ls::LaunchTrace trace;
  stream.copy(device_q, q);
  stream.copy(device_k, k);
  stream.copy(device_v, v);
  step(stream);
  std::vector<float> out(q.size());
  stream.copy_and_wait(out, device_out);
  const ls::Trace recording = trace.trace();

  const std::vector<double> expected = reference(q, k, v, scale);
  double largest_error = 0.0;
  for (std::size_t i = 0; i < out.size(); ++i)
    largest_error = std::max(largest_error, std::abs(out[i] - expected[i]));
  const bool accurate = largest_error <= 1e-5;

  const ls::GraphExec graph = stream.capture(step).instantiate();
  std::vector<float> replayed(out.size());
  stream.fill(device_out, 0.0f);
  graph.launch(stream);
  stream.copy_and_wait(replayed, device_out);
  const bool right = accurate && replayed == out;
  ls::VerifyOptions verify;
  verify.level = ls::VerifyLevel::kValues;
  verify.outputs = {ls::as_bytes(device_out)};
  const ls::VerifyReport report = ls::verify(graph, step, verify);

  example::print_device(device);
  std::cout << "largest error against double precision " << largest_error
            << (right ? " (right)" : " (WRONG)") << ", "
            << (report.ok() ? "replay verified (L0-L4)" : "replay NOT verified") << '\n';
  if (!report.ok()) std::cout << report;
  example::write_values(options, "attention", out);
  if (!options.output.empty())
    ls::write_trace(options.output / "attention.jsonl", recording, {.force = true});
  return right && report.ok() ? example::kDone : example::kDifferent;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "softmax(Q K^T) V with shared memory and barriers.", {}, run);
}
