// SPDX-License-Identifier: Apache-2.0
// The host backend beside PoCL and an OpenMP loop, in one run, on the same kernels.
#include <lockstep/lockstep.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "harness.h"
#include "host_bench_kernels.embed.h"
#include "opencl_rival.h"

namespace {

namespace ls = lockstep;

constexpr int kCount = 1 << 24;
constexpr int kSize = 512;
constexpr int kLaunches = 200;

/// The loop that anybody would write; what the memory of this machine gives.
void openmp_saxpy(float a, const std::vector<float>& x, std::vector<float>& y) {
  const float* from = x.data();
  float* to = y.data();
#pragma omp parallel for schedule(static)
  for (int i = 0; i < kCount; ++i) to[i] = a * from[i] + to[i];
}

int run(const std::string& json_path) {
  const ls::Device device = ls::Device::open("host");
  const ls::Module module = device.compile(
      host_bench_kernels,
      {.kernels = {"nothing", "saxpy", "tiled_product"}, .source_name = "host_kernels.cu"});
  const ls::Kernel nothing = module.kernel("nothing"), saxpy = module.kernel("saxpy"),
                   product = module.kernel("tiled_product");
  ls::Stream stream = device.create_stream();
  const auto x = device.allocate<float>(kCount), y = device.allocate<float>(kCount),
             z = device.allocate<float>(kSize * kSize);
  stream.fill(x, 1.0f);
  stream.fill(y, 1.0f);
  stream.synchronize();
  std::vector<float> host_x(kCount, 1.0f), host_y(kCount, 1.0f);

  std::unique_ptr<bench::OpenClRival> rival;
  std::string missing;
  try {
    rival = std::make_unique<bench::OpenClRival>(kCount, kSize);
    std::printf("rival: %s\n", rival->device_name().c_str());
  } catch (const std::exception& error) {
    missing = error.what();
    std::printf("PoCL not measured: %s\n", missing.c_str());
  }

  const auto latency = [&](const auto& once) {
    return bench::seconds([&] {
             for (int i = 0; i < kLaunches; ++i) once();
           }) *
           1e6 / kLaunches;
  };
  std::vector<bench::Contender> launches = {{"Lockstep host", [&] {
                                               return latency([&] {
                                                 stream.launch(nothing, {.grid = 1, .block = 32});
                                                 stream.synchronize();
                                               });
                                             }}};
  std::vector<bench::Contender> bandwidth = {
      {"Lockstep host",
       [&] {
         return bench::seconds([&] {
                  stream.launch(saxpy, {.grid = kCount / 256, .block = 256}, 2.0f, x, y, kCount);
                  stream.synchronize();
                }) *
                1e3;
       }},
      {"OpenMP loop",
       [&] { return bench::seconds([&] { openmp_saxpy(2.0f, host_x, host_y); }) * 1e3; }}};
  std::vector<bench::Contender> products = {
      {"Lockstep host", [&] {
         return bench::seconds([&] {
                  stream.launch(product, {.grid = {kSize / 16, kSize / 16}, .block = {16, 16}}, x,
                                y, z, kSize);
                  stream.synchronize();
                }) *
                1e3;
       }}};
  if (rival) {
    launches.push_back(
        {"PoCL", [&] { return latency([&] { rival->launch_nothing_and_wait(); }); }});
    bandwidth.push_back(
        {"PoCL", [&] { return bench::seconds([&] { rival->saxpy_and_wait(2.0f); }) * 1e3; }});
    products.push_back(
        {"PoCL", [&] { return bench::seconds([&] { rival->product_and_wait(); }) * 1e3; }});
  }

  std::vector<bench::Table> tables = {
      bench::measure("launch to done, empty kernel <<<1, 32>>>", "us", launches),
      bench::measure("saxpy, 16 M floats (12 bytes each moved)", "ms", bandwidth),
      bench::measure("tiled product 512, 16x16 tiles, two barriers a tile", "ms", products),
  };
  for (const auto& figure : tables[1].figures) {
    tables[1].notes.push_back(figure.name + ": " +
                              std::to_string(12.0 * kCount / figure.median / 1e6) + " GB/s");
  }
  for (const auto& figure : tables[2].figures) {
    tables[2].notes.push_back(figure.name + ": " +
                              std::to_string(2.0 * kSize * kSize * kSize / figure.median / 1e6) +
                              " GFLOP/s");
  }
  if (!missing.empty()) {
    for (auto& table : tables) table.notes.push_back("PoCL not measured: " + missing);
  }
  bench::report(tables, json_path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "");
  } catch (const ls::Error& error) {
    std::fprintf(stderr, "host_bench: %s\n", error.what());
    return 5;
  }
}
