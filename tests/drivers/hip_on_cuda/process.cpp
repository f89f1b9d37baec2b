// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "call.h"
#include "cuda/library.h"

// The library itself: start, errors, the thread's device.
namespace hip_on_cuda {
namespace {

// 7.2.53211, and a number that no real release has where the driver below is simulated: caches of
// compiled kernels keep the two apart by it.
constexpr int kVersion = 70253211;
constexpr int kVersionOverSimulated = 70299999;

struct Process {
  lockstep::cuda::Library library;
  std::vector<CUcontext> contexts;
  bool simulated = false;

  Process() {
    lockstep_error error{};
    error.struct_size = offsetof(lockstep_error, log);
    if (library.load(&error) != LOCKSTEP_OK) return;
    int count = 0;
    if (library.call.cuDeviceGetCount_(&count) != CUDA_SUCCESS) return;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      CUcontext context = nullptr;
      if (library.call.cuDevicePrimaryCtxRetain_(&context, ordinal) != CUDA_SUCCESS) break;
      contexts.push_back(context);
    }
    char name[64] = "";
    if (!contexts.empty()) library.call.cuDeviceGetName_(name, sizeof name, 0);
    simulated = std::strncmp(name, "SIMULATED ", 10) == 0;
  }
};
Process& process() {
  static auto* const instance = new Process;
  return *instance;
}

thread_local int t_device = 0;
thread_local hipError_t t_last_error = hipSuccess;

struct ErrorName {
  int code;
  const char* name;
  const char* text;
};
constexpr ErrorName kErrors[] = {
    {0, "hipSuccess", "no error"},
    {1, "hipErrorInvalidValue", "invalid argument"},
    {2, "hipErrorOutOfMemory", "out of memory"},
    {3, "hipErrorNotInitialized", "initialization error"},
    {4, "hipErrorDeinitialized", "driver shutting down"},
    {9, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {12, "hipErrorInvalidPitchValue", "invalid pitch argument"},
    {13, "hipErrorInvalidSymbol", "invalid device symbol"},
    {17, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {21, "hipErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {35, "hipErrorInsufficientDriver", "driver version is insufficient for runtime version"},
    {52, "hipErrorMissingConfiguration", "__global__ function call is not configured"},
    {53, "hipErrorPriorLaunchFailure", "a previous launch failed"},
    {98, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {100, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {101, "hipErrorInvalidDevice", "invalid device ordinal"},
    {200, "hipErrorInvalidImage", "device kernel image is invalid"},
    {201, "hipErrorInvalidContext", "invalid device context"},
    {209, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {218, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {300, "hipErrorInvalidSource", "device kernel image is invalid"},
    {301, "hipErrorFileNotFound", "file not found"},
    {302, "hipErrorSharedObjectSymbolNotFound", "shared object symbol not found"},
    {303, "hipErrorSharedObjectInitFailed", "shared object initialization failed"},
    {304, "hipErrorOperatingSystem", "OS call failed or operation not supported on this OS"},
    {400, "hipErrorInvalidHandle", "invalid resource handle"},
    {401, "hipErrorIllegalState", "the operation cannot be performed in the present state"},
    {500, "hipErrorNotFound", "named symbol not found"},
    {600, "hipErrorNotReady", "device not ready"},
    {700, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "hipErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "hipErrorLaunchTimeOut", "the launch timed out and was terminated"},
    {704, "hipErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {705, "hipErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {708, "hipErrorSetOnActiveProcess", "cannot set while device is active in this process"},
    {709, "hipErrorContextIsDestroyed", "context is destroyed"},
    {710, "hipErrorAssert", "device-side assert triggered"},
    {712, "hipErrorHostMemoryAlreadyRegistered", "memory is already registered"},
    {713, "hipErrorHostMemoryNotRegistered", "memory has not been registered"},
    {719, "hipErrorLaunchFailure", "unspecified launch failure"},
    {720, "hipErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {801, "hipErrorNotSupported", "operation not supported"},
    {900, "hipErrorStreamCaptureUnsupported", "not permitted while a stream is capturing"},
    {901, "hipErrorStreamCaptureInvalidated", "a previous error invalidated the capture"},
    {902, "hipErrorStreamCaptureMerge", "would merge two capture sequences"},
    {903, "hipErrorStreamCaptureUnmatched", "the capture was not begun in this stream"},
    {904, "hipErrorStreamCaptureUnjoined", "the capture has a fork that was not joined"},
    {905, "hipErrorStreamCaptureIsolation", "a dependency would cross the capture's border"},
    {906, "hipErrorStreamCaptureImplicit", "disallowed implicit dependency on a capture"},
    {907, "hipErrorCapturedEvent", "not permitted on an event recorded in a capture"},
    {908, "hipErrorStreamCaptureWrongThread", "a capture has to be ended by its thread"},
    {910, "hipErrorGraphExecUpdateFailure", "the graph update was not performed"},
    {999, "hipErrorUnknown", "unknown error"},
};

const ErrorName& find_error(int code) {
  const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                   [&](const ErrorName& known) { return known.code == code; });
  return found == std::end(kErrors) ? *std::prev(std::end(kErrors)) : *found;
}

}  // namespace

test_drivers::CallFaults& faults() {
  static auto* const instance = new test_drivers::CallFaults("hip_on_cuda", "HIP_ON_CUDA");
  return *instance;
}

const Functions& cuda() { return process().library.call; }
int device_count() { return static_cast<int>(process().contexts.size()); }
CUcontext context_of(int ordinal) { return process().contexts[static_cast<std::size_t>(ordinal)]; }
bool over_simulated_cuda() { return process().simulated; }
int& thread_device() { return t_device; }

// The numbers are the same where both have one; these are CUDA's alone.
hipError_t to_hip(CUresult result) {
  switch (static_cast<int>(result)) {
    case 34:   // stub library
    case 36:   // call requires a newer driver
    case 222:  // unsupported PTX version
    case 803:  // driver mismatch
    case 804:  // compatibility not supported on device
      return hipErrorInsufficientDriver;
    case 46:   // device unavailable
    case 102:  // not licensed
      return hipErrorInvalidDevice;
    case 220:  // uncorrectable link error
    case 221:  // no JIT compiler
    case 223:
    case 224:
    case 225:
    case 226:
      return hipErrorInvalidImage;
    case 714:  // errors of a kernel that HIP has one number for
    case 715:
    case 716:
    case 717:
    case 718:
      return hipErrorLaunchFailure;
    case 402:
    case 703:
    case 711:
    case 721:
    case 800:
    case 802:
    case 805:
    case 806:
    case 807:
    case 808:
    case 809:
    case 810:
    case 811:
    case 812:
    case 909:
    case 911:
    case 912:
    case 913:
    case 914:
    case 915:
    case 916:
      return hipErrorUnknown;
    default:
      return static_cast<hipError_t>(result);
  }
}

hipError_t keep(hipError_t error) {
  if (error != hipSuccess && error != hipErrorNotReady) t_last_error = error;
  return error;
}

hipError_t enter_device() {
  if (device_count() == 0) return hipErrorNoDevice;
  CUcontext current = nullptr;
  CUresult result = cuda().cuCtxGetCurrent_(&current);
  const CUcontext wanted = context_of(t_device);
  if (result == CUDA_SUCCESS && current != wanted) result = cuda().cuCtxSetCurrent_(wanted);
  return to_hip(result);
}

}  // namespace hip_on_cuda

using namespace hip_on_cuda;

HIP_API hipError_t hipInit(unsigned) {
  return call("hipInit", [] { return hipSuccess; });
}
HIP_API hipError_t hipRuntimeGetVersion(int* version) {
  return call("hipRuntimeGetVersion", Needs::kNothing, [&] {
    // Another release of 7 by HIP_ON_CUDA_VERSION, for what is done for that one.
    static const int told = [] {
      std::uint64_t number = over_simulated_cuda() ? kVersionOverSimulated : kVersion;
      faults().read("HIP_ON_CUDA_VERSION", 70000000, 79999999, "a number of 7.x", &number);
      return static_cast<int>(number);
    }();
    *version = told;
    return hipSuccess;
  });
}
HIP_API hipError_t hipDriverGetVersion(int* version) { return hipRuntimeGetVersion(version); }
HIP_API hipError_t hipGetLastError() { return std::exchange(t_last_error, hipSuccess); }
HIP_API hipError_t hipPeekAtLastError() { return t_last_error; }
HIP_API const char* hipGetErrorName(hipError_t error) { return find_error(error).name; }
HIP_API const char* hipGetErrorString(hipError_t error) { return find_error(error).text; }

HIP_API hipError_t hipGetDeviceCount(int* count) {
  return call("hipGetDeviceCount", Needs::kNothing, [&] {
    *count = device_count();
    return *count > 0 ? hipSuccess : hipErrorNoDevice;
  });
}
HIP_API hipError_t hipGetDevice(int* device) {
  return call("hipGetDevice", [&] {
    *device = thread_device();
    return hipSuccess;
  });
}
HIP_API hipError_t hipSetDevice(int device) {
  return call("hipSetDevice", Needs::kNothing, [&] {
    if (device_count() == 0) return hipErrorNoDevice;
    if (device < 0 || device >= device_count()) return hipErrorInvalidDevice;
    thread_device() = device;
    return enter_device();
  });
}
HIP_API hipError_t hipDeviceSynchronize() {
  return call("hipDeviceSynchronize", [] { return cuda().cuCtxSynchronize_(); });
}
