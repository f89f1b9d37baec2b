// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <iostream>
#include <optional>
#include <string>
#include <vector>

// What the public interface says when the simulated driver misbehaves: the driver reads its faults
// once a process, so each runs in one of these. Prints one line a step: its name and "ok", or the
// code of the error and the driver's number.
namespace {

namespace ls = lockstep;

template <typename Body>
void step(const char* name, const Body& body) {
  try {
    body();
    std::cout << name << ": ok\n";
  } catch (const ls::Error& error) {
    std::cout << name << ": " << ls::to_string(error.code()) << ' ' << error.context().native_code
              << ' ' << error.context().call << '\n';
  }
}

constexpr const char* kSource = R"(
extern "C" __global__ void add_one(int* values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += 1;
}
)";
constexpr int kCount = 256;

struct Job {
  ls::Device device = ls::Device::open("cuda:0");
  ls::Stream stream = device.create_stream();
  ls::Buffer<int> values = device.allocate<int>(kCount);
  ls::Kernel add_one = device.compile(kSource, {.kernels = {"add_one"}}).kernel("add_one");

  void launch() { stream.launch(add_one, {.grid = 1, .block = kCount}, values, kCount); }
};

void allocations(const std::vector<std::string>& sizes) {
  const ls::Device device = ls::Device::open("cuda:0");
  std::vector<ls::Buffer<char>> kept;
  for (const std::string& size : sizes) {
    step(size.c_str(), [&] { kept.push_back(device.allocate<char>(std::stoul(size))); });
  }
}

void lost() {
  Job job;
  const ls::Event event = job.device.create_event();
  step("first", [&] {
    job.launch();
    job.stream.record(event);
    job.stream.synchronize();
  });
  step("second", [&] {
    job.launch();
    job.stream.synchronize();
  });
  step("allocate", [&] { job.device.allocate<int>(1); });
  step("launch", [&] { job.launch(); });
  step("synchronize", [&] { job.stream.synchronize(); });
  step("event", [&] { static_cast<void>(event.query()); });
}

void late() {
  Job job;
  job.stream.fill(job.values, 41);
  job.launch();
  std::cout << "done at once: " << (job.stream.query() ? "yes" : "no") << '\n';
  std::vector<int> values(kCount);
  job.stream.copy_and_wait(values, job.values);
  std::cout << "value: " << values.back() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    if (mode == "allocate") {
      allocations({argv + 2, argv + argc});
    } else if (mode == "lost") {
      lost();
    } else if (mode == "late") {
      late();
    } else if (mode == "open") {
      step("open", [] { ls::Device::open("cuda:0"); });
      step("auto", [] { std::cout << ls::Device::open("auto").backend() << ' '; });
    } else {
      std::cerr << "modes: allocate BYTES..., lost, late, open\n";
      return 2;
    }
  } catch (const ls::Error& error) {
    std::cerr << error.what() << '\n';
    return 5;
  }
  return 0;
}
