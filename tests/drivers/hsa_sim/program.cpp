// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <thread>

#include "program_hip.h"

// AMD's own HIP runtime on the simulated layer, without any part of Lockstep between: one mode each
// run, since the layer reads its environment once. Prints "MODE: ok" or what the mode is to show.
namespace hsa_sim_program {
namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void add(const int* x, int* y, int by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + by;
}
template <typename T, int kFactor>
__global__ void scale(T* values, unsigned long long n) {
  unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = values[i] * kFactor;
}
extern __shared__ int dynamic[];
extern "C" __global__ void turn(int* values) {
  __shared__ int fixed[64];
  fixed[threadIdx.x] = values[threadIdx.x];
  dynamic[threadIdx.x] = threadIdx.x;
  __syncthreads();
  values[threadIdx.x] = fixed[63 - threadIdx.x] + dynamic[63 - threadIdx.x];
}
__device__ int counter;
extern "C" __global__ void count(int by) {
  if (threadIdx.x == 0 && blockIdx.x == 0) counter += by;
}
)";
const std::vector<std::string> kNames = {"add", "scale<float, 3>", "turn", "count"};

void devices() {
  int count = 0;
  must("hipGetDeviceCount", &count);
  std::cout << count << " devices\n";
  for (int device = 0; device < count; ++device) {
    char name[256] = "";
    must("hipDeviceGetName", static_cast<char*>(name), 256, device);
    int wave = 0;
    must("hipDeviceGetAttribute", &wave, 87, device);
    std::size_t bytes = 0;
    must("hipDeviceTotalMem", &bytes, device);
    std::cout << device << ": " << name << ", waves of " << wave << ", " << (bytes >> 20)
              << " MiB\n";
  }
}

