// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device.h>
#include <lockstep/error.h>
#include <lockstep/module.h>

#include <cstring>
#include <fmt/format.h>

#include "src/runtime/launch_check.h"
#include "src/runtime/states.h"

namespace lockstep {

using detail::DeviceState;
using detail::KernelState;
using detail::ModuleState;
using runtime::ErrorRecord;

namespace {

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

/// What is text by its looks is PTX; anything else a plugin finds out by its bytes.
bool is_ptx(std::span<const std::byte> image) {
  std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  // Compilers hand PTX out with its terminator.
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  const std::string_view head = text.substr(0, 64 * 1024);
  return head.find('\0') == std::string_view::npos &&
         head.find(".version") != std::string_view::npos;
}

Module make_module(const Device& device, const lockstep_module_desc& desc,
                   std::vector<std::string> kernels, const char* function) {
  DeviceState& state = device.state();
  state.check_usable();
  // A compiler's log can be long: the first call tells its size, the buffer keeps all but freaks.
  std::string log(64 * 1024, '\0');
  ErrorRecord error;
  error.log = log.data();
  error.log_capacity = log.size();
  lockstep_module* handle = nullptr;
  const lockstep_code code =
      state.backend.table.module_create(state.handle, &desc, &handle, &error);
  if (code != LOCKSTEP_OK) {
    runtime::throw_plugin_error(
        state.backend, &state, nullptr, code, error,
        {function, desc.source_name == nullptr ? "" : fmt::format("'{}'", desc.source_name)});
  }
  auto module = std::make_shared<ModuleState>(device, handle, std::move(kernels));
  state.add_module(module);
  return Module(std::move(module));
}

}  // namespace

Module Device::compile(std::string_view source, const CompileOptions& options) const {
  if (source.empty()) {
    runtime::throw_invalid(
        "Device::compile of an empty source: give it the text of a file with kernels", id());
  }
  const std::string text(source);
  const std::vector<const char*> kernels = pointers_to(options.kernels);
  const std::vector<const char*> flags = pointers_to(options.options);
  std::vector<lockstep_header> headers;
  for (const auto& [name, content] : options.headers) {
    headers.push_back({name.c_str(), content.c_str()});
  }
  lockstep_module_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.format = LOCKSTEP_MODULE_SOURCE;
  desc.data = text.c_str();
  desc.bytes = text.size();
  desc.source_name = options.source_name.c_str();
  desc.kernels = kernels.data();
  desc.kernel_count = static_cast<std::uint32_t>(kernels.size());
  desc.options = flags.data();
  desc.option_count = static_cast<std::uint32_t>(flags.size());
  desc.headers = headers.data();
  desc.header_count = static_cast<std::uint32_t>(headers.size());
  return make_module(*this, desc, options.kernels, "Device::compile");
}

Module Device::load_module(std::span<const std::byte> image) const {
  if (image.empty()) runtime::throw_invalid("Device::load_module of an empty image", id());
  lockstep_module_desc desc = {};
  desc.struct_size = sizeof(desc);
  std::string ptx;
  if (is_ptx(image)) {
    ptx.assign(reinterpret_cast<const char*>(image.data()), image.size());
    ptx.erase(ptx.find_last_not_of('\0') + 1);
    desc.format = LOCKSTEP_MODULE_PTX;
    desc.data = ptx.c_str();
    desc.bytes = ptx.size();
  } else {
    desc.format = LOCKSTEP_MODULE_BINARY;
    desc.data = image.data();
    desc.bytes = image.size();
  }
  return make_module(*this, desc, {}, "Device::load_module");
}

Kernel Module::kernel(std::string_view name) const {
  if (state_ == nullptr) runtime::throw_empty_handle("Module");
  DeviceState& device = state_->device.state();
  device.check_usable();
  const lockstep_backend& table = device.backend.table;
  const std::string text(name);
  auto kernel = std::make_shared<KernelState>();
  ErrorRecord error;
  lockstep_code code = table.module_kernel(state_->handle, text.c_str(), &kernel->handle, &error);
  if (code != LOCKSTEP_OK) {
    std::string subject = fmt::format("'{}'", name);
    if (code == LOCKSTEP_E_NOT_FOUND && !state_->kernels.empty()) {
      subject +=
          fmt::format(" (the module was compiled for: {})", fmt::join(state_->kernels, ", "));
    }
    runtime::throw_plugin_error(device.backend, &device, nullptr, code, error,
                                {"Module::kernel", subject});
  }
  lockstep_kernel_info info = {};
  info.struct_size = sizeof(info);
  info.parameter_count = UINT32_MAX;
  code = table.kernel_info(kernel->handle, &info, &error);
  if (code != LOCKSTEP_OK) {
    runtime::throw_plugin_error(device.backend, &device, nullptr, code, error,
                                {"Module::kernel", fmt::format("'{}'", name)});
  }
  kernel->module = state_;
  kernel->device = &device;
  kernel->name = info.name == nullptr ? text : info.name;
  kernel->max_threads_per_block = info.max_threads_per_block;
  kernel->limits = runtime::launch_limits(device.limits, info.max_threads_per_block);
  kernel->static_shared_bytes = info.static_shared_bytes;
  kernel->registers_per_thread = info.registers_per_thread;
  kernel->layout_known = info.parameter_count != UINT32_MAX;
  if (kernel->layout_known && info.parameter_count > 0) {
    kernel->parameters.assign(info.parameters, info.parameters + info.parameter_count);
  }
  kernel->tags_known = kernel->layout_known;
  for (const lockstep_parameter& parameter : kernel->parameters) {
    if (parameter.tag == 255) kernel->tags_known = false;
  }
  std::uint32_t dynamic = info.max_dynamic_shared_bytes;
  if (dynamic == 0 && device.limits.max_shared_per_block > info.static_shared_bytes) {
    dynamic = device.limits.max_shared_per_block - info.static_shared_bytes;
  }
  kernel->max_dynamic_shared.store(dynamic, std::memory_order_relaxed);
  return Kernel(std::move(kernel));
}

std::pair<void*, std::size_t> Module::global(std::string_view name) const {
  if (state_ == nullptr) runtime::throw_empty_handle("Module");
  DeviceState& device = state_->device.state();
  device.check_usable();
  void* address = nullptr;
  std::uint64_t bytes = 0;
  ErrorRecord error;
  const lockstep_code code = device.backend.table.module_global(
      state_->handle, std::string(name).c_str(), &address, &bytes, &error);
  if (code != LOCKSTEP_OK) {
    runtime::throw_plugin_error(device.backend, &device, nullptr, code, error,
                                {"Module::global", fmt::format("'{}'", name)});
  }
  return {address, static_cast<std::size_t>(bytes)};
}

void* Module::native_handle() const {
  if (state_ == nullptr) runtime::throw_empty_handle("Module");
  return state_->device.state().backend.table.module_native(state_->handle);
}

[[gnu::hot]] KernelState& Kernel::state() const {
  if (state_ == nullptr) runtime::throw_empty_handle("Kernel");
  return *state_;
}

const std::string& Kernel::name() const { return state().name; }
std::uint32_t Kernel::max_threads_per_block() const { return state().max_threads_per_block; }
std::uint32_t Kernel::static_shared_bytes() const { return state().static_shared_bytes; }
std::uint32_t Kernel::registers_per_thread() const { return state().registers_per_thread; }
std::uint32_t Kernel::max_dynamic_shared() const {
  return state().max_dynamic_shared.load(std::memory_order_relaxed);
}

std::optional<std::vector<KernelParameter>> Kernel::parameters() const {
  const KernelState& kernel = state();
  if (!kernel.layout_known) return std::nullopt;
  std::vector<KernelParameter> parameters;
  for (const lockstep_parameter& each : kernel.parameters) {
    parameters.push_back({each.offset, each.size, static_cast<KernelParameter::Kind>(each.tag)});
  }
  return parameters;
}

void Kernel::set_max_dynamic_shared(std::uint32_t bytes) const {
  KernelState& kernel = state();
  DeviceState& device = *kernel.device;
  device.check_usable();
  const std::uint32_t limit =
      std::max(device.limits.max_shared_per_block_optin, device.limits.max_shared_per_block);
  if (limit != 0 && bytes > limit - std::min(limit, kernel.static_shared_bytes)) {
    runtime::throw_invalid(
        fmt::format("Kernel::set_max_dynamic_shared of '{}': {} bytes with {} static ones exceed "
                    "the device's {} bytes of shared memory a block",
                    kernel.name, bytes, kernel.static_shared_bytes, limit),
        device.id);
  }
  ErrorRecord error;
  const lockstep_code code =
      device.backend.table.kernel_set_max_dynamic_shared(kernel.handle, bytes, &error);
  if (code != LOCKSTEP_OK) {
    runtime::throw_plugin_error(
        device.backend, &device, nullptr, code, error,
        {"Kernel::set_max_dynamic_shared", fmt::format("'{}', {} bytes", kernel.name, bytes)});
  }
  kernel.max_dynamic_shared.store(bytes, std::memory_order_relaxed);
}

void* Kernel::native_handle() const {
  return state().device->backend.table.kernel_native(state().handle);
}

}  // namespace lockstep
