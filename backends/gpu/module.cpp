// SPDX-License-Identifier: Apache-2.0
#include "module.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <shared_mutex>

#include "in_flight.h"

namespace lockstep::gpu {
namespace {

struct Functions {
  std::shared_mutex mutex;
  std::map<Handle, const lockstep_kernel*> by_handle;
};
Functions& functions() {
  static Functions* const instance = new Functions;
  return *instance;
}

// Modules that were destroyed and are loaded still: a capture is open, or kernels of theirs may be
// executing where they cannot be waited for (in_flight.h), or the driver refused.
struct Graveyard {
  std::mutex mutex;
  std::vector<std::pair<lockstep_device*, Handle>> modules;
};
Graveyard& graveyard() {
  static Graveyard* const instance = new Graveyard;
  return *instance;
}

lockstep_code load_image(lockstep_device* device, const void* image, std::uint64_t bytes,
                         lockstep_module* module, lockstep_error* error) {
  std::string log;
  if (!driver().image_acceptable(device->ordinal, image, bytes, &log)) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, driver().call_name(Call::kModuleLoad), log);
  }
  ContextScope scope(device->context);
  const Result result = driver().module_load(image, &log, &module->native);
  if (result == kSuccess) return LOCKSTEP_OK;
  std::string detail = "the module is for " + device->arch;
  if (!log.empty()) detail += "; the loader says: " + log.substr(0, 400);
  const lockstep_code code = fail_native(error, Call::kModuleLoad, result, detail);
  give_log(error, log);
  return code;
}

// The driver's name of a kernel that was asked for by name or name expression.
std::string symbol_of(const lockstep_module* module, const char* name) {
  const std::string wanted = normalised_expression(name);
  for (const auto& [expression, symbol] : module->lowered_names) {
    if (normalised_expression(expression) == wanted) return symbol;
  }
  return name;
}

}  // namespace

std::string normalised_expression(std::string_view expression) {
  std::string result;
  for (std::size_t index = 0; index < expression.size(); ++index) {
    const char c = expression[index];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      // A blank between two words separates them: "unsigned int" is not "unsignedint".
      const auto is_word = [](char x) {
        return std::isalnum(static_cast<unsigned char>(x)) != 0 || x == '_';
      };
      std::size_t next = index;
      while (next < expression.size() &&
             std::isspace(static_cast<unsigned char>(expression[next])) != 0) {
        ++next;
      }
      if (!result.empty() && next < expression.size() && is_word(result.back()) &&
          is_word(expression[next])) {
        result += ' ';
      }
      index = next - 1;
      continue;
    }
    if (c == '&' && result.empty()) continue;
    result += c;
  }
  return result;
}

void unload_dead_modules() {
  if (captures_open()) return;
  std::vector<std::pair<lockstep_device*, Handle>> dead;
  {
    std::lock_guard lock(graveyard().mutex);
    dead.swap(graveyard().modules);
  }
  if (dead.empty()) return;
  std::map<lockstep_device*, bool> finished;
  std::erase_if(dead, [&](const auto& module) {
    ContextScope scope(module.first->context);
    const auto [device, first] = finished.try_emplace(module.first);
    if (first) device->second = scope.result() == kSuccess && finish_launches(module.first);
    if (!device->second) return false;
    // Another library may be capturing.
    const RelaxedThread relaxed;
    return driver().module_unload(module.second) == kSuccess;
  });
  if (dead.empty()) return;
  std::lock_guard lock(graveyard().mutex);
  graveyard().modules.insert(graveyard().modules.end(), dead.begin(), dead.end());
}

