// SPDX-License-Identifier: Apache-2.0
// What Lockstep adds on a real NVIDIA GPU: to a launch, to a graph launch, by recording, beside a
// CUPTI callback, and what a graph costs to verify. Everything in one run, side by side.
#include <lockstep/lockstep.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <optional>
#include <sched.h>
#include <stdexcept>
#include <string>

#include "bench_process.h"
#include "cupti_subscriber.h"
#include "harness.h"

namespace {

namespace ls = lockstep;
using bench::Bar;
using bench::Table;

// Launches between two waits. Few, so that contenders alternate within a millisecond: the machine's
// own speed drifts by more than what is looked for.
constexpr int kBatch = 32;
constexpr int kWarmUp = 8;  // not timed: what only the first calls of a trace or a subscriber cost
constexpr int kLaunchRounds = 2001;
constexpr int kGraphKernels = 8;
constexpr int kVerifiedNodes = 1000;

// How the processes beside are started: with the processor they are to stay on.
constexpr char kUnderCupti[] = "--under-cupti=";
constexpr char kWithout[] = "--without-cupti=";

constexpr char kSource[] = R"(
#include <lockstep/kernel.h>
extern "C" __global__ void touch(float factor, float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = factor;
}
)";

/// The driver's own calls, from the library that the plugin loaded.
class RawDriver {
 public:
  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void*, void**, void**);
  template <class Function>
  static Function find(const char* name) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void* symbol = library == nullptr ? nullptr : dlsym(library, name);
    if (symbol == nullptr) throw std::runtime_error(std::string("libcuda.so.1 has no ") + name);
    return reinterpret_cast<Function>(symbol);
  }

  const Launch launch = find<Launch>("cuLaunchKernel");
  int (*const graph_launch)(void*, void*) = find<int (*)(void*, void*)>("cuGraphLaunch");
  int (*const set_context)(void*) = find<int (*)(void*)>("cuCtxSetCurrent");
  int (*const synchronize)(void*) = find<int (*)(void*)>("cuStreamSynchronize");
};

void must(int result, const char* what) {
  if (result == 0) return;
  throw std::runtime_error(std::string(what) + " answers " + std::to_string(result));
}

constexpr char kRaw[] = "cuLaunchKernel";
constexpr char kLaunch[] = "Lockstep launch";
constexpr char kRawSwitch[] = "cuCtxSetCurrent, cuLaunchKernel, cuCtxSetCurrent";
constexpr char kNoContext[] = "Lockstep launch, no context current";
constexpr char kRawGraph[] = "cuGraphLaunch";
constexpr char kGraph[] = "Lockstep graph launch";
constexpr char kRecorded[] = "Lockstep launch, recording";
constexpr char kBeside[] = "cuLaunchKernel, in a process beside";
constexpr char kCupti[] = "cuLaunchKernel, in another, with a CUPTI callback";

class Bench {
 public:
  Bench(int at, bool with_rivals) : processor_(at) {
    context_ = device_.native_handle();
    function_ = kernel_.native_handle();
    must(raw_.set_context(context_), "cuCtxSetCurrent");
    // The same stream and executable for both sides: the driver's own differ by more than we add.
    raw_stream_ = stream_.native_handle();
    const ls::Graph graph = stream_.capture([this](ls::StreamRef& s) {
      for (int i = 0; i < kGraphKernels; ++i) enqueue(s);
    });
    exec_ = graph.instantiate();
    raw_exec_ = exec_.native_handle();
    own(private_stream_, true, true);  // the trace's thread begins before this one is bound
    // The processes beside set themselves up before this one is bound, free as it is.
    const std::string processor = std::to_string(processor_);
    if (with_rivals) {
      cupti_.emplace((kUnderCupti + processor).c_str());
      beside_.emplace((kWithout + processor).c_str());
    }
    bench::stay_on(processor_);
  }

  Table launches() {
    Table table = bench::measure(
        "launches on " + device_.name() + ", driver " + device_.driver() + ", recording off",
        "ns a launch",
        {{kRaw, [&] { return raw(false); }},
         {kLaunch, [&] { return own(stream_, false, true); }},
         {kRawSwitch, [&] { return raw(true); }},
         {kNoContext, [&] { return own(stream_, false, false); }},
         {kRawGraph,
          [&] {
            return timed([&] { bad_ |= raw_.graph_launch(raw_exec_, raw_stream_); }, raw_wait());
          }},
         {kGraph, [&] { return timed([&] { exec_.launch(stream_); }, wait(stream_)); }}},
        kLaunchRounds);
    ratio(table, "launch over cuLaunchKernel", kLaunch, kRaw);
    ratio(table, "graph launch over cuGraphLaunch", kGraph, kRawGraph);
    ratio(table, "launch without a current context over the calls that it needs", kNoContext,
          kRawSwitch);
    note(table, "a launch without a current context over cuLaunchKernel alone", "%.4f",
         table.ratio(kNoContext, kRaw));
    note(table, "Lockstep adds to a launch", "%.1f ns", table.difference(kLaunch, kRaw));
    note(table, "Lockstep adds to a graph launch", "%.1f ns", table.difference(kGraph, kRawGraph));
    return table;
  }

