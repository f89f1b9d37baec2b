// SPDX-License-Identifier: Apache-2.0
// The conformance suite, or a part of it, and then the end of every primary context: only that
// makes compute-sanitizer look for memory that is left in it.
//   cuda_leaks I/N [EXCLUDE]
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <iostream>

#include "conformance/framework/report.h"
#include "conformance/framework/runner.h"

namespace {

namespace ls = lockstep;

bool run_part(std::size_t shard, std::size_t shards, const std::string& exclude) {
  std::vector<ls::Device> devices = {ls::Device::open("cuda:0")};
  try {
    devices.push_back(ls::Device::open("cuda:1"));
  } catch (const ls::Error& error) {
    if (error.code() != ls::ErrorCode::kUnavailable) throw;
  }
  conformance::Waivers waivers;
  conformance::RunOptions options;
  options.shard = shard - 1;
  options.shards = shards;
  options.exclude = exclude;
  options.limit_seconds = 600;
  options.progress = &std::cerr;
  const conformance::Report report = conformance::run_suite(devices, waivers, options);
  std::cout << conformance::to_text(report);
  return report.ok();
}

// 0, or the code of the first call that failed.
int end_contexts() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return -1;
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  const auto reset = reinterpret_cast<int (*)(int)>(dlsym(driver, "cuDevicePrimaryCtxReset_v2"));
  if (count == nullptr || reset == nullptr) return -1;
  int devices = 0;
  int result = count(&devices);
  for (int device = 0; result == 0 && device < devices; ++device) result = reset(device);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t shard = 0, shards = 0;
  if (argc < 2 || std::sscanf(argv[1], "%zu/%zu", &shard, &shards) != 2 || shard < 1 ||
      shard > shards) {
    std::fprintf(stderr, "usage: cuda_leaks I/N [EXCLUDE]\n");
    return 2;
  }
  try {
    const bool ok = run_part(shard, shards, argc > 2 ? argv[2] : "");
    const int ended = end_contexts();
    std::printf("contexts ended with %d\n", ended);
    std::fflush(stdout);
    // Nothing of ours may touch the contexts any more.
    std::_Exit(ok && ended == 0 ? 0 : 1);
  } catch (const ls::Error& error) {
    std::fprintf(stderr, "cuda_leaks: %s\n", error.what());
    return 4;
  }
}
