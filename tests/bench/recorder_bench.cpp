// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tracer.h>

#include <benchmark/benchmark.h>
#include <optional>

#include "unit/record/fake_plugin.h"

/// \file
/// What recording adds to a launch, on an empty driver function. Compare the cases of one run with
/// each other: off − compiled_out is the cost of a recorder that sleeps, on − compiled_out that of
/// one that records.
namespace {

using lockstep::testing::Argument;
using lockstep::testing::FakePlugin;

__attribute__((noinline)) int empty_driver_call(const lockstep_record* record) {
  benchmark::DoNotOptimize(record);
  return 0;
}

struct Launch {
  FakePlugin plugin;
  std::uint64_t stream = plugin.stream();
  Argument arguments[4] = {Argument::scalar(2), Argument::pointer(0x7000000000),
                           Argument::pointer(0x7000001000), Argument::scalar(1000)};
  lockstep_parameter parameters[4] = {};
  const void* values[4] = {};
  lockstep_record record = plugin.kernel(stream, "saxpy");

  Launch() {
    for (int i = 0; i < 4; ++i) {
      parameters[i] = arguments[i].parameter;
      values[i] = arguments[i].bytes.data();
    }
    record.of.kernel.parameter_count = 4;
    record.of.kernel.parameters = parameters;
    record.of.kernel.arguments = values;
    plugin.allocate(0x7000000000, 4096);
    plugin.allocate(0x7000001000, 4096);
  }
};

void compiled_out(benchmark::State& state) {
  const Launch launch;
  for (auto _ : state) empty_driver_call(&launch.record);
}

void launch_as_plugins_do(benchmark::State& state, bool recording) {
  const Launch launch;
  const lockstep_recorder& table = launch.plugin.table();
  std::optional<lockstep::LaunchTrace> trace;
  if (recording) trace.emplace();
  std::uint64_t count = 0;
  for (auto _ : state) {
    void* slot = nullptr;
    if (__atomic_load_n(table.active, __ATOMIC_RELAXED) != 0) slot = table.begin(&launch.record);
    empty_driver_call(&launch.record);
    if (slot != nullptr) table.end(slot, 0, 0, -1);
    // The ring is emptied now and then, outside of what is measured.
    if (recording && ++count % 16384 == 0) {
      state.PauseTiming();
      trace.emplace();
      benchmark::DoNotOptimize(trace->snapshot());
      state.ResumeTiming();
    }
  }
}

void off(benchmark::State& state) { launch_as_plugins_do(state, false); }
void on(benchmark::State& state) { launch_as_plugins_do(state, true); }

BENCHMARK(compiled_out);
BENCHMARK(off);
BENCHMARK(on);

}  // namespace

BENCHMARK_MAIN();
