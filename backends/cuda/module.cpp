// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <elf.h>

#include "driver.h"

// Modules and functions.
namespace lockstep::cuda {
namespace {

CUmodule to_module(gpu::Handle module) { return static_cast<CUmodule>(module); }
CUfunction to_function(gpu::Handle function) { return static_cast<CUfunction>(function); }

constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;

template <class T>
bool read_at(const void* image, std::uint64_t bytes, std::uint64_t offset, T* value) {
  if (offset > bytes || bytes - offset < sizeof(T)) return false;
  std::memcpy(value, static_cast<const char*>(image) + offset, sizeof(T));
  return true;
}

}  // namespace

bool CudaDriver::image_acceptable(int, const void* image, std::uint64_t bytes, std::string* why) {
  // The driver is given no length: what is cut short would be read past its end.
  std::uint32_t magic = 0;
  if (!read_at(image, bytes, 0, &magic)) {
    *why = "the module has only " + std::to_string(bytes) + " bytes";
    return false;
  }
  if (magic == kFatbinMagic) {
    std::uint16_t header = 0;
    std::uint64_t content = 0;
    if (!read_at(image, bytes, 6, &header) || !read_at(image, bytes, 8, &content) ||
        content > bytes || header > bytes - content) {
      *why = "the fatbin is cut short: it has " + std::to_string(bytes) + " bytes";
      return false;
    }
    return true;
  }
  if (std::memcmp(image, ELFMAG, SELFMAG) == 0) {
    Elf64_Ehdr header;
    if (!read_at(image, bytes, 0, &header) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shoff > bytes ||
        std::uint64_t{header.e_shnum} * header.e_shentsize > bytes - header.e_shoff) {
      *why = "the cubin is cut short: it has " + std::to_string(bytes) + " bytes";
      return false;
    }
    return true;
  }
  return true;  // PTX, or something that the driver will name
}

gpu::Result CudaDriver::module_load(const void* image, std::string* log, gpu::Handle* module) {
  char text[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {text, reinterpret_cast<void*>(sizeof text)};
  const CUresult result =
      call_.cuModuleLoadDataEx_(reinterpret_cast<CUmodule*>(module), image, 2, options, values);
  if (result != CUDA_SUCCESS) {
    text[sizeof text - 1] = '\0';
    *log = text;
  }
  return result;
}
gpu::Result CudaDriver::module_unload(gpu::Handle module) {
  return call_.cuModuleUnload_(to_module(module));
}
gpu::Result CudaDriver::module_function(gpu::Handle module, const char* name,
                                        gpu::Handle* function) {
  return call_.cuModuleGetFunction_(reinterpret_cast<CUfunction*>(function), to_module(module),
                                    name);
}
gpu::Result CudaDriver::module_global(gpu::Handle module, const char* name, void** address,
                                      std::uint64_t* bytes) {
  CUdeviceptr found = 0;
  std::size_t size = 0;
  const CUresult result = call_.cuModuleGetGlobal_(&found, &size, to_module(module), name);
  *address = reinterpret_cast<void*>(found);
  *bytes = size;
  return result;
}

bool CudaDriver::module_functions(gpu::Handle module, std::vector<gpu::Handle>* functions) {
  if (call_.cuModuleGetFunctionCount_ == nullptr || call_.cuModuleEnumerateFunctions_ == nullptr) {
    return false;
  }
  unsigned count = 0;
  if (call_.cuModuleGetFunctionCount_(&count, to_module(module)) != CUDA_SUCCESS) return false;
  functions->resize(count);
  return count == 0 ||
         call_.cuModuleEnumerateFunctions_(reinterpret_cast<CUfunction*>(functions->data()), count,
                                           to_module(module)) == CUDA_SUCCESS;
}
gpu::Result CudaDriver::function_load(gpu::Handle function) {
  // Older drivers load a function when it is first asked about.
  return call_.cuFuncLoad_ != nullptr ? call_.cuFuncLoad_(to_function(function)) : CUDA_SUCCESS;
}

gpu::Result CudaDriver::function_facts(gpu::Handle function, gpu::FunctionFacts* facts) {
  CUresult result = CUDA_SUCCESS;
  const auto ask = [&](CUfunction_attribute attribute) {
    int value = 0;
    if (result == CUDA_SUCCESS) {
      result = call_.cuFuncGetAttribute_(&value, attribute, to_function(function));
    }
    return static_cast<std::uint32_t>(value);
  };
  facts->max_threads_per_block = ask(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  facts->static_shared_bytes = ask(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  facts->local_bytes = ask(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  facts->registers = ask(CU_FUNC_ATTRIBUTE_NUM_REGS);
  facts->max_dynamic_shared_bytes = ask(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  if (result != CUDA_SUCCESS) return result;
  // Devices without clusters refuse the question: then there is none.
  facts->cluster.x = ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
  facts->cluster.y = ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
  facts->cluster.z = ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
  const bool one = facts->cluster.x * facts->cluster.y * facts->cluster.z <= 1;
  if (result != CUDA_SUCCESS || one) facts->cluster = {0, 0, 0};
  return CUDA_SUCCESS;
}

gpu::Result CudaDriver::function_set_max_dynamic_shared(gpu::Handle function, std::uint32_t bytes) {
  return call_.cuFuncSetAttribute_(to_function(function),
                                   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   static_cast<int>(bytes));
}

std::string CudaDriver::function_name(gpu::Handle function) {
  const char* name = nullptr;
  if (call_.cuFuncGetName_ == nullptr ||
      call_.cuFuncGetName_(&name, to_function(function)) != CUDA_SUCCESS || name == nullptr) {
    return {};
  }
  return name;
}

gpu::ParameterLayout CudaDriver::function_parameters(gpu::Handle, gpu::Handle function,
                                                     const std::string&) {
  gpu::ParameterLayout layout;
  if (call_.cuFuncGetParamInfo_ == nullptr) return layout;
  for (std::size_t index = 0;; ++index) {
    std::size_t offset = 0, size = 0;
    const CUresult result = call_.cuFuncGetParamInfo_(to_function(function), index, &offset, &size);
    if (result == CUDA_ERROR_INVALID_VALUE) break;  // past the last one
    if (result != CUDA_SUCCESS) return {};
    lockstep_parameter parameter{};
    parameter.offset = static_cast<std::uint32_t>(offset);
    parameter.size = static_cast<std::uint32_t>(size);
    // A pointer has 8 bytes: other sizes of basic types cannot be one, structs may hold anything.
    parameter.tag = size == 1 || size == 2 || size == 4 ? 0 : 255;
    layout.parameters.push_back(parameter);
  }
  layout.known = true;
  return layout;
}

lockstep_code CudaDriver::compile(int ordinal, const lockstep_module_desc& desc,
                                  gpu::CompiledCode* code, lockstep_error* error) {
  return nvrtc_.compile(desc, architecture(ordinal), code, error);
}
bool CudaDriver::compiler_available() { return nvrtc_.available(nullptr); }

}  // namespace lockstep::cuda
