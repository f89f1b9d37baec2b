// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "robust/program.h"
#include "robust/progress.h"

namespace lockstep::robust {
namespace {

/// A device with one kernel and something for it to do.
struct Work {
  Device device = Device::open("host");
  Stream stream = device.create_stream();
  Kernel add = device.compile(kSource, {.kernels = {"add"}}).kernel("add");
  Buffer<int> value = device.allocate<int>(1);

  void launch() const { stream.launch(add, {}, value, 1); }
};

/// How late a thread wakes up on this machine just now: what delays the thread that writes traces.
void watch_delays(Progress& progress) {
  for (;;) {
    const std::uint64_t begin = now();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::uint64_t late = now() - begin - 5'000'000;
    if (late > progress.oversleep) progress.oversleep = late;
  }
}

}  // namespace

int launch_until_killed(const Arguments& arguments) {
  Progress& progress = *Progress::map(arguments.at(0), false);
  const auto pause = std::chrono::microseconds(std::stoul(arguments.at(1)));
  const Work work;
  std::thread(watch_delays, std::ref(progress)).detach();
  progress.pid = getpid();
  for (std::uint32_t i = 0;; ++i) {
    progress.at[i % Progress::kTimes] = now();
    work.launch();
    progress.returned = i + 1;
    if (i == 0) {
      std::puts("ready");
      std::fflush(stdout);
    }
    if (i % 64 == 63) work.stream.synchronize();
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
  }
}

int launch_some(const Arguments& arguments) {
  const unsigned count = static_cast<unsigned>(std::stoul(arguments.at(0)));
  const Work work;
  work.stream.fill(work.value, 0);
  for (unsigned i = 0; i < count; ++i) {
    work.launch();
    if (i % 256 == 255) work.stream.synchronize();
  }
  std::vector<int> result(1);
  work.stream.copy_and_wait(result, work.value);
  if (result[0] != static_cast<int>(count)) return 1;
  std::puts("done");
  return 0;
}

int fork_workers(const Arguments&) {
  for (unsigned worker = 1; worker <= 3; ++worker) {
    const pid_t child = fork();
    if (child == 0) {
      const Work work;
      for (unsigned i = 0; i < worker; ++i) work.launch();
      work.stream.synchronize();
      std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
  }
  const Work work;
  for (int i = 0; i < 4; ++i) work.launch();
  work.stream.synchronize();
  return 0;
}

int read_back(const Arguments& arguments) {
  const bool each_round = arguments.at(0) == "each-round";
  const Work work;
  work.stream.fill(work.value, 0);
  std::vector<int> blocks(1, 1);
  {
    const MarkRange loop("loop");
    for (int round = 0; round < 10; ++round) {
      work.launch();
      if (each_round) work.stream.copy_and_wait(blocks, work.value);
      work.stream.launch(work.add, {.grid = static_cast<std::uint32_t>(blocks[0])}, work.value, 0);
    }
  }
  if (!each_round) work.stream.copy_and_wait(blocks, work.value);
  return blocks[0] == 10 ? 0 : 1;
}

}  // namespace lockstep::robust
