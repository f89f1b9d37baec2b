// SPDX-License-Identifier: Apache-2.0
// Fork and join over three streams, eagerly and as a graph that keeps the branches apart.
#include <lockstep/lockstep.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <vector>

#include "example.h"
#include "streams_kernels.embed.h"

namespace {

namespace ls = lockstep;

constexpr int kCount = 1 << 16;
constexpr std::uint32_t kThreads = 256;
constexpr ls::LaunchConfig kConfig{.grid = kCount / kThreads, .block = kThreads};

int run(const example::Options& options) {
  const ls::Device device = ls::Device::open(options.device);
  const ls::Module module = device.compile(
      streams_kernels, {.kernels = {"ramp", "scale_add", "join"}, .source_name = "streams.cu"});
  const ls::Kernel ramp = module.kernel("ramp"), scale_add = module.kernel("scale_add"),
                   join = module.kernel("join");

  ls::Stream main = device.create_stream();
  const ls::Stream left = device.create_stream(), right = device.create_stream();
  const ls::Event forked = device.create_event(), left_done = device.create_event(),
                  right_done = device.create_event();
  const auto source = device.allocate<float>(kCount), a = device.allocate<float>(kCount),
             b = device.allocate<float>(kCount), c = device.allocate<float>(kCount),
             sum = device.allocate<float>(kCount);

  // main ──ramp──┬──────a────────┬──join
  //              ├─left──b───────┤
  //              └─right──c──────┘
  const auto step = [&](ls::Stream& stream) {
    stream.launch(ramp, kConfig, source, kCount);
    stream.record(forked);
    left.wait(forked);
    right.wait(forked);
    stream.launch(scale_add, kConfig, source, a, 2.0f, 1.0f, kCount);
    left.launch(scale_add, kConfig, source, b, 3.0f, -1.0f, kCount);
    right.launch(scale_add, kConfig, source, c, 0.5f, 4.0f, kCount);
    left.record(left_done);
    right.record(right_done);
    stream.wait(left_done);
    stream.wait(right_done);
    stream.launch(join, kConfig, a, b, c, sum, kCount);
  };

  ls::LaunchTrace trace;
  step(main);
  const ls::Trace recording = trace.trace();
  std::vector<float> values(kCount);
  main.copy_and_wait(values, sum);

  bool right_values = true;
  for (int i = 0; i < kCount; ++i) {
    const float x = static_cast<float>(i % 1000) * 0.5f;
    right_values = right_values && values[static_cast<std::size_t>(i)] == 5.5f * x + 4.0f;
  }

  const ls::GraphExec graph = main.capture(step).instantiate();
  std::vector<float> replayed(kCount);
  main.fill(sum, 0.0f);
  graph.launch(main);
  main.copy_and_wait(replayed, sum);
  right_values = right_values && replayed == values;
  ls::VerifyOptions verify;
  verify.level = ls::VerifyLevel::kValues;
  verify.outputs = {ls::as_bytes(sum)};
  const ls::VerifyReport report = ls::verify(graph, step, verify);

  example::print_device(device);
  std::cout << recording.entries.size() << " entries recorded, graph of "
            << graph.graph().node_count() << " nodes and " << graph.graph().edges().size()
            << " edges\n"
            << "values " << (right_values ? "right" : "WRONG") << ", "
            << (report.ok() ? "replay verified (L0-L4)" : "replay NOT verified") << '\n';
  if (!report.ok()) std::cout << report;
  example::write_values(options, "streams", values);
  if (!options.output.empty())
    ls::write_trace(options.output / "streams.jsonl", recording, {.force = true});
  return right_values && report.ok() ? example::kDone : example::kDifferent;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Fork and join over three streams.", {}, run);
}
