// SPDX-License-Identifier: Apache-2.0
#include "module.h"

#include <cstddef>
#include <span>
#include <utility>

#include "../hostjit/hostjit.h"
#include "device.h"
#include "error.h"
#include "record.h"

namespace lockstep::hostrt {
namespace {

std::atomic<void (*)(std::uint32_t, const char*)> g_log{nullptr};

Native native_of(hostjit::ErrorCode code) {
  switch (code) {
    case hostjit::ErrorCode::kInvalidOption:
      return Native::kInvalidValue;
    case hostjit::ErrorCode::kNoCompiler:
    case hostjit::ErrorCode::kCompileFailed:
    case hostjit::ErrorCode::kTimeout:
      return Native::kCompilationFailed;
    case hostjit::ErrorCode::kNoStorage:
      return Native::kUnknown;
    case hostjit::ErrorCode::kBadImage:
      return Native::kInvalidImage;
  }
  return Native::kUnknown;
}

// The compiler's log is handed over beside the message, which need not hold it too.
std::string without_log(const hostjit::Error& error) {
  std::string text = error.what();
  if (!error.log().empty() && text.ends_with(error.log())) {
    text.resize(text.size() - error.log().size());
    while (text.ends_with('\n') || text.ends_with(':')) text.pop_back();
  }
  return text;
}

// As the assembler of a GPU does.
void check_static_shared(const hostjit::Module& module) {
  for (const hostjit::Kernel& kernel : module.kernels()) {
    if (kernel.own_shared_bytes() <= kMaxShared) continue;
    throw Error(Native::kCompilationFailed,
                "kernel " + kernel.name() + " uses " + std::to_string(kernel.own_shared_bytes()) +
                    " bytes of static shared memory, the limit is " + std::to_string(kMaxShared) +
                    ": make its __shared__ arrays smaller, or use dynamic shared memory, which "
                    "Kernel::set_max_dynamic_shared raises to " +
                    std::to_string(kMaxSharedOptIn));
  }
}

std::shared_ptr<hostjit::Module> compile(const lockstep_module_desc& desc) {
  hostjit::CompileRequest request;
  request.source.assign(static_cast<const char*>(desc.data), desc.bytes);
  if (desc.source_name != nullptr) request.source_name = desc.source_name;
  for (std::uint32_t i = 0; i < desc.kernel_count; ++i) {
    request.name_expressions.emplace_back(desc.kernels[i]);
  }
  for (std::uint32_t i = 0; i < desc.option_count; ++i) {
    request.options.emplace_back(desc.options[i]);
  }
  for (std::uint32_t i = 0; i < desc.header_count; ++i) {
    request.headers.push_back({desc.headers[i].name, desc.headers[i].text});
  }
  request.discover_kernels = desc.kernel_count == 0;
  request.warp_size = kWarpSize;
  const hostjit::CompiledImage image = hostjit::compile(request);
  const auto log = g_log.load();
  if (!image.note.empty() && log != nullptr) log(LOCKSTEP_LOG_WARNING, image.note.c_str());
  return hostjit::Module::load_file(image.path);
}

std::shared_ptr<hostjit::Module> load(const lockstep_module_desc& desc) {
  const std::span image(static_cast<const std::byte*>(desc.data), desc.bytes);
  if (!hostjit::Module::is_image(image)) {
    throw Error(Native::kInvalidImage,
                "the binary is not one that the host compiler made (a cubin or code object is for "
                "a GPU): compile from source, or take what hostjit gave");
  }
  return hostjit::Module::load(image);
}

}  // namespace

void set_log(void (*log)(std::uint32_t level, const char* message)) noexcept { g_log.store(log); }

std::uint32_t Kernel::max_dynamic_shared_opt_in() const noexcept {
  const std::uint32_t fixed = code->static_shared_bytes();
  return fixed >= kMaxSharedOptIn ? 0 : kMaxSharedOptIn - fixed;
}

void Kernel::set_max_dynamic_shared(std::uint32_t bytes) {
  if (bytes > max_dynamic_shared_opt_in()) {
    throw Error(Native::kInvalidValue, code->name() + ": " + std::to_string(bytes) +
                                           " bytes of dynamic shared memory; the device has " +
                                           std::to_string(kMaxSharedOptIn) +
                                           " a block, of which the kernel itself uses " +
                                           std::to_string(code->static_shared_bytes()));
  }
  max_dynamic_shared.store(bytes, std::memory_order_relaxed);
}

Module::Module(Device& device, std::shared_ptr<hostjit::Module> code)
    : device_(device), code_(std::move(code)) {
  check_static_shared(*code_);
  for (const hostjit::Kernel& kernel : code_->kernels()) {
    Kernel& ours = kernels_.emplace_back();
    ours.module = this;
    ours.code = &kernel;
    ours.record_name = intern(kernel.name());
    const std::uint32_t fixed = kernel.static_shared_bytes();
    ours.max_dynamic_shared = fixed >= kMaxShared ? 0 : kMaxShared - fixed;
    for (const hostjit::Parameter& parameter : kernel.parameters()) {
      lockstep_parameter p{};
      p.offset = parameter.offset;
      p.size = parameter.size;
      p.tag = parameter.is_pointer ? 1 : parameter.may_have_padding ? 2 : 0;
      ours.parameters.push_back(p);
    }
  }
}

Module::~Module() {
  for (void* global : globals_) device_.memory().forget(global, call_names().global);
}

std::shared_ptr<Module> Module::create(Device& device, const lockstep_module_desc& desc) {
  if (desc.data == nullptr || desc.bytes == 0) {
    throw Error(Native::kInvalidValue, "the module description has no data");
  }
  try {
    switch (desc.format) {
      case LOCKSTEP_MODULE_SOURCE:
        return std::shared_ptr<Module>(new Module(device, compile(desc)));
      case LOCKSTEP_MODULE_BINARY:
        return std::shared_ptr<Module>(new Module(device, load(desc)));
      case LOCKSTEP_MODULE_PTX:
        throw Error(Native::kNotSupported,
                    "the host backend executes no PTX; give it the kernel's source");
      default:
        throw Error(Native::kInvalidValue, "unknown module format " + std::to_string(desc.format));
    }
  } catch (const hostjit::Error& error) {
    throw Error(native_of(error.code()), without_log(error), error.log());
  }
}

lockstep_kernel& Module::kernel(const std::string& name) {
  const hostjit::Kernel* found = code_->find_kernel(name);
  if (found != nullptr) {
    for (lockstep_kernel& kernel : kernels_) {
      if (kernel.code == found) return kernel;
    }
  }
  std::string known;
  for (const Kernel& kernel : kernels_) {
    known += (known.empty() ? "" : ", ") + kernel.code->name_expression();
  }
  throw Error(Native::kNotFound,
              "no kernel '" + name +
                  "' in the module; it has: " + (known.empty() ? "none" : known) +
                  ". Kernels of a source module have to be named when it is created");
}

void Module::global(const std::string& name, void** address, std::uint64_t* bytes) {
  const auto global = code_->find_global(name);
  if (!global) {
    throw Error(Native::kNotFound, "no __device__ or __constant__ variable '" + name +
                                       "' in the module (the compiler drops unused ones)");
  }
  device_.memory().add_global(device_.signed_ordinal(), global->address, global->size,
                              weak_from_this());
  {
    const std::lock_guard lock(mutex_);
    globals_.push_back(global->address);
  }
  *address = global->address;
  *bytes = global->size;
}

}  // namespace lockstep::hostrt
