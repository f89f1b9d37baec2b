// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <hsa/amd_hsa_signal.h>

#include "call.h"

// Signals: numbers in memory that packets, copies and threads wait for. AMD's runtime reads the
// fields of amd_signal_t itself, and hands the value's address to others.
namespace hsa_sim {

struct Signal {
  amd_signal_t shared;
  std::atomic<std::uint32_t> waiters;    // threads in wait_until
  std::atomic<std::uint32_t> observers;  // asynchronous handlers
  // Told when it is used after its end.
  std::atomic<std::uint64_t> made_at, gone_at;
  std::atomic<std::int64_t> value_at_end;

  std::atomic_ref<std::int64_t> value() {
    return std::atomic_ref<std::int64_t>(const_cast<std::int64_t&>(shared.value));
  }
  std::atomic_ref<amd_signal_kind64_t> kind() {
    return std::atomic_ref<amd_signal_kind64_t>(shared.kind);
  }
};

// Nanoseconds of the monotonic clock, which is the system's clock here.
std::uint64_t now() noexcept;

hsa_signal_t make_signal(std::int64_t value);
// Its memory stays: somebody may still be looking. One that does not have the value 0, and so may
// have something under way that completes it, is never used again.
void destroy_signal(hsa_signal_t handle);
// Ends the process when there is no such signal (any more): AMD's runtime would have read memory
// that is not its own. `user` says who asks for it.
Signal& signal_of(hsa_signal_t handle, const char* user = "a call") noexcept;
// Whether the value is 0; ends the process where that can no longer be.
bool is_over(Signal& signal, const char* user) noexcept;
// After every change of a value.
void wake(Signal& signal) noexcept;

bool holds(std::int64_t value, hsa_signal_condition_t condition, std::int64_t bound) noexcept;
// The value seen last; gives up at `deadline`, in now()'s time.
std::int64_t wait_until(Signal& signal, hsa_signal_condition_t condition, std::int64_t bound,
                        std::uint64_t deadline) noexcept;
// What ends an operation: its times, then 1 less. A null handle is no signal. Whoever waits may
// destroy the signal as soon as the value has changed.
void complete(hsa_signal_t handle, std::uint64_t began, const char* user) noexcept;
// The same for barrier packets, whose signal AMD's runtime may have destroyed meanwhile
// (README.md). Hardware would write to memory that the pool of signals keeps, or that is another
// signal by now.
void complete_barrier(hsa_signal_t handle, std::uint64_t began) noexcept;

}  // namespace hsa_sim
