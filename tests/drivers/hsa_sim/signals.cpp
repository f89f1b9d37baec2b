// SPDX-License-Identifier: Apache-2.0
#include "signals.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <linux/futex.h>
#include <mutex>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "handlers.h"

namespace hsa_sim {
namespace {

// Who changes a value through its address, without a call, wakes nobody: waiters look by themselves
// now and then.
constexpr std::uint64_t kLookAgain = 2'000'000;  // nanoseconds

// Signals are never given back, so that every handle that ever was can be looked at.
struct Signals {
  std::mutex mutex;
  std::vector<Signal*> free;
  std::vector<Signal*> all;  // so that none is a leak
};
Signals& signals() {
  static auto* const instance = new Signals;
  return *instance;
}

// The low half of the value, on which threads sleep.
std::uint32_t* futex_word(Signal& signal) {
  return reinterpret_cast<std::uint32_t*>(const_cast<std::int64_t*>(&signal.shared.value));
}

// What a signal was that is used after its end, and by what.
std::string history(Signal& signal, const char* user) {
  const auto ago = [time = now()](std::uint64_t then) {
    return std::to_string((time - then) / 1000) + " us ago";
  };
  return std::string(user) + ": made " + ago(signal.made_at.load()) + ", destroyed " +
         ago(signal.gone_at.load()) + " with the value " +
         std::to_string(signal.value_at_end.load());
}
[[noreturn]] void tell_gone(Signal* signal, const char* user) noexcept {
  complain("a signal is used that does not exist (any more), by " +
           (signal == nullptr ? user : history(*signal, user)));
  std::abort();
}

void end_operation(Signal& signal, std::uint64_t began) noexcept {
  signal.shared.start_ts = began;
  signal.shared.end_ts = now();
  signal.value().fetch_sub(1);
  // From here on it may be destroyed, and be another signal: waking costs that one a look.
  wake(signal);
}

}  // namespace

std::uint64_t now() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

hsa_signal_t make_signal(std::int64_t value) {
  Signals& known = signals();
  const std::lock_guard lock(known.mutex);
  if (known.free.empty()) {
    known.all.push_back(new Signal{});
    known.free.push_back(known.all.back());
  }
  Signal* const signal = known.free.back();
  known.free.pop_back();
  signal->shared = amd_signal_t{};
  signal->made_at.store(now());
  signal->value().store(value);
  signal->kind().store(AMD_SIGNAL_KIND_USER);
  return {reinterpret_cast<std::uint64_t>(signal)};
}

void destroy_signal(hsa_signal_t handle) {
  Signal& signal = signal_of(handle);
  forget_handlers(signal);
  Signals& known = signals();
  const std::lock_guard lock(known.mutex);
  signal.gone_at.store(now());
  signal.kind().store(AMD_SIGNAL_KIND_INVALID);
  // Looked at behind the mark: what completes it from here on finds it gone.
  signal.value_at_end.store(signal.value().load());
  // At the far end: it is used again as late as possible.
  if (signal.value_at_end.load() == 0) known.free.insert(known.free.begin(), &signal);
}

Signal& signal_of(hsa_signal_t handle, const char* user) noexcept {
  auto* const signal = reinterpret_cast<Signal*>(handle.handle);
  if (signal == nullptr || signal->kind().load() != AMD_SIGNAL_KIND_USER) tell_gone(signal, user);
  return *signal;
}

bool is_over(Signal& signal, const char* user) noexcept {
  if (signal.value().load() == 0) return true;
  if (signal.kind().load() == AMD_SIGNAL_KIND_USER) return false;
  // It may have ended before it was destroyed.
  if (signal.value().load() == 0) return true;
  tell_gone(&signal, user);
}

void wake(Signal& signal) noexcept {
  if (signal.waiters.load() > 0) {
    syscall(SYS_futex, futex_word(signal), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  if (signal.observers.load() > 0) wake_handlers();
}

bool holds(std::int64_t value, hsa_signal_condition_t condition, std::int64_t bound) noexcept {
  switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
      return value == bound;
    case HSA_SIGNAL_CONDITION_NE:
      return value != bound;
    case HSA_SIGNAL_CONDITION_LT:
      return value < bound;
    case HSA_SIGNAL_CONDITION_GTE:
      return value >= bound;
    default:
      return false;
  }
}

std::int64_t wait_until(Signal& signal, hsa_signal_condition_t condition, std::int64_t bound,
                        std::uint64_t deadline) noexcept {
  std::int64_t value = signal.value().load();
  if (holds(value, condition, bound)) return value;
  signal.waiters.fetch_add(1);
  for (;;) {
    value = signal.value().load();
    const std::uint64_t time = now();
    if (holds(value, condition, bound) || time >= deadline) break;
    const std::uint64_t pause = std::min(deadline - time, kLookAgain);
    const timespec limit{0, static_cast<long>(pause)};
    syscall(SYS_futex, futex_word(signal), FUTEX_WAIT_PRIVATE, static_cast<std::uint32_t>(value),
            &limit, nullptr, 0);
  }
  signal.waiters.fetch_sub(1);
  return value;
}

void complete(hsa_signal_t handle, std::uint64_t began, const char* user) noexcept {
  if (handle.handle != 0) end_operation(signal_of(handle, user), began);
}

void complete_barrier(hsa_signal_t handle, std::uint64_t began) noexcept {
  if (handle.handle == 0) return;
  Signal& signal = *reinterpret_cast<Signal*>(handle.handle);
  if (signal.kind().load() != AMD_SIGNAL_KIND_USER) {
    const char* const user = "a barrier packet";
    if (signal.value().load() == 0) tell_gone(&signal, user);
    // Nobody else's: destroyed before its end, it is not used again.
    complain("a destroyed signal is completed, by " + history(signal, user));
  }
  end_operation(signal, began);
}

}  // namespace hsa_sim

using namespace hsa_sim;

HSA_SIM_API hsa_signal_create(hsa_signal_value_t value, std::uint32_t, const hsa_agent_t*,
                              hsa_signal_t* signal) {
  return call("hsa_signal_create", [&] {
    require(signal != nullptr);
    *signal = make_signal(value);
  });
}
HSA_SIM_API hsa_amd_signal_create(hsa_signal_value_t value, std::uint32_t, const hsa_agent_t*,
                                  std::uint64_t, hsa_signal_t* signal) {
  return call("hsa_amd_signal_create", [&] {
    require(signal != nullptr);
    *signal = make_signal(value);
  });
}
HSA_SIM_API hsa_signal_destroy(hsa_signal_t signal) {
  return call("hsa_signal_destroy", [&] {
    require(signal.handle != 0, HSA_STATUS_ERROR_INVALID_SIGNAL);
    destroy_signal(signal);
  });
}
HSA_SIM_API hsa_amd_signal_value_pointer(hsa_signal_t signal,
                                         volatile hsa_signal_value_t** address) {
  return call("hsa_amd_signal_value_pointer", [&] {
    require(address != nullptr);
    *address = &signal_of(signal).shared.value;
  });
}

namespace {

// The signal is looked up once: after the change it may be destroyed.
template <typename Change>
void change(hsa_signal_t handle, const Change& by) {
  Signal& signal = signal_of(handle);
  by(signal.value());
  wake(signal);
}

}  // namespace

HSA_SIM_API_AS(hsa_signal_value_t) hsa_signal_load_relaxed(hsa_signal_t signal) {
  return signal_of(signal).value().load();
}
HSA_SIM_API_AS(hsa_signal_value_t) hsa_signal_load_scacquire(hsa_signal_t signal) {
  return signal_of(signal).value().load();
}
HSA_SIM_API_AS(void) hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  change(signal, [&](auto number) { number.store(value); });
}
HSA_SIM_API_AS(void) hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
  change(signal, [&](auto number) { number.store(value); });
}
HSA_SIM_API_AS(void)
hsa_signal_silent_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  signal_of(signal).value().store(value);
}
HSA_SIM_API_AS(void) hsa_signal_add_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  change(signal, [&](auto number) { number.fetch_add(value); });
}
HSA_SIM_API_AS(void) hsa_signal_subtract_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  change(signal, [&](auto number) { number.fetch_sub(value); });
}
HSA_SIM_API_AS(hsa_signal_value_t)
hsa_signal_wait_scacquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                          hsa_signal_value_t bound, std::uint64_t timeout, hsa_wait_state_t) {
  const std::uint64_t time = now();
  const std::uint64_t deadline = timeout > UINT64_MAX - time ? UINT64_MAX : time + timeout;
  return wait_until(signal_of(signal), condition, bound, deadline);
}
HSA_SIM_API_AS(hsa_signal_value_t)
hsa_signal_wait_relaxed(hsa_signal_t signal, hsa_signal_condition_t condition,
                        hsa_signal_value_t bound, std::uint64_t timeout, hsa_wait_state_t state) {
  return hsa_signal_wait_scacquire(signal, condition, bound, timeout, state);
}

HSA_SIM_API hsa_amd_profiling_set_profiler_enabled(hsa_queue_t* queue, int) {
  return call("hsa_amd_profiling_set_profiler_enabled", [&] { require(queue != nullptr); });
}
HSA_SIM_API hsa_amd_profiling_async_copy_enable(bool) {
  return call("hsa_amd_profiling_async_copy_enable", [] {});
}
HSA_SIM_API hsa_amd_profiling_get_dispatch_time(hsa_agent_t agent, hsa_signal_t signal,
                                                hsa_amd_profiling_dispatch_time_t* time) {
  return call("hsa_amd_profiling_get_dispatch_time", [&] {
    require(agent.handle != 0, HSA_STATUS_ERROR_INVALID_AGENT);
    require(time != nullptr);
    *time = {signal_of(signal).shared.start_ts, signal_of(signal).shared.end_ts};
  });
}
HSA_SIM_API hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal,
                                                  hsa_amd_profiling_async_copy_time_t* time) {
  return call("hsa_amd_profiling_get_async_copy_time", [&] {
    require(time != nullptr);
    *time = {signal_of(signal).shared.start_ts, signal_of(signal).shared.end_ts};
  });
}
