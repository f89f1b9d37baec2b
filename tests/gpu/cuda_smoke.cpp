// SPDX-License-Identifier: Apache-2.0
// Drives the cuda plugin's C table on a real device: compiling, copies, sets, events, capture rules
// as measured on NVIDIA's driver, graphs. Exit code 77 and a reason when there is no device.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "smoke_device.h"

namespace {

using namespace smoke;  // NOLINT: one program

const char* const kSource = R"(
#include <lockstep/kernel.h>
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
template <int N> __global__ void add(int* x) { atomicAdd(x, N); }
extern "C" __global__ void twice(int* x) { *x = *x * 2; }
extern "C" __global__ void to_half(lockstep::half* h, float v) { h[0] = v; }
__device__ int counter = 7;
)";

void test_compile_and_launch(lockstep_stream* stream) {
  lockstep_module_desc desc{};
  desc.struct_size = sizeof desc;
  desc.format = LOCKSTEP_MODULE_SOURCE;
  desc.data = kSource;
  desc.bytes = std::strlen(kSource);
  const char* names[] = {"saxpy", "add<1>", "twice", "to_half"};
  desc.kernels = names;
  desc.kernel_count = 4;
  MUST(b->module_create, device, &desc, &module);
  MUST(b->module_kernel, module, "saxpy", &saxpy);
  MUST(b->module_kernel, module, " add < 1 > ", &add_one);
  MUST(b->module_kernel, module, "twice", &twice);
  MUST(b->module_load_all, module);
  lockstep_kernel* none = nullptr;
  const Answer missing = call(b->module_kernel, module, "nothing", &none);
  CHECK(missing.code == LOCKSTEP_E_NOT_FOUND && says(missing, "add<1>"));
  lockstep_kernel_info info{};
  info.struct_size = sizeof info;
  MUST(b->kernel_info, add_one, &info);
  CHECK(std::string(info.name) == "_Z3addILi1EEvPi");
  MUST(b->kernel_info, saxpy, &info);
  CHECK(info.parameter_count == 4 && info.parameters[1].offset == 8 &&
        info.parameters[1].size == 8 && info.parameters[1].tag == 255);
  void* address = nullptr;
  std::uint64_t bytes = 0;
  MUST(b->module_global, module, "counter", &address, &bytes);
  CHECK(bytes == 4 && read_int(stream, static_cast<int*>(address)) == 7);

  constexpr int n = 1000;
  std::vector<float> x(n), y(n), out(n);
  for (int i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 0.5F;
  }
  void *dx = nullptr, *dy = nullptr;
  CHECK(allocate(n * 4, &dx).ok() && allocate(n * 4, &dy).ok());
  g_active = 1;
  CHECK(copy(stream, dx, x.data(), n * 4, LOCKSTEP_COPY_HTOD).ok());
  CHECK(copy(stream, dy, y.data(), n * 4).ok());
  const float a = 2;
  const void* arguments[] = {&a, &dx, &dy, &n};
  const lockstep_parameter typed[] = {{0, 4, 0, {}}, {0, 8, 1, {}}, {0, 8, 1, {}}, {0, 4, 0, {}}};
  lockstep_launch_desc launch = launch_desc(saxpy, 4, 256, arguments, 4);
  launch.parameters = typed;
  MUST(b->launch, stream, &launch);
  CHECK(copy(stream, out.data(), dy, n * 4, LOCKSTEP_COPY_DTOH).ok());
  MUST(b->stream_synchronize, stream);
  g_active = 0;
  bool equal = true;
  for (int i = 0; i < n; ++i) equal = equal && out[i] == 2 * x[i] + 0.5F;
  CHECK(equal);
  const std::vector<Entry> entries = take();
  CHECK(entries.size() == 5);
  CHECK(entries[0].name == "cuMemcpyHtoDAsync" && entries[0].record.of.copy.direction == 1 &&
        entries[0].record.of.copy.width == n * 4);
  CHECK(entries[2].name == "saxpy" && entries[2].record.of.kernel.grid.x == 4 &&
        entries[2].tags == std::vector<std::uint8_t>({0, 1, 1, 0}));
  CHECK(entries[3].name == "cuMemcpyDtoHAsync" && entries[4].name == "cuStreamSynchronize");

  launch.argument_count = 3;
  CHECK(call(b->launch, stream, &launch).code == LOCKSTEP_E_INVALID_ARGUMENT);
  launch.argument_count = 4;
  launch.grid = {1, 65536, 1};
  const Answer wide = call(b->launch, stream, &launch);
  CHECK(wide.code == LOCKSTEP_E_INVALID_ARGUMENT && says(wide, "grid y is 65536"));
  launch.grid = {1, 65535, 1};
  MUST(b->launch, stream, &launch);
  launch.grid = {2147483647, 1, 1};
  launch.block = {1, 1, 1};
  MUST(b->launch, stream, &launch);
  launch.grid = {1, 1, 1};
  launch.shared_bytes = 49153;
  const Answer shared = call(b->launch, stream, &launch);
  CHECK(shared.code == LOCKSTEP_E_INVALID_ARGUMENT && says(shared, "49153"));
  MUST(b->kernel_set_max_dynamic_shared, saxpy, 65536U);
  MUST(b->launch, stream, &launch);
  launch.shared_bytes = 0;
  const lockstep_dim3 cluster{2, 1, 1};
  const std::uint32_t one = 1;
  const lockstep_attribute attributes[] = {{LOCKSTEP_LAUNCH_CLUSTER, sizeof cluster, &cluster},
                                           {LOCKSTEP_LAUNCH_COOPERATIVE, 4, &one}};
  launch.grid = {2, 1, 1};
  launch.attributes = attributes;
  launch.attribute_count = 1;
  MUST(b->launch, stream, &launch);
  launch.attributes = attributes + 1;
  MUST(b->launch, stream, &launch);
  MUST(b->stream_synchronize, stream);

  char log[4096] = "";
  lockstep_error error{};
  error.struct_size = sizeof error;
  error.log = log;
  error.log_capacity = sizeof log;
  desc.data = "__global__ void k() { wrong; }";
  desc.bytes = std::strlen("__global__ void k() { wrong; }");
  desc.kernel_count = 0;
  lockstep_module* bad = nullptr;
  CHECK(b->module_create(device, &desc, &bad, &error) == LOCKSTEP_E_COMPILATION_FAILED);
  CHECK(std::strstr(log, "wrong") != nullptr &&
        std::strstr(error.message, "kernel.cu(1)") != nullptr);
  desc.format = LOCKSTEP_MODULE_PTX;
  const char* const ptx =
      ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry nop() { ret; }\n";
  desc.data = ptx;
  desc.bytes = std::strlen(ptx);
  MUST(b->module_create, device, &desc, &bad);
  lockstep_kernel* nop = nullptr;
  MUST(b->module_kernel, bad, "nop", &nop);
  const lockstep_launch_desc empty = launch_desc(nop, 1, 32, nullptr, 0);
  MUST(b->launch, stream, &empty);
  b->module_destroy(bad);
  desc.data = "garbage that is nothing";
  desc.bytes = 23;
  desc.format = LOCKSTEP_MODULE_BINARY;
  const Answer garbage = call(b->module_create, device, &desc, &bad);
  CHECK(!garbage.ok());
  std::printf("  garbage: %d %s\n", garbage.code, garbage.error.message);
  MUST(b->memory_free, device, dx, static_cast<lockstep_stream*>(nullptr));
  MUST(b->memory_free, device, dy, static_cast<lockstep_stream*>(nullptr));
}