  Table recording() {
    bench::BenchProcess &cupti = *cupti_, &beside = *beside_;
    touch_ring();
    std::vector<bench::Contender> contenders = {
        {kRaw, [&] { return raw(false); }},
        {kLaunch, [&] { return own(private_stream_, false, true); }},
        {kRecorded, [&] { return own(private_stream_, true, true); }}};
    if (cupti.usable()) {
      contenders.push_back({kBeside, [&] { return beside.batch(); }});
      contenders.push_back({kCupti, [&] { return cupti.batch(); }});
    }
    Table table = bench::measure("recording, and a CUPTI subscriber in a process of its own",
                                 "ns a launch", contenders, kLaunchRounds);
    const bench::Interval ours = table.difference(kRecorded, kLaunch);
    note(table, "recording adds to a launch", "%.1f ns", ours);
    table.notes.push_back("CUPTI: " + cupti.words());
    if (!cupti.usable()) return table;
    const bench::Interval theirs = table.difference(kCupti, kBeside);
    note(table, "a CUPTI callback adds to a launch", "%.1f ns", theirs);
    table.bars.push_back(
        {"a CUPTI callback costs as much as so many recorded launches",
         "times",
         {theirs.low / ours.high, theirs.median / ours.median, theirs.high / ours.low},
         Bar::Direction::kAtLeast,
         3});
    return table;
  }

  /// One batch of plain driver calls, for the process with the subscriber.
  double plain_batch() { return raw(false); }

  Table verification() {
    const auto step = [this](ls::StreamRef& s) {
      for (int i = 0; i < kVerifiedNodes; ++i) enqueue(s);
    };
    const ls::Graph graph = stream_.capture(step);
    const ls::GraphExec replay = graph.instantiate();
    const auto run = [&](const std::function<void()>& work) {
      ls::LaunchTrace trace;
      work();
      stream_.synchronize();
      return trace.trace();
    };
    const ls::Trace eager = run([&] { step(stream_); });
    const ls::Trace replayed = run([&] { replay.launch(stream_); });
    const auto each = [](const std::function<void()>& work) {
      return bench::seconds(work) * 1e9 / kVerifiedNodes;
    };
    const auto expect = [](const ls::VerifyReport& report) {
      if (!report.ok()) throw std::runtime_error(ls::to_text(report));
    };
    return bench::measure(
        "verification of a graph of " + std::to_string(kVerifiedNodes) + " kernels", "ns a node",
        {{"nodes listed by the driver's getters",
          [&] {
            const ls::Graph fresh = stream_.capture(step);  // a listing is kept once it was made
            return each([&] {
              if (fresh.nodes().size() != kVerifiedNodes) throw std::runtime_error("nodes missing");
            });
          }},
         {"two traces compared, L0 to L3",
          [&] { return each([&] { expect(ls::verify_traces(eager, replayed)); }); }},
         {"verify(): eager run, replay, L0 to L3", [&] {
            return each([&] { expect(ls::verify(replay, [&](ls::Stream& s) { step(s); })); });
          }}});
  }

  /// \throws std::runtime_error when a raw call failed: its time would be that of nothing.
  void check() const { must(bad_, "a driver call of the benchmark"); }

 private:
  /// Until its memory has been used once, as it has been after a moment of any program.
  void touch_ring() {
    constexpr int kBatches = 1024;  // of more than 200 bytes a launch: 8 MiB and more
    for (int i = 0; i < kBatches; ++i) own(private_stream_, true, true);
  }

  template <class S>
  void enqueue(S& stream) {
    stream.launch(kernel_, {.grid = 1, .block = 32}, 1.0f, buffer_, 32);
  }

  /// Nanoseconds a call; the end of the work is waited for outside of the time.
  template <class Once>
  static double timed(Once&& once, const std::function<void()>& wait) {
    for (int i = 0; i < kWarmUp; ++i) once();
    const double total = bench::seconds([&] {
      for (int i = 0; i < kBatch; ++i) once();
    });
    wait();
    return total * 1e9 / kBatch;
  }
  std::function<void()> raw_wait() {
    return [this] { bad_ |= raw_.synchronize(raw_stream_); };
  }
  static std::function<void()> wait(const ls::Stream& stream) {
    return [&stream] { stream.synchronize(); };
  }