lockstep_code module_create(lockstep_device* device, const lockstep_module_desc* desc,
                            lockstep_module** module, lockstep_error* error) {
  *module = nullptr;
  unload_dead_modules();
  if (desc->data == nullptr || desc->bytes == 0) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "module_create", "the module is empty");
  }
  auto made = std::make_unique<lockstep_module>();
  made->device = device;
  lockstep_code code = LOCKSTEP_OK;
  switch (desc->format) {
    case LOCKSTEP_MODULE_SOURCE: {
      CompiledCode compiled;
      code = driver().compile(device->ordinal, *desc, &compiled, error);
      if (code != LOCKSTEP_OK) return code;
      made->lowered_names = std::move(compiled.lowered_names);
      code = load_image(device, compiled.code.data(), compiled.code.size(), made.get(), error);
      break;
    }
    case LOCKSTEP_MODULE_BINARY:
      code = load_image(device, desc->data, desc->bytes, made.get(), error);
      break;
    case LOCKSTEP_MODULE_PTX: {
      // The driver wants a terminator; the caller's text may lack one.
      const std::string text(static_cast<const char*>(desc->data), desc->bytes);
      code = load_image(device, text.c_str(), text.size() + 1, made.get(), error);
      break;
    }
    default:
      return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "module_create",
                  "format has to be source (1), binary (2) or PTX (3), not " +
                      std::to_string(desc->format));
  }
  if (code == LOCKSTEP_OK) *module = made.release();
  return code;
}

void module_destroy(lockstep_module* module) {
  if (module == nullptr) return;
  {
    std::unique_lock lock(functions().mutex);
    for (const auto& [name, kernel] : module->kernels)
      functions().by_handle.erase(kernel->function);
  }
  if (usable()) {
    {
      std::lock_guard lock(graveyard().mutex);
      graveyard().modules.emplace_back(module->device, module->native);
    }
    unload_dead_modules();
  }
  delete module;
}

lockstep_code module_kernel(lockstep_module* module, const char* name, lockstep_kernel** kernel,
                            lockstep_error* error) {
  *kernel = nullptr;
  const std::string symbol = symbol_of(module, name);
  std::lock_guard lock(module->mutex);
  if (const auto known = module->kernels.find(symbol); known != module->kernels.end()) {
    *kernel = known->second.get();
    return LOCKSTEP_OK;
  }
  ContextScope scope(module->device->context);
  Handle function = nullptr;
  const Result found = driver().module_function(module->native, symbol.c_str(), &function);
  if (found != kSuccess) {
    std::string detail = std::string("kernel \"") + name + '"';
    if (!module->lowered_names.empty()) {
      detail += "; this module has";
      for (const auto& [expression, lowered] : module->lowered_names) {
        detail += " \"" + expression + '"';
      }
    }
    return fail_native(error, Call::kModuleGetFunction, found, detail);
  }
  auto made = std::make_unique<lockstep_kernel>();
  made->module = module;
  made->function = function;
  const Result asked = driver().function_facts(function, &made->facts);
  if (asked != kSuccess) return fail_native(error, Call::kFunctionAttribute, asked, symbol);
  made->name = driver().function_name(function);
  if (made->name.empty()) made->name = symbol;
  made->name_number = recorder().intern(made->name.data(), made->name.size());
  auto layout = std::make_unique<lockstep_kernel::Layout>();
  ParameterLayout told = driver().function_parameters(module->native, function, symbol);
  layout->known = told.known;
  layout->parameters = std::move(told.parameters);
  layout->typed =
      layout->known && std::none_of(layout->parameters.begin(), layout->parameters.end(),
                                    [](const auto& p) { return p.tag == 255; });
  layout->told = layout->typed;
  made->told_layout = layout.get();
  made->layout.store(layout.get(), std::memory_order_release);
  if (layout->known) {
    made->parameter_count = static_cast<std::uint32_t>(layout->parameters.size());
  }
  made->layouts.push_back(std::move(layout));
  {
    std::unique_lock by_handle(functions().mutex);
    functions().by_handle[function] = made.get();
  }
  *kernel = made.get();
  module->kernels.emplace(symbol, std::move(made));
  return LOCKSTEP_OK;
}

lockstep_code module_global(lockstep_module* module, const char* name, void** address,
                            std::uint64_t* bytes, lockstep_error* error) {
  ContextScope scope(module->device->context);
  const std::string symbol = symbol_of(module, name);
  const Result result = driver().module_global(module->native, symbol.c_str(), address, bytes);
  if (result == kSuccess) return LOCKSTEP_OK;
  return fail_native(error, Call::kModuleGetGlobal, result,
                     std::string("variable \"") + name + '"');
}

