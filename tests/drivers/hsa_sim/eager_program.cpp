// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backend.h>
#include <lockstep/lockstep.h>

#include <cstdint>
#include <iostream>
#include <vector>

// Copies, sets, kernels and events on two streams, without a capture: what releases before 5.3 can
// do. Says the device's width and ends with 0 and "sum N (right)", or as the examples do with an
// error on stderr.
namespace {

namespace ls = lockstep;

constexpr const char* kSource = R"(
extern "C" __global__ void scale(int* values, int count, int factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * factor + i;
}
extern "C" __global__ void sum(const int* values, int count, unsigned int* total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(total, (unsigned int)values[i]);
}
)";
constexpr int kCount = 10'000;
constexpr std::uint32_t kBlock = 256, kGrid = (kCount + kBlock - 1) / kBlock;
constexpr int kRounds = 5;

int run() {
  const ls::Device device = ls::Device::open("hip:0");
  std::cout << device.arch() << ", warps of "
            << device.attribute(LOCKSTEP_ATTR_WARP_SIZE).value_or(-1) << '\n';
  const ls::Module module = device.compile(kSource, {.kernels = {"scale", "sum"}});
  const ls::Kernel scale = module.kernel("scale"), sum = module.kernel("sum");
  ls::Stream first = device.create_stream(), second = device.create_stream();
  const auto values = device.allocate<int>(kCount), copy = device.allocate<int>(kCount);
  const auto total = device.allocate<unsigned int>(1);
  const auto result = device.allocate_pinned<unsigned int>(1);
  unsigned long long found = 0, expected = 0;
  for (int round = 1; round <= kRounds; ++round) {
    const std::vector<int> start(kCount, round);
    first.copy(values, start);
    first.launch(scale, {.grid = kGrid, .block = kBlock}, values, kCount, 3);
    first.copy(copy, values);
    const ls::Event scaled = device.create_event();
    first.record(scaled);
    second.wait(scaled);
    second.fill(total, 0U);
    second.launch(sum, {.grid = kGrid, .block = kBlock}, copy, kCount, total);
    second.copy(result, total);
    second.synchronize();
    found += result.span()[0];
    for (int i = 0; i < kCount; ++i) expected += static_cast<unsigned long long>(3 * round + i);
  }
  std::cout << "sum " << found << (found == expected ? " (right)\n" : " (WRONG)\n");
  return found == expected ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const ls::Error& error) {
    std::cerr << "eager: " << error.what() << '\n';
    return error.code() == ls::ErrorCode::kUnavailable ? 4 : 5;
  }
}
