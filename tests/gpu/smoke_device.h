// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <dlfcn.h>

#include "smoke_host.h"

// What the parts of the smoke test share: the plugin's table, one device, kernels, and short forms
// of descriptions.
namespace smoke {

inline const lockstep_backend* b = nullptr;
inline lockstep_device* device = nullptr;
inline lockstep_module* module = nullptr;
inline lockstep_kernel *saxpy = nullptr, *add_one = nullptr, *twice = nullptr;

void test_graphs(lockstep_stream* stream, int* value);
void test_capture_rules(int* value);
// Streams, memory and contexts that did not come from the plugin.
void test_foreign(lockstep_stream* stream, int* value);
void test_peer(lockstep_stream* stream);
void measure(lockstep_stream* stream, int* value);

// Loads the plugin that the first argument names, or the built one, and starts it. Returns 0 and
// fills `b`, or the program's exit code after it said why: 77 where there is no device, unless
// LOCKSTEP_REQUIRE_BACKENDS asks for one.
inline int load_plugin(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was said before a crash is seen
  const char* plugin = argc > 1 ? argv[1] : LOCKSTEP_TEST_PLUGIN_DIR "/liblockstep_backend_cuda.so";
  void* file = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) {
    std::printf("%s\n", dlerror());
    return 1;
  }
  const auto query =
      reinterpret_cast<lockstep_backend_query_function>(dlsym(file, "lockstep_backend_query"));
  static const lockstep_recorder recorder = make_recorder();
  static const lockstep_host host{
      sizeof host,
      LOCKSTEP_BACKEND_ABI_MIN,
      LOCKSTEP_BACKEND_ABI_MAX,
      "smoke",
      [](std::uint32_t, const char* text) { std::printf("log: %s\n", text); },
      &recorder};
  b = query(&host, nullptr);
  lockstep_error error{};
  error.struct_size = sizeof error;
  if (b->initialize(&error) == LOCKSTEP_OK) return 0;
  std::printf("skipped: %s\n", error.message);
  return std::getenv("LOCKSTEP_REQUIRE_BACKENDS") != nullptr ? 1 : 77;
}

inline lockstep_stream* make_stream(bool non_blocking = true) {
  lockstep_stream_desc desc{sizeof desc, non_blocking ? 1U : 0U, 0};
  lockstep_stream* stream = nullptr;
  MUST(b->stream_create, device, &desc, &stream);
  return stream;
}
inline lockstep_event* make_event(std::uint32_t flags = 0) {
  lockstep_event* event = nullptr;
  MUST(b->event_create, device, flags, &event);
  return event;
}
inline Answer allocate(std::uint64_t bytes, void** to, std::uint32_t kind = LOCKSTEP_MEMORY_DEVICE,
                       lockstep_stream* stream = nullptr) {
  lockstep_allocation_desc desc{};
  desc.struct_size = sizeof desc;
  desc.bytes = bytes;
  desc.memory_kind = kind;
  desc.stream = stream;
  return call(b->memory_allocate, device, &desc, to);
}
inline Answer copy(lockstep_stream* stream, void* to, const void* from, std::uint64_t bytes,
                   std::uint32_t expected = LOCKSTEP_COPY_NONE) {
  lockstep_copy_desc desc = copy_desc(to, from, bytes);
  desc.expected_direction = expected;
  return call(b->copy, stream, &desc);
}
inline lockstep_set_desc set_desc(void* to, std::uint64_t width, std::uint32_t value,
                                  std::uint32_t size) {
  lockstep_set_desc desc{};
  desc.struct_size = sizeof desc;
  desc.destination = to;
  desc.width = width;
  desc.height = desc.depth = 1;
  desc.value = value;
  desc.value_size = size;
  return desc;
}
inline lockstep_launch_desc launch_desc(lockstep_kernel* kernel, std::uint32_t grid,
                                        std::uint32_t block, const void* const* arguments,
                                        std::uint32_t count) {
  lockstep_launch_desc desc{};
  desc.struct_size = sizeof desc;
  desc.kernel = kernel;
  desc.grid = {grid, 1, 1};
  desc.block = {block, 1, 1};
  desc.arguments = arguments;
  desc.argument_count = count;
  return desc;
}
inline Answer launch_on(lockstep_stream* stream, lockstep_kernel* kernel, int* pointer) {
  const void* arguments[] = {&pointer};
  const lockstep_launch_desc desc = launch_desc(kernel, 1, 1, arguments, 1);
  return call(b->launch, stream, &desc);
}
inline int read_int(lockstep_stream* stream, const int* from) {
  int value = -1;
  CHECK(copy(stream, &value, from, sizeof value).ok());
  MUST(b->stream_synchronize, stream);
  return value;
}
inline std::uint32_t nodes_of(lockstep_graph* graph) {
  std::uint32_t count = 0;
  MUST(b->graph_node_count, graph, &count);
  return count;
}

}  // namespace smoke
