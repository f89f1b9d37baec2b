// SPDX-License-Identifier: Apache-2.0
#include "faults.h"

#include <unistd.h>

namespace cuda_sim {

Faults& faults() {
  static auto* const instance = new Faults;
  return *instance;
}

Faults::Faults() {
  std::uint64_t devices = 1;
  calls_.read("CUDA_SIM_DEVICES", 0, 64, "the number of devices, 0 to 64", &devices);
  devices_ = static_cast<std::uint32_t>(devices);
  memory_bytes_ = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::uint64_t mebibytes = memory_bytes_ >> 20;
  calls_.read("CUDA_SIM_MEMORY_MB", 1, std::uint64_t{1} << 30, "MiB a device, at least 1",
              &mebibytes);
  memory_bytes_ = mebibytes << 20;
  calls_.read("CUDA_SIM_DELAY_US", 0, 60'000'000, "microseconds, at most a minute", &delay_us_);
  calls_.read("CUDA_SIM_OOM_BYTES", 1, UINT64_MAX, "a size in bytes", &out_of_memory_bytes_);
  calls_.read("CUDA_SIM_LOST_AT", 1, UINT64_MAX, "the number of a kernel, from 1", &lost_at_);
}

bool Faults::next_kernel_is_lost() noexcept {
  return lost_at_ != 0 && kernels_.fetch_add(1) + 1 == lost_at_;
}

}  // namespace cuda_sim
