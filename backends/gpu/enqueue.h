// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

#include "capture.h"
#include "in_flight.h"
#include "objects.h"
#include "state.h"

// The one place that records. Every driver call that enqueues work goes through enqueue():
// begin() before the call, end() after it, bound to its node when it was captured. With recording
// off and no capture open this is three loads and two branches.
namespace lockstep::gpu {

void init_record(lockstep_record& record, lockstep_record_kind kind, std::uint32_t name,
                 const lockstep_device* device, std::uint64_t stream);

// The groups of all kinds end before this.
inline constexpr std::size_t kGroupBytes = 80;
static_assert(sizeof(lockstep_record::of.kernel) <= kGroupBytes &&
              sizeof(lockstep_record::of.copy) <= kGroupBytes &&
              sizeof(lockstep_record::of.set) <= kGroupBytes &&
              sizeof(lockstep_record::of.graph_launch) <= kGroupBytes &&
              sizeof(lockstep_record::of.event) <= kGroupBytes &&
              sizeof(lockstep_record::of.memory) <= kGroupBytes &&
              sizeof(lockstep_record::of.mark) <= kGroupBytes);

// A record for begin() and finish(), which look no further than struct_size: what lies behind the
// groups is not cleared, on the path of every recorded launch.
inline void init_call(lockstep_record& record, lockstep_record_kind kind, std::uint32_t name,
                      const lockstep_device* device, std::uint64_t stream) {
  record.struct_size = offsetof(lockstep_record, of) + kGroupBytes;
  record.kind = kind;
  record.flags = 0;
  record.name = name;
  record.device = device->ordinal;
  record.stream = stream;
  std::memset(&record.of, 0, kGroupBytes);
}

// Ends a record: asks whether the call was captured, keeps its node, reports.
void finish(lockstep_stream* stream, void* begun, bool recorded, Result result,
            const lockstep_record& record, bool makes_node);

inline std::uint32_t name_of(Call call) { return g_state.names[static_cast<std::size_t>(call)]; }

// What a launch needs of the context, and that it is remembered. While something captures the
// driver is asked more.
class LaunchScope {
 public:
  explicit LaunchScope(const lockstep_stream* stream) : stream_(stream) {
    if (stream->origin != lockstep_stream::Origin::kOwn || captures_open() ||
        driver().traits().launches_need_context) {
      context_.enter(stream->context);
    }
  }

  ~LaunchScope() { note_launch(stream_); }
  LaunchScope(const LaunchScope&) = delete;
  LaunchScope& operator=(const LaunchScope&) = delete;

 private:
  const lockstep_stream* const stream_;
  ContextScope context_;
};

// fill(record): completes the group of the kind. perform(): the driver call.
template <class Fill, class Perform>
Result enqueue(lockstep_stream* stream, lockstep_record_kind kind, std::uint32_t name,
               bool makes_node, Fill&& fill, Perform&& perform) {
  const bool recorded = recording();
  if (!recorded && !captures_open()) [[likely]]
    return perform();
  lockstep_record record;
  init_call(record, kind, name, stream->device, identity_of(stream));
  fill(record);
  void* const begun = recorded ? recorder().begin(&record) : nullptr;
  const Result result = perform();
  if (result == kSuccess && recorded && !may_capture(stream)) [[likely]] {
    recorder().end(begun, 0, 0, -1);
  } else {
    finish(stream, begun, recorded, result, record, makes_node);
  }
  return result;
}

// Work that was asked for and needs no driver call (an empty copy or set): an entry, no node.
template <class Fill>
void record_only(lockstep_stream* stream, lockstep_record_kind kind, std::uint32_t name,
                 Fill&& fill) {
  enqueue(stream, kind, name, false, fill, [] { return kSuccess; });
}

// Calls that belong to a device rather than a stream, or that only wait.
template <class Fill, class Perform>
Result record_call(lockstep_device* device, std::uint64_t stream, lockstep_record_kind kind,
                   std::uint32_t name, Fill&& fill, Perform&& perform) {
  if (!recording()) [[likely]]
    return perform();
  lockstep_record record;
  init_call(record, kind, name, device, stream);
  fill(record);
  void* const begun = recorder().begin(&record);
  const Result result = perform();
  recorder().end(begun, result == kSuccess ? 0U : std::uint32_t{LOCKSTEP_RECORD_FAILED}, 0, -1);
  return result;
}

}  // namespace lockstep::gpu
