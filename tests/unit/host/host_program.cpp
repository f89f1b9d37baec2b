// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backend.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

// A small program that uses the host plugin in ways that end the process, or that depend on its
// environment: host_program <plugin> <mode>. Says what it saw on standard output.
namespace {

const lockstep_backend* b = nullptr;
lockstep_error error{};
volatile std::uint32_t inactive = 0;
std::uint64_t next_number = 1;

const lockstep_backend* load(const char* path) {
  static lockstep_recorder recorder{};
  recorder.struct_size = offsetof(lockstep_recorder, intern);
  recorder.active = &inactive;
  recorder.next_id = [] { return __atomic_fetch_add(&next_number, 1, __ATOMIC_RELAXED); };
  static lockstep_host host{};
  host.struct_size = sizeof(host);
  host.abi_min = LOCKSTEP_BACKEND_ABI_MIN;
  host.abi_max = LOCKSTEP_BACKEND_ABI_MAX;
  host.recorder = &recorder;
  error.struct_size = sizeof(error);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    std::exit(90);
  }
  const auto query =
      reinterpret_cast<lockstep_backend_query_function>(dlsym(library, "lockstep_backend_query"));
  return query(&host, &error);
}

void check(lockstep_code code, const char* what) {
  if (code == LOCKSTEP_OK) return;
  std::printf("%s: code %d, %s: %s\n", what, code, error.call, error.message);
  std::exit(91);
}

// Objects of every kind, with work in flight.
struct Everything {
  lockstep_device* device = nullptr;
  lockstep_stream* stream = nullptr;
  lockstep_event* event = nullptr;
  lockstep_graph* graph = nullptr;
  lockstep_graph_exec* exec = nullptr;
  void* memory = nullptr;

  void make() {
    check(b->device_open(0, &device, &error), "open");
    lockstep_stream_desc stream_desc{sizeof(stream_desc), LOCKSTEP_STREAM_NON_BLOCKING, 0};
    check(b->stream_create(device, &stream_desc, &stream, &error), "stream");
    check(b->event_create(device, 0, &event, &error), "event");
    lockstep_allocation_desc allocation{};
    allocation.struct_size = sizeof(allocation);
    allocation.bytes = 1 << 22;
    allocation.memory_kind = LOCKSTEP_MEMORY_DEVICE;
    check(b->memory_allocate(device, &allocation, &memory, &error), "allocate");
    check(b->capture_begin(stream, LOCKSTEP_CAPTURE_RELAXED, &error), "begin");
    set(1);
    check(b->capture_end(stream, &graph, &error), "end");
    check(b->graph_instantiate(graph, &exec, &error), "instantiate");
    for (std::uint32_t i = 0; i < 50; ++i) {
      set(i);
      check(b->graph_exec_launch(exec, stream, &error), "launch");
    }
    check(b->event_record(event, stream, &error), "record");
  }
  void set(std::uint32_t value) {
    lockstep_set_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.destination = memory;
    desc.width = 1 << 22;
    desc.height = desc.depth = 1;
    desc.value = value;
    desc.value_size = 1;
    check(b->set(stream, &desc, &error), "set");
  }
  void destroy() {
    if (device == nullptr) return;
    b->graph_exec_destroy(exec);
    b->graph_destroy(graph);
    b->event_destroy(event);
    b->memory_free(device, memory, nullptr, &error);
    b->stream_destroy(stream);
    b->device_close(device);
  }
  ~Everything() { destroy(); }
};

Everything global;  // destroyed after main