void test_copies_and_sets(lockstep_stream* stream) {
  void *d = nullptr, *e = nullptr, *pinned = nullptr;
  CHECK(allocate(1 << 20, &d).ok() && allocate(1 << 20, &e).ok());
  CHECK(allocate(4096, &pinned, LOCKSTEP_MEMORY_PINNED).ok());
  std::vector<unsigned char> host(4096), back(4096);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i * 7);
  g_active = 1;
  CHECK(copy(stream, d, host.data(), 4096).ok());
  CHECK(copy(stream, e, d, 4096, LOCKSTEP_COPY_DTOD).ok());
  CHECK(copy(stream, pinned, e, 4096, LOCKSTEP_COPY_DTOH).ok());
  CHECK(copy(stream, back.data(), pinned, 4096, LOCKSTEP_COPY_HTOH).ok());
  MUST(b->stream_synchronize, stream);
  CHECK(back == host);
  const Answer declared = copy(stream, d, host.data(), 64, LOCKSTEP_COPY_DTOH);
  CHECK(declared.code == LOCKSTEP_E_INVALID_ARGUMENT && says(declared, "host to device"));
  CHECK(copy(stream, nullptr, nullptr, 0, LOCKSTEP_COPY_HTOD).ok());
  // 2-D and 3-D: 3 rows of 8 bytes, 2 planes.
  lockstep_copy_desc box = copy_desc(d, host.data(), 8);
  box.height = 3;
  box.depth = 2;
  box.source_pitch = 16;
  box.source_slice_pitch = 64;
  box.destination_pitch = 32;
  box.destination_slice_pitch = 128;
  MUST(b->copy, stream, &box);
  std::memset(back.data(), 0, back.size());
  CHECK(copy(stream, back.data(), d, 256).ok());
  MUST(b->stream_synchronize, stream);
  CHECK(std::memcmp(back.data() + 128 + 2 * 32, host.data() + 64 + 2 * 16, 8) == 0);
  box.depth = 1;
  MUST(b->copy, stream, &box);
  const std::vector<Entry> copies = take();
  CHECK(copies.size() == 10 && copies[5].record.of.copy.width == 0 &&
        copies[6].name == "cuMemcpy3DAsync" && copies[9].name == "cuMemcpy2DAsync" &&
        copies[3].name == "cuMemcpyAsync");
  // Sets (MEM-01, MEM-03).
  std::vector<int> cube(64);
  for (int i = 0; i < 64; ++i) cube[i] = i + 1;
  CHECK(copy(stream, d, cube.data(), 256).ok());
  take();
  lockstep_set_desc zero = set_desc(d, 3, 0, 4);
  zero.height = 3;
  zero.depth = 4;
  zero.pitch = 16;
  zero.slice_pitch = 64;
  MUST(b->set, stream, &zero);
  const std::vector<Entry> planes = take();
  CHECK(planes.size() == 4 && planes[3].record.of.set.width == 12 &&
        planes[3].record.of.set.height == 3 && planes[0].name == "cuMemsetD2D32Async");
  CHECK(copy(stream, cube.data(), d, 256).ok());
  MUST(b->stream_synchronize, stream);
  CHECK(std::count(cube.begin(), cube.end(), 0) == 36 && cube[3] == 4 && cube[12] == 13);
  lockstep_set_desc bytes = set_desc(d, 7, 1, 1);
  MUST(b->set, stream, &bytes);
  bytes = set_desc(static_cast<char*>(d) + 8, 3, 0x1234, 2);
  MUST(b->set, stream, &bytes);
  CHECK(copy(stream, back.data(), d, 16).ok());
  MUST(b->stream_synchronize, stream);
  CHECK(back[6] == 1 && back[8] == 0x34 && back[13] == 0x12);
  bytes = set_desc(static_cast<char*>(d) + 2, 1, 1, 4);
  CHECK(call(b->set, stream, &bytes).code == LOCKSTEP_E_INVALID_ARGUMENT);
  bytes = set_desc(nullptr, 0, 1, 4);
  MUST(b->set, stream, &bytes);
  g_active = 0;
  take();
  lockstep_pointer_info info{};
  info.struct_size = sizeof info;
  MUST(b->pointer_info, device, static_cast<const void*>(static_cast<char*>(d) + 100), &info);
  CHECK(info.memory_kind == LOCKSTEP_MEMORY_DEVICE && info.bytes == 1 << 20);
  MUST(b->pointer_info, device, static_cast<const void*>(host.data()), &info);
  CHECK(info.memory_kind == LOCKSTEP_MEMORY_UNKNOWN);
  MUST(b->memory_register, device, static_cast<void*>(host.data()), std::uint64_t{4096});
  MUST(b->pointer_info, device, static_cast<const void*>(host.data()), &info);
  CHECK(info.memory_kind == LOCKSTEP_MEMORY_PINNED);
  MUST(b->memory_unregister, device, static_cast<void*>(host.data()));
  void* ordered = nullptr;
  CHECK(allocate(4096, &ordered, LOCKSTEP_MEMORY_DEVICE, stream).ok());
  MUST(b->memory_free, device, ordered, stream);
  CHECK(call(b->memory_free, device, static_cast<void*>(back.data()),
             static_cast<lockstep_stream*>(nullptr))
            .code == LOCKSTEP_E_INVALID_ARGUMENT);
  for (void* each : {d, e, pinned}) {
    MUST(b->memory_free, device, each, static_cast<lockstep_stream*>(nullptr));
  }
  // An upload and a wait on one stream, then a read on another: never old (REP-10).
  constexpr std::size_t kBig = 16U << 20;
  void* big = nullptr;
  CHECK(allocate(kBig, &big).ok());
  std::vector<int> source(kBig / 4);
  lockstep_stream* reader = make_stream();
  int stale = 0;
  for (int round = 1; round <= 50; ++round) {
    std::fill(source.begin(), source.end(), round);
    CHECK(copy(stream, big, source.data(), kBig).ok());
    MUST(b->stream_synchronize, stream);
    if (read_int(reader, static_cast<int*>(big) + kBig / 4 - 1) != round) ++stale;
  }
  CHECK(stale == 0);
  b->stream_destroy(reader);
  MUST(b->memory_free, device, big, static_cast<lockstep_stream*>(nullptr));
}

