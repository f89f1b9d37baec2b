// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "recorder/layout.h"

/// \file
/// Mapped memory of the recorder: anonymous, or files that another process drains.
namespace lockstep::recorder {

/// Makes `<directory>/<pid>.<image>.image` with the first image number that is free, and writes
/// that number. Null with errno set when it cannot.
///
/// *file keeps it open, for a lock that the drainer looks at (fcntl's own: children do not inherit
/// it, exec and every end of the process drop it, and it means the same in every PID namespace).
/// Nothing else of this process may open that file, as closing it would drop the lock.
Control* create_shared_control(const char* directory, std::uint32_t* image, int* file) noexcept;

/// Inode of the PID namespace of this process, 0 where /proc does not tell.
std::uint64_t own_pid_namespace() noexcept;

/// Makes a ring of `capacity` bytes: anonymous when `directory` is empty, else the file
/// `<directory>/<pid>.<image>.<index>.ring`. *file keeps the open file of the latter. Null with
/// errno set when it cannot.
Ring* create_ring(const char* directory, std::uint32_t image, std::uint32_t index,
                  std::uint64_t capacity, int* file) noexcept;

/// Makes sure that the system holds `bytes` of the ring's file, so that writing cannot fault on a
/// full file system. False with errno set when it does not.
bool back_ring(Ring* ring, int file, std::uint64_t bytes) noexcept;

void unmap_ring(Ring* ring) noexcept;

/// The hub of the folder; null when there is none.
Hub* map_hub(const char* directory) noexcept;

/// False when the process that records into `directory` is gone: it holds a lock while it lives.
bool parent_lives(const char* directory) noexcept;

void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t value,
                std::uint64_t nanoseconds) noexcept;
void futex_wake(std::atomic<std::uint32_t>* word) noexcept;

}  // namespace lockstep::recorder
