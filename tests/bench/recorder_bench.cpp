// SPDX-License-Identifier: Apache-2.0
// What the recorder and the public API add to a launch, over a driver whose functions are empty.
#include <lockstep/lockstep.h>

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

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

/// Beside this program, wherever that is.
std::string plugin_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "bench_plugins";
}

bench::EmptyDriver& driver_of(const std::string& backend) {
  const std::string path = plugin_folder() + "/liblockstep_backend_" + backend + ".so";
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
  ls::Kernel kernel = device.compile("fake", {.kernels = {"saxpy"}}).kernel("saxpy");
  float* x = reinterpret_cast<float*>(0x7000000000);
  float* y = reinterpret_cast<float*>(0x7000001000);

  explicit ApiLaunch(const std::string& backend) : device(ls::Device::open(backend)) {}
  void operator()() { stream.launch(kernel, {.grid = 4, .block = 256}, 2.0f, x, y, 1000); }
};

/// A graph launch as a program makes it.
struct ApiGraphLaunch {
  ls::Stream& stream;
  ls::GraphExec executable;

  explicit ApiGraphLaunch(ApiLaunch& launch) : stream(launch.stream) {
    ls::Graph graph = launch.device.create_graph();
    graph.add_empty({});
    executable = graph.instantiate();
  }
  void operator()() { executable.launch(stream); }
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

/// A driver call that takes a few microseconds and uses the caches as one does: a walk over memory
/// that the first cache does not hold. What a launch costs in place is what it costs after that.
class BusyDriver {
 public:
  BusyDriver() {
    // A single cycle through all lines, in no order that hardware foresees.
    std::uint32_t at = 0;
    for (std::uint32_t i = 0; i < kLines; ++i) {
      const std::uint32_t next = (at + kStride) % kLines;
      lines_[at].next = next;
      at = next;
    }
  }
  void call() {
    std::uint32_t at = at_;
    for (int i = 0; i < kSteps; ++i) {
      ++lines_[at].uses;
      at = lines_[at].next;
    }
    at_ = at;
  }

 private:
  static constexpr std::uint32_t kLines = 2048, kStride = 773;  // no common divisor
  static constexpr int kSteps = 512;
  struct alignas(64) Line {
    std::uint32_t next = 0, uses = 0;
  };
  std::vector<Line> lines_{kLines};
  std::uint32_t at_ = 0;
};

constexpr char kDriver[] = "driver call, no recorder";
constexpr char kReported[] = "driver call, reported";
constexpr char kApiBare[] = "API, recorder compiled out";
constexpr char kApi[] = "API";
constexpr char kWork[] = "work alone";
constexpr char kReportedOn[] = "driver call, recorded";
constexpr char kApiOn[] = "API, recorded";
constexpr char kGraphDriver[] = "graph: driver call, no recorder";
constexpr char kGraphBare[] = "graph: API, recorder compiled out";
constexpr char kGraph[] = "graph: API";

/// What `figure` may take beyond `base`.
void add_bar(bench::Table& table, const char* what, const char* figure, const char* base,
             double limit) {
  table.bars.push_back(
      {what, "ns", table.difference(figure, base), bench::Bar::Direction::kAtMost, limit});
}

class Bench {
 public:
  bench::Table measure(const char* title, bool recording, double limit) {
    const auto driver_call = [this] { raw_.call_driver(); };
    const auto graph_call = [this] { raw_.driver->graph_launch(this, &raw_.stream); };
    bench::Table table =
        bench::measure(title, "ns a launch",
                       {{kDriver, [&] { return per_launch(false, driver_call); }},
                        {kReported, [&] { return per_launch(recording, raw_); }},
                        {kApiBare, [&] { return per_launch(false, bare_); }},
                        {kApi, [&] { return per_launch(recording, api_); }},
                        {kGraphDriver, [&] { return per_launch(false, graph_call); }},
                        {kGraphBare, [&] { return per_launch(false, bare_graph_); }},
                        {kGraph, [&] { return per_launch(recording, api_graph_); }}});
    add_bar(table, "the recorder adds to a driver call", kReported, kDriver, limit);
    add_bar(table, "the recorder adds to an API launch", kApi, kApiBare, limit);
    add_bar(table, "the recorder adds to an API graph launch", kGraph, kGraphBare, limit);
    return table;
  }

  /// With work between: what a record costs where its code and memory have to be fetched anew.
  bench::Table measure_in_place(double limit) {
    const auto after = [this](auto& launch) {
      return [this, &launch] {
        busy_.call();
        launch();
      };
    };
    const auto busy = [this] { busy_.call(); };
    const auto raw = after(raw_);
    const auto api = after(api_);
    bench::Table table =
        bench::measure("recording on, in place: after work that uses the caches", "ns a launch",
                       {{kWork, [&] { return per_launch(false, busy); }},
                        {kReported, [&] { return per_launch(false, raw); }},
                        {kReportedOn, [&] { return per_launch(true, raw); }},
                        {kApi, [&] { return per_launch(false, api); }},
                        {kApiOn, [&] { return per_launch(true, api); }}});
    add_bar(table, "recording adds to a driver call", kReportedOn, kReported, limit);
    add_bar(table, "recording adds to an API launch", kApiOn, kApi, limit);
    return table;
  }

  /// The first records of a process, for which the ring's memory has to be got.
  double first_launches() { return per_launch(true, raw_); }

  /// \throws std::runtime_error when a call is not recorded: its cost would be that of nothing.
  void check_recording() {
    ls::LaunchTrace trace;
    raw_();
    api_();
    api_graph_();
    bare_();
    const std::size_t entries = trace.trace().entries.size();
    if (entries != 3)
      throw std::runtime_error("3 of 4 calls should be recorded, not " + std::to_string(entries));
  }

  void touch_ring() {
    for (int i = 0; i < kWarmBatches; ++i) per_launch(true, raw_);
  }

 private:
  ApiLaunch bare_{"bench_bare"}, api_{"bench_recorded"};
  ApiGraphLaunch bare_graph_{bare_}, api_graph_{api_};
  RawLaunch raw_{driver_of("bench_bare")};
  BusyDriver busy_;
};

/// Where that is 2 % depends on the driver: given as the launch time from which on it is less.
void note_api_cost(bench::Table& table, const char* what, const char* api, const char* base) {
  const bench::Interval cost = table.difference(api, base);
  char note[160];
  std::snprintf(note, sizeof note,
                "The API adds %.1f ns (%.1f to %.1f) to a %s: 2 %% of a driver call of %.2f us.",
                cost.median, cost.low, cost.high, what, cost.median * 50 / 1000);
  table.notes.emplace_back(note);
}

int run(const std::string& json_path) {
  setenv("LOCKSTEP_BACKEND_PATH", plugin_folder().c_str(), 1);
  Bench subject;
  subject.check_recording();
  bench::Table off = subject.measure("recording off, empty driver functions", false, kOffLimit);
  note_api_cost(off, "launch", kApi, kDriver);
  note_api_cost(off, "graph launch", kGraph, kGraphDriver);
  const double first = subject.first_launches();
  subject.touch_ring();
  bench::Table on =
      subject.measure("recording on (no argument scan), empty driver functions", true, kOnLimit);
  char note[96];
  std::snprintf(note, sizeof note, "The first %d launches of the process: %.1f ns each, recorded.",
                kLaunches, first);
  on.notes.emplace_back(note);
  const bench::Table in_place = subject.measure_in_place(kOnLimit);
  return bench::report({off, on, in_place}, json_path) ? 0 : 1;
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
