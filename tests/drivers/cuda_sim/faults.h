// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "../call_faults.h"

// What the environment asks the simulated driver to be and to do wrong. Read once, at cuInit.
//   CUDA_SIM_DEVICES=N          number of devices, 0 to 64; default 1
//   CUDA_SIM_MEMORY_MB=N        memory of each device in MiB; default what the machine has
//   CUDA_SIM_LOG, CUDA_SIM_FAIL   faults of single calls: see call_faults.h
//   CUDA_SIM_OOM_BYTES=N        allocations of N bytes or more answer CUDA_ERROR_OUT_OF_MEMORY
//   CUDA_SIM_LOST_AT=N          the N-th kernel to execute fails and takes its context along (719)
//   CUDA_SIM_DELAY_US=N         every operation begins so many microseconds late
namespace cuda_sim {

class Faults {
 public:
  // A value that makes no sense ends the process, with a message and exit code 2: a mistyped fault
  // must not pass for a driver without faults.
  Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  std::uint32_t devices() const noexcept { return devices_; }
  std::uint64_t memory_bytes() const noexcept { return memory_bytes_; }
  std::uint64_t delay_us() const noexcept { return delay_us_; }
  bool out_of_memory(std::uint64_t bytes) const noexcept { return bytes >= out_of_memory_bytes_; }
  bool next_kernel_is_lost() noexcept;

  // Counts a call; the code that it has to answer in place of doing anything, 0 = none.
  int enter(const char* name) noexcept { return calls_.enter(name); }
  void log(const char* name, int result) noexcept { calls_.log(name, result); }

 private:
  test_drivers::CallFaults calls_{"cuda_sim", "CUDA_SIM"};
  std::uint32_t devices_ = 1;
  std::uint64_t memory_bytes_ = 0;
  std::uint64_t delay_us_ = 0;
  std::uint64_t out_of_memory_bytes_ = UINT64_MAX;
  std::uint64_t lost_at_ = 0;
  std::atomic<std::uint64_t> kernels_{0};
};

// Never destroyed.
Faults& faults();

}  // namespace cuda_sim
