// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/reclaimer.h"

#include <new>

#include "src/runtime/log.h"
#include "src/runtime/relaxed_mode.h"
#include "src/runtime/states.h"

namespace lockstep::runtime {
namespace {

/// Whether what a stream was given may still be running. No capture of this library is going on;
/// one of other code may be.
bool is_busy(detail::StreamState& stream) noexcept {
  const lockstep_backend& table = stream.table;
  std::uint32_t status = LOCKSTEP_CAPTURE_NOT_CAPTURING;
  std::uint64_t id = 0;
  ErrorRecord error;
  if (table.capture_status(stream.handle, &status, &id, &error) == LOCKSTEP_OK &&
      status != LOCKSTEP_CAPTURE_NOT_CAPTURING) {
    return true;
  }
  const RelaxedMode relaxed(stream.device_state);
  // A stream that answers with an error will not run what it holds any more.
  return table.stream_query(stream.handle, &error) == LOCKSTEP_E_NOT_READY;
}

}  // namespace

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
  std::vector<Pending> done;  // released outside the locks: that may come back here
  // To ask a stream that has begun to capture would invalidate its capture.
  backend.captures.while_none([&] {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < pending_.size();) {
      if (is_busy(*pending_[i].stream)) {
        ++i;
        continue;
      }
      done.push_back(std::move(pending_[i]));
      pending_[i] = std::move(pending_.back());
      pending_.pop_back();
    }
    has_pending_.store(!pending_.empty(), std::memory_order_release);
  });
}

}  // namespace lockstep::runtime
