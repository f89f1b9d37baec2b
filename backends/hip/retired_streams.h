// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <vector>

#include "symbols.h"
#include "types.h"

namespace lockstep::hip {

// Destroys streams without waiting for them. hipStreamDestroy waits for the stream's work, host
// functions included: whoever drops a stream would stand still until something else lets it go on.
// So a stream that is not ready is kept, and destroyed once it is: when another stream is made or
// destroyed, or the device was waited for. What is busy when the process ends stays.
//
// 7.2 puts packets on a stream's hardware queue when it stages copies from pageable memory, which
// neither hipStreamQuery nor hipStreamDestroy waits for, and which complete signals that
// hipStreamDestroy destroys: the GPU then writes to what may be another stream's signal. From 7.0
// on an event is recorded behind them, and the stream is destroyed once that is reached. Not of a
// stream in which somebody else's capture is open: it takes no event of ours.
//
// Thread-safe; no lock is held while the runtime is called.
class RetiredStreams {
 public:
  explicit RetiredStreams(const Functions& call) : call_(call) {}

  // Before the first stream.
  void set_release(const Version& version) { records_event_ = version.major >= 7; }

  int destroy(hipStream_t stream);
  // Destroys those that have become ready.
  void sweep();

 private:
  struct Retired {
    hipStream_t stream = nullptr;
    hipEvent_t event = nullptr;
    bool marked = false;  // the event was recorded, or cannot be
  };
  // hipStreamQuery's answer.
  int ask(hipStream_t stream);
  void mark(Retired& retired);
  bool finish(Retired& retired, int* result);

  const Functions& call_;
  bool records_event_ = false;
  std::mutex mutex_;
  std::vector<Retired> streams_;
};

}  // namespace lockstep::hip
