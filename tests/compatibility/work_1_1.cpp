// SPDX-License-Identifier: Apache-2.0

// work_1_1 FILE: a host that speaks interface 1.0 to 1.1 loads a plugin with the library's own code
// and works with it, giving it structures of 1.1 whose new fields are not zero. Prints what it saw.

#include <lockstep/backend.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "src/runtime/backend_slots.h"
#include "src/runtime/plugin_file.h"

static_assert(LOCKSTEP_BACKEND_ABI_MIN == 1000 && LOCKSTEP_BACKEND_ABI_MAX == 1001);

namespace {

constexpr std::uint64_t kNews = 0x5a5a5a5a5a5a5a5a;  ///< in fields that 1.0 does not know

const volatile uint32_t inactive = 0;
uint64_t next_id() {
  static uint64_t id = 0;
  return ++id;
}
uint32_t intern(const char*, size_t) { return 1; }
void* begin(const lockstep_record*) { return nullptr; }
void end(void*, uint32_t, uint64_t, int32_t) {}
void define_stream(uint64_t, int32_t, uint64_t, int) {}
void define_graph(uint64_t, uint32_t, const lockstep_record*, uint32_t, const lockstep_graph_edge*,
                  uint32_t) {}
void memory(const lockstep_record*) {}
void log_nothing(uint32_t, const char*) {}

const lockstep_recorder recorder = {sizeof(lockstep_recorder),
                                    &inactive,
                                    next_id,
                                    intern,
                                    begin,
                                    end,
                                    define_stream,
                                    define_graph,
                                    memory};
const lockstep_host host = {sizeof(lockstep_host),
                            LOCKSTEP_BACKEND_ABI_MIN,
                            LOCKSTEP_BACKEND_ABI_MAX,
                            "1.1 of tests",
                            log_nothing,
                            &recorder,
                            kNews};

/// A structure of 1.1 with its size set.
template <typename Struct>
Struct sized() {
  Struct value = {};
  value.struct_size = sizeof(value);
  return value;
}
template <typename Struct>
Struct described() {
  auto value = sized<Struct>();
  value.new_in_1_1 = kNews;
  return value;
}

int work(const lockstep_backend& backend, bool has_generation) {
  auto error = sized<lockstep_error>();
  const auto done = [&](lockstep_code code, const char* what) {
    if (code != LOCKSTEP_OK) std::printf("%s failed: %s\n", what, error.message);
    return code == LOCKSTEP_OK;
  };
  if (!done(backend.initialize(&error), "initialize")) return 1;
  auto info = sized<lockstep_device_info>();
  info.generation = 99;
  if (!done(backend.device_info(0, &info, &error), "device_info")) return 1;
  std::uint32_t generation = 0;
  if (has_generation && !done(backend.device_generation(0, &generation, &error), "generation")) {
    return 1;
  }
  std::printf("device %s, generation %u, by slot %u\n", info.name, info.generation, generation);

  lockstep_device* device = nullptr;
  lockstep_stream* stream = nullptr;
  void* place = nullptr;
  auto streams = described<lockstep_stream_desc>();
  streams.flags = LOCKSTEP_STREAM_NON_BLOCKING;
  auto allocation = described<lockstep_allocation_desc>();
  allocation.bytes = 64;
  allocation.memory_kind = LOCKSTEP_MEMORY_DEVICE;
  if (!done(backend.device_open(0, &device, &error), "open") ||
      !done(backend.stream_create(device, &streams, &stream, &error), "stream") ||
      !done(backend.memory_allocate(device, &allocation, &place, &error), "allocation")) {
    return 1;
  }
  auto set = described<lockstep_set_desc>();
  set.destination = place;
  set.width = 16;
  set.height = set.depth = 1;
  set.value = 7;
  set.value_size = 4;
  std::vector<std::uint32_t> values(16);
  auto copy = described<lockstep_copy_desc>();
  copy.source = place;
  copy.destination = values.data();
  copy.width = 64;
  copy.height = copy.depth = 1;
  copy.source_device = copy.destination_device = -1;
  if (!done(backend.set(stream, &set, &error), "set") ||
      !done(backend.copy(stream, &copy, &error), "copy") ||
      !done(backend.stream_synchronize(stream, &error), "synchronize")) {
    return 1;
  }
  for (const std::uint32_t value : values) {
    if (value != 7) {
      std::printf("read back %u\n", value);
      return 1;
    }
  }
  if (!done(backend.memory_free(device, place, nullptr, &error), "free")) return 1;
  backend.stream_destroy(stream);
  backend.device_close(device);
  std::puts("works");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path path = argv[1];
  const lockstep::runtime::PluginFile file =
      lockstep::runtime::open_plugin(path, lockstep::runtime::backend_name_of_file(path), host);
  if (file.table == nullptr) {
    std::printf("refused: %s\n", file.reason.c_str());
    return 3;
  }
  const lockstep_backend backend = lockstep::runtime::complete_table(*file.table);
  const bool has_generation = backend.device_generation != nullptr;
  std::printf("interface %u, %s\n", backend.abi_version,
              has_generation ? "with the slot of 1.1" : "without the slot of 1.1");
  return work(backend, has_generation);
}
