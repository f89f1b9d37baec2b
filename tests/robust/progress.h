// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/types.h>
#include <system_error>
#include <unistd.h>

namespace lockstep::robust {

/// What a program that is going to be killed tells the test: memory of a file, which survives it.
struct Progress {
  static constexpr std::uint32_t kTimes = 1u << 15;

  std::atomic<pid_t> pid{0};
  std::atomic<std::uint32_t> returned{0};             ///< launches whose call has returned
  std::atomic<std::uint64_t> oversleep{0};            ///< longest delay of a sleeping thread, ns
  std::array<std::atomic<std::uint64_t>, kTimes> at;  ///< when launch i was made, i mod kTimes

  static Progress* map(const std::string& path, bool create) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);
    if (file < 0 || (create && ftruncate(file, sizeof(Progress)) != 0)) {
      throw std::system_error(errno, std::generic_category(), path);
    }
    void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), path);
    return create ? new (memory) Progress : static_cast<Progress*>(memory);
  }
};

inline std::uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace lockstep::robust
