// SPDX-License-Identifier: Apache-2.0
#include "record.h"

#include <atomic>
#include <string>

namespace lockstep::hostrt {
namespace {

std::atomic<const lockstep_recorder*> g_recorder{nullptr};
std::atomic<std::uint64_t> g_own_id{1};

const lockstep_recorder* recorder() noexcept { return g_recorder.load(std::memory_order_acquire); }

CallNames intern_call_names() {
  CallNames names{};
  names.copy[LOCKSTEP_COPY_HTOD] = intern("hostMemcpyHtoDAsync");
  names.copy[LOCKSTEP_COPY_DTOH] = intern("hostMemcpyDtoHAsync");
  names.copy[LOCKSTEP_COPY_DTOD] = intern("hostMemcpyDtoDAsync");
  names.copy[LOCKSTEP_COPY_HTOH] = intern("hostMemcpyHtoHAsync");
  names.copy_2d = intern("hostMemcpy2DAsync");
  names.copy_3d = intern("hostMemcpy3DAsync");
  names.copy_peer = intern("hostMemcpyPeerAsync");
  for (const unsigned size : {1U, 2U, 4U}) {
    const std::string bits = std::to_string(size * 8);
    names.set[size] = intern("hostMemsetD" + bits + "Async");
    names.set_2d[size] = intern("hostMemsetD2D" + bits + "Async");
  }
  names.graph_launch = intern("hostGraphLaunch");
  names.host_function = intern("hostLaunchHostFunc");
  names.event_record = intern("hostEventRecord");
  names.event_wait = intern("hostStreamWaitEvent");
  names.allocate = intern("hostMemAlloc");
  names.allocate_async = intern("hostMemAllocAsync");
  names.allocate_host = intern("hostMemHostAlloc");
  names.free = intern("hostMemFree");
  names.free_async = intern("hostMemFreeAsync");
  names.free_host = intern("hostMemFreeHost");
  names.host_register = intern("hostMemHostRegister");
  names.host_unregister = intern("hostMemHostUnregister");
  names.global = intern("hostModuleGetGlobal");
  names.stream_synchronize = intern("hostStreamSynchronize");
  names.event_synchronize = intern("hostEventSynchronize");
  names.device_synchronize = intern("hostDeviceSynchronize");
  names.empty = intern("empty");
  return names;
}

}  // namespace

void set_recorder(const lockstep_recorder* recorder) noexcept {
  g_recorder.store(recorder, std::memory_order_release);
}

std::uint64_t next_id() noexcept {
  const lockstep_recorder* r = recorder();
  if (r != nullptr && r->next_id != nullptr) return r->next_id();
  return g_own_id.fetch_add(1, std::memory_order_relaxed);
}

std::uint32_t intern(std::string_view text) {
  const lockstep_recorder* r = recorder();
  return r != nullptr && r->intern != nullptr ? r->intern(text.data(), text.size()) : 0;
}

const CallNames& call_names() {
  static const CallNames names = intern_call_names();
  return names;
}

bool recording_active() noexcept {
  const lockstep_recorder* r = recorder();
  return r != nullptr && r->active != nullptr && __atomic_load_n(r->active, __ATOMIC_RELAXED) != 0;
}

void define_stream(std::uint64_t stream, std::int32_t device, StreamKind kind) {
  const lockstep_recorder* r = recorder();
  if (r != nullptr && r->define_stream != nullptr) {
    r->define_stream(stream, device, 0, static_cast<int>(kind));
  }
}

void define_graph(std::uint64_t graph, std::uint32_t version, const lockstep_record* nodes,
                  std::uint32_t node_count, const lockstep_graph_edge* edges,
                  std::uint32_t edge_count) {
  const lockstep_recorder* r = recorder();
  if (r != nullptr && r->define_graph != nullptr) {
    r->define_graph(graph, version, nodes, node_count, edges, edge_count);
  }
}

void report_memory(const lockstep_record& record) {
  const lockstep_recorder* r = recorder();
  if (r != nullptr && r->memory != nullptr) r->memory(&record);
}

lockstep_record blank_record(lockstep_record_kind kind, std::uint32_t name, std::int32_t device,
                             std::uint64_t stream) noexcept {
  lockstep_record record{};
  record.struct_size = sizeof(record);
  record.kind = kind;
  record.name = name;
  record.device = device;
  record.stream = stream;
  return record;
}

Recording::~Recording() {
  if (open_) done(LOCKSTEP_RECORD_FAILED);
}

void Recording::begin(const lockstep_record& record) {
  const lockstep_recorder* r = recorder();
  if (r == nullptr || r->begin == nullptr) return;
  slot_ = r->begin(&record);
  open_ = true;
}

void Recording::done(std::uint32_t flags, std::uint64_t graph, std::int32_t node) {
  if (!open_) return;
  open_ = false;
  recorder()->end(slot_, flags, graph, node);
}

}  // namespace lockstep::hostrt
