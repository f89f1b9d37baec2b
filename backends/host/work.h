// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <cstdint>
#include <memory>

#include "error.h"

namespace lockstep::hostrt {

class Device;

// One operation with everything it needs, independent of who issued it: enqueued on a stream, or
// kept in a graph node. Immutable once made, so that launches of one executable share it.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  // Executes it on the calling thread; null when it went well.
  virtual FailurePtr run() const noexcept = 0;
  // LOCKSTEP_NODE_*
  virtual std::uint32_t node_kind() const noexcept = 0;
  // Its entry, without a stream. Pointers in it live as long as the work.
  virtual lockstep_record record() const = 0;
  // False: runs on a thread of the runtime only, never on one that merely waits for it.
  virtual bool any_thread() const noexcept { return true; }
};
using WorkPtr = std::shared_ptr<const Work>;

}  // namespace lockstep::hostrt
