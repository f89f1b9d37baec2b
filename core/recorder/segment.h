// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "recorder/recorder.h"

/// \file
/// The recorder's memory: control block, rings, threads, forks. Private to core/recorder.
namespace lockstep::recorder {

// Nothing here has a constructor or destructor: it is used before and after those run.
extern Control* g_control;               ///< null until the first record
extern std::uint32_t g_clock;            ///< copy of Control::clock
extern volatile std::uint32_t g_active;  ///< what lockstep_recorder::active points to
extern __thread Ring* t_ring __attribute__((tls_model("initial-exec")));

/// The calling thread's ring, made or taken over when it has none. Null when that is not possible.
[[gnu::cold]] Ring* acquire_ring() noexcept;

/// Room for `need` more bytes, by waiting if it must be. False: nothing is recorded any more.
[[gnu::cold]] bool make_room(Ring* ring, std::uint64_t need) noexcept;

/// Leaves the last `to_end` bytes of the ring's memory and goes on at its beginning.
[[gnu::cold]] void wrap(Ring* ring, std::uint64_t to_end) noexcept;

/// Contiguous room for a record of `size` bytes (a multiple of 8); null as make_room's false.
/// The record becomes visible with publish_record.
inline unsigned char* reserve_record(Ring* ring, std::uint32_t size) noexcept {
  const std::uint64_t to_end = ring->capacity - ring->write_offset;
  const bool wraps = to_end < size;
  const std::uint64_t need = wraps ? to_end + size : size;
  if (__builtin_expect(ring->write_position + need > ring->soft_limit, 0) &&
      !make_room(ring, need)) {
    return nullptr;
  }
  if (__builtin_expect(wraps, 0)) wrap(ring, to_end);
  return ring->data() + ring->write_offset;
}

/// Asks for the memory of the next entries, taken to be like one of `size` bytes. They are written
/// behind instructions that wait until all that was written before has its cache line, which a
/// drainer on another core may hold, or nobody.
inline void expect_records(Ring* ring, std::uint32_t size) noexcept {
  constexpr std::uint64_t kAhead = 512, kLine = 64;
  const std::uint64_t end = ring->write_offset + kAhead + size;
  if (end > ring->capacity) return;  // the first ones behind the ring's end are not asked for
  for (std::uint64_t at = ring->write_offset + kAhead; at < end; at += kLine) {
    __builtin_prefetch(ring->data() + at, 1);
  }
}

/// Numbers, stamps and publishes the record that reserve_record gave room for. Nothing that could
/// wait or fault may ever be put between the number and the store to `head`.
inline void publish_record(Ring* ring, RecordHeader* record, RecordType type, std::uint32_t size,
                           std::uint32_t state) noexcept {
  record->size = size;
  record->type = type;
  record->reserved = 0;
  record->reserved2 = 0;
  record->state.store(state, std::memory_order_relaxed);
  ring->write_position += size;
  ring->write_offset += size;
  record->time = clock_ticks(g_clock);
  record->sequence = g_control->sequence.fetch_add(1, std::memory_order_acq_rel);
  ring->head.store(ring->write_position, std::memory_order_release);
}

/// Publishes bytes of any length in pieces. The ring is not busy.
void publish_pieces(Ring* ring, RecordType type, std::uint64_t id, const void* bytes,
                    std::size_t size) noexcept;

Control* control(bool create) noexcept;
bool prepare(char* message, std::size_t capacity) noexcept;
std::uint64_t attach(const LocalConsumerHooks* hooks) noexcept;
void want(std::uint32_t bit, bool wanted) noexcept;
void close_recorder() noexcept;
Ring* ring_at(std::uint32_t index) noexcept;
std::uint64_t next_identity() noexcept;
std::uint64_t this_thread() noexcept;

/// Marks a ring as being written; false when it already is (a signal handler interrupted it).
inline bool enter(Ring* ring) noexcept {
  if (__builtin_expect(ring->busy != 0, 0)) {
    g_control->dropped.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  ring->busy = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return true;
}
inline void leave(Ring* ring) noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ring->busy = 0;
}

}  // namespace lockstep::recorder