void test_events_and_threads(lockstep_stream* stream, int* value) {
  lockstep_event *begin = make_event(LOCKSTEP_EVENT_TIMING),
                 *end = make_event(LOCKSTEP_EVENT_TIMING);
  MUST(b->event_query, begin);  // never recorded
  MUST(b->event_record, begin, stream);
  CHECK(launch_on(stream, add_one, value).ok());
  MUST(b->event_record, end, stream);
  MUST(b->event_synchronize, end);
  double milliseconds = -1;
  MUST(b->event_elapsed, begin, end, &milliseconds);
  CHECK(milliseconds >= 0);
  int calls = 0;
  MUST(
      b->host_function, stream, [](void* user) { ++*static_cast<int*>(user); },
      static_cast<void*>(&calls));
  MUST(b->stream_synchronize, stream);
  CHECK(calls == 1);
  std::thread([&] {
    lockstep_stream* own = nullptr;
    MUST(b->stream_special, device, std::uint32_t{LOCKSTEP_STREAM_PER_THREAD}, &own);
    CHECK(launch_on(own, add_one, value).ok());
    MUST(b->stream_synchronize, own);
    b->stream_destroy(own);
  }).join();
  lockstep_stream* again = nullptr;
  MUST(b->stream_from_native, device, b->stream_native(stream), &again);
  CHECK(b->stream_identity(again) == b->stream_identity(stream));
  b->stream_destroy(again);
  b->event_destroy(begin);
  b->event_destroy(end);
}

