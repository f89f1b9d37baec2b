// SPDX-License-Identifier: Apache-2.0
#pragma once

#define LOCKSTEP_BACKEND_IMPLEMENTATION
#include <lockstep/backend.h>

#include <cstdint>
#include <string>

/// \file
/// What the files of this plugin share. The "device" is ordinary memory and every call does its
/// work before it returns: replace the bodies by calls of a driver, one slot after the other.

// The interface declares these and leaves them to the plugin.
struct lockstep_device {
  std::uint64_t context;  ///< tells contexts of one device apart in traces
};
struct lockstep_stream {
  std::uint64_t identity;
};
struct lockstep_event {
  std::uint64_t record = 0;  ///< identity of the latest record, 0 = never recorded
  bool timing = false;
  double milliseconds = 0;  ///< when it was recorded
};

namespace template_plugin {

/// The host's recorder. A plugin reports every call that enqueues work, here and nowhere else.
const lockstep_recorder& recorder();

/// Fills the caller's error record and returns `code`, so that a slot can end with `return
/// fail(…)`.
lockstep_code fail(lockstep_error* error, lockstep_code code, const char* call,
                   const std::string& message);

/// One call of the driver: begins the record before it and ends it after it. The calls here never
/// fail; where they can, LOCKSTEP_RECORD_FAILED goes into the flags of end().
class Recorded {
 public:
  explicit Recorded(const lockstep_record& record)
      : slot_(*recorder().active != 0 ? recorder().begin(&record) : nullptr) {}
  ~Recorded() {
    if (slot_ != nullptr) recorder().end(slot_, 0, 0, -1);
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

 private:
  void* slot_;
};

/// A record of that kind and name on that stream.
lockstep_record new_record(lockstep_record_kind kind, const char* name,
                           const lockstep_stream* stream);

/// LOCKSTEP_MEMORY_* of the allocation that `pointer` lies in; UNKNOWN = pageable host memory.
std::uint32_t kind_of_memory(const void* pointer);

void fill_memory_slots(lockstep_backend& table);
void fill_stream_slots(lockstep_backend& table);

}  // namespace template_plugin
