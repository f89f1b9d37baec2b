// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <cstdint>
#include <string_view>

// The way to the host's recorder. Everything works without one as well (the simulated driver has
// none): numbers then come from a counter of our own.
namespace lockstep::hostrt {

void set_recorder(const lockstep_recorder* recorder) noexcept;

std::uint64_t next_id() noexcept;
// 0 without a recorder.
std::uint32_t intern(std::string_view text);

// Names of the driver calls that appear in entries; interned once, when the runtime starts.
struct CallNames {
  std::uint32_t copy[5];  // by direction, 1 to 4
  std::uint32_t copy_2d, copy_3d, copy_peer;
  std::uint32_t set[5], set_2d[5];  // by value size: 1, 2, 4
  std::uint32_t graph_launch, host_function, event_record, event_wait;
  std::uint32_t allocate, allocate_async, allocate_host, free, free_async, free_host;
  std::uint32_t host_register, host_unregister, global;
  std::uint32_t stream_synchronize, event_synchronize, device_synchronize;
  std::uint32_t empty;
};
const CallNames& call_names();

bool recording_active() noexcept;

enum class StreamKind : int { kNonBlocking = 0, kBlocking = 1, kLegacy = 2 };
void define_stream(std::uint64_t stream, std::int32_t device, StreamKind kind);
void define_graph(std::uint64_t graph, std::uint32_t version, const lockstep_record* nodes,
                  std::uint32_t node_count, const lockstep_graph_edge* edges,
                  std::uint32_t edge_count);
void report_memory(const lockstep_record& record);

lockstep_record blank_record(lockstep_record_kind kind, std::uint32_t name, std::int32_t device,
                             std::uint64_t stream) noexcept;

// Brackets one driver call: begin() before it, done() after it. A call that is left by an
// exception is marked as failed.
class Recording {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

  void begin(const lockstep_record& record);
  void done(std::uint32_t flags = 0, std::uint64_t graph = 0, std::int32_t node = -1);

 private:
  void* slot_ = nullptr;
  bool open_ = false;
};

}  // namespace lockstep::hostrt
