// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/buffer.h>
#include <lockstep/trace_entry.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

/// \file
/// How a kernel is launched: dimensions, attributes and typed arguments.
namespace lockstep {

struct LaunchConfig {
  Dim3 grid = {};                  ///< blocks, each dimension at least 1
  Dim3 block = {};                 ///< threads, each dimension at least 1
  std::uint64_t shared_bytes = 0;  ///< dynamic shared memory
  Dim3 cluster = {0, 0, 0};        ///< blocks a cluster; 0 = none
  bool cooperative = false;
  std::optional<std::int32_t> priority = {};
  bool programmatic_serialization = false;  ///< may begin before the kernel before it has ended
};

/// One argument by reference: the value lives as long as the call.
struct KernelArgument {
  enum class Kind : std::uint8_t { kScalar = 0, kPointer = 1, kStruct = 2 };

  const void* value = nullptr;  ///< kPointer: address of the pointer
  std::uint32_t size = 0;       ///< bytes
  Kind kind = Kind::kScalar;
  const detail::AllocationPtr* owner = nullptr;  ///< buffers: what a captured graph keeps alive
};

namespace detail {

template <typename T>
struct IsBuffer : std::false_type {};
template <typename T>
struct IsBuffer<Buffer<T>> : std::true_type {};
template <typename T>
struct IsBuffer<BufferView<T>> : std::true_type {};

/// The arguments of one launch, by reference to the caller's values; no allocation.
template <std::size_t N>
class ArgumentPack {
 public:
  template <typename... Args>
  explicit ArgumentPack(const Args&... args) {
    std::size_t index = 0;
    (add(index++, args), ...);
  }
  ArgumentPack(const ArgumentPack&) = delete;
  ArgumentPack& operator=(const ArgumentPack&) = delete;

  std::span<const KernelArgument> arguments() const noexcept { return {arguments_.data(), N}; }

 private:
  template <typename T>
  void add(std::size_t index, const T& value) {
    KernelArgument& argument = arguments_[index];
    if constexpr (IsBuffer<T>::value) {
      pointers_[index] = value.data();
      argument.value = &pointers_[index];
      argument.size = sizeof(void*);
      argument.kind = KernelArgument::Kind::kPointer;
      argument.owner = &value.allocation();
    } else if constexpr (std::is_null_pointer_v<T>) {
      pointers_[index] = nullptr;
      argument.value = &pointers_[index];
      argument.size = sizeof(void*);
      argument.kind = KernelArgument::Kind::kPointer;
    } else {
      static_assert(std::is_trivially_copyable_v<T>,
                    "kernel arguments are trivially copyable, buffers or pointers");
      argument.value = &value;
      argument.size = static_cast<std::uint32_t>(sizeof(T));
      if constexpr (std::is_pointer_v<T>) {
        argument.kind = KernelArgument::Kind::kPointer;
      } else if constexpr (std::is_class_v<T> || std::is_union_v<T>) {
        // Padding bytes have no fixed value, so a struct that may have some is not hashed.
        argument.kind = std::has_unique_object_representations_v<T> ? KernelArgument::Kind::kScalar
                                                                    : KernelArgument::Kind::kStruct;
      }
    }
  }

  std::array<KernelArgument, N == 0 ? 1 : N> arguments_;
  std::array<const void*, N == 0 ? 1 : N> pointers_;  // only of buffers and nullptr
};

}  // namespace detail
}  // namespace lockstep