// Through pinned and through pageable memory, of sizes that AMD's runtime treats differently.
void copies() {
  Stream stream = make_stream();
  for (const std::size_t count : {1UL, 5UL, 1000UL, 70'001UL, 3'000'003UL}) {
    std::vector<unsigned char> from(count), to(count);
    std::iota(from.begin(), from.end(), static_cast<unsigned char>(count));
    auto* const a = allocate<unsigned char>(count);
    auto* const b = allocate<unsigned char>(count);
    must("hipMemcpyAsync", static_cast<void*>(a), static_cast<const void*>(from.data()), count,
         kHostToDevice, stream);
    must("hipMemcpyAsync", static_cast<void*>(b), static_cast<const void*>(a), count,
         kDeviceToDevice, stream);
    must("hipMemcpyAsync", static_cast<void*>(to.data()), static_cast<const void*>(b), count,
         kDeviceToHost, stream);
    must("hipStreamSynchronize", stream);
    expect(from == to, "a copy of " + std::to_string(count) + " bytes");
    void* pinned = nullptr;
    must("hipHostMalloc", &pinned, count, 0U);
    must("hipMemcpyAsync", pinned, static_cast<const void*>(b), count, kDeviceToHost, stream);
    must("hipStreamSynchronize", stream);
    expect(std::memcmp(pinned, from.data(), count) == 0, "a copy into pinned memory");
    must("hipHostFree", pinned);
    must("hipFree", static_cast<void*>(a));
    must("hipFree", static_cast<void*>(b));
  }
}

// The stream goes right behind copies that AMD's runtime stages, and that were waited for.
void staged() {
  std::vector<unsigned char> from(std::size_t{1} << 20), to(from.size());
  auto* const memory = allocate<unsigned char>(from.size());
  for (int round = 1; round <= 3; ++round) {
    Stream stream = make_stream();
    for (int i = 0; i < 3; ++i) {
      std::fill(from.begin(), from.end(), static_cast<unsigned char>(10 * round + i));
      must("hipMemcpyAsync", static_cast<void*>(memory), static_cast<const void*>(from.data()),
           from.size(), kHostToDevice, stream);
      must("hipStreamSynchronize", stream);
    }
    must("hipStreamDestroy", stream);
    must("hipMemcpy", static_cast<void*>(to.data()), static_cast<const void*>(memory), to.size(),
         kDeviceToHost);
    expect(from == to, "what was copied before the stream went");
  }
}

// Rows, by engines and by kernels.
void rows() {
  Stream stream = make_stream();
  for (const std::size_t width : {4UL, 7UL, 64UL, 1000UL}) {
    constexpr std::size_t kPitch = 1024, kRows = 9;
    std::vector<unsigned char> from(kPitch * kRows), to(kPitch * kRows, 1);
    std::iota(from.begin(), from.end(), static_cast<unsigned char>(width));
    auto* const a = allocate<unsigned char>(kPitch * kRows);
    auto* const b = allocate<unsigned char>(kPitch * kRows);
    must("hipMemset", static_cast<void*>(a), 0, kPitch * kRows);
    must("hipMemset", static_cast<void*>(b), 0, kPitch * kRows);
    must("hipDeviceSynchronize");
    const auto copy = [&](void* destination, const void* source, int kind) {
      must("hipMemcpy2DAsync", destination, kPitch, source, kPitch, width, kRows, kind, stream);
    };
    copy(a, from.data(), kHostToDevice);
    copy(b, a, kDeviceToDevice);
    copy(to.data(), b, kDeviceToHost);
    must("hipStreamSynchronize", stream);
    for (std::size_t i = 0; i < to.size(); ++i) {
      expect(to[i] == (i % kPitch < width ? from[i] : 1), "rows of " + std::to_string(width));
    }
    must("hipFree", static_cast<void*>(a));
    must("hipFree", static_cast<void*>(b));
  }
}

// One set of `count` units at an offset; every byte around it has to stay.
void set_one(Stream stream, unsigned char* memory, std::size_t bytes, std::size_t offset,
             std::size_t unit, std::size_t count) {
  must("hipMemsetD8Async", static_cast<void*>(memory), static_cast<unsigned char>(0xEE), bytes,
       stream);
  constexpr unsigned kValue = 0x12345678;
  void* const at = memory + offset;
  if (unit == 1) {
    must("hipMemsetD8Async", at, static_cast<unsigned char>(kValue), count, stream);
  } else if (unit == 2) {
    must("hipMemsetD16Async", at, static_cast<unsigned short>(kValue), count, stream);
  } else {
    must("hipMemsetD32Async", at, static_cast<int>(kValue), count, stream);
  }
  std::vector<unsigned char> to(bytes);
  must("hipMemcpyAsync", static_cast<void*>(to.data()), static_cast<const void*>(memory), bytes,
       kDeviceToHost, stream);
  must("hipStreamSynchronize", stream);
  for (std::size_t i = 0; i < bytes; ++i) {
    const bool inside = i >= offset && i < offset + count * unit;
    const auto wanted =
        static_cast<unsigned char>(inside ? kValue >> (i - offset) % unit * 8 : 0xEE);
    expect(to[i] == wanted, "byte " + std::to_string(i) + " of " + std::to_string(count) +
                                " units of " + std::to_string(unit) + " at " +
                                std::to_string(offset));
  }
}

void sets() {
  Stream stream = make_stream();
  constexpr std::size_t kBytes = 40'032;
  auto* const memory = allocate<unsigned char>(kBytes);
  for (const std::size_t unit : {1UL, 2UL, 4UL}) {
    for (const std::size_t count : {16UL, 4097UL, 9999UL}) {
      for (const std::size_t offset : {0UL, 8UL, 4UL}) {
        set_one(stream, memory, kBytes, offset, unit, count);
      }
    }
  }
}

// "set OFFSET UNIT COUNT": releases of AMD's runtime write wrong bytes for some.
void set(const std::vector<std::string>& numbers) {
  expect(numbers.size() == 3, "set OFFSET UNIT COUNT");
  set_one(make_stream(), allocate<unsigned char>(4096), 4096, std::stoul(numbers[0]),
          std::stoul(numbers[1]), std::stoul(numbers[2]));
}

void kernels() {
  Stream stream = make_stream();
  const Compiled compiled = compile(kSource, kNames);
  int n = 1000, by = 7;
  std::vector<int> from(1000), to(1000);
  std::iota(from.begin(), from.end(), 0);
  auto* x = allocate<int>(1000);
  auto* y = allocate<int>(1000);
  const auto copy = [&](void* destination, const void* source, std::size_t bytes, int kind) {
    must("hipMemcpyAsync", destination, source, bytes, kind, stream);
  };
  copy(x, from.data(), 4000, kHostToDevice);
  launch(compiled.function("add"), 4, 256, 0, stream, {&x, &y, &by, &n});
  copy(to.data(), y, 4000, kDeviceToHost);
  must("hipStreamSynchronize", stream);
  for (int i = 0; i < n; ++i) expect(to[i] == i + 7, "add");

  auto* floats = allocate<float>(100);
  std::vector<float> values(100, 2.5F);
  unsigned long long count = 100;
  copy(floats, values.data(), 400, kHostToDevice);
  launch(compiled.function("scale<float, 3>"), 1, 128, 0, stream, {&floats, &count});
  copy(values.data(), floats, 400, kDeviceToHost);
  launch(compiled.function("turn"), 1, 64, 64 * sizeof(int), stream, {&x});
  copy(to.data(), x, 4000, kDeviceToHost);
  must("hipStreamSynchronize", stream);
  for (const float value : values) expect(value == 7.5F, "a template");
  for (int i = 0; i < 64; ++i) expect(to[i] == 2 * (63 - i), "shared memory and a barrier");

  void* variable = nullptr;
  std::size_t bytes = 0;
  must("hipModuleGetGlobal", &variable, &bytes, compiled.module, "counter");
  expect(bytes == 4, "the size of a variable");
  int number = 100;
  copy(variable, &number, 4, kHostToDevice);
  must("hipStreamSynchronize", stream);
  launch(compiled.function("count"), 2, 64, 0, stream, {&by});
  copy(&number, variable, 4, kDeviceToHost);
  must("hipStreamSynchronize", stream);
  expect(number == 107, "a variable: " + std::to_string(number));
  must("hipModuleUnload", compiled.module);
}

void events() {
  Stream first = make_stream(), second = make_stream();
  const Compiled compiled = compile(kSource, kNames);
  int n = 64, by = 1;
  auto* x = allocate<int>(64);
  auto* y = allocate<int>(64);
  must("hipMemset", static_cast<void*>(x), 0, std::size_t{256});
  must("hipDeviceSynchronize");
  void *begin = nullptr, *end = nullptr;
  must("hipEventCreate", &begin);
  must("hipEventCreate", &end);
  must("hipEventRecord", begin, first);
  launch(compiled.function("add"), 1, 64, 0, first, {&x, &y, &by, &n});
  must("hipEventRecord", end, first);
  must("hipStreamWaitEvent", second, end, 0U);
  launch(compiled.function("add"), 1, 64, 0, second, {&y, &x, &by, &n});
  std::vector<int> to(64);
  must("hipMemcpyAsync", static_cast<void*>(to.data()), static_cast<const void*>(x),
       std::size_t{256}, kDeviceToHost, second);
  must("hipStreamSynchronize", second);
  expect(to[63] == 2, "work behind an event of another stream");
  float milliseconds = -1;
  must("hipEventElapsedTime", &milliseconds, begin, end);
  expect(milliseconds >= 0, "time between events");
}

// Fork, join, replay; before 5.3 a launch is not captured.
void graphs() {
  if (runtime_version() < 50300000) {
    std::cout << "not captured by this release\n";
    return;
  }
  Stream stream = make_stream(), other = make_stream();
  const Compiled compiled = compile(kSource, kNames);
  int n = 64, by = 1;
  auto* x = allocate<int>(64);
  auto* y = allocate<int>(64);
  void *fork = nullptr, *join = nullptr, *graph = nullptr, *exec = nullptr;
  must("hipEventCreateWithFlags", &fork, 2U);
  must("hipEventCreateWithFlags", &join, 2U);
  std::vector<int> to(64);
  must("hipStreamBeginCapture", stream, 1);
  must("hipMemsetD32Async", static_cast<void*>(x), 40, std::size_t{64}, stream);
  must("hipEventRecord", fork, stream);
  must("hipStreamWaitEvent", other, fork, 0U);
  launch(compiled.function("add"), 1, 64, 0, other, {&x, &y, &by, &n});
  must("hipEventRecord", join, other);
  must("hipStreamWaitEvent", stream, join, 0U);
  launch(compiled.function("add"), 1, 64, 0, stream, {&y, &x, &by, &n});
  must("hipStreamEndCapture", stream, &graph);
  by = 1000;  // arguments were copied
  std::size_t nodes = 0;
  must("hipGraphGetNodes", graph, static_cast<void**>(nullptr), &nodes);
  expect(nodes == 3, std::to_string(nodes) + " nodes");
  must("hipGraphInstantiate", &exec, graph, static_cast<void**>(nullptr),
       static_cast<char*>(nullptr), std::size_t{0});
  for (int i = 0; i < 2; ++i) must("hipGraphLaunch", exec, stream);
  must("hipMemcpyAsync", static_cast<void*>(to.data()), static_cast<const void*>(x),
       std::size_t{256}, kDeviceToHost, stream);
  must("hipStreamSynchronize", stream);
  expect(to[63] == 42, "replay: " + std::to_string(to[63]));
}

struct HostNode {
  std::thread::id launching;
  const volatile int* number;
  std::vector<int> seen;
  int at_once = 0;  // calls by the thread that launches
  static void call(void* self) {
    auto& node = *static_cast<HostNode*>(self);
    if (std::this_thread::get_id() == node.launching) ++node.at_once;
    const int number = *node.number;
    node.seen.push_back(number);
  }
};

// Copies a number to the host and calls a function there; launched again once that is over. 5.2
// calls it at once then, before the copy: why the plugin launches such an executable only once.
void host_nodes() {
  Stream stream = make_stream();
  void *pinned = nullptr, *graph = nullptr, *exec = nullptr, *copy = nullptr, *host = nullptr;
  must("hipHostMalloc", &pinned, std::size_t{4}, 0U);
  auto* const memory = allocate<int>(1);
  HostNode node{std::this_thread::get_id(), static_cast<int*>(pinned), {}};
  struct {
    void (*function)(void*);
    void* argument;
  } const parameters{HostNode::call, &node};
  must("hipGraphCreate", &graph, 0U);
  must("hipGraphAddMemcpyNode1D", &copy, graph, static_cast<void* const*>(nullptr), std::size_t{0},
       pinned, static_cast<const void*>(memory), std::size_t{4}, kDeviceToHost);
  must("hipGraphAddHostNode", &host, graph, static_cast<void* const*>(&copy), std::size_t{1},
       static_cast<const void*>(&parameters));
  must("hipGraphInstantiate", &exec, graph, static_cast<void**>(nullptr),
       static_cast<char*>(nullptr), std::size_t{0});
  for (int number = 1; number <= 4; ++number) {
    must("hipMemcpy", static_cast<void*>(memory), static_cast<const void*>(&number), std::size_t{4},
         kHostToDevice);
    must("hipGraphLaunch", exec, stream);
    must("hipStreamSynchronize", stream);
  }
  std::cout << "the host function saw";
  for (const int number : node.seen) std::cout << ' ' << number;
  std::cout << ", called by the thread that launches " << node.at_once << " times\n";
  const bool right = node.seen == std::vector{1, 2, 3, 4} && node.at_once == 0;
  // What it sees when it is called too early is chance.
  const bool wrong = node.at_once > 0;
  // What 5.3 to 5.6 do was never seen.
  const int version = runtime_version();
  expect(version < 50300000 ? wrong : right || (wrong && version < 50700000), "host nodes");
}

void pools() {
  Stream stream = make_stream();
  for (int i = 0; i < 3; ++i) {
    void* memory = nullptr;
    must("hipMallocAsync", &memory, std::size_t{1} << 20, stream);
    must("hipMemsetAsync", memory, 3, std::size_t{1} << 20, stream);
    std::vector<unsigned char> to(std::size_t{1} << 20);
    must("hipMemcpyAsync", static_cast<void*>(to.data()), static_cast<const void*>(memory),
         to.size(), kDeviceToHost, stream);
    must("hipFreeAsync", memory, stream);
    must("hipStreamSynchronize", stream);
    expect(to.front() == 3 && to.back() == 3, "stream-ordered memory");
  }
}

void two() {
  must("hipSetDevice", 1);
  Stream stream = make_stream();
  auto* const far = allocate<int>(1000);
  must("hipMemsetD32Async", static_cast<void*>(far), 77, std::size_t{1000}, stream);
  must("hipStreamSynchronize", stream);
  must("hipSetDevice", 0);
  auto* const near = allocate<int>(1000);
  must("hipMemcpyPeerAsync", static_cast<void*>(near), 0, static_cast<const void*>(far), 1,
       std::size_t{4000}, stream);
  must("hipStreamSynchronize", stream);
  std::vector<int> to(1000);
  must("hipMemcpy", static_cast<void*>(to.data()), static_cast<const void*>(near),
       std::size_t{4000}, kDeviceToHost);
  expect(to.back() == 77, "a copy between devices");
}

// What is allocated in turn: result codes of AMD's runtime.
void memory(const std::vector<std::string>& sizes) {
  for (const std::string& size : sizes) {
    void* made = nullptr;
    std::cout << size << ": " << hip("hipMalloc", &made, static_cast<std::size_t>(std::stoul(size)))
              << '\n';
  }
}

// Reads without waiting, then after it.
void late() {
  Stream stream = make_stream();
  void* pinned = nullptr;
  must("hipHostMalloc", &pinned, std::size_t{4}, 0U);
  auto* const value = static_cast<volatile int*>(pinned);
  *value = 1;
  auto* const memory = allocate<int>(1);
  must("hipMemsetD32Async", static_cast<void*>(memory), 2, std::size_t{1}, stream);
  must("hipMemcpyAsync", pinned, static_cast<const void*>(memory), std::size_t{4}, kDeviceToHost,
       stream);
  std::cout << "before: " << *value << ", ready: " << hip("hipStreamQuery", stream) << '\n';
  must("hipStreamSynchronize", stream);
  std::cout << "after: " << *value << '\n';
}

// A kernel whose source nobody kept: the queue stops, and AMD's runtime with it.
void bodiless() {
  Stream stream = make_stream();
  const Compiled compiled = compile_only(
      "extern \"C\" __global__ void bodiless(int* value) { *value = 1; }", {"bodiless"});
  auto* value = allocate<int>(1);
  launch(compiled.function("bodiless"), 1, 1, 0, stream, {&value});
  std::cout << "synchronize: " << hip("hipStreamSynchronize", stream) << '\n';
}

int run(const std::vector<std::string>& arguments) {
  const std::map<std::string, std::function<void()>> modes = {
      {"devices", devices},
      {"copies", copies},
      {"staged", staged},
      {"rows", rows},
      {"sets", sets},
      {"kernels", kernels},
      {"events", events},
      {"graphs", graphs},
      {"host_nodes", host_nodes},
      {"pools", pools},
      {"two", two},
      {"late", late},
      {"bodiless", bodiless},
      {"set",
       [&] {
         set({arguments.begin() + 1, arguments.end()});
       }},
      {"memory", [&] {
         memory({arguments.begin() + 1, arguments.end()});
       }}};
  const auto mode = arguments.empty() ? modes.end() : modes.find(arguments.front());
  if (mode == modes.end()) {
    std::cerr << "modes:";
    for (const auto& [name, body] : modes) std::cerr << ' ' << name;
    std::cerr << '\n';
    return 2;
  }
  if (const int result = hip("hipInit", 0U); result != 0) {
    std::cout << "hipInit: " << result << '\n';
    return 4;
  }
  mode->second();
  std::cout << mode->first << ": ok\n";
  return 0;
}

}  // namespace
}  // namespace hsa_sim_program

int main(int argc, char** argv) { return hsa_sim_program::run({argv + 1, argv + argc}); }
