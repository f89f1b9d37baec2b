// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <vector>

#include "symbols.h"

namespace lockstep::hip {

// Destroys streams without waiting for them. hipStreamDestroy waits for the stream's work, host
// functions included: whoever drops a stream would stand still until something else lets it go on.
// So a stream that is not ready is kept, and destroyed once it is: when another stream is made or
// destroyed, or the device was waited for. What is busy when the process ends stays.
//
// Thread-safe; no lock is held while the runtime is called.
class RetiredStreams {
 public:
  explicit RetiredStreams(const Functions& call) : call_(call) {}

  int destroy(hipStream_t stream);
  // Destroys those that have become ready.
  void sweep();

 private:
  bool busy(hipStream_t stream);

  const Functions& call_;
  std::mutex mutex_;
  std::vector<hipStream_t> streams_;
};

}  // namespace lockstep::hip
