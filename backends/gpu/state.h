// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>

#include "driver.h"
#include "error.h"

// The plugin's one state. It is never destroyed: slots may be called while the process exits, when
// static objects are gone already.
namespace lockstep::gpu {

enum class Status : int { kFresh, kReady, kFailed, kForked };

struct alignas(64) State {
  std::atomic<Status> status{Status::kFresh};
  std::atomic<int> open_captures{0};   // that this plugin began
  PlainLaunch plain_launch = nullptr;  // the driver's traits, where launches look
  PlainGraphLaunch plain_graph_launch = nullptr;
  Driver* driver = nullptr;
  const lockstep_host* host = nullptr;
  const lockstep_recorder* recorder = nullptr;     // never null
  const volatile std::uint32_t* active = nullptr;  // the recorder's, looked at by every call
  std::array<std::uint32_t, kCallCount> names{};   // interned call names
  std::mutex start_mutex;
  lockstep_error failure{};  // what start() said
};

// constant-initialised, trivially reachable: no guard variable on the launch path.
extern constinit State g_state;

inline Driver& driver() { return *g_state.driver; }
inline const lockstep_recorder& recorder() { return *g_state.recorder; }
// Are entries wanted? Two loads and one branch.
inline bool recording() { return __atomic_load_n(g_state.active, __ATOMIC_RELAXED) != 0; }
inline bool usable() { return g_state.status.load(std::memory_order_relaxed) == Status::kReady; }

// Called by lockstep_backend_query, before any slot. The same arguments again do nothing.
void attach(Driver& driver, const lockstep_host* host);
// The initialize slot: starts the driver once and remembers a failure.
lockstep_code start(lockstep_error* error);
void log(std::uint32_t level, const char* message);

// Why a slot cannot run: not initialised, failed, or forked. Always an error.
lockstep_code refuse(lockstep_error* error);

// Runs a slot's body: nothing thrown crosses the border, and nothing runs after a fork.
template <class Body>
lockstep_code slot(lockstep_error* error, Body&& body) noexcept {
  if (!usable()) [[unlikely]]
    return refuse(error);
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(error, LOCKSTEP_E_OUT_OF_MEMORY, "", "out of host memory");
  } catch (const std::exception& problem) {
    return fail(error, LOCKSTEP_E_INTERNAL, "", problem.what());
  }
}

// Makes a context current for a scope and restores what was current before. Costs one query when
// it is current already.
class ContextScope {
 public:
  ContextScope() = default;  // leaves everything as it is until enter()
  explicit ContextScope(Context wanted) { enter(wanted); }
  void enter(Context wanted) {  // once
    result_ = driver().context_current(&previous_);
    if (result_ == kSuccess && previous_ != wanted) {
      result_ = driver().context_set(wanted);
      changed_ = result_ == kSuccess;
    }
  }
  ~ContextScope() {
    // A failure here means that the driver is shutting down; nothing is left to restore then.
    if (changed_) driver().context_set(previous_);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  Result result() const { return result_; }

 private:
  Context previous_ = nullptr;
  Result result_ = kSuccess;
  bool changed_ = false;
};

}  // namespace lockstep::gpu
