// SPDX-License-Identifier: Apache-2.0
#include "retired_streams.h"

#include "device_scope.h"

namespace lockstep::hip {

int RetiredStreams::ask(hipStream_t stream) {
  const int result = call_.hipStreamQuery_(stream);
  // Expected: not to be found by whoever asks next.
  if (result != hipSuccess) call_.hipGetLastError_();
  return result;
}

// `answer` is not "not ready": the stream is ready, or there is a failure, behind which nothing
// runs any more, or a capture that was left open, in which nothing does.
int RetiredStreams::destroy_now(hipStream_t stream, int answer) {
  int ordinal = 0;
  if (records_event_ && answer == hipSuccess && call_.hipStreamGetDevice_ != nullptr &&
      call_.hipStreamGetDevice_(stream, &ordinal) == hipSuccess) {
    const DeviceScope scope(call_, ordinal);
    hipEvent_t event = nullptr;
    // Without the event the stream goes as it would have: there is nobody to tell. It is waited for
    // by way of its stream, since hipStreamDestroy would wait behind host functions of others, too.
    if (call_.hipEventCreateWithFlags_(&event, hipEventDisableTiming) != hipSuccess) {
      call_.hipGetLastError_();
    } else {
      if (call_.hipEventRecord_(event, stream) != hipSuccess ||
          call_.hipStreamSynchronize_(stream) != hipSuccess) {
        call_.hipGetLastError_();
      }
      call_.hipEventDestroy_(event);
    }
  }
  return call_.hipStreamDestroy_(stream);
}

int RetiredStreams::destroy(hipStream_t stream) {
  sweep();
  const int answer = ask(stream);
  if (answer != hipErrorNotReady) return destroy_now(stream, answer);
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream);
  return hipSuccess;
}

void RetiredStreams::sweep() {
  std::vector<hipStream_t> taken, still;
  {
    const std::lock_guard lock(mutex_);
    if (streams_.empty()) return;
    taken.swap(streams_);  // another thread sees each of them once
  }
  for (const hipStream_t stream : taken) {
    const int answer = ask(stream);
    if (answer == hipErrorNotReady) {
      still.push_back(stream);
    } else {
      // A failure can only say that the runtime is going down, or what the stream's work came to.
      destroy_now(stream, answer);
    }
  }
  const std::lock_guard lock(mutex_);
  streams_.insert(streams_.end(), still.begin(), still.end());
}

}  // namespace lockstep::hip
