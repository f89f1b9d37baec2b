// SPDX-License-Identifier: Apache-2.0
#include "bodies.h"

#include <algorithm>
#include <mutex>

#include "gpu/compile_cache.h"
#include "gpu/object_source.h"
#include "settings.h"

namespace hsa_sim {
namespace {

namespace hostjit = lockstep::hostjit;
using lockstep::gpu::ObjectSource;

class CompiledBodies final : public Bodies {
 public:
  CompiledBodies(std::string place, std::optional<ObjectSource> source, std::uint32_t wave_size)
      : place_(std::move(place)), source_(std::move(source)), wave_size_(wave_size) {}

  const hostjit::Kernel* kernel(std::string_view symbol, std::string* why) override {
    const std::lock_guard lock(mutex_);
    if (!ready_locked()) {
      *why = problem_;
      return nullptr;
    }
    if (const hostjit::Kernel* found = module_->find_kernel(symbol)) return found;
    for (const auto& [expression, lowered] : source_->lowered_names) {
      if (lowered != symbol) continue;
      if (const hostjit::Kernel* found = module_->find_kernel(expression)) return found;
    }
    *why = "the source in " + place_ + " has no kernel " + std::string(symbol);
    return nullptr;
  }

  std::optional<hostjit::Global> variable(std::string_view symbol) override {
    const std::lock_guard lock(mutex_);
    if (!source_ || !ready_locked()) return std::nullopt;
    return module_->find_global(symbol);
  }

 private:
  bool ready_locked() {
    if (module_ != nullptr) return true;
    if (!problem_.empty()) return false;
    if (!source_) {
      problem_ = "there is no source of this code object: " + place_ +
                 " does not exist or is damaged (the hip plugin writes it when it compiles)";
      return false;
    }
    try {
      module_ = hostjit::Module::load_file(hostjit::compile(request()).path);
      return true;
    } catch (const hostjit::Error& error) {
      problem_ = place_ + ": " + error.what();
      return false;
    }
  }

  hostjit::CompileRequest request() const {
    hostjit::CompileRequest request;
    request.source = source_->source;
    request.source_name = source_->source_name;
    request.name_expressions = source_->kernels;
    request.discover_kernels = true;
    request.warp_size = wave_size_;
    for (const std::string& option : source_->options) {
      // What chooses or tunes the GPU means nothing to the CPU.
      const bool host = option.starts_with("-D") || option.starts_with("-U") ||
                        option.starts_with("-O") || option.starts_with("-std=") ||
                        option.starts_with("--std=") || option.starts_with("-ffp-contract=") ||
                        option.starts_with("-ffast-math");
      if (host) request.options.push_back(option);
    }
    for (const auto& [name, text] : source_->headers) {
      // hostjit brings its own.
      if (name != "lockstep/kernel.h") request.headers.push_back({name, text});
    }
    return request;
  }

  const std::string place_;
  const std::optional<ObjectSource> source_;
  const std::uint32_t wave_size_;
  std::mutex mutex_;
  std::shared_ptr<hostjit::Module> module_;
  std::string problem_;
};

}  // namespace

std::unique_ptr<Bodies> find_bodies(std::span<const std::byte> object, std::uint32_t wave_size) {
  const std::string_view bytes(reinterpret_cast<const char*>(object.data()), object.size());
  const std::string folder = lockstep::gpu::CompileCache("hip").folder();
  return std::make_unique<CompiledBodies>(folder + "/" + lockstep::gpu::object_file_name(bytes),
                                          lockstep::gpu::find_object_source(folder, bytes),
                                          wave_size);
}

}  // namespace hsa_sim
