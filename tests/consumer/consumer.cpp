// SPDX-License-Identifier: Apache-2.0
// What a user's first program does: open a device, launch a kernel, read the trace.
#include <lockstep/lockstep.h>

#include <cstdio>
#include <vector>

namespace ls = lockstep;

int main() {
  const ls::Device device = ls::Device::open("host");
  ls::Stream stream = device.create_stream();
  const ls::Kernel kernel = device
                                .compile(
                                    "__global__ void twice(float* x, int n) { int i = blockIdx.x * "
                                    "blockDim.x + threadIdx.x; "
                                    "if (i < n) x[i] *= 2.0f; }",
                                    {.kernels = {"twice"}})
                                .kernel("twice");
  std::vector<float> values = {1.0f, 2.0f, 3.0f};
  auto buffer = device.allocate<float>(values.size());
  ls::LaunchTrace trace;
  stream.copy(buffer, values);
  stream.launch(kernel, {.grid = 1, .block = 32}, buffer, 3);
  stream.copy_and_wait(values, buffer);
  const auto entries = trace.take();
  if (values != std::vector<float>{2.0f, 4.0f, 6.0f} || entries.size() != 3) {
    std::fprintf(stderr, "consumer: wrong result or %zu entries\n", entries.size());
    return 1;
  }
  std::printf("consumer: ok, %s\n", entries[1].name.c_str());
  return 0;
}