// What a program leaves in static objects: destroyed after main, when the driver may be gone.
struct LeftBehind {
  lockstep_stream* stream = nullptr;
  lockstep_event* event = nullptr;
  lockstep_graph* graph = nullptr;
  lockstep_graph_exec* exec = nullptr;
  void* memory = nullptr;
  ~LeftBehind() {
    if (b == nullptr) return;
    b->graph_exec_destroy(exec);
    b->graph_destroy(graph);
    b->event_destroy(event);
    b->stream_destroy(stream);
    if (memory != nullptr) b->memory_free(device, memory, nullptr, nullptr);
    b->module_destroy(module);
    std::printf("objects left in static storage are destroyed\n");
  }
} left_behind;

void leave_objects_behind(int* value) {
  left_behind.stream = make_stream();
  left_behind.event = make_event();
  CHECK(allocate(4096, &left_behind.memory).ok());
  MUST(b->capture_begin, left_behind.stream, std::uint32_t{LOCKSTEP_CAPTURE_THREAD_LOCAL});
  CHECK(launch_on(left_behind.stream, add_one, value).ok());
  MUST(b->capture_end, left_behind.stream, &left_behind.graph);
  MUST(b->graph_instantiate, left_behind.graph, &left_behind.exec);
  MUST(b->graph_exec_launch, left_behind.exec, left_behind.stream);
}

