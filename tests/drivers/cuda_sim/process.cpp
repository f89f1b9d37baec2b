// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>

#include "call.h"
#include "visible_devices.h"

// The library itself: start, errors, addresses of functions.
namespace cuda_sim {
namespace {

constexpr int kDriverVersion = 13000;

struct ErrorName {
  int code;
  const char* name;
  const char* text;
};
constexpr ErrorName kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "memory is already registered"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "memory has not been registered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted while a stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "a previous error invalidated the capture"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "would merge two capture sequences"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture was not begun in this stream"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "the capture has a fork that was not joined"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "a dependency would cross the capture's border"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "disallowed implicit dependency on a capture"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "not permitted on an event recorded in a capture"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "a capture has to be ended by its thread"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorName* find_error(CUresult error) {
  const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                   [&](const ErrorName& e) { return e.code == error; });
  return found == std::end(kErrors) ? nullptr : found;
}

// Forms that came after the first one. Asked for a base name, the newest form that is not newer
// than the version asked for is given.
struct Form {
  const char* base;
  int since;
  const char* exported;
};
constexpr Form kForms[] = {
    {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2"},
    {"cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2"},
    {"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuGraphAddKernelNode", 12000, "cuGraphAddKernelNode_v2"},
    {"cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2"},
    {"cuGraphGetEdges", 12030, "cuGraphGetEdges_v2"},
    {"cuGraphInstantiate", 11040, "cuGraphInstantiateWithFlags"},
    {"cuGraphKernelNodeGetParams", 12000, "cuGraphKernelNodeGetParams_v2"},
    {"cuGraphNodeGetDependencies", 12030, "cuGraphNodeGetDependencies_v2"},
    {"cuGraphNodeGetDependentNodes", 12030, "cuGraphNodeGetDependentNodes_v2"},
    {"cuMemHostRegister", 6050, "cuMemHostRegister_v2"},
    {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2"},
    {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
    {"cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"},
};

void* exported_symbol(const std::string& name) {
  static void* const self = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&cuInit), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  // Only ours: dlsym would also look into what we are linked to.
  return name.rfind("cu", 0) == 0 && self != nullptr ? dlsym(self, name.c_str()) : nullptr;
}

void* find_symbol(const std::string& base, int version) {
  for (const Form& form : kForms) {
    if (base == form.base && version >= form.since) return exported_symbol(form.exported);
  }
  // A _v2 of the year 2010 replaced the first form in every release that is supported.
  const bool listed = std::any_of(std::begin(kForms), std::end(kForms),
                                  [&](const Form& form) { return base == form.base; });
  if (!listed) {
    if (void* found = exported_symbol(base + "_v2")) return found;
  }
  return exported_symbol(base);
}

}  // namespace

// Handlers of exit() that were registered before cuInit find the driver shut down, as static
// objects do that were made before it.
std::atomic<bool> g_shut_down{false};

CUresult enter(const char* name, Needs needs) {
  const int forced = faults().enter(name);
  if (forced != 0) return static_cast<CUresult>(forced);
  if (needs == Needs::kNothing) return CUDA_SUCCESS;
  if (g_shut_down.load(std::memory_order_relaxed)) return CUDA_ERROR_DEINITIALIZED;
  if (!hostrt::Runtime::usable()) return CUDA_ERROR_NOT_INITIALIZED;
  if (hostrt::in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  return CUDA_SUCCESS;
}

}  // namespace cuda_sim

using namespace cuda_sim;

CUDA_SIM_API cuInit(unsigned flags) {
  return call("cuInit", Needs::kNothing, [&] {
    if (flags != 0) refuse(CUDA_ERROR_INVALID_VALUE, "flags have to be 0");
    if (faults().devices() == 0) refuse(CUDA_ERROR_NO_DEVICE, "CUDA_SIM_DEVICES is 0");
    if (visible().code != 0) {
      refuse(static_cast<CUresult>(visible().code), "CUDA_VISIBLE_DEVICES leaves no device");
    }
    hostrt::Settings settings;
    settings.devices = static_cast<std::uint32_t>(visible().devices.size());
    settings.memory_bytes = faults().memory_bytes();
    hostrt::Runtime::start(settings);
    static const int registered = std::atexit([] { g_shut_down = true; });
    if (registered != 0) refuse(CUDA_ERROR_OUT_OF_MEMORY, "atexit refused");
  });
}

CUDA_SIM_API cuDriverGetVersion(int* version) {
  return call("cuDriverGetVersion", Needs::kNothing, [&] {
    require(version);
    *version = kDriverVersion;
  });
}

CUDA_SIM_API cuGetErrorName(CUresult error, const char** name) {
  return call("cuGetErrorName", Needs::kNothing, [&] {
    require(name);
    const ErrorName* found = find_error(error);
    *name = found == nullptr ? nullptr : found->name;
    if (found == nullptr) refuse(CUDA_ERROR_INVALID_VALUE, "unknown error code");
  });
}

CUDA_SIM_API cuGetErrorString(CUresult error, const char** text) {
  return call("cuGetErrorString", Needs::kNothing, [&] {
    require(text);
    const ErrorName* found = find_error(error);
    *text = found == nullptr ? nullptr : found->text;
    if (found == nullptr) refuse(CUDA_ERROR_INVALID_VALUE, "unknown error code");
  });
}

CUDA_SIM_API cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult* status) {
  return call("cuGetProcAddress_v2", Needs::kNothing, [&] {
    require(name);
    require(function);
    // Forms whose null stream is the per-thread one do not exist here.
    const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    *function = per_thread ? nullptr : find_symbol(name, version);
    if (status != nullptr) {
      *status =
          *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    if (*function == nullptr) refuse(CUDA_ERROR_NOT_FOUND, "no such function");
  });
}

CUDA_SIM_API cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
