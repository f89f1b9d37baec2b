// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "../gpu/error.h"

namespace lockstep::cuda {
namespace {

#define LOCKSTEP_CUDA_ROW(base, exported, version, parameters) \
  {#base, #exported, version, LOCKSTEP_CUDA_ROW_REQUIRED, offsetof(Functions, base##_)},
#define LOCKSTEP_CUDA_NEWER_ROW(ours, base, exported, version, parameters) \
  {#base, #exported, version, false, offsetof(Functions, ours)},
constexpr Symbol kSymbols[] = {
#define LOCKSTEP_CUDA_ROW_REQUIRED true
    LOCKSTEP_CUDA_REQUIRED(LOCKSTEP_CUDA_ROW)
#undef LOCKSTEP_CUDA_ROW_REQUIRED
#define LOCKSTEP_CUDA_ROW_REQUIRED false
        LOCKSTEP_CUDA_OPTIONAL(LOCKSTEP_CUDA_ROW)
#undef LOCKSTEP_CUDA_ROW_REQUIRED
            LOCKSTEP_CUDA_NEWER(LOCKSTEP_CUDA_NEWER_ROW)};
#undef LOCKSTEP_CUDA_ROW
#undef LOCKSTEP_CUDA_NEWER_ROW

using GetProcAddress = CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t, void*);

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

// cuGetErrorName of a driver that does not start answers nothing.
std::string init_error_name(int result) {
  switch (result) {
    case 34:
      return "CUDA_ERROR_STUB_LIBRARY";
    case 100:
      return "CUDA_ERROR_NO_DEVICE";
    case 101:
      return "CUDA_ERROR_INVALID_DEVICE";
    case 802:
      return "CUDA_ERROR_SYSTEM_NOT_READY";
    case 803:
      return "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
    case 804:
      return "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE";
    case 999:
      return "CUDA_ERROR_UNKNOWN";
    default:
      return "CUresult " + std::to_string(result);
  }
}

std::string explain_init(int result, int version) {
  const std::string driver = version > 0 ? " (driver " + version_text(version) + ")" : "";
  switch (result) {
    case 34:
      return "the libcuda that was found is the toolkit's stub, which only serves for linking: "
             "install the NVIDIA driver, or put its folder before the toolkit's stubs folder";
    case 100:
      return "the driver finds no NVIDIA device" + driver +
             ": check CUDA_VISIBLE_DEVICES, and that the device is given to this container";
    case 101:
      return "CUDA_VISIBLE_DEVICES names no usable device" + driver;
    case 803:
      return "the kernel module and libcuda are of different versions" + driver +
             ": reboot, or reinstall the driver";
    case 804:
      return "libcuda is a forward compatibility package that this device does not support" +
             driver;
    case 999:
      return "the driver does not start (unknown error 999)" + driver +
             ": see whether nvidia-smi works; /dev/nvidia* may be missing or unreadable";
    default:
      return "cuInit failed with " + std::to_string(result) + driver;
  }
}

}  // namespace

SymbolList symbols() { return {kSymbols, std::size(kSymbols)}; }

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

lockstep_code Library::load(lockstep_error* error) {
  if (!file.open("LOCKSTEP_CUDA_LIBRARY", {"libcuda.so.1", "libcuda.so"})) {
    return refuse_start(error, LOCKSTEP_E_UNAVAILABLE, "dlopen",
                        "no NVIDIA driver: libcuda was not found (" + file.tried() +
                            "); LOCKSTEP_CUDA_LIBRARY may name one");
  }
  // These three exist since the first drivers and tell what is wrong with an old one.
  const auto init = reinterpret_cast<CUresult(CUDAAPI*)(unsigned)>(file.symbol("cuInit"));
  const auto get_version =
      reinterpret_cast<CUresult(CUDAAPI*)(int*)>(file.symbol("cuDriverGetVersion"));
  if (init == nullptr || get_version == nullptr) {
    return refuse_start(error, LOCKSTEP_E_UNAVAILABLE, "dlsym",
                        file.name() + " is no CUDA driver: it lacks cuInit or cuDriverGetVersion",
                        0, "no CUDA driver");
  }
  // A stub answers 34 to everything, a missing device shows in cuInit only.
  if (get_version(&version) != CUDA_SUCCESS) version = 0;
  if (version > 0 && version < kOldestDriver) {
    return refuse_start(error, LOCKSTEP_E_UNAVAILABLE, "cuDriverGetVersion",
                        "the NVIDIA driver is too old: it is for CUDA " + version_text(version) +
                            ", " + version_text(kOldestDriver) + " or newer is needed (" +
                            file.name() + ")",
                        version, "CUDA " + version_text(version));
  }
  const CUresult started = init(0);
  if (started != CUDA_SUCCESS) {
    const bool no_device = started == CUDA_ERROR_NO_DEVICE || started == CUDA_ERROR_INVALID_DEVICE;
    return refuse_start(error, no_device ? LOCKSTEP_E_NOT_FOUND : LOCKSTEP_E_UNAVAILABLE, "cuInit",
                        explain_init(started, version), started, init_error_name(started));
  }
  const auto get_address = reinterpret_cast<GetProcAddress>(file.symbol("cuGetProcAddress_v2"));
  std::string missing;
  for (const Symbol& symbol : kSymbols) {
    void* found = nullptr;
    if (get_address == nullptr ||
        get_address(symbol.base, &found, symbol.version, 0, nullptr) != CUDA_SUCCESS) {
      found = nullptr;
    }
    if (found == nullptr) found = file.symbol(symbol.exported);
    if (found == nullptr && symbol.required) {
      if (!missing.empty()) missing += ", ";
      missing += symbol.exported;
    }
    std::memcpy(reinterpret_cast<char*>(&call) + symbol.offset, &found, sizeof found);
  }
  if (missing.empty()) return LOCKSTEP_OK;
  return refuse_start(error, LOCKSTEP_E_UNAVAILABLE, "dlsym",
                      file.name() + " (CUDA " + version_text(version) +
                          ") lacks functions that every driver from " +
                          version_text(kOldestDriver) + " on has: " + missing,
                      version, "CUDA " + version_text(version));
}

}  // namespace lockstep::cuda
