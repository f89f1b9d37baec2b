// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

// Ends with every kind of object alive in a global, work in flight and a trace open.
namespace {

struct Everything {
  lockstep::Device device;
  lockstep::Stream stream;
  lockstep::Event event;
  lockstep::Buffer<int> buffer, pinned;
  lockstep::Kernel kernel;
  lockstep::Graph graph;
  lockstep::GraphExec exec;
  std::optional<lockstep::LaunchTrace> trace;
};

Everything everything;  // constructed before any backend is loaded: destroyed after it

void use() {
  Everything& all = everything;
  all.device = lockstep::Device::open("host");
  all.stream = all.device.create_stream();
  all.event = all.device.create_event();
  all.buffer = all.device.allocate<int>(1 << 16);
  all.pinned = all.device.allocate_pinned<int>(16);
  all.kernel =
      all.device
          .compile("extern \"C\" __global__ void add(int* p) { *p += 1; }", {.kernels = {"add"}})
          .kernel("add");
  all.trace.emplace();
  all.graph =
      all.stream.capture([&](lockstep::StreamRef& s) { s.launch(all.kernel, {}, all.buffer); });
  all.exec = all.graph.instantiate();
  all.stream.fill(all.buffer, 0);
  for (int i = 0; i < 100; ++i) all.exec.launch(all.stream);
  all.stream.record(all.event);
}

}  // namespace

int main(int argc, char** argv) {
  use();
  std::puts("done");
  std::fflush(stdout);
  if (argc > 1 && std::strcmp(argv[1], "exit-in-thread") == 0) {
    std::thread([] { std::exit(0); }).join();
  }
  return 0;
}
