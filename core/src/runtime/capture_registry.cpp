// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/capture_registry.h"

#include <algorithm>

#include "src/runtime/process_state.h"
#include "src/runtime/states.h"

namespace lockstep::runtime {

std::vector<std::uint64_t> Capture::unjoined() const {
  const std::uint64_t self = origin->identity;
  const auto known = joined.find(self);
  std::vector<std::uint64_t> left;
  for (const auto& [stream, count] : operations) {
    if (stream == self || count == 0) continue;
    std::uint64_t joined_count = 0;
    if (known != joined.end()) {
      const auto work = known->second.find(stream);
      if (work != known->second.end()) joined_count = work->second;
    }
    if (joined_count < count) left.push_back(stream);
  }
  return left;
}

void CaptureRegistry::announce() {
  const std::lock_guard lock(begin_mutex_);
  active_.fetch_add(1, std::memory_order_seq_cst);
  process.captures.fetch_add(1, std::memory_order_seq_cst);
}

void CaptureRegistry::withdraw() noexcept {
  process.captures.fetch_sub(1, std::memory_order_seq_cst);
  active_.fetch_sub(1, std::memory_order_seq_cst);
}

void CaptureRegistry::add(std::shared_ptr<Capture> capture) {
  const std::lock_guard lock(mutex_);
  captures_.push_back(std::move(capture));
}

void CaptureRegistry::remove(const Capture& capture) noexcept {
  std::shared_ptr<Capture> last;  // its contents are released outside the lock
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(captures_.begin(), captures_.end(),
                                    [&](const auto& each) { return each.get() == &capture; });
    if (found == captures_.end()) return;
    last = std::move(*found);
    captures_.erase(found);
  }
  withdraw();
}

std::shared_ptr<Capture> CaptureRegistry::begun_by(const detail::StreamState& stream) const {
  const std::lock_guard lock(mutex_);
  for (const auto& capture : captures_) {
    if (capture->origin->handle == stream.handle || capture->origin->identity == stream.identity) {
      return capture;
    }
  }
  return nullptr;
}

std::shared_ptr<Capture> CaptureRegistry::of(LoadedBackend& backend,
                                             const detail::StreamState& stream) const {
  if (!any()) return nullptr;
  std::uint32_t status = LOCKSTEP_CAPTURE_NOT_CAPTURING;
  std::uint64_t id = 0;
  ErrorRecord error;
  if (backend.table.capture_status(stream.handle, &status, &id, &error) != LOCKSTEP_OK ||
      status == LOCKSTEP_CAPTURE_NOT_CAPTURING) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  for (const auto& capture : captures_) {
    if (capture->id == id) return capture;
  }
  return nullptr;
}

void CaptureRegistry::note_failure(LoadedBackend& backend, const std::string& call) {
  if (!any()) return;
  std::vector<std::shared_ptr<Capture>> captures;
  {
    const std::lock_guard lock(mutex_);
    captures = captures_;
  }
  for (const auto& capture : captures) {
    std::uint32_t status = LOCKSTEP_CAPTURE_NOT_CAPTURING;
    std::uint64_t id = 0;
    ErrorRecord error;
    if (backend.table.capture_status(capture->origin->handle, &status, &id, &error) !=
            LOCKSTEP_OK ||
        status != LOCKSTEP_CAPTURE_IS_INVALIDATED) {
      continue;
    }
    const std::lock_guard lock(capture->mutex);
    if (capture->invalidated_by.empty()) capture->invalidated_by = call;
  }
}

}  // namespace lockstep::runtime
