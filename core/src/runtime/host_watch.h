// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

/// \file
/// What host threads learn about the end of work. Traces hold waits of the threads they are made
/// of and no queries; verification needs those of all threads while an eager step runs.
namespace lockstep::runtime {

struct HostNotice {
  enum class Kind : std::uint8_t {
    kRecord,  ///< an event was recorded on a stream: what a later notice of that event is about
    kWait,    ///< a thread has waited
    kQuery,   ///< a query found that work had ended
  };
  Kind kind = Kind::kWait;
  const void* backend = nullptr;  ///< the LoadedBackend
  std::int32_t device = 0;
  std::uint64_t stream = 0;     ///< identity; 0: the event or the whole device
  const void* event = nullptr;  ///< tells events apart; null: the stream or the whole device
  std::uint64_t sequence = 0;   ///< of the first entry that may be enqueued after it
  std::uint64_t thread = 0;     ///< as Tracer::this_thread() gives it
};

/// While one lives, it hears what tell() is told, on whatever thread. Threads that do private work
/// (other verifications) are heard by those alone which watch from the same thread.
class HostWatch {
 public:
  HostWatch();
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  /// What was heard up to now, in the order in which it was told.
  std::vector<HostNotice> notices() const;

  /// To be called after the call of the backend has returned. Costs a load while nobody watches.
  static void tell(const HostNotice& notice) {
    if (watches_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      tell_watches(notice);
  }

 private:
  static void tell_watches(HostNotice notice);

  static std::atomic<std::uint32_t> watches_;
  const std::uint64_t thread_;
  std::vector<HostNotice> notices_;
};

}  // namespace lockstep::runtime
