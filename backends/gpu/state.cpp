// SPDX-License-Identifier: Apache-2.0
#include "state.h"

#include <cstring>
#include <pthread.h>
#include <string>

namespace lockstep::gpu {
namespace {

// Stands in for a host that offers no recorder, so that no caller has to ask.
const volatile std::uint32_t never_active = 0;
std::atomic<std::uint64_t> fallback_id{0};

std::uint64_t count_id() { return fallback_id.fetch_add(1, std::memory_order_relaxed) + 1; }
std::uint32_t no_name(const char*, std::size_t) { return 0; }
void* no_begin(const lockstep_record*) { return nullptr; }
void no_end(void*, std::uint32_t, std::uint64_t, std::int32_t) {}
void no_stream(std::uint64_t, std::int32_t, std::uint64_t, int) {}
void no_graph(std::uint64_t, std::uint32_t, const lockstep_record*, std::uint32_t,
              const lockstep_graph_edge*, std::uint32_t) {}
void no_memory(const lockstep_record*) {}

constexpr lockstep_recorder kSilent = {sizeof(lockstep_recorder),
                                       &never_active,
                                       count_id,
                                       no_name,
                                       no_begin,
                                       no_end,
                                       no_stream,
                                       no_graph,
                                       no_memory};

// Only a driver that was started breaks in the child.
void after_fork_in_child() {
  Status ready = Status::kReady;
  g_state.status.compare_exchange_strong(ready, Status::kForked);
}

}  // namespace

constinit State g_state;

void attach(Driver& driver, const lockstep_host* host) {
  std::lock_guard lock(g_state.start_mutex);
  if (g_state.driver != nullptr) return;
  g_state.host = host;
  const bool offered = host != nullptr && host->recorder != nullptr &&
                       host->recorder->struct_size >= sizeof(lockstep_recorder);
  g_state.recorder = offered ? host->recorder : &kSilent;
  g_state.active = g_state.recorder->active;
  g_state.driver = &driver;
}

void log(std::uint32_t level, const char* message) {
  if (g_state.host != nullptr && g_state.host->log != nullptr) g_state.host->log(level, message);
}

lockstep_code start(lockstep_error* error) {
  std::lock_guard lock(g_state.start_mutex);
  switch (g_state.status.load()) {
    case Status::kReady:
      return LOCKSTEP_OK;
    case Status::kFailed:
    case Status::kForked:
      return refuse(error);
    case Status::kFresh:
      break;
  }
  lockstep_error& failure = g_state.failure;
  std::memset(&failure, 0, sizeof failure);
  failure.struct_size = sizeof failure;
  const lockstep_code code = driver().start(&failure);
  if (code != LOCKSTEP_OK) {
    failure.code = code;
    g_state.status.store(Status::kFailed);
    return refuse(error);
  }
  for (std::size_t index = 0; index < kCallCount; ++index) {
    const char* name = driver().call_name(static_cast<Call>(index));
    g_state.names[index] = recorder().intern(name, std::strlen(name));
  }
  g_state.plain_launch = driver().traits().plain_launch;
  g_state.plain_graph_launch = driver().traits().plain_graph_launch;
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  g_state.status.store(Status::kReady, std::memory_order_release);
  return LOCKSTEP_OK;
}

lockstep_code refuse(lockstep_error* error) {
  switch (g_state.status.load()) {
    case Status::kForked:
      return fail(error, LOCKSTEP_E_UNAVAILABLE, "fork",
                  "the driver was started before this process was forked and cannot be used in the "
                  "child: fork before the first use of the device, or start a new program");
    case Status::kFailed: {
      const lockstep_error& failure = g_state.failure;
      fail(error, failure.code, failure.call, failure.message);
      if (error != nullptr && error->struct_size >= offsetof(lockstep_error, log)) {
        error->native_code = failure.native_code;
        std::memcpy(error->native_name, failure.native_name, sizeof failure.native_name);
      }
      return failure.code;
    }
    default:
      return fail(error, LOCKSTEP_E_UNAVAILABLE, "initialize",
                  "initialize has to succeed before any other slot is called");
  }
}

}  // namespace lockstep::gpu
