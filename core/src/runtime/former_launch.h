// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

/// \file
/// Order between launches of an executable graph and of the one that an update put in its place.
namespace lockstep::detail {
struct EventState;
struct StreamState;
}  // namespace lockstep::detail

namespace lockstep::runtime {

/// The last launch of a plugin's executable that was replaced by a new one. Plugins order launches
/// of one executable; between two of them the first launch of the new one waits, by an event. Not
/// thread-safe: under the mutex of what it belongs to.
class FormerLaunch {
 public:
  /// A first launch is still to follow.
  bool pending() const noexcept { return pending_; }
  /// The executable was replaced; its last launch went to `stream`, which was `identity` then (the
  /// per-thread stream is another one in each thread).
  void replaced(std::shared_ptr<detail::StreamState> stream, std::uint64_t identity);
  /// Lets `stream` wait, before the first launch of the new executable on it.
  /// \throws Error kIllegalDuringCapture when the former stream has captured ever since.
  void let_wait(detail::StreamState& stream);
  /// That launch is enqueued: what comes later follows it.
  void followed() noexcept;

 private:
  enum class Recorded { kYes, kStreamCaptures };
  Recorded record();

  bool pending_ = false, recorded_ = false;
  std::uint64_t identity_ = 0;
  std::shared_ptr<detail::StreamState> stream_;  ///< until the event is recorded
  /// Used again for later updates: destroying an event may wait on some drivers.
  std::shared_ptr<detail::EventState> event_;
};

}  // namespace lockstep::runtime
