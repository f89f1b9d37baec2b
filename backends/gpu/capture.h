// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "driver.h"
#include "state.h"

// Our own notion of the captures that go through this plugin: nodes in creation order, which
// streams joined and how far each one's work has been joined back, and which call invalidated
// what. The driver answers only with numbers; this is what its answers are explained with.
namespace lockstep::gpu {

// How much of each stream's captured work precedes a point: (stream identity, nodes).
using CaptureClock = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

// True while a capture that this plugin began is open: only then is a stream asked about captures
// although nothing is being recorded.
inline bool captures_open() { return g_state.open_captures.load(std::memory_order_relaxed) != 0; }

// Asks the driver, where the stream may be capturing at all.
bool is_capturing(const lockstep_stream* stream);

// Where a call that was just enqueued ended up.
struct CaptureBinding {
  bool captured = false;
  std::uint64_t graph = 0;  // identity
  std::int32_t node = -1;
};

// After a successful call on a stream: asks the driver whether it was captured and binds it to the
// node it made. `record` is kept for the node; `makes_node` is false for event calls.
CaptureBinding bind_capture(lockstep_stream* stream, const lockstep_record* record,
                            bool makes_node);

// Event calls, after they succeeded.
void note_event_record(lockstep_event* event, lockstep_stream* stream);
void note_event_wait(lockstep_stream* stream, lockstep_event* event);

// Remembers `call` as the one that invalidated every capture that is invalidated and blames nobody.
void blame_invalidated_captures(const char* call);
// A stream that goes away closes the capture that began on it.
void forget_stream(lockstep_stream* stream);

lockstep_code capture_begin(lockstep_stream* stream, std::uint32_t mode, lockstep_error* error);
lockstep_code capture_end(lockstep_stream* stream, lockstep_graph** graph, lockstep_error* error);
lockstep_code capture_status(lockstep_stream* stream, std::uint32_t* status, std::uint64_t* id,
                             lockstep_error* error);
lockstep_code capture_thread_mode(lockstep_device* device, std::uint32_t* mode,
                                  lockstep_error* error);

// Clock arithmetic, for tests: `into` becomes the maximum of both.
void merge_clock(CaptureClock& into, const CaptureClock& from);
std::uint32_t clock_of(const CaptureClock& clock, std::uint64_t stream);

}  // namespace lockstep::gpu
