// SPDX-License-Identifier: Apache-2.0
#include "retired_streams.h"

#include <algorithm>

#include "device_scope.h"

namespace lockstep::hip {

int RetiredStreams::ask(hipStream_t stream) {
  const int result = call_.hipStreamQuery_(stream);
  // Expected: not to be found by whoever asks next.
  if (result != hipSuccess) call_.hipGetLastError_();
  return result;
}

// Puts an event behind what the runtime may have left on the hardware queue. Without it the stream
// goes as it would have: there is nobody to tell.
void RetiredStreams::mark(Retired& retired) {
  retired.marked = true;
  int ordinal = 0;
  if (call_.hipStreamGetDevice_ == nullptr ||
      call_.hipStreamGetDevice_(retired.stream, &ordinal) != hipSuccess) {
    return;
  }
  const DeviceScope scope(call_, ordinal);
  if (call_.hipEventCreateWithFlags_(&retired.event, hipEventDisableTiming) != hipSuccess) {
    retired.event = nullptr;
    call_.hipGetLastError_();
  } else if (call_.hipEventRecord_(retired.event, retired.stream) != hipSuccess) {
    call_.hipGetLastError_();
  }
}

// Destroys the stream if that needs no waiting. An answer that is neither "ready" nor "not ready"
// is a failure, behind which nothing runs any more, or a capture that was left open, in which
// nothing does.
bool RetiredStreams::finish(Retired& retired, int* result) {
  int answer = ask(retired.stream);
  if (records_event_ && answer == hipSuccess && !retired.marked) {
    mark(retired);
    answer = ask(retired.stream);
  }
  if (answer == hipErrorNotReady) return false;
  if (retired.event != nullptr) call_.hipEventDestroy_(retired.event);
  *result = call_.hipStreamDestroy_(retired.stream);
  return true;
}

int RetiredStreams::destroy(hipStream_t stream) {
  sweep();
  Retired retired{stream};
  int result = hipSuccess;
  if (finish(retired, &result)) return result;
  const std::lock_guard lock(mutex_);
  streams_.push_back(retired);
  return hipSuccess;
}

void RetiredStreams::sweep() {
  std::vector<Retired> taken;
  {
    const std::lock_guard lock(mutex_);
    if (streams_.empty()) return;
    taken.swap(streams_);  // another thread sees each of them once
  }
  std::erase_if(taken, [this](Retired& retired) {
    int result =
        hipSuccess;  // can only say that the runtime is going down, or what the work came to
    return finish(retired, &result);
  });
  const std::lock_guard lock(mutex_);
  streams_.insert(streams_.end(), taken.begin(), taken.end());
}

}  // namespace lockstep::hip
