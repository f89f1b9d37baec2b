// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <cstdlib>
#include <dlfcn.h>
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

// Another library of the process captures, on a stream and in a mode of its own, while a module of
// ours comes, runs and goes: first on our stream, then on its own one.
void foreign_capture() {
  Job job;
  void* const library = dlopen(getenv("LOCKSTEP_CUDA_LIBRARY"), RTLD_NOW);
  const auto call = [&](const char* name, auto... arguments) {
    using Function = int (*)(decltype(arguments)...);
    const int result = reinterpret_cast<Function>(dlsym(library, name))(arguments...);
    if (result != 0) std::cout << name << ' ' << result << '\n';
  };
  void *context = nullptr, *stream = nullptr, *graph = nullptr;
  call("cuStreamGetCtx", job.stream.native_handle(), &context);
  call("cuCtxSetCurrent", context);
  call("cuStreamCreate", &stream, 1U);
  const auto use_module = [&](const ls::StreamRef& on) {
    const ls::Kernel kernel =
        job.device.compile(kSource, {.kernels = {"add_one"}}).kernel("add_one");
    on.launch(kernel, {.grid = 1, .block = kCount}, job.values, kCount);
  };
  job.stream.fill(job.values, 0);
  const int global = 0;
  call("cuStreamBeginCapture_v2", stream, global);
  use_module(job.stream);
  call("cuStreamEndCapture", stream, &graph);
  std::cout << "its capture: " << (graph != nullptr ? "whole" : "broken") << '\n';
  use_module(ls::StreamRef::from_native(job.device, stream));
  std::cout << "not waited for\n";
  job.device.synchronize();
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
    } else if (mode == "foreign-capture") {
      foreign_capture();
    } else if (mode == "open") {
      step("open", [] { ls::Device::open("cuda:0"); });
      step("auto", [] { std::cout << ls::Device::open("auto").backend() << ' '; });
    } else {
      std::cerr << "modes: allocate BYTES..., lost, late, foreign-capture, open\n";
      return 2;
    }
  } catch (const ls::Error& error) {
    std::cerr << error.what() << '\n';
    return 5;
  }
  return 0;
}
