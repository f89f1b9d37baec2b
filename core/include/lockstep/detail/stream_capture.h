// SPDX-License-Identifier: Apache-2.0
#pragma once

// Template bodies of stream.h, which includes this file.

#include <lockstep/stream.h>

#include <cstring>

namespace lockstep {
namespace detail {

/// Leaves the capture when the recording function threw: a stream must never stay captured.
class CaptureGuard {
 public:
  using Abandon = void (*)(const StreamRef&) noexcept;
  CaptureGuard(const StreamRef& stream, Abandon abandon) noexcept
      : stream_(stream), abandon_(abandon) {}
  ~CaptureGuard() {
    if (abandon_ != nullptr) abandon_(stream_);
  }
  CaptureGuard(const CaptureGuard&) = delete;
  CaptureGuard& operator=(const CaptureGuard&) = delete;
  void dismiss() noexcept { abandon_ = nullptr; }

 private:
  const StreamRef& stream_;
  Abandon abandon_;
};

LOCKSTEP_API void abandon_capture(const StreamRef& stream) noexcept;

}  // namespace detail

template <typename Function>
Graph StreamRef::capture(Function&& function, const CaptureOptions& options) const {
  begin_capture(options);
  detail::CaptureGuard guard(*this, detail::abandon_capture);
  StreamRef self(state_);
  std::forward<Function>(function)(self);
  guard.dismiss();
  return end_capture();
}

template <typename Function>
Graph Stream::capture(Function&& function, const CaptureOptions& options) {
  if constexpr (std::is_invocable_v<Function, Stream&>) {
    begin_capture(options);
    detail::CaptureGuard guard(*this, detail::abandon_capture);
    std::forward<Function>(function)(*this);
    guard.dismiss();
    return end_capture();
  } else {
    return StreamRef::capture(std::forward<Function>(function), options);
  }
}

template <typename T>
void StreamRef::fill(const BufferView<T>& destination, std::type_identity_t<T> value) const {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4,
                "a set value is 1, 2 or 4 bytes wide");
  FillRegion region;
  region.destination = const_cast<std::remove_const_t<T>*>(destination.data());
  region.extent = {destination.size(), destination.empty() ? 0u : 1u, 1};
  region.value_size = sizeof(T);
  std::memcpy(&region.value, &value, sizeof(T));
  fill_checked(region, &destination.allocation());
}

}  // namespace lockstep
