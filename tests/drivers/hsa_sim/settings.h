// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// What the environment asks the simulated HSA layer to be and to do wrong. Read once, at the first
// call.
//   HSA_SIM_DEVICES=N          number of GPUs, 0 to 16; default 1
//   HSA_SIM_ISA=LIST           architecture of each GPU, separated by commas; the last one holds
//   for
//                              the rest. gfx906 gfx908 gfx90a gfx942 (waves of 64), gfx1030 gfx1100
//                              gfx1101 (waves of 32); default gfx90a
//   HSA_SIM_MEMORY_MB=N        memory of each GPU in MiB; default 4096
//   HSA_SIM_LOG=FILE           one line a call ("call NAME STATUS"), kernel, copy and barrier
//   HSA_SIM_FAIL=NAME:N:CODE   the N-th call of NAME ("*" = of any) does nothing and answers CODE,
//   an
//                              hsa_status_t (4096 = error, 4104 = out of resources); several,
//                              separated by commas
//   HSA_SIM_OOM_BYTES=N        allocations of N bytes or more in a GPU's memory answer 4104
//   HSA_SIM_LOST_AT=N          the N-th kernel of the program to execute stops its queue as a
//   memory
//                              fault does: the queue reports an error and nothing behind it
//                              completes
//   HSA_SIM_DELAY_US=N         every kernel and copy begins so many microseconds late: whoever
//   reads
//                              without waiting reads what was there before
//   HSA_SIM_DELAY_BARRIERS_US=N  the same for barrier packets, which otherwise are not late
//   HSA_SIM_NAME_CRASHES=1     a process that ends by a signal says in which library (crashes.h)
//   LOCKSTEP_CACHE_DIR         as for the plugin: kernels get their bodies from the sources there
namespace hsa_sim {

struct Architecture {
  std::string name;      // gfx90a
  std::string isa;       // amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-
  std::uint32_t mach{};  // low byte of e_flags of code objects for it
  std::uint32_t wave_size{};
};

class Settings {
 public:
  // A value that makes no sense ends the process, with a message and exit code 2: a mistyped fault
  // must not pass for a layer without faults.
  Settings();
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  std::uint32_t devices() const noexcept { return devices_; }
  const Architecture& architecture(std::uint32_t device) const noexcept;
  std::uint64_t memory_bytes() const noexcept { return memory_bytes_; }
  bool out_of_memory(std::uint64_t bytes) const noexcept { return bytes >= out_of_memory_bytes_; }
  bool next_kernel_is_lost() noexcept;
  void delay() const noexcept;
  void delay_barrier() const noexcept;

  // Counts a call; the status that it has to answer in place of doing anything, 0 = none.
  int enter(const char* name) noexcept;
  bool logs() const noexcept { return log_file_ >= 0; }
  // One line, without its end.
  void log(const std::string& line) noexcept;

 private:
  struct Rule {
    std::string name;
    std::uint64_t number = 0;
    int status = 0;
    std::atomic<std::uint64_t> seen{0};
  };
  void parse_rules(const std::string& text);
  void parse_architectures(const std::string& text);

  std::uint32_t devices_ = 1;
  std::vector<Architecture> architectures_;
  std::uint64_t memory_bytes_ = 0;
  std::uint64_t delay_us_ = 0;
  std::uint64_t delay_barriers_us_ = 0;
  std::uint64_t out_of_memory_bytes_ = UINT64_MAX;
  std::uint64_t lost_at_ = 0;
  std::atomic<std::uint64_t> kernels_{0};
  std::vector<std::unique_ptr<Rule>> rules_;
  int log_file_ = -1;
};

// Never destroyed.
Settings& settings();
// Always said, on stderr: what a real system would answer by a memory fault or not at all.
void complain(const std::string& what) noexcept;

}  // namespace hsa_sim