int in_child(const char* what) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    std::uint32_t count = 0;
    lockstep_code code = b->initialize(&error);
    if (code == LOCKSTEP_OK) code = b->device_count(&count, &error);
    if (code == LOCKSTEP_OK) {
      Everything own;
      own.make();
      code = b->stream_synchronize(own.stream, &error);
    }
    std::printf("%s: code %d%s%s\n", what, code, code == LOCKSTEP_OK ? "" : ": ",
                code == LOCKSTEP_OK ? "" : error.message);
    std::exit(0);  // with static destructors
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run(const std::string& mode) {
  if (mode == "fork-before") {
    const int child = in_child("child");
    check(b->initialize(&error), "initialize");
    return child;
  }
  if (mode == "initialize") {
    const lockstep_code code = b->initialize(&error);
    std::uint32_t count = 0;
    if (code == LOCKSTEP_OK) b->device_count(&count, &error);
    std::printf("code %d devices %u %s\n", code, count, error.message);
    // A failure is remembered.
    return b->initialize(&error) == code ? 0 : 92;
  }
  if (mode == "uninitialized") {
    lockstep_device* device = nullptr;
    std::printf("code %d %s\n", b->device_open(0, &device, &error), error.message);
    return 0;
  }
  check(b->initialize(&error), "initialize");
  if (mode == "fork-after") {
    global.make();
    const int child = in_child("child");
    check(b->stream_synchronize(global.stream, &error), "parent");
    return child;
  }
  if (mode == "return") {
    global.make();
    return 0;
  }
  if (mode == "exit-in-thread") {
    global.make();
    std::thread([] { std::exit(0); }).join();
  }
  if (mode == "exit-while-others-work") {
    global.make();
    for (int i = 0; i < 4; ++i) {
      std::thread([] {
        auto* own = new Everything;  // on purpose never destroyed
        while (true) {
          own->make();
          check(b->stream_synchronize(own->stream, &error), "synchronize");
        }
      }).detach();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::exit(0);
  }
  if (mode == "allocate-until-it-fails") {
    lockstep_device* device = nullptr;
    check(b->device_open(0, &device, &error), "open");
    lockstep_allocation_desc allocation{};
    allocation.struct_size = sizeof(allocation);
    allocation.bytes = 1 << 20;
    allocation.memory_kind = LOCKSTEP_MEMORY_DEVICE;
    int count = 0;
    lockstep_code code = LOCKSTEP_OK;
    for (void* p = nullptr; count < 100 && code == LOCKSTEP_OK; ++count) {
      code = b->memory_allocate(device, &allocation, &p, &error);
    }
    void* again = nullptr;
    allocation.bytes = 16;
    std::printf("%d: code %d: %s", count, code, error.message);
    std::printf("; then %d\n", b->memory_allocate(device, &allocation, &again, &error));
    return 0;
  }
  if (mode == "peers") {
    lockstep_device* devices[2] = {};
    void* memory[2] = {};
    lockstep_allocation_desc allocation{};
    allocation.struct_size = sizeof(allocation);
    allocation.bytes = 16;
    allocation.memory_kind = LOCKSTEP_MEMORY_DEVICE;
    for (std::uint32_t i = 0; i < 2; ++i) {
      check(b->device_open(i, &devices[i], &error), "open");
      check(b->memory_allocate(devices[i], &allocation, &memory[i], &error), "allocate");
    }
    std::uint32_t can = 0;
    check(b->peer_access(devices[0], devices[1], &can, &error), "access");
    check(b->peer_enable(devices[0], devices[1], &error), "enable");
    lockstep_pointer_info info{};
    info.struct_size = sizeof(info);
    check(b->pointer_info(devices[0], memory[1], &info, &error), "info");
    lockstep_stream_desc stream_desc{sizeof(stream_desc), 0, 0};
    lockstep_stream* stream = nullptr;
    check(b->stream_create(devices[0], &stream_desc, &stream, &error), "stream");
    lockstep_copy_desc copy{};
    copy.struct_size = sizeof(copy);
    copy.source = memory[0];
    copy.destination = memory[1];
    copy.width = 16;
    copy.height = copy.depth = 1;
    copy.source_device = 0;
    copy.destination_device = 1;
    check(b->copy(stream, &copy, &error), "copy");
    check(b->stream_synchronize(stream, &error), "synchronize");
    copy.source_device = 1;
    const lockstep_code wrong = b->copy(stream, &copy, &error);
    std::printf("can %u device %d wrong %d\n", can, info.device, wrong);
    return 0;
  }
  if (mode == "free-used-by-peer") {
    // A stream of one device uses memory of the other, and takes its time.
    lockstep_device* devices[2] = {};
    for (std::uint32_t i = 0; i < 2; ++i) check(b->device_open(i, &devices[i], &error), "open");
    for (const std::uint32_t kind : {LOCKSTEP_MEMORY_DEVICE, LOCKSTEP_MEMORY_PINNED}) {
      lockstep_allocation_desc allocation{};
      allocation.struct_size = sizeof(allocation);
      allocation.bytes = 16;
      allocation.memory_kind = kind;
      void* memory = nullptr;
      check(b->memory_allocate(devices[1], &allocation, &memory, &error), "allocate");
      lockstep_stream_desc stream_desc{sizeof(stream_desc), LOCKSTEP_STREAM_NON_BLOCKING, 0};
      lockstep_stream* stream = nullptr;
      check(b->stream_create(devices[0], &stream_desc, &stream, &error), "stream");
      static std::atomic<bool> freeing, used;
      freeing = used = false;
      const auto use = [](void* data) {
        while (!freeing) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        std::memset(data, 1, 16);
        used = true;
      };
      check(b->host_function(stream, use, memory, &error), "host function");
      freeing = true;
      check(b->memory_free(devices[1], memory, nullptr, &error), "free");
      std::printf("used first: %d\n", used.load() ? 1 : 0);
      check(b->stream_synchronize(stream, &error), "synchronize");
      b->stream_destroy(stream);
    }
    return 0;
  }
  std::printf("unknown mode %s\n", mode.c_str());
  return 93;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 94;
  b = load(argv[1]);
  return b == nullptr ? 95 : run(argv[2]);
}