// A kernel that fails breaks the context: the error comes at the next wait and stays.
void test_failing_kernel(lockstep_stream* stream) {
  CHECK(launch_on(stream, add_one, reinterpret_cast<int*>(std::uintptr_t{16})).ok());
  for (int again = 0; again < 2; ++again) {
    const Answer waited = call(b->stream_synchronize, stream);
    // The first report is the kernel's own; what follows is that the context is gone.
    CHECK(waited.code == (again == 0 ? LOCKSTEP_E_LAUNCH_FAILED : LOCKSTEP_E_DEVICE_LOST));
    if (again == 0) std::printf("  failing kernel: %s\n", waited.error.message);
  }
  CHECK(!launch_on(stream, add_one, nullptr).ok());
}

void test_fork() {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    std::uint32_t count = 0;
    const Answer answer = call(b->device_count, &count);
    _exit(answer.code == LOCKSTEP_E_UNAVAILABLE && says(answer, "fork") ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (const int code = load_plugin(argc, argv)) return code;
  lockstep_device_info info{};
  info.struct_size = sizeof info;
  MUST(b->device_info, 0U, &info);
  std::printf("%s %s %s %s driver %s, %llu bytes\n%s\n", info.name, info.arch, info.uuid,
              info.bus_id, info.driver, static_cast<unsigned long long>(info.memory_bytes),
              b->capabilities(0));
  for (std::uint32_t attribute = 1; attribute <= 23; ++attribute) {
    std::int64_t value = 0;
    const Answer answer = call(b->device_attribute, 0U, attribute, &value);
    std::printf(" %u=%lld", attribute, answer.ok() ? static_cast<long long>(value) : -999);
  }
  std::printf("\n");
  CHECK(call(b->device_open, 4711U, &device).code == LOCKSTEP_E_NOT_FOUND);
  MUST(b->device_open, 0U, &device);
  lockstep_stream* stream = make_stream();
  test_compile_and_launch(stream);
  test_copies_and_sets(stream);
  void* memory = nullptr;
  CHECK(allocate(4096, &memory).ok());
  test_events_and_threads(stream, static_cast<int*>(memory));
  test_graphs(stream, static_cast<int*>(memory));
  test_capture_rules(static_cast<int*>(memory));
  test_foreign(stream, static_cast<int*>(memory));
  test_peer(stream);
  test_fork();
  measure(stream, static_cast<int*>(memory));
  leave_objects_behind(static_cast<int*>(memory));
  test_failing_kernel(stream);
  b->stream_destroy(stream);
  std::printf("%d checks, %d failures\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
