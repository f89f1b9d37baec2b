// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <utility>

#include "driver.h"

// Modules and functions.
namespace lockstep::hip {
namespace {

hipModule_t to_module(gpu::Handle module) { return static_cast<hipModule_t>(module); }
hipFunction_t to_function(gpu::Handle function) { return static_cast<hipFunction_t>(function); }

// What the check of an image read of it, until the same thread loads that image, which is its next
// step: loading is given no length.
struct Accepted {
  const void* image = nullptr;
  std::shared_ptr<const CodeObject> metadata;
};
thread_local Accepted t_accepted;

// hipFuncGetAttribute's numbers, which are CUDA's.
enum FunctionAttribute : int {
  kMaxThreadsPerBlock = 0,
  kStaticSharedBytes = 1,
  kLocalBytes = 3,
  kRegisters = 4,
  kMaxDynamicSharedBytes = 8,
};

}  // namespace

bool HipDriver::image_acceptable(int ordinal, const void* image, std::uint64_t bytes,
                                 std::string* why) {
  t_accepted = {};
  const std::string_view view(static_cast<const char*>(image), bytes);
  const std::string device = architecture(ordinal);
  if (is_cuda_architecture(device)) return check_cuda_image(view, why);
  auto metadata = std::make_shared<CodeObject>();
  if (!check_image(view, device, library_.version, metadata.get(), why)) return false;
  if (!metadata->kernels.empty()) t_accepted = {image, std::move(metadata)};
  return true;
}

gpu::Result HipDriver::module_load(const void* image, std::string*, gpu::Handle* module) {
  const Accepted accepted = std::exchange(t_accepted, {});
  const int result = call_.hipModuleLoadData_(reinterpret_cast<hipModule_t*>(module), image);
  if (result == hipSuccess && accepted.image == image && accepted.metadata != nullptr) {
    const std::unique_lock lock(mutex_);
    modules_[*module] = accepted.metadata;
  }
  return result;
}
gpu::Result HipDriver::module_unload(gpu::Handle module) {
  {
    const std::unique_lock lock(mutex_);
    modules_.erase(module);
  }
  return call_.hipModuleUnload_(to_module(module));
}

HipDriver::Metadata HipDriver::metadata_of(gpu::Handle module) {
  const std::shared_lock lock(mutex_);
  const auto found = modules_.find(module);
  return found == modules_.end() ? nullptr : found->second;
}

gpu::Result HipDriver::module_function(gpu::Handle module, const char* name,
                                       gpu::Handle* function) {
  return call_.hipModuleGetFunction_(reinterpret_cast<hipFunction_t*>(function), to_module(module),
                                     name);
}
gpu::Result HipDriver::module_global(gpu::Handle module, const char* name, void** address,
                                     std::uint64_t* bytes) {
  std::size_t size = 0;
  const int result = call_.hipModuleGetGlobal_(address, &size, to_module(module), name);
  *bytes = size;
  return result;
}

bool HipDriver::module_functions(gpu::Handle module, std::vector<gpu::Handle>* functions) {
  const Metadata metadata = metadata_of(module);
  if (metadata == nullptr) return false;
  functions->clear();
  for (const KernelMetadata& kernel : metadata->kernels) {
    gpu::Handle function = nullptr;
    if (module_function(module, kernel.name.c_str(), &function) != hipSuccess) return false;
    functions->push_back(function);
  }
  return true;
}
// The runtime loads a module's kernels when it is loaded.
gpu::Result HipDriver::function_load(gpu::Handle) { return hipSuccess; }

gpu::Result HipDriver::function_facts(gpu::Handle function, gpu::FunctionFacts* facts) {
  int result = hipSuccess;
  const auto ask = [&](FunctionAttribute attribute) {
    int value = 0;
    if (result == hipSuccess) {
      result = call_.hipFuncGetAttribute_(&value, attribute, to_function(function));
    }
    return static_cast<std::uint32_t>(value);
  };
  facts->max_threads_per_block = ask(kMaxThreadsPerBlock);
  facts->static_shared_bytes = ask(kStaticSharedBytes);
  facts->local_bytes = ask(kLocalBytes);
  facts->registers = ask(kRegisters);
  facts->max_dynamic_shared_bytes = ask(kMaxDynamicSharedBytes);
  return result;
}

// There is nothing to ask for: what a block may have, a launch may take. Only what can never be had
// is refused.
gpu::Result HipDriver::function_set_max_dynamic_shared(gpu::Handle function, std::uint32_t bytes) {
  gpu::FunctionFacts facts;
  if (const gpu::Result result = function_facts(function, &facts)) return result;
  return bytes <= facts.max_dynamic_shared_bytes ? hipSuccess : hipErrorInvalidValue;
}

std::string HipDriver::function_name(gpu::Handle function) {
  if (call_.hipKernelNameRef_ == nullptr) return {};
  const char* name = call_.hipKernelNameRef_(to_function(function));
  return name != nullptr ? name : "";
}

gpu::ParameterLayout HipDriver::function_parameters(gpu::Handle module, gpu::Handle function,
                                                    const std::string& name) {
  if (const Metadata metadata = metadata_of(module)) {
    const KernelMetadata* kernel = metadata->find(name);
    return kernel != nullptr ? layout_of(*kernel) : gpu::ParameterLayout{};
  }
  if (call_.hipFuncGetParamInfo_ == nullptr) return {};
  KernelMetadata told;
  for (std::size_t index = 0;; ++index) {
    std::size_t offset = 0, size = 0;
    const int result = call_.hipFuncGetParamInfo_(to_function(function), index, &offset, &size);
    if (result == hipErrorInvalidValue) break;  // past the last one
    if (result != hipSuccess) return {};
    told.arguments.push_back(
        {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size), false});
  }
  call_.hipGetLastError_();
  return layout_of(told);
}

lockstep_code HipDriver::compile(int ordinal, const lockstep_module_desc& desc,
                                 gpu::CompiledCode* code, lockstep_error* error) {
  return hiprtc_.compile(desc, architecture(ordinal), code, error);
}
bool HipDriver::compiler_available() { return hiprtc_.available(nullptr); }

}  // namespace lockstep::hip
