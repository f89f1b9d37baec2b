// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/process_state.h"

#include <cstdlib>
#include <pthread.h>

namespace lockstep::runtime {

namespace {
const volatile std::uint32_t never_active = 0;
}  // namespace

constinit ProcessState process{.active = &never_active};

void watch_process_end() {
  // Failure means that memory ran out; then only the ignoring of late calls is lost.
  [[maybe_unused]] const int result =
      std::atexit([] { process.exiting.store(true, std::memory_order_release); });
}

void watch_forks() {
  static const int registered = pthread_atfork(
      nullptr, nullptr, [] { process.forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
}

std::uint32_t thread_number() noexcept {
  static std::atomic<std::uint32_t> next{1};
  thread_local const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace lockstep::runtime
