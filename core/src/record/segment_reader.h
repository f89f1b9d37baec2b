// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "recorder/layout.h"

/// \file
/// The consumer's side of the rings of one process image.
namespace lockstep::record {

/// Receives records in sequence order. `ring` tells producers apart; `pending` is set when the call
/// had not returned: an AmendRecord follows when it does. Nothing may be kept of the record.
class RecordVisitor {
 public:
  virtual void visit(const recorder::RecordHeader& record, std::uint32_t ring, bool pending) = 0;

 protected:
  ~RecordVisitor() = default;
};

/// Merges rings by sequence number. One thread at a time.
///
/// A ring that holds something no recorder writes is given up, and so is one that cannot be had:
/// what is in it is lost, its producer never again waits for this consumer, and damaged_rings()
/// counts it.
class SegmentReader {
 public:
  /// A ring by its number, null when it cannot be had (any more).
  using RingAt = std::function<recorder::Ring*(std::uint32_t)>;

  /// \param first number of the first record that is certainly in the rings.
  SegmentReader(recorder::Control& control, recorder::Consumer consumer, RingAt ring_at,
                std::uint64_t first);

  /// Visits every record whose number is below `until` and that follows those visited before.
  /// Waits for numbers that were taken and not published, which is a matter of nanoseconds, unless
  /// the process is no longer `alive`; hardly at all when a ring is damaged, which may hold them,
  /// at the price that a record may then come late. Ends early, between two records, while
  /// `give_way` (which may be null) is not 0; the next call goes on there. Returns how many records
  /// were visited.
  std::uint64_t drain(std::uint64_t until, bool alive, RecordVisitor& visitor,
                      const std::atomic<std::uint32_t>* give_way = nullptr);

  /// Number of the next record to visit, if none was lost.
  std::uint64_t expected() const noexcept { return expected_; }
  /// Rings that were given up. Each has lost at least one record.
  std::uint32_t damaged_rings() const noexcept { return damaged_; }

 private:
  struct Cursor {
    recorder::Ring* ring = nullptr;
    std::uint64_t capacity = 0;  ///< the ring's own word for it may be overwritten
    std::uint64_t position = 0;
    std::uint64_t offset = 0;
    std::uint64_t head = 0;      ///< as last seen
    std::uint64_t released = 0;  ///< tail as last stored
    std::uint64_t sequence = 0;  ///< of the record at `position`, when queued
    std::uint64_t least = 0;     ///< what its number must be
    std::uint32_t size = 0;      ///< its bytes
    bool queued = false;
    bool damaged = false;
  };

  void find_rings();
  /// Queues every ring that has a record to give.
  void look();
  bool peek(std::uint32_t index, bool reload);
  void visit(std::uint32_t index, RecordVisitor& visitor);
  void release(Cursor& cursor);
  void release_all();
  void wake(recorder::Ring& ring);
  void give_up(std::uint32_t index);
  /// Whether a record can have that number.
  bool is_taken(std::uint64_t sequence);
  /// Called while the expected record is missing: looks again, and waits a little. False when it
  /// has been missing for so long that it is lost.
  bool wait_for_expected();

  recorder::Control& control_;
  recorder::Consumer consumer_;
  RingAt ring_at_;
  std::uint64_t expected_;
  std::uint64_t taken_ = 0;                    ///< Control::sequence as last seen
  std::uint64_t missing_ = ~std::uint64_t{0};  ///< the number that wait_for_expected() waits for
  std::chrono::steady_clock::time_point missing_since_;
  std::uint32_t looks_ = 0;  ///< for it
  std::vector<Cursor> cursors_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> queue_;  ///< a heap, smallest first
  std::uint32_t damaged_ = 0;
};

}  // namespace lockstep::record
