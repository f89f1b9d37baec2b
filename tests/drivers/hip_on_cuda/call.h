// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is declared here is what the library exports.
#pragma GCC visibility push(default)
#include "hip/types.h"
#pragma GCC visibility pop

#include <cuda.h>

#include "../call_faults.h"
#include "cuda/symbols.h"

// The border of the library: faults are injected, the thread's device is made current, CUDA's
// numbers become HIP's, and the thread's last error is kept as ROCm 7 keeps it.
namespace hip_on_cuda {

using lockstep::cuda::Functions;

test_drivers::CallFaults& faults();

// The CUDA driver's functions; null pointers when there is no driver or no device.
const Functions& cuda();
int device_count();
CUcontext context_of(int ordinal);
bool over_simulated_cuda();

int& thread_device();
hipError_t to_hip(CUresult result);
// Keeps it as the thread's last error, unless it is success or "not ready".
hipError_t keep(hipError_t error);
// Makes the thread's device current; NoDevice when there is none.
hipError_t enter_device();

enum class Needs { kNothing, kDevice };

inline hipError_t answer(CUresult result) { return to_hip(result); }
inline hipError_t answer(hipError_t result) { return result; }

template <typename Body>
hipError_t call(const char* name, Needs needs, const Body& body) noexcept {
  auto result = static_cast<hipError_t>(faults().enter(name));
  if (result == hipSuccess && needs == Needs::kDevice) result = enter_device();
  if (result == hipSuccess) result = answer(body());
  faults().log(name, result);
  return keep(result);
}
template <typename Body>
hipError_t call(const char* name, const Body& body) noexcept {
  return call(name, Needs::kDevice, body);
}

inline CUstream to_cuda(hipStream_t stream) { return reinterpret_cast<CUstream>(stream); }
inline CUevent to_cuda(hipEvent_t event) { return reinterpret_cast<CUevent>(event); }
inline CUdeviceptr to_cuda(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }
inline CUfunction to_cuda(hipFunction_t function) { return reinterpret_cast<CUfunction>(function); }
inline CUmodule to_cuda(hipModule_t module) { return reinterpret_cast<CUmodule>(module); }

CUDA_MEMCPY3D to_cuda(const hipMemcpy3DParms& copy);
bool fits_in_hip(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz);

}  // namespace hip_on_cuda

#define HIP_API extern "C" __attribute__((visibility("default")))
