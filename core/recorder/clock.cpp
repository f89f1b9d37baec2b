// SPDX-License-Identifier: Apache-2.0
#include "recorder/clock.h"

#include <cstring>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "recorder/recorder.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace lockstep::recorder {

std::uint64_t monotonic_nanoseconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t clock_ticks(std::uint32_t clock) noexcept {
#if defined(__x86_64__)
  if (clock == kClockTsc) return __rdtsc();
#else
  (void)clock;
#endif
  return monotonic_nanoseconds();
}

std::uint32_t choose_clock() noexcept {
#if defined(__x86_64__)
  // The counter is read in a third of the time of clock_gettime, but only where it runs at one
  // speed on all cores, which the kernel has checked when it uses it itself.
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0x80000007u, &a, &b, &c, &d) == 0 || (d & (1u << 8)) == 0) {
    return kClockNanoseconds;
  }
  const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                        O_RDONLY | O_CLOEXEC);
  if (file < 0) return kClockNanoseconds;
  char source[16] = {};
  const ssize_t got = read(file, source, sizeof(source) - 1);
  close(file);
  if (got >= 3 && std::strncmp(source, "tsc", 3) == 0) return kClockTsc;
#endif
  return kClockNanoseconds;
}

}  // namespace lockstep::recorder
