// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include "../gpu/error.h"

namespace lockstep::hip {
namespace {

#define LOCKSTEP_HIP_ROW(name, result, parameters) \
  {#name, LOCKSTEP_HIP_ROW_REQUIRED, offsetof(Functions, name##_)},
constexpr Symbol kSymbols[] = {
#define LOCKSTEP_HIP_ROW_REQUIRED true
    LOCKSTEP_HIP_REQUIRED(LOCKSTEP_HIP_ROW)
#undef LOCKSTEP_HIP_ROW_REQUIRED
#define LOCKSTEP_HIP_ROW_REQUIRED false
        LOCKSTEP_HIP_OPTIONAL(LOCKSTEP_HIP_ROW)};
#undef LOCKSTEP_HIP_ROW_REQUIRED
#undef LOCKSTEP_HIP_ROW

// native_name stays empty when there is no library at all: that is no reason to warn.
lockstep_code refuse_start(lockstep_error* error, lockstep_code code, const char* call,
                           const std::string& message, int native = 0,
                           const std::string& native_name = {}) {
  gpu::fail(error, code, call, message);
  if (error != nullptr) {
    error->native_code = native;
    std::snprintf(error->native_name, sizeof error->native_name, "%s", native_name.c_str());
  }
  return code;
}

std::string file_of(int major) { return "libamdhip64.so." + std::to_string(major); }

// The runtime that somebody else of this process uses; "" when there is none.
std::string loaded_already() {
  for (int major = kNewestMajor; major >= kOldestMajor; --major) {
    void* handle = dlopen(file_of(major).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    dlclose(handle);  // the count only: its owner keeps it
    return file_of(major);
  }
  return {};
}

bool open_newest(gpu::DynamicLibrary& file) {
  const char* named = secure_getenv("LOCKSTEP_HIP_LIBRARY");
  if (named != nullptr && *named != '\0') return file.open_one(named);
  if (const std::string loaded = loaded_already(); !loaded.empty()) return file.open_one(loaded);
  for (int major = kNewestMajor; major >= kOldestMajor; --major) {
    for (const std::string& candidate : rocm_candidates(file_of(major))) {
      // Files are only tried where they are, so that the message names what the loader missed.
      if (candidate.front() == '/' && access(candidate.c_str(), R_OK) != 0) continue;
      if (file.open_one(candidate)) return true;
    }
  }
  return false;
}

std::string name_of_start_error(int result) {
  switch (result) {
    case 100:
      return "hipErrorNoDevice";
    case 101:
      return "hipErrorInvalidDevice";
    default:
      return "hipError_t " + std::to_string(result);
  }
}

// Masks stack, each counting within what the one before left: who set which is half the answer.
std::string masks_that_are_set() {
  std::string all;
  for (const char* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
    const char* value = secure_getenv(name);
    if (value == nullptr) continue;
    if (!all.empty()) all += ", ";
    all += std::string(name) + "='" + value + "'";
  }
  if (all.empty()) return {};
  return "; set here: " + all +
         " (each counts within what those before it left, so that two of them can hide every "
         "device)";
}

}  // namespace

SymbolList symbols() { return {kSymbols, std::size(kSymbols)}; }

std::vector<std::string> rocm_candidates(const std::string& file) {
  std::vector<std::string> all = {file};
  for (const char* name : {"ROCM_PATH", "HIP_PATH"}) {
    const char* root = secure_getenv(name);
    if (root != nullptr && *root != '\0') all.push_back(std::string(root) + "/lib/" + file);
  }
  all.push_back("/opt/rocm/lib/" + file);
  glob_t found;
  if (glob(("/opt/rocm-*/lib/" + file).c_str(), 0, nullptr, &found) == 0) {
    // Newest last in the alphabet, so from the end.
    for (std::size_t index = found.gl_pathc; index > 0; --index) {
      all.emplace_back(found.gl_pathv[index - 1]);
    }
  }
  globfree(&found);
  return all;
}

lockstep_code Library::load(lockstep_error* error) {
  if (!open_newest(file)) {
    return refuse_start(error, LOCKSTEP_E_UNAVAILABLE, "dlopen",
                        "no HIP runtime: libamdhip64.so.7, .so.6 and .so.5 were not found (" +
                            file.tried() + "); LOCKSTEP_HIP_LIBRARY may name one");
  }
  using Init = hipError_t (*)(unsigned);
  using GetVersion = hipError_t (*)(int*);
  const auto init = reinterpret_cast<Init>(file.symbol("hipInit"));
  const auto get_version = reinterpret_cast<GetVersion>(file.symbol("hipRuntimeGetVersion"));
  if (init == nullptr || get_version == nullptr) {
    return refuse_start(
        error, LOCKSTEP_E_UNAVAILABLE, "dlsym",
        file.name() + " is no HIP runtime: it lacks hipInit or hipRuntimeGetVersion", 0,
        "no HIP runtime");
  }
  Dl_info place{};
  if (dladdr(reinterpret_cast<void*>(init), &place) != 0 && place.dli_fname != nullptr) {
    path = place.dli_fname;
  }
  int number = 0;
  const int told = get_version(&number);  // answers without a device, before anything else
  version = Version::from(number);
  const std::string release = "ROCm " + version.text();
  if (told != hipSuccess || version.before(kOldestMajor, kOldestMinor)) {
    return refuse_start(error, LOCKSTEP_E_UNAVAILABLE, "hipRuntimeGetVersion",
                        "the HIP runtime is too old: it is of " + release + ", " +
                            std::to_string(kOldestMajor) + "." + std::to_string(kOldestMinor) +
                            " or newer is needed (" + file.name() + ")",
                        number, release);
  }
  if (version.major > kNewestMajor) {
    return refuse_start(error, LOCKSTEP_E_UNAVAILABLE, "hipRuntimeGetVersion",
                        "the HIP runtime is too new for this plugin: it is of " + release +
                            ", whose structures this plugin (made for ROCm 5 to " +
                            std::to_string(kNewestMajor) + ") does not know (" + file.name() + ")",
                        number, release);
  }
  const int started = init(0);
  if (started != hipSuccess) {
    // 5.2 answers 101 where later releases answer 100.
    const bool no_device = started == hipErrorNoDevice || started == hipErrorInvalidDevice;
    return refuse_start(
        error, no_device ? LOCKSTEP_E_NOT_FOUND : LOCKSTEP_E_UNAVAILABLE, "hipInit",
        no_device
            ? "the HIP runtime (" + release +
                  ") finds no AMD device: check HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES, "
                  "and that /dev/kfd and /dev/dri are there and may be opened" +
                  masks_that_are_set()
            : "hipInit failed with " + std::to_string(started) + " (" + release + ")",
        started, name_of_start_error(started));
  }
  std::string missing;
  for (const Symbol& symbol : kSymbols) {
    void* const found = file.symbol(symbol.name);
    if (found == nullptr && symbol.required) {
      if (!missing.empty()) missing += ", ";
      missing += symbol.name;
    }
    std::memcpy(reinterpret_cast<char*>(&call) + symbol.offset, &found, sizeof found);
  }
  if (missing.empty() && call.hipGetDevicePropertiesR0600_ == nullptr &&
      call.hipGetDeviceProperties_ == nullptr) {
    missing = "hipGetDevicePropertiesR0600 or hipGetDeviceProperties";
  }
  if (missing.empty()) return LOCKSTEP_OK;
  return refuse_start(error, LOCKSTEP_E_UNAVAILABLE, "dlsym",
                      file.name() + " (" + release +
                          ") lacks functions that every release from 5.2 on has: " + missing,
                      number, release);
}

}  // namespace lockstep::hip
