// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "call.h"

// Modules, functions and launches.
namespace hip_on_cuda {
namespace {

constexpr int kSharedPerBlock = 65536;

int function_attribute(hipFunction_t function, CUfunction_attribute attribute) {
  int value = 0;
  return cuda().cuFuncGetAttribute_(&value, attribute, to_cuda(function)) == CUDA_SUCCESS ? value
                                                                                          : 0;
}

int dynamic_limit(hipFunction_t function) {
  int optin = 0;
  cuda().cuDeviceGetAttribute_(&optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                               thread_device());
  return std::min(kSharedPerBlock, optin) -
         function_attribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
}

// A kernel may take all of a block's shared memory without asking for it.
CUresult opt_in(hipFunction_t function) {
  const int wanted = dynamic_limit(function);
  if (wanted <= function_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)) {
    return CUDA_SUCCESS;
  }
  return cuda().cuFuncSetAttribute_(to_cuda(function),
                                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, wanted);
}

}  // namespace

// Threads are counted in 32 bits, in each dimension.
bool fits_in_hip(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz) {
  constexpr unsigned long long kMost = 0xFFFFFFFFULL;
  const auto fits = [](unsigned long long grid, unsigned long long block) {
    return grid != 0 && block != 0 && grid * block <= kMost;
  };
  return fits(gx, bx) && fits(gy, by) && fits(gz, bz);
}

}  // namespace hip_on_cuda

using namespace hip_on_cuda;

HIP_API hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  return call("hipModuleLoadData", [&] {
    return cuda().cuModuleLoadDataEx_(reinterpret_cast<CUmodule*>(module), image, 0, nullptr,
                                      nullptr);
  });
}
HIP_API hipError_t hipModuleUnload(hipModule_t module) {
  return call("hipModuleUnload", [&] { return cuda().cuModuleUnload_(to_cuda(module)); });
}
HIP_API hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module,
                                        const char* name) {
  return call("hipModuleGetFunction", [&] {
    const CUresult found =
        cuda().cuModuleGetFunction_(reinterpret_cast<CUfunction*>(function), to_cuda(module), name);
    return found == CUDA_SUCCESS ? opt_in(*function) : found;
  });
}
HIP_API hipError_t hipModuleGetGlobal(hipDeviceptr_t* address, std::size_t* bytes,
                                      hipModule_t module, const char* name) {
  return call("hipModuleGetGlobal", [&] {
    return cuda().cuModuleGetGlobal_(reinterpret_cast<CUdeviceptr*>(address), bytes,
                                     to_cuda(module), name);
  });
}
HIP_API hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute attribute,
                                       hipFunction_t function) {
  return call("hipFuncGetAttribute", [&] {
    if (attribute == HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      *value = dynamic_limit(function);
      return CUDA_SUCCESS;
    }
    return cuda().cuFuncGetAttribute_(value, static_cast<CUfunction_attribute>(attribute),
                                      to_cuda(function));
  });
}
HIP_API const char* hipKernelNameRef(const hipFunction_t function) {
  const char* name = nullptr;
  if (cuda().cuFuncGetName_ == nullptr ||
      cuda().cuFuncGetName_(&name, to_cuda(function)) != CUDA_SUCCESS) {
    return nullptr;
  }
  return name;
}

// No release of AMD's has it.
HIP_API hipError_t hipFuncGetParamInfo(hipFunction_t function, std::size_t index,
                                       std::size_t* offset, std::size_t* bytes) {
  return call("hipFuncGetParamInfo", [&] {
    if (cuda().cuFuncGetParamInfo_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return cuda().cuFuncGetParamInfo_(to_cuda(function), index, offset, bytes);
  });
}

HIP_API hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy,
                                         unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                         unsigned shared, hipStream_t stream, void** parameters,
                                         void** extra) {
  return call("hipModuleLaunchKernel", [&] {
    if (!fits_in_hip(gx, gy, gz, bx, by, bz)) return CUDA_ERROR_INVALID_VALUE;
    // The list ends with another number.
    void* list[5] = {};
    std::size_t used = 0;
    if (extra != nullptr) {
      while (extra[used] != HIP_LAUNCH_PARAM_END && used < 4) {
        list[used] = extra[used];
        list[used + 1] = extra[used + 1];
        used += 2;
      }
      list[used] = CU_LAUNCH_PARAM_END;
    }
    return cuda().cuLaunchKernel_(to_cuda(function), gx, gy, gz, bx, by, bz, shared,
                                  to_cuda(stream), parameters, extra != nullptr ? list : nullptr);
  });
}
HIP_API hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned gx,
                                                    unsigned gy, unsigned gz, unsigned bx,
                                                    unsigned by, unsigned bz, unsigned shared,
                                                    hipStream_t stream, void** parameters) {
  return call("hipModuleLaunchCooperativeKernel", [&] {
    if (!fits_in_hip(gx, gy, gz, bx, by, bz)) return CUDA_ERROR_INVALID_VALUE;
    CUlaunchAttribute attribute;
    std::memset(&attribute, 0, sizeof attribute);
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    CUlaunchConfig config;
    std::memset(&config, 0, sizeof config);
    config.gridDimX = gx;
    config.gridDimY = gy;
    config.gridDimZ = gz;
    config.blockDimX = bx;
    config.blockDimY = by;
    config.blockDimZ = bz;
    config.sharedMemBytes = shared;
    config.hStream = to_cuda(stream);
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cuda().cuLaunchKernelEx_(&config, to_cuda(function), parameters, nullptr);
  });
}
