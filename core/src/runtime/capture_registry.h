// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>
#include <lockstep/stream.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/runtime/graph_contents.h"

/// \file
/// The captures that are going on, and what happened to them.
namespace lockstep::detail {
struct EventState;
}

namespace lockstep::runtime {

class LoadedBackend;

/// How far the work of streams has been joined: by stream identity, the last operation included.
using JoinedWork = std::map<std::uint64_t, std::uint64_t>;

/// One capture from begin to end. Guarded by its mutex except for what never changes.
struct Capture {
  std::uint64_t id = 0;                         ///< as the plugin numbers captures
  std::shared_ptr<detail::StreamState> origin;  ///< the stream that began it
  CaptureOptions options;

  std::mutex mutex;
  GraphContents contents;
  std::string invalidated_by;  ///< which call did it, "" = nobody we saw
  /// Streams that took part, kept alive: destroying one in the middle must not lose its work.
  std::map<std::uint64_t, std::shared_ptr<detail::StreamState>> streams;
  std::map<std::uint64_t, std::uint64_t> operations;  ///< by stream: how many it has enqueued
  std::map<std::uint64_t, JoinedWork> joined;         ///< by stream: what comes before its next one

  /// Identities of streams whose work the origin does not wait for.
  std::vector<std::uint64_t> unjoined() const;
};

/// What an event that was recorded in a capture stands for.
struct CapturedPoint {
  std::weak_ptr<Capture> capture;
  JoinedWork work;
};

/// The captures of one backend. Thread-safe.
class CaptureRegistry {
 public:
  /// False costs one load: the common case on the launch path.
  bool any() const noexcept { return active_.load(std::memory_order_relaxed) != 0; }

  /// Announces a capture before the plugin is told, so that no other thread sees it late. Waits
  /// while another thread does what captures forbid.
  void announce();
  /// Runs `work`, which must be quick, unless a capture is going on; none begins meanwhile.
  template <class Work>
  void while_none(const Work& work) const {
    const std::lock_guard lock(begin_mutex_);
    if (!any()) work();
  }
  void withdraw() noexcept;
  void add(std::shared_ptr<Capture> capture);
  /// Forgets a capture and withdraws it.
  void remove(const Capture& capture) noexcept;

  std::shared_ptr<Capture> begun_by(const detail::StreamState& stream) const;
  /// The capture that the stream takes part in and that this library began; null otherwise.
  std::shared_ptr<Capture> of(LoadedBackend& backend, const detail::StreamState& stream) const;

  /// After a failed call: tells the captures that it invalidated who did it.
  void note_failure(LoadedBackend& backend, const std::string& call);

 private:
  std::atomic<std::uint32_t> active_{0};
  mutable std::mutex begin_mutex_;  ///< held where the first capture may begin
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Capture>> captures_;
};

}  // namespace lockstep::runtime
