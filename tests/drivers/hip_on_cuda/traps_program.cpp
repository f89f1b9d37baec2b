// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <iostream>
#include <string>
#include <thread>
#include <vector>

// Traps of HIP's releases, met on purpose: prints what the public interface makes of each. What
// reached the runtime is in its log.
namespace {

namespace ls = lockstep;

constexpr const char* kSource = R"(
extern "C" __global__ void add_one(int* values) { values[threadIdx.x] += 1; }
)";

template <typename Body>
void step(const char* name, const Body& body) {
  try {
    body();
    std::cout << name << ": ok\n";
  } catch (const ls::Error& error) {
    std::cout << name << ": " << ls::to_string(error.code()) << ": " << error.what() << '\n';
  }
}

struct Job {
  ls::Device device = ls::Device::open("hip:0");
  ls::Stream stream = device.create_stream(), other = device.create_stream();
  ls::Buffer<int> values = device.allocate<int>(256);
  ls::Kernel add_one = device.compile(kSource, {.kernels = {"add_one"}}).kernel("add_one");

  void launch(const ls::StreamRef& on) { on.launch(add_one, {.grid = 1, .block = 256}, values); }
  int value() {
    std::vector<int> host(256);
    stream.copy_and_wait(host, values);
    return host.back();
  }
};

// hip#2253 and others: 2^32 threads in one dimension fail, or are cut off silently.
void big() {
  Job job;
  const ls::LaunchConfig config{.grid = 1U << 24U, .block = 256};
  step("eager", [&] { job.stream.launch(job.add_one, config, job.values); });
  ls::Graph graph = job.device.create_graph();
  step("node", [&] { graph.add_kernel({}, job.add_one, config, job.values); });
}

// rocm-systems#6509, #6429: what a broken capture leaves behind. The handles stay the same, since
// the runtime's capture was ended in order.
void captures() {
  Job job;
  job.stream.fill(job.values, 0);
  job.stream.synchronize();
  void* const before = job.stream.native_handle();
  void* const other_before = job.other.native_handle();
  ls::Event fork = job.device.create_event();
  step("unjoined", [&] {
    (void)job.stream.capture([&](ls::Stream& s) {
      s.record(fork);
      job.other.wait(fork);
      job.launch(job.other);
    });
  });
  step("invalidated", [&] {
    job.stream.begin_capture();
    job.launch(job.stream);
    try {
      job.device.synchronize();
    } catch (const ls::Error& error) {
      std::cout << "synchronize: " << ls::to_string(error.code()) << '\n';
    }
    (void)job.stream.end_capture();
  });
  // rocm-systems#11698: another thread's wait for the device kills a capture.
  step("begin", [&] { job.stream.begin_capture(); });
  job.launch(job.stream);
  std::thread([&] {
    step("allocate elsewhere", [&] { (void)job.device.allocate<int>(16); });
  }).join();
  ls::Graph graph = job.stream.end_capture();
  std::cout << "nodes: " << graph.node_count() << '\n';
  std::cout << "same streams: "
            << (before == job.stream.native_handle() && other_before == job.other.native_handle())
            << '\n';
  ls::GraphExec exec = graph.instantiate();
  exec.launch(job.stream);
  job.launch(job.other);
  job.other.synchronize();
  std::cout << "value: " << job.value() << '\n';
}

}  // namespace

int main(int, char** argv) {
  const std::string mode = argv[1];
  try {
    if (mode == "big") big();
    if (mode == "captures") captures();
  } catch (const ls::Error& error) {
    std::cerr << error.what() << '\n';
    return 5;
  }
  return 0;
}
