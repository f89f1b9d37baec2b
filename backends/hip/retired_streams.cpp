// SPDX-License-Identifier: Apache-2.0
#include "retired_streams.h"

#include <algorithm>
#include <iterator>

namespace lockstep::hip {

bool RetiredStreams::busy(hipStream_t stream) {
  const int result = call_.hipStreamQuery_(stream);
  if (result == hipSuccess) return false;
  call_.hipGetLastError_();  // expected: not to be found by whoever asks next
  // Anything else than "not ready" is a failure, behind which nothing runs any more, or a capture
  // that was left open, in which nothing does.
  return result == hipErrorNotReady;
}

int RetiredStreams::destroy(hipStream_t stream) {
  sweep();
  if (!busy(stream)) return call_.hipStreamDestroy_(stream);
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream);
  return hipSuccess;
}

void RetiredStreams::sweep() {
  std::vector<hipStream_t> taken;
  {
    const std::lock_guard lock(mutex_);
    if (streams_.empty()) return;
    taken.swap(streams_);  // another thread sees each of them once
  }
  const auto still =
      std::partition(taken.begin(), taken.end(), [&](hipStream_t stream) { return busy(stream); });
  // A failure can only say that the runtime is going down, or what the stream's work came to.
  std::for_each(still, taken.end(), [&](hipStream_t stream) { call_.hipStreamDestroy_(stream); });
  taken.erase(still, taken.end());
  const std::lock_guard lock(mutex_);
  streams_.insert(streams_.end(), taken.begin(), taken.end());
}

}  // namespace lockstep::hip
