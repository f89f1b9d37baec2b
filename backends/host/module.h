// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::hostjit {
class Kernel;
class Module;
}  // namespace lockstep::hostjit

namespace lockstep::hostrt {

class Device;
class Module;

// lockstep_host::log: where remarks about the making of modules go. Null: nowhere.
void set_log(void (*log)(std::uint32_t level, const char* message)) noexcept;

// A kernel of a module; lives as long as it.
struct Kernel {
  Module* module = nullptr;
  const hostjit::Kernel* code = nullptr;
  std::uint32_t record_name = 0;
  std::vector<lockstep_parameter> parameters;  // as recorded
  std::atomic<std::uint32_t> max_dynamic_shared{0};

  std::uint32_t max_dynamic_shared_opt_in() const noexcept;
  void set_max_dynamic_shared(std::uint32_t bytes);
};

}  // namespace lockstep::hostrt

// The handle of backend.h; here, because modules own their kernels.
struct lockstep_kernel : lockstep::hostrt::Kernel {};

namespace lockstep::hostrt {

class Module : public std::enable_shared_from_this<Module> {
 public:
  // Throws Error: compilation failed (with the log), not supported, invalid image.
  static std::shared_ptr<Module> create(Device& device, const lockstep_module_desc& desc);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Device& device() const noexcept { return device_; }
  // By name expression or mangled name; throws not found, listing what there is.
  lockstep_kernel& kernel(const std::string& name);
  std::deque<lockstep_kernel>& kernels() noexcept { return kernels_; }
  void global(const std::string& name, void** address, std::uint64_t* bytes);

 private:
  Module(Device& device, std::shared_ptr<hostjit::Module> code);

  Device& device_;
  const std::shared_ptr<hostjit::Module> code_;
  std::deque<lockstep_kernel> kernels_;
  std::mutex mutex_;
  std::vector<void*> globals_;
};

}  // namespace lockstep::hostrt
