// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "call.h"
#include "hostjit/hostjit.h"
#include "image.h"

// Modules, functions and variables. An image is what the simulated NVRTC made.
namespace cuda_sim {
namespace {

constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;

std::span<const std::byte> image_of(const void* data) {
  const std::span<const std::byte> image = unwrap_image(data);
  if (!image.empty()) return image;
  std::uint32_t magic = 0;
  std::memcpy(&magic, data, sizeof magic);
  if (magic == kFatbinMagic) refuse(CUDA_ERROR_NOT_SUPPORTED, "fatbins hold code for a GPU");
  if (std::memcmp(data, ELFMAG, SELFMAG) == 0) {
    refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "a cubin for a real GPU");
  }
  // Text is PTX or nothing; like the driver, read to its end.
  const auto* text = static_cast<const char*>(data);
  if (std::strstr(text, ".version") != nullptr && std::strstr(text, ".target") != nullptr) {
    refuse(CUDA_ERROR_NOT_SUPPORTED, "there is no PTX compiler here");
  }
  refuse(CUDA_ERROR_INVALID_IMAGE, "neither a cubin, a fatbin nor PTX");
}

CUmodule load(const void* data) {
  CUctx_st& context = current_context();
  const std::span<const std::byte> image = image_of(data);
  lockstep_module_desc desc{};
  desc.struct_size = sizeof desc;
  desc.format = LOCKSTEP_MODULE_BINARY;
  desc.data = image.data();
  desc.bytes = image.size();
  auto made = std::make_unique<CUmod_st>();
  made->context = &context;
  made->object = hostrt::Module::create(context.device, desc);
  for (lockstep_kernel& kernel : made->object->kernels()) {
    CUfunc_st& function = made->functions.emplace_back();
    function.module = made.get();
    function.kernel = &kernel;
    Live<CUfunc_st>::all().add(&function);
  }
  Live<CUmod_st>::all().add(made.get());
  return made.release();
}

// The option's value, or null: where it was asked to write what went wrong.
void* option(CUjit_option which, unsigned count, const CUjit_option* options, void* const* values) {
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == which) return values[i];
  }
  return nullptr;
}

int attribute_of(const hostrt::Kernel& kernel, CUfunction_attribute attribute) {
  switch (static_cast<int>(attribute)) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return static_cast<int>(kernel.code->max_threads_per_block());
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(kernel.code->static_shared_bytes());
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return 32;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return 90;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return static_cast<int>(kernel.max_dynamic_shared.load());
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return -1;
    default:
      return 0;
  }
}

}  // namespace
}  // namespace cuda_sim

using namespace cuda_sim;

CUDA_SIM_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                                CUjit_option* options, void** values) {
  return call("cuModuleLoadDataEx", [&] {
    require(module);
    require(image);
    try {
      *module = load(image);
    } catch (const hostrt::Error& error) {
      void* log = option(CU_JIT_ERROR_LOG_BUFFER, count, options, values);
      void* bytes = option(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, count, options, values);
      if (log != nullptr && bytes != nullptr) {
        std::snprintf(static_cast<char*>(log), reinterpret_cast<std::size_t>(bytes), "%s",
                      error.what());
      }
      throw;
    }
  });
}
CUDA_SIM_API cuModuleLoadData(CUmodule* module, const void* image) {
  return call("cuModuleLoadData", [&] {
    require(module);
    require(image);
    *module = load(image);
  });
}
CUDA_SIM_API cuModuleLoad(CUmodule* module, const char* path) {
  return call("cuModuleLoad", [&] {
    require(module);
    require(path);
    std::ifstream file(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file && bytes.empty()) refuse(CUDA_ERROR_FILE_NOT_FOUND, path);
    *module = load(bytes.data());
  });
}
CUDA_SIM_API cuModuleUnload(CUmodule module) {
  return call("cuModuleUnload", [&] {
    // Forbidden like an allocation: measured, docs/cuda-measured.md.
    live(module).context->device.rules().check_unsafe("cuModuleUnload");
    if (!Live<CUmod_st>::all().remove(module)) refuse(CUDA_ERROR_INVALID_HANDLE, "no module");
    for (CUfunc_st& function : module->functions) Live<CUfunc_st>::all().remove(&function);
    delete module;
  });
}
CUDA_SIM_API cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return call("cuModuleGetLoadingMode", [&] {
    require(mode);
    *mode = CU_MODULE_LAZY_LOADING;
  });
}
CUDA_SIM_API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return call("cuModuleGetFunction", [&] {
    require(function);
    require(name);
    for (CUfunc_st& known : live(module).functions) {
      if (known.kernel->code->name() != name) continue;
      *function = &known;
      return;
    }
    refuse(CUDA_ERROR_NOT_FOUND, name);
  });
}
CUDA_SIM_API cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return call("cuModuleGetFunctionCount", [&] {
    require(count);
    *count = static_cast<unsigned>(live(module).functions.size());
  });
}
CUDA_SIM_API cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  return call("cuModuleEnumerateFunctions", [&] {
    require(functions);
    auto& all = live(module).functions;
    for (std::size_t i = 0; i < std::min<std::size_t>(count, all.size()); ++i) {
      functions[i] = &all[i];
    }
  });
}
CUDA_SIM_API cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule module,
                                  const char* name) {
  return call("cuModuleGetGlobal_v2", [&] {
    require(name);
    void* pointer = nullptr;
    std::uint64_t size = 0;
    live(module).object->global(name, &pointer, &size);
    if (address != nullptr) *address = reinterpret_cast<CUdeviceptr>(pointer);
    if (bytes != nullptr) *bytes = size;
  });
}

CUDA_SIM_API cuFuncGetName(const char** name, CUfunction function) {
  return call("cuFuncGetName", [&] {
    require(name);
    *name = live(function).kernel->code->name().c_str();
  });
}
CUDA_SIM_API cuFuncGetModule(CUmodule* module, CUfunction function) {
  return call("cuFuncGetModule", [&] {
    require(module);
    *module = live(function).module;
  });
}
CUDA_SIM_API cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset,
                                std::size_t* bytes) {
  return call("cuFuncGetParamInfo", [&] {
    require(offset);
    const auto parameters = live(function).kernel->code->parameters();
    if (index >= parameters.size()) refuse(CUDA_ERROR_INVALID_VALUE, "past the last parameter");
    *offset = parameters[index].offset;
    if (bytes != nullptr) *bytes = parameters[index].size;
  });
}
CUDA_SIM_API cuFuncLoad(CUfunction function) {
  return call("cuFuncLoad", [&] { live(function); });
}
#if CUDA_VERSION >= 12040
CUDA_SIM_API cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return call("cuFuncIsLoaded", [&] {
    require(state);
    live(function);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
  });
}
#endif
CUDA_SIM_API cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return call("cuFuncGetAttribute", [&] {
    require(value);
    if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) {
      refuse(CUDA_ERROR_INVALID_VALUE, "unknown attribute");
    }
    *value = attribute_of(*live(function).kernel, attribute);
  });
}
CUDA_SIM_API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return call("cuFuncSetAttribute", [&] {
    CUfunc_st& of = live(function);
    switch (static_cast<int>(attribute)) {
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0) refuse(CUDA_ERROR_INVALID_VALUE, "a negative size");
        of.kernel->set_max_dynamic_shared(static_cast<std::uint32_t>(value));
        return;
      case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return;  // a hint
      default:
        refuse(CUDA_ERROR_INVALID_VALUE, "not an attribute that can be set");
    }
  });
}
