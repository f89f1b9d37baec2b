// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

/// \file
/// Memory that a device can use: owners (Buffer) and views (BufferView).
namespace lockstep {

class Device;

enum class MemoryKind : std::uint8_t {
  kUnknown = 0,  ///< pageable host memory, not known to the driver
  kDevice = 1,
  kPinned = 2,  ///< page-locked host memory that the device reaches
  kManaged = 3,
};

namespace detail {
class Allocation;  // one allocation; freed with its last owner
using AllocationPtr = std::shared_ptr<Allocation>;
LOCKSTEP_API void* allocation_address(const Allocation& allocation) noexcept;
LOCKSTEP_API std::uint64_t allocation_bytes(const Allocation& allocation) noexcept;
LOCKSTEP_API MemoryKind allocation_kind(const Allocation& allocation) noexcept;
LOCKSTEP_API Device allocation_device(const Allocation& allocation);
}  // namespace detail

template <typename T>
class Buffer;

/// A part of an allocation: pointer, size, and a share in the memory, which therefore stays
/// allocated as long as a view of it does. Cheap to copy. Not thread-safe for writing the view
/// itself. `T` may be const.
template <typename T>
class BufferView {
 public:
  using value_type = std::remove_const_t<T>;
  static_assert(std::is_trivially_copyable_v<value_type>,
                "device memory holds trivially copyable types only");

  BufferView() noexcept = default;
  BufferView(detail::AllocationPtr allocation, T* data, std::size_t size) noexcept
      : allocation_(std::move(allocation)), data_(data), size_(size) {}
  /// From a view of non-const elements.
  template <typename U>
  requires(std::is_same_v<const U, T>) BufferView(const BufferView<U>& other)
  noexcept : allocation_(other.allocation()), data_(other.data()), size_(other.size()) {}

  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }  ///< elements
  std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  bool empty() const noexcept { return size_ == 0; }
  const detail::AllocationPtr& allocation() const noexcept { return allocation_; }

  /// Elements [first, first + count). \throws Error kInvalidArgument when that leaves the view.
  BufferView subview(std::size_t first, std::size_t count) const;

 private:
  detail::AllocationPtr allocation_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Owns an allocation of `size()` elements. Movable, not copyable; views and graphs that use it
/// keep the memory alive beyond it. The elements are not initialised. Pinned buffers can be read
/// and written by the host through span(). Made by Device::allocate and its relatives.
template <typename T>
class Buffer {
 public:
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);

  Buffer() noexcept = default;
  explicit Buffer(detail::AllocationPtr allocation) noexcept : view_(allocation, nullptr, 0) {
    if (allocation) {
      view_ = BufferView<T>(allocation, static_cast<T*>(detail::allocation_address(*allocation)),
                            detail::allocation_bytes(*allocation) / sizeof(T));
    }
  }
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(Buffer&&) noexcept = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() const noexcept { return view_.data(); }
  std::size_t size() const noexcept { return view_.size(); }
  std::size_t size_bytes() const noexcept { return view_.size_bytes(); }
  bool empty() const noexcept { return view_.empty(); }
  MemoryKind memory_kind() const noexcept {
    return view_.allocation() ? detail::allocation_kind(*view_.allocation()) : MemoryKind::kUnknown;
  }

  BufferView<T> view() const noexcept { return view_; }
  const detail::AllocationPtr& allocation() const noexcept { return view_.allocation(); }
  BufferView<T> subview(std::size_t first, std::size_t count) const {
    return view_.subview(first, count);
  }
  operator BufferView<T>() const noexcept { return view_; }
  operator BufferView<const T>() const noexcept { return view_; }

  /// Host access to a pinned buffer. \throws Error kInvalidArgument for device memory.
  std::span<T> span() const;

 private:
  BufferView<T> view_;
};

namespace detail {
[[noreturn]] LOCKSTEP_API void throw_view_out_of_range(std::size_t first, std::size_t count,
                                                       std::size_t size);
[[noreturn]] LOCKSTEP_API void throw_not_host_memory();
}  // namespace detail

template <typename T>
BufferView<T> BufferView<T>::subview(std::size_t first, std::size_t count) const {
  if (first > size_ || count > size_ - first) detail::throw_view_out_of_range(first, count, size_);
  return BufferView(allocation_, data_ + first, count);
}

template <typename T>
std::span<T> Buffer<T>::span() const {
  if (memory_kind() != MemoryKind::kPinned) detail::throw_not_host_memory();
  return {data(), size()};
}

}  // namespace lockstep
