// SPDX-License-Identifier: Apache-2.0
#include "../hostjit/hostjit.h"
#include "handles.h"

// Slots of modules and kernels.
namespace lockstep::hostrt {
namespace {

lockstep_code module_create(lockstep_device* device, const lockstep_module_desc* given,
                            lockstep_module** module, lockstep_error* error) {
  return guarded("hostModuleLoad", error, [&] {
    const auto desc = read_sized(given, "the module description");
    require_pointer(module, "module");
    *module = new lockstep_module{Module::create(object_of(device, "the device"), desc)};
  });
}
void module_destroy(lockstep_module* module) { release(module); }
void* no_native_module(lockstep_module*) { return nullptr; }

lockstep_code module_kernel(lockstep_module* module, const char* name, lockstep_kernel** kernel,
                            lockstep_error* error) {
  return guarded("hostModuleGetFunction", error, [&] {
    require_pointer(name, "the kernel's name");
    require_pointer(kernel, "kernel");
    *kernel = &object_of(module, "the module").kernel(name);
  });
}

lockstep_code module_global(lockstep_module* module, const char* name, void** address,
                            std::uint64_t* bytes, lockstep_error* error) {
  return guarded("hostModuleGetGlobal", error, [&] {
    require_pointer(name, "the variable's name");
    require_pointer(address, "address");
    require_pointer(bytes, "bytes");
    object_of(module, "the module").global(name, address, bytes);
  });
}

// Everything is resident as soon as a module is loaded.
lockstep_code module_load_all(lockstep_module* module, lockstep_error* error) {
  return guarded("hostModuleLoadAll", error, [&] { object_of(module, "the module"); });
}

lockstep_code kernel_info(lockstep_kernel* kernel, lockstep_kernel_info* info,
                          lockstep_error* error) {
  return guarded("hostFuncGetAttributes", error, [&] {
    require_pointer(kernel, "the kernel");
    lockstep_kernel_info result{};
    result.name = kernel->code->name().c_str();
    result.max_threads_per_block = kernel->code->max_threads_per_block();
    result.static_shared_bytes = kernel->code->static_shared_bytes();
    result.parameter_count = static_cast<std::uint32_t>(kernel->parameters.size());
    result.parameters = kernel->parameters.data();
    result.max_dynamic_shared_bytes = kernel->max_dynamic_shared.load();
    write_sized(info, result, "info");
  });
}

lockstep_code kernel_set_max_dynamic_shared(lockstep_kernel* kernel, std::uint32_t bytes,
                                            lockstep_error* error) {
  return guarded("hostFuncSetAttribute", error, [&] {
    require_pointer(kernel, "the kernel");
    kernel->set_max_dynamic_shared(bytes);
  });
}
void* no_native_kernel(lockstep_kernel*) { return nullptr; }

}  // namespace

void fill_module_slots(lockstep_backend& table) {
  table.module_create = module_create;
  table.module_destroy = module_destroy;
  table.module_native = no_native_module;
  table.module_kernel = module_kernel;
  table.module_global = module_global;
  table.module_load_all = module_load_all;
  table.kernel_info = kernel_info;
  table.kernel_set_max_dynamic_shared = kernel_set_max_dynamic_shared;
  table.kernel_native = no_native_kernel;
}

}  // namespace lockstep::hostrt
