// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "src/record/host_recorder.h"

/// \file
/// Reports work to the recorder as a plugin does, without any device.
namespace lockstep::testing {

/// One kernel argument.
struct Argument {
  std::array<unsigned char, 64> bytes{};
  lockstep_parameter parameter{};

  static Argument scalar(std::uint32_t value) { return make(&value, sizeof(value), 0); }
  static Argument pointer(std::uint64_t address) { return make(&address, sizeof(address), 1); }
  static Argument make(const void* data, std::uint32_t size, std::uint8_t tag) {
    Argument argument;
    std::memcpy(argument.bytes.data(), data, size);
    argument.parameter.size = size;
    argument.parameter.tag = tag;
    return argument;
  }
};

/// How a call ends.
struct Ending {
  std::uint32_t flags = 0;
  std::uint64_t graph = 0;
  std::int32_t node = -1;
};

class FakePlugin {
 public:
  FakePlugin() : table_(host_recorder()) {}

  const lockstep_recorder& table() const { return *table_; }
  std::uint32_t name(std::string_view text) const {
    return table_->intern(text.data(), text.size());
  }

  std::uint64_t stream(std::int32_t device = 0, std::uint64_t context = 0, int blocking = 1) const {
    const std::uint64_t identity = table_->next_id();
    table_->define_stream(identity, device, context, blocking);
    return identity;
  }

  lockstep_record record(lockstep_record_kind kind, std::uint64_t stream,
                         std::string_view text) const {
    lockstep_record record{};
    record.struct_size = sizeof(record);
    record.kind = kind;
    record.name = name(text);
    record.stream = stream;
    return record;
  }

  lockstep_record kernel(std::uint64_t stream, std::string_view text,
                         std::uint32_t grid = 1) const {
    lockstep_record result = record(LOCKSTEP_RECORD_KERNEL, stream, text);
    result.of.kernel.grid = {grid, 1, 1};
    result.of.kernel.block = {32, 1, 1};
    result.of.kernel.parameter_count = UINT32_MAX;
    return result;
  }

  void* begin(const lockstep_record& record) const {
    return __atomic_load_n(table_->active, __ATOMIC_RELAXED) != 0 ? table_->begin(&record)
                                                                  : nullptr;
  }
  void end(void* slot, const Ending& ending = {}) const {
    table_->end(slot, ending.flags, ending.graph, ending.node);
  }
  void call(const lockstep_record& record, const Ending& ending = {}) const {
    end(begin(record), ending);
  }

  void launch(std::uint64_t stream, std::string_view text, std::uint32_t grid = 1,
              const Ending& ending = {}) const {
    call(kernel(stream, text, grid), ending);
  }

  void launch_with(std::uint64_t stream, std::string_view text,
                   const std::vector<Argument>& arguments) const {
    std::vector<lockstep_parameter> parameters;
    std::vector<const void*> values;
    for (const Argument& argument : arguments) {
      parameters.push_back(argument.parameter);
      values.push_back(argument.bytes.data());
    }
    lockstep_record launched = kernel(stream, text);
    launched.of.kernel.parameter_count = static_cast<std::uint32_t>(arguments.size());
    launched.of.kernel.parameters = parameters.data();
    launched.of.kernel.arguments = values.data();
    call(launched);
  }

  void copy(std::uint64_t stream, std::uint64_t width, std::uint64_t height = 1,
            std::uint64_t pitch = 0) const {
    lockstep_record copied = record(LOCKSTEP_RECORD_MEMCPY, stream, "fakeMemcpyHtoDAsync");
    copied.of.copy.direction = LOCKSTEP_COPY_HTOD;
    copied.of.copy.peer_device = -1;
    copied.of.copy.width = width;
    copied.of.copy.height = height;
    copied.of.copy.depth = 1;
    copied.of.copy.source_pitch = copied.of.copy.destination_pitch = pitch;
    call(copied);
  }

  std::uint64_t event_record(std::uint64_t stream) const {
    lockstep_record recorded = record(LOCKSTEP_RECORD_EVENT_RECORD, stream, "fakeEventRecord");
    recorded.of.event.event = table_->next_id();
    call(recorded);
    return recorded.of.event.event;
  }
  void event_wait(std::uint64_t stream, std::uint64_t event) const {
    lockstep_record waited = record(LOCKSTEP_RECORD_EVENT_WAIT, stream, "fakeStreamWaitEvent");
    waited.of.event.event = event;
    call(waited);
  }

  std::uint64_t allocate(std::uint64_t address, std::uint64_t bytes) const {
    lockstep_record made = record(LOCKSTEP_RECORD_ALLOC, 0, "fakeMemAlloc");
    made.of.memory.allocation = table_->next_id();
    made.of.memory.address = address;
    made.of.memory.bytes = bytes;
    made.of.memory.memory_kind = LOCKSTEP_MEMORY_DEVICE;
    table_->memory(&made);
    return made.of.memory.allocation;
  }
  void free(std::uint64_t address, std::uint64_t allocation) const {
    lockstep_record freed = record(LOCKSTEP_RECORD_FREE, 0, "fakeMemFree");
    freed.of.memory.allocation = allocation;
    freed.of.memory.address = address;
    table_->memory(&freed);
  }

  /// A graph of kernels in a chain.
  void define_chain(std::uint64_t graph, std::uint32_t version,
                    const std::vector<std::string>& kernels) const {
    std::vector<lockstep_record> nodes;
    std::vector<lockstep_graph_edge> edges;
    for (const std::string& text : kernels) {
      nodes.push_back(kernel(0, text));
      const auto count = static_cast<std::uint32_t>(nodes.size());
      if (count > 1) edges.push_back({count - 2, count - 1, 0});
    }
    table_->define_graph(graph, version, nodes.data(), static_cast<std::uint32_t>(nodes.size()),
                         edges.data(), static_cast<std::uint32_t>(edges.size()));
  }
  void graph_launch(std::uint64_t stream, std::uint64_t graph, std::uint32_t version) const {
    lockstep_record launched = record(LOCKSTEP_RECORD_GRAPH_LAUNCH, stream, "fakeGraphLaunch");
    launched.of.graph_launch.graph = graph;
    launched.of.graph_launch.version = version;
    call(launched);
  }

 private:
  const lockstep_recorder* table_;
};

}  // namespace lockstep::testing
