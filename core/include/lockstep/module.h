// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>
#include <lockstep/trace_entry.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Compiled device code and the kernels in it.
namespace lockstep {

namespace detail {
struct ModuleState;
struct KernelState;
}  // namespace detail

/// How source is compiled. Empty lists are fine except `kernels`: every kernel that will be asked
/// for is named, templates by their instantiation ("scale<float, 3>").
struct CompileOptions {
  std::vector<std::string> kernels;
  std::vector<std::string> options = {};  ///< -D…, -I…, -std=…, and what the compiler in use knows
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< name in #include, text
  std::string source_name = "kernel.cu";                          ///< for the compiler's messages
};

/// How a kernel takes one parameter.
struct KernelParameter {
  std::uint32_t offset = 0;  ///< bytes from the start of the parameter buffer
  std::uint32_t size = 0;    ///< bytes
  enum class Kind : std::uint8_t {
    kScalar = 0,
    kPointer = 1,
    kStruct = 2,
    kUnknown = 255
  } kind = Kind::kUnknown;
};

/// One kernel of a module. A cheap shared handle; keeps its module loaded. Thread-safe.
class LOCKSTEP_API Kernel {
 public:
  Kernel() noexcept = default;
  explicit Kernel(std::shared_ptr<detail::KernelState> state) noexcept : state_(std::move(state)) {}

  /// As the driver reports it, mangled; what stands in traces.
  const std::string& name() const;
  /// The parameters' layout, nothing when the driver does not tell it.
  std::optional<std::vector<KernelParameter>> parameters() const;
  std::uint32_t max_threads_per_block() const;
  std::uint32_t static_shared_bytes() const;
  std::uint32_t registers_per_thread() const;  ///< 0 = not known
  /// Bytes of dynamic shared memory that a launch may ask for. Raising it above the device's
  /// default is the opt-in that drivers ask for. Legal during capture.
  /// \throws Error kInvalidArgument above the device's limit.
  void set_max_dynamic_shared(std::uint32_t bytes) const;
  std::uint32_t max_dynamic_shared() const;
  void* native_handle() const;
  explicit operator bool() const noexcept { return state_ != nullptr; }

  LOCKSTEP_INTERNAL detail::KernelState& state() const;  ///< for the library itself

 private:
  std::shared_ptr<detail::KernelState> state_;
};

/// Code loaded on one device. A cheap shared handle; unloaded with its last handle and kernel.
class LOCKSTEP_API Module {
 public:
  Module() noexcept = default;
  explicit Module(std::shared_ptr<detail::ModuleState> state) noexcept : state_(std::move(state)) {}

  /// The kernel of that name expression or mangled name. Thread-safe.
  /// \throws Error kNotFound, listing what the module was compiled for.
  Kernel kernel(std::string_view name) const;
  /// Address and bytes of a __device__ or __constant__ variable. \throws Error kNotFound.
  std::pair<void*, std::size_t> global(std::string_view name) const;
  void* native_handle() const;
  explicit operator bool() const noexcept { return state_ != nullptr; }

 private:
  std::shared_ptr<detail::ModuleState> state_;
};

}  // namespace lockstep