  double raw(bool switched) {
    float factor = 1;
    float* data = buffer_.data();
    int count = 32;
    void* arguments[] = {&factor, &data, &count};
    const auto once = [&] {
      bad_ |= raw_.launch(function_, 1, 1, 1, 32, 1, 1, 0, raw_stream_, arguments, nullptr);
    };
    if (!switched) return timed(once, raw_wait());
    raw_.set_context(nullptr);
    const double total = bench::seconds([&] {
      for (int i = 0; i < kBatch; ++i) {
        raw_.set_context(context_);
        once();
        raw_.set_context(nullptr);
      }
    });
    raw_.set_context(context_);
    bad_ |= raw_.synchronize(raw_stream_);
    return total * 1e9 / kBatch;
  }

  double own(ls::Stream& stream, bool recording, bool current) {
    std::optional<ls::LaunchTrace> trace;
    if (recording) trace.emplace();
    if (!current) raw_.set_context(nullptr);
    const double nanoseconds = timed([&] { enqueue(stream); }, wait(stream));
    raw_.set_context(context_);
    return nanoseconds;
  }

  static void ratio(Table& table, const char* what, const char* name, const char* base) {
    table.bars.push_back({what, "times", table.ratio(name, base), Bar::Direction::kAtMost, 1.02});
  }
  static void note(Table& table, const char* what, const char* format,
                   const bench::Interval& value) {
    char median[64], low[64], high[64];
    std::snprintf(median, sizeof median, format, value.median);
    std::snprintf(low, sizeof low, format, value.low);
    std::snprintf(high, sizeof high, format, value.high);
    table.notes.push_back(std::string(what) + ": " + median + " (" + low + " to " + high + ")");
  }

  const int processor_;
  std::optional<bench::BenchProcess> cupti_, beside_;
  ls::Device device_ = ls::Device::open("cuda:0");
  ls::Stream stream_ = device_.create_stream();
  // Its native handle is never asked for: of a stream whose handle others know, each recorded call
  // asks the driver whether somebody captures there.
  ls::Stream private_stream_ = device_.create_stream();
  ls::Buffer<float> buffer_ = device_.allocate<float>(32);
  ls::Kernel kernel_ = device_.compile(kSource, {.kernels = {"touch"}}).kernel("touch");
  ls::GraphExec exec_;
  RawDriver raw_;
  void *context_ = nullptr, *function_ = nullptr, *raw_stream_ = nullptr, *raw_exec_ = nullptr;
  int bad_ = 0;
};

int run(const std::string& json_path) {
  try {
    (void)ls::Device::open("cuda:0");
  } catch (const ls::Error& error) {
    // Where a GPU is required its absence is a failure, elsewhere a line in the report.
    if (error.code() != ls::ErrorCode::kUnavailable ||
        std::getenv("LOCKSTEP_REQUIRE_BACKENDS") != nullptr) {
      throw;
    }
    Table nothing;
    nothing.title = "NVIDIA GPU";
    nothing.notes = {std::string("not measured: ") + error.what()};
    return bench::report({nothing}, json_path) ? 0 : 1;
  }
  Bench subject(sched_getcpu(), true);
  const Table launches = subject.launches();
  const Table verification = subject.verification();
  const Table recording = subject.recording();
  subject.check();
  return bench::report({launches, verification, recording}, json_path) ? 0 : 1;
}

/// As one of the processes beside.
int serve(bool under_cupti, int processor) {
  Bench subject(processor, false);
  if (!under_cupti) {
    bench::serve_batches(true, "no subscriber", [&] { return subject.plain_batch(); });
  } else {
    bench::CuptiSubscriber cupti;
    if (cupti.usable()) cupti.enable(true);
    bench::serve_batches(cupti.usable(), cupti.words(), [&] {
      const std::uint64_t before = cupti.launches();
      const double nanoseconds = subject.plain_batch();
      if (cupti.launches() == before) throw std::runtime_error("CUPTI saw no launch");
      return nanoseconds;
    });
  }
  subject.check();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string argument = argc > 1 ? argv[1] : "";
    for (const std::string kind : {kWithout, kUnderCupti}) {
      if (argument.rfind(kind, 0) != 0) continue;
      return serve(kind == kUnderCupti, std::atoi(argument.c_str() + kind.size()));
    }
    return run(argument);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 5;
  }
}
