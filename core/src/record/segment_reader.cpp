// SPDX-License-Identifier: Apache-2.0
#include "src/record/segment_reader.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "recorder/memory.h"

namespace lockstep::record {

using recorder::RecordHeader;
using recorder::RecordType;

namespace {

/// A number that nobody publishes within this time never will be: its thread was ended by force.
constexpr std::chrono::seconds kLostAfter{1};
/// Looks without a pause for a missing number. Where it may be in a damaged ring it is lost then:
/// whoever else took it publishes it while it is looked for, unless the system stops that thread.
constexpr std::uint32_t kQuickLooks = 100;

}  // namespace

SegmentReader::SegmentReader(recorder::Control& control, recorder::Consumer consumer,
                             RingAt ring_at, std::uint64_t first)
    : control_(control), consumer_(consumer), ring_at_(std::move(ring_at)), expected_(first) {}

void SegmentReader::find_rings() {
  const std::uint32_t count =
      std::min(control_.ring_count.load(std::memory_order_acquire), recorder::kMaxRings);
  while (cursors_.size() < count) {
    const auto index = static_cast<std::uint32_t>(cursors_.size());
    Cursor& cursor = cursors_.emplace_back();
    cursor.ring = ring_at_(index);
    if (cursor.ring == nullptr) {
      give_up(index);
      continue;
    }
    cursor.position = cursor.ring->tail[consumer_].load(std::memory_order_acquire);
    cursor.released = cursor.position;
    cursor.capacity = cursor.ring->capacity;
    cursor.offset = cursor.position % cursor.capacity;
  }
}

void SegmentReader::give_up(std::uint32_t index) {
  Cursor& cursor = cursors_[index];
  cursor.damaged = true;
  ++damaged_;
  control_.unread[consumer_][index / 64].fetch_or(std::uint64_t{1} << (index % 64),
                                                  std::memory_order_seq_cst);
  if (cursor.ring != nullptr) wake(*cursor.ring);
}

bool SegmentReader::is_taken(std::uint64_t sequence) {
  if (sequence >= taken_) taken_ = control_.sequence.load(std::memory_order_acquire);
  return sequence < taken_;
}

bool SegmentReader::peek(std::uint32_t index, bool reload) {
  Cursor& cursor = cursors_[index];
  if (cursor.damaged) return false;
  if (cursor.position == cursor.head && !reload) return false;
  if (cursor.position == cursor.head) {
    cursor.head = cursor.ring->head.load(std::memory_order_acquire);
    if (cursor.position == cursor.head) return false;
    if (cursor.head - cursor.position > cursor.capacity) {
      give_up(index);
      return false;
    }
  }
  for (;;) {
    if (cursor.offset == cursor.capacity) cursor.offset = 0;
    const auto* record = reinterpret_cast<const RecordHeader*>(cursor.ring->data() + cursor.offset);
    const std::uint64_t room =
        std::min(cursor.capacity - cursor.offset, cursor.head - cursor.position);
    if (record->size < 8 || record->size % 8 != 0 || record->size > room) {
      give_up(index);
      return false;
    }
    if (record->type != RecordType::kWrap) {
      // A number out of order would hold up all that come after it.
      if (record->size < sizeof(RecordHeader) || record->sequence < cursor.least ||
          !is_taken(record->sequence)) {
        give_up(index);
        return false;
      }
      cursor.sequence = record->sequence;
      cursor.size = record->size;
      return true;
    }
    if (record->size != cursor.capacity - cursor.offset) {
      give_up(index);
      return false;
    }
    cursor.position += record->size;
    cursor.offset = 0;
    if (cursor.position == cursor.head) return false;
  }
}

void SegmentReader::look() {
  find_rings();
  for (std::uint32_t i = 0; i < cursors_.size(); ++i) {
    Cursor& cursor = cursors_[i];
    if (cursor.queued || !peek(i, true)) continue;
    cursor.queued = true;
    queue_.emplace_back(cursor.sequence, i);
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  }
}

void SegmentReader::visit(std::uint32_t index, RecordVisitor& visitor) {
  Cursor& cursor = cursors_[index];
  auto* record = reinterpret_cast<RecordHeader*>(cursor.ring->data() + cursor.offset);
  bool pending = false;
  if (record->type == RecordType::kEntry) {
    std::uint32_t state = record->state.load(std::memory_order_acquire);
    // Tells end() that its fields came too late for this consumer.
    while ((state & recorder::kStateDone) == 0 &&
           !record->state.compare_exchange_weak(
               state, state | (recorder::kStateTakenBy << consumer_), std::memory_order_acq_rel)) {
    }
    pending = (state & recorder::kStateDone) == 0;
  }
  visitor.visit(*record, index, pending);
  cursor.position += cursor.size;
  cursor.offset += cursor.size;
  cursor.least = cursor.sequence + 1;
  if (cursor.position - cursor.released >= cursor.capacity / 8) release(cursor);
}

void SegmentReader::release(Cursor& cursor) {
  if (cursor.position == cursor.released) return;
  cursor.released = cursor.position;
  cursor.ring->tail[consumer_].store(cursor.position, std::memory_order_seq_cst);
  wake(*cursor.ring);
}

void SegmentReader::release_all() {
  for (Cursor& cursor : cursors_) {
    if (!cursor.damaged) release(cursor);
  }
}

void SegmentReader::wake(recorder::Ring& ring) {
  if (ring.waiting.load(std::memory_order_seq_cst) != 0) {
    ring.space.fetch_add(1, std::memory_order_release);
    recorder::futex_wake(&ring.space);
  }
}

bool SegmentReader::wait_for_expected() {
  const auto now = std::chrono::steady_clock::now();
  if (missing_ != expected_) {
    missing_ = expected_;
    missing_since_ = now;
    looks_ = 0;
  }
  // A thread that waits for room does so before it takes a number: what it waits for is let go.
  if (++looks_ > kQuickLooks) {
    if (damaged_ != 0) return false;
    release_all();
    std::this_thread::sleep_for(std::chrono::microseconds(looks_ > 2 * kQuickLooks ? 500 : 20));
  }
  look();
  return now - missing_since_ <= kLostAfter;
}

std::uint64_t SegmentReader::drain(std::uint64_t until, bool alive, RecordVisitor& visitor,
                                   const std::atomic<std::uint32_t>* give_way) {
  const auto interrupted = [give_way] {
    return give_way != nullptr && give_way->load(std::memory_order_relaxed) != 0;
  };
  std::uint64_t visited = 0;
  if (!alive) look();
  // Records whose numbers were given up come late, below what is expected.
  while (expected_ < until || (!queue_.empty() && queue_.front().first < until)) {
    if (interrupted()) break;
    if (queue_.empty() || queue_.front().first > expected_) look();
    if (queue_.empty() && !alive) break;
    // The producer of the expected record is between taking its number and publishing it; or was
    // ended there by force, or its ring is lost.
    if (alive && (queue_.empty() || queue_.front().first > expected_) && wait_for_expected()) {
      continue;
    }
    if (queue_.empty()) {
      expected_ = until;
      break;
    }
    // A run of records of one ring costs no heap operation.
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const std::uint32_t index = queue_.back().second;
    queue_.pop_back();
    Cursor& cursor = cursors_[index];
    cursor.queued = false;
    do {
      expected_ = std::max(expected_, cursor.sequence + 1);
      visit(index, visitor);
      ++visited;
    } while (expected_ < until && !interrupted() && peek(index, true) &&
             cursor.sequence <= expected_);
    if (peek(index, true)) {
      cursor.queued = true;
      queue_.emplace_back(cursor.sequence, index);
      std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
    }
  }
  release_all();
  return visited;
}

}  // namespace lockstep::record
