// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <mutex>
#include <nvrtc.h>
#include <string>
#include <vector>

#include "../gpu/compile_cache.h"
#include "../gpu/driver.h"
#include "../gpu/dynamic_library.h"

namespace lockstep::cuda {

// NVIDIA's run-time compiler, opened when it is first needed: the newest whose major version is not
// above the driver's, since a driver runs machine code of its own major and older ones.
// LOCKSTEP_NVRTC_LIBRARY names one; else the loader's path, toolkits and Python wheels are
// searched.
//
// Kernels are compiled to machine code of one architecture with -fmad=false, so that products and
// sums round as the host backend's do and results can be compared bit by bit where no
// transcendental function is called. Who wants contraction says -fmad=true (or --use_fast_math).
// The language is C++17 unless -std says otherwise.
class Nvrtc {
 public:
  void set_driver_version(int version) { driver_version_ = version; }

  // True when a compiler was found; else `why` (may be null) says what was tried.
  bool available(std::string* why);
  // COMPILATION_FAILED with the compiler's log, INVALID_ARGUMENT for an option it does not know,
  // NOT_SUPPORTED when there is no compiler or it does not know the architecture.
  lockstep_code compile(const lockstep_module_desc& desc, const std::string& architecture,
                        gpu::CompiledCode* code, lockstep_error* error);

 private:
  struct Functions {
    decltype(&nvrtcVersion) version = nullptr;
    decltype(&nvrtcCreateProgram) create = nullptr;
    decltype(&nvrtcDestroyProgram) destroy = nullptr;
    decltype(&nvrtcCompileProgram) compile = nullptr;
    decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
    decltype(&nvrtcGetCUBIN) cubin = nullptr;
    decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
    decltype(&nvrtcGetProgramLog) log = nullptr;
    decltype(&nvrtcAddNameExpression) add_name = nullptr;
    decltype(&nvrtcGetLoweredName) lowered_name = nullptr;
    decltype(&nvrtcGetErrorString) error_string = nullptr;
    decltype(&nvrtcGetNumSupportedArchs) architecture_count = nullptr;
    decltype(&nvrtcGetSupportedArchs) architectures = nullptr;
  };

  bool find_locked();
  bool accept_locked();  // loads the functions of the opened file and checks its version
  std::vector<std::string> options_for(const lockstep_module_desc& desc,
                                       const std::string& architecture) const;
  bool knows(const std::string& architecture, std::string* newest) const;
  lockstep_code run(const lockstep_module_desc& desc, const std::vector<std::string>& options,
                    gpu::CompiledCode* code, std::string* log, lockstep_error* error);

  int driver_version_ = 0;
  std::mutex mutex_;
  bool searched_ = false;
  bool found_ = false;
  std::string why_not_;
  gpu::DynamicLibrary file_;
  Functions call_;
  int major_ = 0, minor_ = 0;
  std::string include_folder_;  // the toolkit's own headers, when they lie beside the library
  gpu::CompileCache cache_{"cuda"};
};

// Where a library of this major version may lie, the loader's path first. For tests.
std::vector<std::string> nvrtc_candidates(int major);

// lockstep/kernel.h as it was when the plugin was built.
extern const char* const kKernelHeader;

}  // namespace lockstep::cuda
