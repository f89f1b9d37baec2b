// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>
#include <lockstep/trace_diff.h>

#include <iostream>
#include <map>
#include <string>
#include <vector>

// Uses the cuda and the hip plugin in one process, in the order of its argument ("cuda,hip"), each
// again after the other, and compares what they recorded.
namespace {

namespace ls = lockstep;

constexpr const char* kSource = R"(
extern "C" __global__ void add(int* values, int count, int more) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += more;
}
)";
constexpr int kCount = 256;

struct Job {
  explicit Job(const std::string& backend) : device(ls::Device::open(backend + ":0")) {}

  int run() {
    stream.fill(values, 40);
    stream.launch(add, {.grid = 1, .block = kCount}, values, kCount, 2);
    std::vector<int> host(kCount);
    stream.copy_and_wait(host, values);
    return host.back();
  }

  ls::Device device;
  ls::Stream stream = device.create_stream();
  ls::Buffer<int> values = device.allocate<int>(kCount);
  ls::Kernel add = device.compile(kSource, {.kernels = {"add"}}).kernel("add");
};

}  // namespace

int main(int, char** argv) {
  const std::string order = argv[1];
  const std::string first = order.substr(0, order.find(','));
  const std::string second = order.substr(order.find(',') + 1);
  try {
    std::map<std::string, Job> jobs;
    for (const std::string& name : {first, second}) {
      std::cout << name << ": " << jobs.emplace(name, name).first->second.run() << '\n';
    }
    std::map<std::string, ls::Trace> traces;
    for (const std::string& name : {first, second}) {
      ls::LaunchTrace recorded;
      if (jobs.at(name).run() != 42) return 1;
      traces[name] = recorded.trace();
    }
    const ls::DiffReport report = ls::diff(traces.at(first), traces.at(second));
    std::cout << "cuda and hip traces are " << (report.equal ? "equal" : "different") << '\n';
    return report.equal ? 0 : 1;
  } catch (const ls::Error& error) {
    std::cerr << error.what() << '\n';
    return 5;
  }
}
