// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <mutex>
#include <string>
#include <vector>

#include "../gpu/compile_cache.h"
#include "../gpu/driver.h"
#include "../gpu/dynamic_library.h"
#include "types.h"

namespace lockstep::hip {

// AMD's run-time compiler of the runtime's own major version: libhiprtc.so.N beside the runtime or
// on the loader's path, else what is in the runtime itself, as it was until 6. Two majors in one
// process never meet. LOCKSTEP_HIPRTC_LIBRARY names one.
//
// Kernels are compiled for one architecture with -ffp-contract=off, so that products and sums round
// as the host backend's do and results can be compared bit by bit where no transcendental function
// is called. Who wants contraction says -ffp-contract=fast or --fmad=true. The language is C++17
// unless -std says otherwise. NVRTC's spellings of common options are understood.
//
// Compilations of one process follow each other: the compiler's first uses race in some releases.
class Hiprtc {
 public:
  // Before anything else. `runtime` outlives this.
  void set_runtime(const gpu::DynamicLibrary* runtime, const Version& version, std::string path);

  // True when a compiler was found; else `why` (may be null) says what was tried.
  bool available(std::string* why);
  // What was found, for people; "" before and when nothing was.
  std::string description();
  // COMPILATION_FAILED with the compiler's log, INVALID_ARGUMENT for options that it must not be
  // given, NOT_SUPPORTED when there is no compiler or it does not know the architecture.
  lockstep_code compile(const lockstep_module_desc& desc, const std::string& architecture,
                        gpu::CompiledCode* code, lockstep_error* error);

 private:
  using Program = struct OpaqueProgram*;
  struct Functions {
    int (*create)(Program*, const char*, const char*, int, const char* const*,
                  const char* const*) = nullptr;
    int (*destroy)(Program*) = nullptr;
    int (*compile)(Program, int, const char* const*) = nullptr;
    int (*code_size)(Program, std::size_t*) = nullptr;
    int (*code)(Program, char*) = nullptr;
    int (*log_size)(Program, std::size_t*) = nullptr;
    int (*log)(Program, char*) = nullptr;
    int (*add_name)(Program, const char*) = nullptr;
    int (*lowered_name)(Program, const char*, const char**) = nullptr;
    const char* (*error_string)(int) = nullptr;
  };

  bool find_locked();
  bool accept_locked(const gpu::DynamicLibrary& file);
  lockstep_code run(const lockstep_module_desc& desc, const std::vector<std::string>& options,
                    gpu::CompiledCode* code, std::string* log, lockstep_error* error);
  void keep_source(const lockstep_module_desc& desc, const std::vector<std::string>& options,
                   const gpu::CompiledCode& code);

  const gpu::DynamicLibrary* runtime_ = nullptr;
  Version version_;
  std::string runtime_path_;
  std::mutex mutex_;
  bool searched_ = false;
  bool found_ = false;
  std::string why_not_, description_;
  gpu::DynamicLibrary file_;
  Functions call_;
  std::mutex compiling_;
  gpu::CompileCache cache_{"hip"};
};

// The options for the compiler: the caller's, those spelled as NVRTC takes them translated, and
// ours where the caller says nothing. False with the reason for options that name another device.
bool compiler_options(const lockstep_module_desc& desc, const std::string& architecture,
                      std::vector<std::string>* options, std::string* why);

// lockstep/kernel.h as it was when the plugin was built.
extern const char* const kKernelHeader;

}  // namespace lockstep::hip