lockstep_code module_load_all(lockstep_module* module, lockstep_error* error) {
  ContextScope scope(module->device->context);
  std::vector<Handle> all;
  if (!driver().module_functions(module->native, &all)) {
    // Not listable: at least every kernel that can be named.
    for (const auto& [expression, symbol] : module->lowered_names) {
      Handle function = nullptr;
      const Result found = driver().module_function(module->native, symbol.c_str(), &function);
      if (found != kSuccess) return fail_native(error, Call::kModuleGetFunction, found, symbol);
      all.push_back(function);
    }
    std::lock_guard lock(module->mutex);
    for (const auto& [name, kernel] : module->kernels) all.push_back(kernel->function);
  }
  for (Handle function : all) {
    const Result loaded = driver().function_load(function);
    if (loaded != kSuccess) return fail_native(error, Call::kFunctionLoad, loaded);
    FunctionFacts facts;
    const Result asked = driver().function_facts(function, &facts);
    if (asked != kSuccess) return fail_native(error, Call::kFunctionAttribute, asked);
  }
  return LOCKSTEP_OK;
}

lockstep_code kernel_info(lockstep_kernel* kernel, lockstep_kernel_info* info,
                          lockstep_error* error) {
  ContextScope scope(kernel->module->device->context);
  FunctionFacts facts;
  const Result result = driver().function_facts(kernel->function, &facts);
  if (result != kSuccess) return fail_native(error, Call::kFunctionAttribute, result);
  // What a launch passed is no rule for others.
  const lockstep_kernel::Layout& layout = *kernel->told_layout;
  info->name = kernel->name.c_str();
  info->max_threads_per_block = facts.max_threads_per_block;
  info->static_shared_bytes = facts.static_shared_bytes;
  info->local_bytes_per_thread = facts.local_bytes;
  info->registers_per_thread = facts.registers;
  info->parameter_count =
      layout.known ? static_cast<std::uint32_t>(layout.parameters.size()) : UINT32_MAX;
  info->parameters = layout.known ? layout.parameters.data() : nullptr;
  info->max_dynamic_shared_bytes = facts.max_dynamic_shared_bytes;
  return LOCKSTEP_OK;
}

lockstep_code kernel_set_max_dynamic_shared(lockstep_kernel* kernel, std::uint32_t bytes,
                                            lockstep_error* error) {
  ContextScope scope(kernel->module->device->context);
  const Result result = driver().function_set_max_dynamic_shared(kernel->function, bytes);
  if (result == kSuccess) return LOCKSTEP_OK;
  return fail_native(error, Call::kFunctionSetAttribute, result,
                     std::to_string(bytes) + " bytes of dynamic shared memory for " + kernel->name);
}

void learn_types(lockstep_kernel* kernel, const lockstep_parameter* typed, std::uint32_t count) {
  std::lock_guard lock(kernel->module->mutex);
  const lockstep_kernel::Layout& now = *kernel->layout.load(std::memory_order_acquire);
  if (!now.known || now.typed || now.parameters.size() != count) return;
  auto learned = std::make_unique<lockstep_kernel::Layout>(now);
  learned->typed = true;
  bool changed = false;
  for (std::uint32_t index = 0; index < count; ++index) {
    std::uint8_t& tag = learned->parameters[index].tag;
    if (tag == 255 && typed[index].tag != 255) {
      tag = typed[index].tag;
      changed = true;
    }
    if (tag == 255) learned->typed = false;
  }
  if (!changed) return;
  kernel->layout.store(learned.get(), std::memory_order_release);
  kernel->layouts.push_back(std::move(learned));
}

const lockstep_kernel* kernel_of(Handle function) {
  std::shared_lock lock(functions().mutex);
  const auto it = functions().by_handle.find(function);
  return it == functions().by_handle.end() ? nullptr : it->second;
}

}  // namespace lockstep::gpu
