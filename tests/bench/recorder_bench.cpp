// SPDX-License-Identifier: Apache-2.0
// What the recorder and the public API add to a launch, over a driver whose functions are empty.
#include <lockstep/lockstep.h>

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <optional>
#include <stdexcept>
#include <string>

#include "empty_backend.h"
#include "harness.h"
#include "unit/record/fake_plugin.h"

namespace {

namespace ls = lockstep;
using ls::testing::Argument;
using ls::testing::FakePlugin;

constexpr int kLaunches = 16384;
constexpr double kOffLimit = 5;   // ns a launch
constexpr double kOnLimit = 80;   // ns a launch
constexpr int kWarmBatches = 64;  // until the ring's memory has been touched once

bench::EmptyDriver& driver_of(const std::string& backend) {
  const std::string path =
      std::string(LOCKSTEP_BENCH_PLUGIN_DIR) + "/liblockstep_backend_" + backend + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto function =
      reinterpret_cast<bench::EmptyDriverFunction>(dlsym(library, "bench_empty_driver"));
  if (function == nullptr) throw std::runtime_error(path + " has no bench_empty_driver");
  return *function();
}

/// Nanoseconds a launch. While recording, opening and dropping the trace stays outside.
template <class Once>
double per_launch(bool recording, Once&& once) {
  std::optional<ls::LaunchTrace> trace;
  if (recording) trace.emplace();
  return bench::seconds([&] {
           for (int i = 0; i < kLaunches; ++i) once();
         }) *
         1e9 / kLaunches;
}

/// A launch as a program makes it.
struct ApiLaunch {
  ls::Device device;
  ls::Stream stream = device.create_stream();
  ls::Kernel kernel = device.compile("", {.kernels = {"saxpy"}}).kernel("saxpy");
  float* x = reinterpret_cast<float*>(0x7000000000);
  float* y = reinterpret_cast<float*>(0x7000001000);

  explicit ApiLaunch(const std::string& backend) : device(ls::Device::open(backend)) {}
  void operator()() { stream.launch(kernel, {.grid = 4, .block = 256}, 2.0f, x, y, 1000); }
};

/// A launch as a plugin or the preload library reports it: no API around it.
struct RawLaunch {
  FakePlugin plugin;
  bench::EmptyDriver* volatile driver;
  std::uint64_t stream = plugin.stream();
  Argument arguments[4] = {Argument::scalar(2), Argument::pointer(0x7000000000),
                           Argument::pointer(0x7000001000), Argument::scalar(1000)};
  lockstep_parameter parameters[4] = {};
  const void* values[4] = {};
  std::uint32_t name = plugin.name("saxpy");

  explicit RawLaunch(bench::EmptyDriver& empty) : driver(&empty) {
    for (int i = 0; i < 4; ++i) {
      parameters[i] = arguments[i].parameter;
      values[i] = arguments[i].bytes.data();
    }
    plugin.allocate(0x7000000000, 4096);
    plugin.allocate(0x7000001000, 4096);
  }

  void call_driver() {
    driver->launch(this, 4, 1, 1, 256, 1, 1, 0, &stream, const_cast<void**>(values), nullptr);
  }

  __attribute__((noinline)) void* begin() {
    lockstep_record record;
    std::memset(&record, 0, sizeof record);
    record.struct_size = sizeof record;
    record.kind = LOCKSTEP_RECORD_KERNEL;
    record.name = name;
    record.stream = stream;
    record.of.kernel.grid = {4, 1, 1};
    record.of.kernel.block = {256, 1, 1};
    record.of.kernel.parameter_count = 4;
    record.of.kernel.parameters = parameters;
    record.of.kernel.arguments = values;
    return plugin.table().begin(&record);
  }

  void operator()() {
    void* slot = nullptr;
    if (__atomic_load_n(plugin.table().active, __ATOMIC_RELAXED) != 0) [[unlikely]]
      slot = begin();
    call_driver();
    if (slot != nullptr) [[unlikely]]
      plugin.table().end(slot, 0, 0, -1);
  }
};

int run(const std::string& json_path) {
  setenv("LOCKSTEP_BACKEND_PATH", LOCKSTEP_BENCH_PLUGIN_DIR, 1);
  ApiLaunch without("bench_bare"), with("bench_recorded");
  RawLaunch raw(driver_of("bench_bare"));
  const auto driver_call = [&] { raw.call_driver(); };

  bench::Table off =
      bench::measure("recording off, empty driver functions", "ns a launch",
                     {{"driver call, no recorder", [&] { return per_launch(false, driver_call); }},
                      {"driver call, recorder off", [&] { return per_launch(false, raw); }},
                      {"API, recorder compiled out", [&] { return per_launch(false, without); }},
                      {"API, recorder off", [&] { return per_launch(false, with); }}});
  off.bars = {{"added to a driver call", "ns",
               off.difference("driver call, recorder off", "driver call, no recorder"),
               bench::Bar::Direction::kAtMost, kOffLimit},
              {"added to an API launch", "ns",
               off.difference("API, recorder off", "API, recorder compiled out"),
               bench::Bar::Direction::kAtMost, kOffLimit}};
  const bench::Interval api =
      off.difference("API, recorder compiled out", "driver call, no recorder");
  char note[160];
  std::snprintf(note, sizeof note,
                "The API itself adds %.1f ns (%.1f to %.1f) to the raw driver call: 2 %% of a "
                "driver's launch of %.1f us or more.",
                api.median, api.low, api.high, api.median * 50 / 1000);
  off.notes.emplace_back(note);

  for (int i = 0; i < kWarmBatches; ++i) per_launch(true, raw);
  bench::Table on =
      bench::measure("recording on (no argument scan), empty driver functions", "ns a launch",
                     {{"driver call, no recorder", [&] { return per_launch(false, driver_call); }},
                      {"driver call, recorded", [&] { return per_launch(true, raw); }},
                      {"API, recorder compiled out", [&] { return per_launch(false, without); }},
                      {"API, recorded", [&] { return per_launch(true, with); }}});
  on.bars = {
      {"added to a driver call", "ns",
       on.difference("driver call, recorded", "driver call, no recorder"),
       bench::Bar::Direction::kAtMost, kOnLimit},
      {"added to an API launch", "ns", on.difference("API, recorded", "API, recorder compiled out"),
       bench::Bar::Direction::kAtMost, kOnLimit}};
  return bench::report({off, on}, json_path) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recorder_bench: %s\n", error.what());
    return 5;
  }
}
