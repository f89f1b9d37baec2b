// SPDX-License-Identifier: Apache-2.0
// The host backend beside PoCL and an OpenMP loop, in one run, on the same kernels.
#include <lockstep/lockstep.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "harness.h"
#include "host_bench_kernels.embed.h"
#include "tiled_product_kernel.embed.h"
#ifdef LOCKSTEP_BENCH_OPENCL
#include "opencl_rival.h"
#endif

namespace {

namespace ls = lockstep;

constexpr int kCount = 1 << 24;
constexpr int kSize = 512;
constexpr int kLaunches = 200;

#ifdef LOCKSTEP_BENCH_OPENMP
/// The loop that anybody would write; what the memory of this machine gives.
void openmp_saxpy(float a, const std::vector<float>& x, std::vector<float>& y) {
  const float* from = x.data();
  float* to = y.data();
#pragma omp parallel for schedule(static)
  for (int i = 0; i < kCount; ++i) to[i] = a * from[i] + to[i];
}
#endif

double milliseconds(const std::function<void()>& work) { return bench::seconds(work) * 1e3; }

/// Microseconds each, of many.
double latency(const std::function<void()>& once) {
  return bench::seconds([&] {
           for (int i = 0; i < kLaunches; ++i) once();
         }) *
         1e6 / kLaunches;
}

struct Contenders {
  std::vector<bench::Contender> launches, bandwidth, products;
};

#ifdef LOCKSTEP_BENCH_OPENCL
/// Why PoCL is not there, "" when it is.
std::string add_pocl(Contenders& contenders, std::unique_ptr<bench::OpenClRival>& rival) {
  try {
    rival = std::make_unique<bench::OpenClRival>(kCount, kSize);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  bench::OpenClRival& pocl = *rival;
  std::printf("PoCL device: %s\n", pocl.device_name().c_str());
  contenders.launches.push_back(
      {"PoCL", [&pocl] { return latency([&] { pocl.launch_nothing_and_wait(); }); }});
  contenders.bandwidth.push_back(
      {"PoCL", [&pocl] { return milliseconds([&] { pocl.saxpy_and_wait(2.0f); }); }});
  contenders.products.push_back(
      {"PoCL", [&pocl] { return milliseconds([&] { pocl.product_and_wait(); }); }});
  return {};
}
#endif

void note_rates(bench::Table& table, double work, const char* unit) {
  for (const bench::Figure& figure : table.figures) {
    char text[120];
    std::snprintf(text, sizeof text, "%s: %.3g %s", figure.name.c_str(), work / figure.median / 1e6,
                  unit);
    table.notes.emplace_back(text);
  }
}

void add_bar(bench::Table& table, const char* what, double limit) {
  table.bars.push_back({what, "times PoCL's", table.ratio("Lockstep host", "PoCL"),
                        bench::Bar::Direction::kAtMost, limit});
}

int run(const std::string& json_path) {
  const ls::Device device = ls::Device::open("host");
  const ls::Module module = device.compile(
      std::string(host_bench_kernels) + tiled_product_kernel,
      {.kernels = {"nothing", "saxpy", "tiled_product"}, .source_name = "host_kernels.cu"});
  const ls::Kernel nothing = module.kernel("nothing"), saxpy = module.kernel("saxpy"),
                   product = module.kernel("tiled_product");
  ls::Stream stream = device.create_stream();
  const auto x = device.allocate<float>(kCount), y = device.allocate<float>(kCount),
             z = device.allocate<float>(kSize * kSize);
  stream.fill(x, 1.0f);
  stream.fill(y, 1.0f);
  stream.synchronize();
  Contenders contenders;
  contenders.launches = {{"Lockstep host", [&] {
                            return latency([&] {
                              stream.launch(nothing, {.grid = 1, .block = 32});
                              stream.synchronize();
                            });
                          }}};
  contenders.bandwidth = {{"Lockstep host", [&] {
                             return milliseconds([&] {
                               stream.launch(saxpy, {.grid = kCount / 256, .block = 256}, 2.0f, x,
                                             y, kCount);
                               stream.synchronize();
                             });
                           }}};
  contenders.products = {{"Lockstep host", [&] {
                            return milliseconds([&] {
                              stream.launch(product,
                                            {.grid = {kSize / 16, kSize / 16}, .block = {16, 16}},
                                            x, y, z, kSize);
                              stream.synchronize();
                            });
                          }}};
  std::vector<std::string> missing;
#ifdef LOCKSTEP_BENCH_OPENCL
  std::unique_ptr<bench::OpenClRival> rival;
  if (const std::string reason = add_pocl(contenders, rival); !reason.empty())
    missing.push_back("PoCL is not measured: " + reason);
  const bool pocl = rival != nullptr;
#else
  const bool pocl = false;
  missing.push_back("PoCL is not measured: built without OpenCL (package ocl-icd-opencl-dev)");
#endif
#ifdef LOCKSTEP_BENCH_OPENMP
  std::vector<float> host_x(kCount, 1.0f), host_y(kCount, 1.0f);
  contenders.bandwidth.push_back(
      {"OpenMP loop", [&] { return milliseconds([&] { openmp_saxpy(2.0f, host_x, host_y); }); }});
#else
  missing.push_back("the OpenMP loop is not measured: built without OpenMP");
#endif

  std::vector<bench::Table> tables = {
      bench::measure("launch to done, empty kernel <<<1, 32>>>", "us", contenders.launches),
      bench::measure("saxpy, 16 M floats (12 bytes each moved)", "ms", contenders.bandwidth),
      bench::measure("tiled product 512, 16x16 tiles, two barriers a tile", "ms",
                     contenders.products),
  };
  note_rates(tables[1], 12.0 * kCount, "GB/s");
  note_rates(tables[2], 2.0 * kSize * kSize * kSize, "GFLOP/s");
  if (pocl) {
    add_bar(tables[0], "launch latency", 1);
    add_bar(tables[1], "bandwidth kernel", 1);
    add_bar(tables[2], "barrier kernel by fibers", 5);
  }
  for (bench::Table& table : tables)
    table.notes.insert(table.notes.end(), missing.begin(), missing.end());
  return bench::report(tables, json_path) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // Threads of OpenMP that spin between its rounds would take the next contender's cores. Read
  // before main begins, so the program starts itself again.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) {
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);
    std::perror("host_bench: cannot start itself again");
    return 5;
  }
  try {
    return run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "host_bench: %s\n", error.what());
    return 5;
  }
}
