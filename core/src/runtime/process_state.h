// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

/// \file
/// What a process goes through: forks, and its end.
namespace lockstep::runtime {

namespace state {
extern std::atomic<bool> exiting;
extern std::atomic<std::uint32_t> forks;
}  // namespace state

/// How many forks lie between this process and the one that loaded the library. Objects remember
/// the number at their birth: one made before a fork is not usable in the child.
inline std::uint32_t fork_generation() noexcept {
  return state::forks.load(std::memory_order_relaxed);
}

/// True from the moment at which plugins or drivers may already have been torn down.
inline bool process_exiting() noexcept { return state::exiting.load(std::memory_order_acquire); }

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
