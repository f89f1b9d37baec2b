// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

/// \file
/// Releasing things at a time at which it does no harm.
namespace lockstep::detail {
struct StreamState;
}

namespace lockstep::runtime {

class LoadedBackend;

/// What one backend still has to release. Thread-safe; nothing here throws.
class Reclaimer {
 public:
  /// Freeing memory while a stream captures would invalidate the capture, so it waits until none
  /// is going on.
  void after_captures(std::function<void()> release) noexcept;
  /// Keeps `object` until what is enqueued on `stream` now has been done.
  void after_work(std::shared_ptr<const void> object,
                  std::shared_ptr<detail::StreamState> stream) noexcept;

  /// Call where the last capture may have ended.
  void captures_ended(LoadedBackend& backend) noexcept;
  /// Asks streams whether they are done, unless a capture of ours is going on.
  void collect(LoadedBackend& backend) noexcept;

 private:
  struct Pending {
    std::shared_ptr<const void> object;
    std::shared_ptr<detail::StreamState> stream;
  };

  std::mutex mutex_;
  std::vector<std::function<void()>> releases_;
  std::vector<Pending> pending_;
  std::atomic<bool> has_pending_{false};
};

}  // namespace lockstep::runtime
