// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

/// \file
/// What a process goes through: forks, and its end.
namespace lockstep::runtime {

/// Side by side, for the path of a launch looks at most of them.
struct alignas(64) ProcessState {
  std::atomic<bool> exiting{false};
  std::atomic<std::uint32_t> forks{0};
  std::atomic<std::uint32_t> backends{0};  ///< that were started, ever
  std::atomic<std::uint32_t> captures{0};  ///< that are going on, of any backend
  const volatile std::uint32_t* active;    ///< the word of the recorder that plugins were given
};
extern ProcessState process;

/// How many forks lie between this process and the one that loaded the library. Objects remember
/// the number at their birth: one made before a fork is not usable in the child.
inline std::uint32_t fork_generation() noexcept {
  return process.forks.load(std::memory_order_relaxed);
}

/// True when memory may be another backend's than the one it is given to.
inline bool several_backends() noexcept {
  return process.backends.load(std::memory_order_relaxed) > 1;
}

/// False costs one load: no stream of any backend takes part in a capture of ours.
inline bool captures_open() noexcept {
  return process.captures.load(std::memory_order_relaxed) != 0;
}

/// Does anybody want entries? The same word that plugins look at.
inline bool recording() noexcept { return __atomic_load_n(process.active, __ATOMIC_RELAXED) != 0; }

/// True from the moment at which plugins or drivers may already have been torn down.
inline bool process_exiting() noexcept { return process.exiting.load(std::memory_order_acquire); }

/// Whether an object born in `generation` may still be given back to its plugin.
inline bool may_release(std::uint32_t generation) noexcept {
  return !process_exiting() && generation == fork_generation();
}

/// Call after a driver was started. Exit handlers run in reverse order, so ours, registered later,
/// runs before those that the plugin and its driver registered.
void watch_process_end();
/// Call before a driver is started.
void watch_forks();

/// A small number for the calling thread, from 1, for messages.
std::uint32_t thread_number() noexcept;

}  // namespace lockstep::runtime
