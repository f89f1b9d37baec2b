// SPDX-License-Identifier: Apache-2.0
// marks_program COUNT [exit CODE | signal NUMBER | wait | device | again FILE]: makes COUNT marks,
// says so, and ends as it is told; `wait` ends with 42 at SIGTERM, `device` makes a stream of one,
// `again` makes as many once the file exists.
#include <lockstep/device.h>
#include <lockstep/stream.h>
#include <lockstep/tracer.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace {
void leave(int) { _exit(42); }
}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 0;
  const char* end = argc > 2 ? argv[2] : "";
  std::signal(SIGTERM, leave);
  for (int i = 0; i < count; ++i) lockstep::mark("step");
  std::printf("made %d marks\n", count);
  std::fflush(stdout);
  if (std::strcmp(end, "device") == 0) {
    lockstep::Device::open("host").create_stream();
  }
  if (std::strcmp(end, "again") == 0) {
    while (access(argv[3], F_OK) != 0) usleep(5000);
    for (int i = 0; i < count; ++i) lockstep::mark("again");
  }
  if (std::strcmp(end, "exit") == 0) return std::atoi(argv[3]);
  if (std::strcmp(end, "signal") == 0) std::raise(std::atoi(argv[3]));
  if (std::strcmp(end, "wait") == 0) {
    while (true) pause();
  }
  return 0;
}
