// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/reclaimer.h"

#include <new>

#include "src/runtime/log.h"
#include "src/runtime/states.h"

namespace lockstep::runtime {

void Reclaimer::after_captures(std::function<void()> release) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    releases_.push_back(std::move(release));
  } catch (const std::bad_alloc&) {
    log(LogLevel::kError, "out of memory while a release was put off: device memory is lost");
  }
}

void Reclaimer::after_work(std::shared_ptr<const void> object,
                           std::shared_ptr<detail::StreamState> stream) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    pending_.push_back({object, std::move(stream)});
    has_pending_.store(true, std::memory_order_release);
  } catch (const std::bad_alloc&) {
    // Work that is under way may still use it: losing it is the lesser evil.
    static_cast<void>(new (std::nothrow) std::shared_ptr<const void>(std::move(object)));
    log(LogLevel::kError, "out of memory while a release was put off: its memory is lost");
  }
}

void Reclaimer::captures_ended(LoadedBackend& backend) noexcept {
  if (backend.captures.any()) return;
  std::vector<std::function<void()>> releases;
  {
    const std::lock_guard lock(mutex_);
    releases.swap(releases_);
  }
  for (const auto& release : releases) release();
}

void Reclaimer::collect(LoadedBackend& backend) noexcept {
  if (!has_pending_.load(std::memory_order_acquire) || backend.captures.any()) return;
  std::vector<Pending> done;  // released outside the lock: that may come back here
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < pending_.size();) {
      ErrorRecord error;
      // A stream that answers with an error will not run what it holds any more.
      if (backend.table.stream_query(pending_[i].stream->handle, &error) == LOCKSTEP_E_NOT_READY) {
        ++i;
        continue;
      }
      done.push_back(std::move(pending_[i]));
      pending_[i] = std::move(pending_.back());
      pending_.pop_back();
    }
    has_pending_.store(!pending_.empty(), std::memory_order_release);
  }
}

}  // namespace lockstep::runtime
