// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "../call_faults.h"
#include "cuda/nvrtc.h"

// hipRTC over NVRTC, a library of its own as in ROCm 7: what hipcc's options say is said in NVRTC's
// words. Results have the same numbers. LOCKSTEP_NVRTC_LIBRARY names the NVRTC, else the newest one
// that is found.
namespace {

using Program = nvrtcProgram;

test_drivers::CallFaults& faults() {
  static auto* const instance = new test_drivers::CallFaults("hiprtc_on_cuda", "HIPRTC_ON_CUDA");
  return *instance;
}

void* open_nvrtc() {
  const char* named = std::getenv("LOCKSTEP_NVRTC_LIBRARY");
  if (named != nullptr && *named != '\0') return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  for (int major = 13; major >= 12; --major) {
    for (const std::string& candidate : lockstep::cuda::nvrtc_candidates(major)) {
      if (candidate.front() == '/' && access(candidate.c_str(), R_OK) != 0) continue;
      if (void* file = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return file;
    }
  }
  return nullptr;
}

template <typename Function>
Function* function(const char* name) {
  static void* const file = open_nvrtc();
  return file != nullptr ? reinterpret_cast<Function*>(dlsym(file, name)) : nullptr;
}

// Counts the call, and forwards it.
template <typename Function, typename... Arguments>
int forward(const char* hip_name, const char* name, Arguments... arguments) {
  int result = faults().enter(hip_name);
  if (result == 0) {
    const auto found = function<Function>(name);
    result = found != nullptr ? static_cast<int>(found(arguments...))
                              : static_cast<int>(NVRTC_ERROR_INTERNAL_ERROR);
  }
  faults().log(hip_name, result);
  return result;
}

std::string translated(std::string_view option) {
  constexpr std::string_view kArch = "--offload-arch=", kStandard = "-std=";
  if (option.starts_with(kArch)) {
    return "--gpu-architecture=" + std::string(option.substr(kArch.size()));
  }
  if (option.starts_with(kStandard)) return "-" + std::string(option);
  if (option == "-ffp-contract=off") return "--fmad=false";
  if (option == "-ffp-contract=fast") return "--fmad=true";
  if (option == "-ffast-math") return "--use_fast_math";
  return std::string(option);
}

}  // namespace

#define HIPRTC_API extern "C" __attribute__((visibility("default")))

HIPRTC_API const char* hiprtcGetErrorString(int result) {
  const auto get = function<decltype(nvrtcGetErrorString)>("nvrtcGetErrorString");
  return get != nullptr ? get(static_cast<nvrtcResult>(result)) : "no NVRTC was found";
}
HIPRTC_API int hiprtcVersion(int* major, int* minor) {
  *major = 9;  // in every release
  *minor = 0;
  return NVRTC_SUCCESS;
}
HIPRTC_API int hiprtcCreateProgram(Program* program, const char* source, const char* name,
                                   int count, const char* const* texts, const char* const* names) {
  return forward<decltype(nvrtcCreateProgram)>("hiprtcCreateProgram", "nvrtcCreateProgram", program,
                                               source, name, count, texts, names);
}
// Destroys it even when it is to answer that it failed: nobody could do so later.
HIPRTC_API int hiprtcDestroyProgram(Program* program) {
  const auto destroy = function<decltype(nvrtcDestroyProgram)>("nvrtcDestroyProgram");
  const int destroyed = destroy != nullptr ? static_cast<int>(destroy(program))
                                           : static_cast<int>(NVRTC_ERROR_INTERNAL_ERROR);
  const int fault = faults().enter("hiprtcDestroyProgram");
  const int result = fault != 0 ? fault : destroyed;
  faults().log("hiprtcDestroyProgram", result);
  return result;
}
HIPRTC_API int hiprtcAddNameExpression(Program program, const char* expression) {
  return forward<decltype(nvrtcAddNameExpression)>("hiprtcAddNameExpression",
                                                   "nvrtcAddNameExpression", program, expression);
}
HIPRTC_API int hiprtcCompileProgram(Program program, int count, const char* const* options) {
  std::vector<std::string> all;
  for (int index = 0; index < count; ++index) all.push_back(translated(options[index]));
  std::vector<const char*> pointers;
  for (const std::string& option : all) pointers.push_back(option.c_str());
  return forward<decltype(nvrtcCompileProgram)>("hiprtcCompileProgram", "nvrtcCompileProgram",
                                                program, count, pointers.data());
}
HIPRTC_API int hiprtcGetProgramLogSize(Program program, std::size_t* size) {
  return forward<decltype(nvrtcGetProgramLogSize)>("hiprtcGetProgramLogSize",
                                                   "nvrtcGetProgramLogSize", program, size);
}
HIPRTC_API int hiprtcGetProgramLog(Program program, char* log) {
  return forward<decltype(nvrtcGetProgramLog)>("hiprtcGetProgramLog", "nvrtcGetProgramLog", program,
                                               log);
}
HIPRTC_API int hiprtcGetLoweredName(Program program, const char* expression, const char** name) {
  return forward<decltype(nvrtcGetLoweredName)>("hiprtcGetLoweredName", "nvrtcGetLoweredName",
                                                program, expression, name);
}
HIPRTC_API int hiprtcGetCodeSize(Program program, std::size_t* size) {
  return forward<decltype(nvrtcGetCUBINSize)>("hiprtcGetCodeSize", "nvrtcGetCUBINSize", program,
                                              size);
}
HIPRTC_API int hiprtcGetCode(Program program, char* code) {
  return forward<decltype(nvrtcGetCUBIN)>("hiprtcGetCode", "nvrtcGetCUBIN", program, code);
}
