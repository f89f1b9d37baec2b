// SPDX-License-Identifier: Apache-2.0
#include "capture.h"

#include <algorithm>
#include <utility>

#include "error.h"

namespace lockstep::hostrt {

struct Capture {
  std::uint64_t id = 0;
  CaptureMode mode = CaptureMode::kGlobal;
  std::uint64_t thread = 0;
  StreamCapture* origin = nullptr;
  std::uint64_t origin_identity = 0;
  std::shared_ptr<Graph> graph;
  std::vector<StreamCapture*> participants;
  struct Node {
    std::uint64_t stream;
    std::vector<std::uint32_t> dependencies;
  };
  std::vector<Node> nodes;  // by ordinal
  bool ended = false;
  std::string invalidated_by;  // "" = still valid

  bool valid() const noexcept { return !ended && invalidated_by.empty(); }
};

namespace {

thread_local CaptureMode t_mode = CaptureMode::kGlobal;
std::atomic<std::uint64_t> g_next_thread{1};
thread_local std::uint64_t t_thread = 0;

std::string stream_name(std::uint64_t identity) { return "stream #" + std::to_string(identity); }
std::string stream_name(const StreamCapture& stream) {
  return stream.legacy ? "the legacy stream" : stream_name(stream.identity);
}
std::string on_thread() { return " on thread " + std::to_string(CaptureRules::this_thread()); }

const char* mode_name(CaptureMode mode) {
  switch (mode) {
    case CaptureMode::kGlobal:
      return "global";
    case CaptureMode::kThreadLocal:
      return "thread-local";
    case CaptureMode::kRelaxed:
      return "relaxed";
  }
  return "unknown";
}

// "stream #7 captures (global mode, begun by thread 1)"
std::string describe(const Capture& capture) {
  return stream_name(capture.origin_identity) + " captures (" + mode_name(capture.mode) +
         " mode, begun by thread " + std::to_string(capture.thread) + ")";
}

void invalidate(Capture& capture, const char* call) {
  if (capture.valid()) capture.invalidated_by = call + on_thread();
}

[[noreturn]] void throw_invalidated(const Capture& capture, const char* call) {
  throw Error(Native::kCaptureInvalidated,
              std::string(call) + on_thread() + ": the capture begun on " +
                  stream_name(capture.origin_identity) + " was invalidated by " +
                  capture.invalidated_by + "; end it there, then capture again");
}

void unite(std::vector<std::uint32_t>& into, const std::vector<std::uint32_t>& more) {
  for (const std::uint32_t node : more) {
    if (std::find(into.begin(), into.end(), node) == into.end()) into.push_back(node);
  }
}

// Streams with nodes that the origin's next node would not depend on, each once.
std::vector<std::uint64_t> unjoined_streams(const Capture& capture) {
  std::vector<bool> joined(capture.nodes.size(), false);
  std::vector<std::uint32_t> pending = capture.origin->dependencies;
  while (!pending.empty()) {
    const std::uint32_t node = pending.back();
    pending.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    const auto& dependencies = capture.nodes[node].dependencies;
    pending.insert(pending.end(), dependencies.begin(), dependencies.end());
  }
  std::vector<std::uint64_t> streams;
  for (std::size_t i = 0; i < capture.nodes.size(); ++i) {
    const std::uint64_t stream = capture.nodes[i].stream;
    if (!joined[i] && std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
  }
  return streams;
}

bool has_stream(const Capture& capture, std::uint64_t context, bool blocking_only) {
  return std::any_of(capture.participants.begin(), capture.participants.end(),
                     [&](const StreamCapture* s) {
                       return s->context == context && (s->blocking || !blocking_only);
                     });
}

}  // namespace

CaptureMode CaptureRules::exchange_thread_mode(CaptureMode mode) noexcept {
  return std::exchange(t_mode, mode);
}

std::uint64_t CaptureRules::this_thread() noexcept {
  if (t_thread == 0) t_thread = g_next_thread.fetch_add(1, std::memory_order_relaxed);
  return t_thread;
}

void CaptureRules::leave_locked(Capture& capture) {
  capture.ended = true;
  for (StreamCapture* stream : capture.participants) {
    stream->capture.reset();
    stream->dependencies.clear();
  }
  capture.participants.clear();
  capture.origin = nullptr;
  capture.graph.reset();
}

void CaptureRules::finish_locked(const std::shared_ptr<Capture>& capture) {
  leave_locked(*capture);
  std::erase(live_, capture);
  live_count_.store(static_cast<int>(live_.size()), std::memory_order_release);
}

void CaptureRules::begin(StreamCapture& stream, CaptureMode mode, std::shared_ptr<Graph> graph,
                         const char* call) {
  const std::lock_guard lock(mutex_);
  if (stream.legacy) {
    throw Error(Native::kCaptureUnsupported,
                std::string(call) + on_thread() +
                    ": the legacy stream cannot capture; use a stream of your own or the "
                    "per-thread stream");
  }
  if (stream.capture != nullptr) {
    const Capture& other = *stream.capture;
    throw Error(Native::kIllegalState,
                std::string(call) + on_thread() + ": " + stream_name(stream) +
                    " is already part of a capture" +
                    (other.valid() ? std::string() : ", invalidated by " + other.invalidated_by) +
                    "; end that one on " + stream_name(other.origin_identity) + " first");
  }
  auto capture = std::make_shared<Capture>();
  capture->id = next_capture_++;
  capture->mode = mode;
  capture->thread = this_thread();
  capture->origin = &stream;
  capture->origin_identity = stream.identity;
  capture->graph = std::move(graph);
  capture->participants.push_back(&stream);
  live_.push_back(capture);
  live_count_.store(static_cast<int>(live_.size()), std::memory_order_release);
  stream.dependencies.clear();
  stream.capture = std::move(capture);
}

std::shared_ptr<Graph> CaptureRules::end(StreamCapture& stream, const char* call) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Capture> capture = stream.capture;
  const std::string prefix = call + on_thread() + ": ";
  if (capture == nullptr) {
    throw Error(Native::kIllegalState, prefix + stream_name(stream) + " does not capture");
  }
  if (capture->origin != &stream) {
    invalidate(*capture, call);
    throw Error(Native::kCaptureUnmatched,
                prefix + stream_name(stream) + " only joined this capture; it began on " +
                    stream_name(capture->origin_identity) + " and has to be ended there");
  }
  if (!capture->valid()) {
    const std::string by = capture->invalidated_by;
    finish_locked(capture);
    throw Error(Native::kCaptureInvalidated, prefix + "the capture of " + stream_name(stream) +
                                                 " was invalidated by " + by +
                                                 "; there is no graph");
  }
  if (capture->mode != CaptureMode::kRelaxed && capture->thread != this_thread()) {
    finish_locked(capture);
    throw Error(Native::kCaptureWrongThread,
                prefix + "the capture of " + stream_name(stream) + " was begun by thread " +
                    std::to_string(capture->thread) + " in " + mode_name(capture->mode) +
                    " mode and has to be ended by it; relaxed mode lifts that");
  }
  const std::vector<std::uint64_t> unjoined = unjoined_streams(*capture);
  if (!unjoined.empty()) {
    std::string names;
    for (const std::uint64_t identity : unjoined) {
      names += (names.empty() ? "" : ", ") + stream_name(identity);
    }
    finish_locked(capture);
    throw Error(Native::kCaptureUnjoined, prefix + "work captured on " + names +
                                              " was never joined back to " + stream_name(stream) +
                                              "; record an event there and let " +
                                              stream_name(stream) + " wait for it before the end");
  }
  std::shared_ptr<Graph> graph = std::move(capture->graph);
  finish_locked(capture);
  return graph;
}

CaptureStatus CaptureRules::status(StreamCapture& stream, std::uint64_t* id, const char* call) {
  const std::lock_guard lock(mutex_);
  if (id != nullptr) *id = stream.capture != nullptr ? stream.capture->id : 0;
  if (stream.capture != nullptr) {
    return stream.capture->valid() ? CaptureStatus::kActive : CaptureStatus::kInvalidated;
  }
  if (stream.legacy) {
    // The one question that the driver refuses without harming the capture.
    for (const auto& capture : live_) {
      if (!has_stream(*capture, stream.context, true)) continue;
      throw Error(Native::kCaptureImplicit,
                  std::string(call) + on_thread() +
                      ": the legacy stream was asked for while blocking " + describe(*capture));
    }
  }
  return CaptureStatus::kNone;
}

CaptureRules::Info CaptureRules::info(StreamCapture& stream, const char* call) {
  Info info;
  info.status = status(stream, &info.id, call);
  const std::lock_guard lock(mutex_);
  if (stream.capture == nullptr || stream.capture->id != info.id) return {};
  info.graph = stream.capture->graph;
  info.dependencies = stream.dependencies;
  return info;
}

void CaptureRules::release(StreamCapture& stream) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return;
  if (capture->origin == &stream) {
    finish_locked(capture);
    return;
  }
  std::erase(capture->participants, &stream);
  stream.capture.reset();
  stream.dependencies.clear();
}

bool CaptureRules::record_event(StreamCapture& stream, EventCapture& event, const char* call) {
  // The lock is taken in any case: the event may belong to a capture that has ended.
  const std::lock_guard lock(mutex_);
  if (enter_locked(stream, call)) {
    event.capture = stream.capture;
    event.dependencies = stream.dependencies;
    return true;
  }
  event.capture.reset();
  event.dependencies.clear();
  return false;
}

void CaptureRules::forget_capture(EventCapture& event) {
  const std::lock_guard lock(mutex_);
  event.capture.reset();
  event.dependencies.clear();
}

void CaptureRules::forget_ended_capture(EventCapture& event) {
  const std::lock_guard lock(mutex_);
  if (event.capture == nullptr || !event.capture->ended) return;
  event.capture.reset();
  event.dependencies.clear();
}

CaptureRules::Wait CaptureRules::wait_event(StreamCapture& stream, const EventCapture& event,
                                            bool recorded, const char* call) {
  const std::lock_guard lock(mutex_);
  const bool capturing = enter_locked(stream, call);
  const std::string prefix = call + on_thread() + ": ";
  Capture* const other = event.capture.get();
  if (other != nullptr && !other->valid()) {
    if (capturing) invalidate(*stream.capture, call);
    throw Error(Native::kInvalidValue,
                prefix + "the event was last recorded in a capture begun on " +
                    stream_name(other->origin_identity) +
                    (other->ended ? " that has ended" : " that was invalidated") +
                    "; record it again first");
  }
  if (other != nullptr) {
    if (stream.legacy) {
      invalidate(*other, call);
      throw Error(Native::kCaptureImplicit,
                  prefix + "the legacy stream cannot join a capture, but " + describe(*other) +
                      " and the event was recorded there");
    }
    if (!capturing) {
      stream.capture = event.capture;
      stream.dependencies = event.dependencies;
      other->participants.push_back(&stream);
      return Wait::kCaptured;
    }
    if (stream.capture.get() != other) {
      invalidate(*stream.capture, call);
      invalidate(*other, call);
      throw Error(Native::kCaptureMerge,
                  prefix + "would merge two captures: " + stream_name(stream) +
                      " belongs to the one begun on " +
                      stream_name(stream.capture->origin_identity) +
                      ", the event to the one begun on " + stream_name(other->origin_identity) +
                      "; both are invalidated");
    }
    unite(stream.dependencies, event.dependencies);
    return Wait::kCaptured;
  }
  if (!recorded) return Wait::kNothing;
  if (capturing) {
    invalidate(*stream.capture, call);
    throw Error(Native::kCaptureIsolation,
                prefix + stream_name(stream) +
                    " captures, and the event was recorded outside of the capture: a graph cannot "
                    "depend on work outside of it");
  }
  return Wait::kExecute;
}

std::optional<std::uint64_t> CaptureRules::context_of(const EventCapture& event) {
  const std::lock_guard lock(mutex_);
  if (event.capture == nullptr || event.capture->origin == nullptr) return std::nullopt;
  return event.capture->origin->context;
}

bool CaptureRules::takes_part(std::uint64_t identity) {
  if (idle()) return false;
  const std::lock_guard lock(mutex_);
  return takes_part_locked(identity);
}

bool CaptureRules::takes_part_locked(std::uint64_t identity) const {
  return std::any_of(live_.begin(), live_.end(), [&](const auto& capture) {
    const auto& streams = capture->participants;
    return std::any_of(streams.begin(), streams.end(),
                       [&](const StreamCapture* stream) { return stream->identity == identity; });
  });
}

std::shared_ptr<Graph> CaptureRules::graph_of(const StreamCapture& stream) {
  const std::lock_guard lock(mutex_);
  return stream.capture == nullptr ? nullptr : stream.capture->graph;
}

void CaptureScope::advance(std::uint32_t node) {
  Capture& capture = *stream_.capture;
  if (capture.nodes.size() <= node) capture.nodes.resize(node + 1);
  capture.nodes[node] = {stream_.identity, stream_.dependencies};
  stream_.dependencies.assign(1, node);
}

Graph& CaptureScope::graph() const noexcept { return *stream_.capture->graph; }

std::shared_ptr<Graph> CaptureScope::shared_graph() const noexcept {
  return stream_.capture->graph;
}

CaptureScope::CaptureScope(CaptureRules& rules, StreamCapture& stream, const char* call)
    : stream_(stream) {
  if (rules.idle()) return;
  lock_ = std::unique_lock(rules.mutex_);
  capturing_ = rules.enter_locked(stream, call);
  // Work that is executed may wait for room or for other streams; it must not hold the lock.
  if (!capturing_) lock_.unlock();
}

bool CaptureRules::enter_locked(StreamCapture& stream, const char* call) {
  if (stream.legacy) check_implicit_locked(stream, call);
  if (stream.capture == nullptr) return false;
  if (!stream.capture->valid()) throw_invalidated(*stream.capture, call);
  return true;
}

void CaptureRules::check_implicit_locked(const StreamCapture& stream, const char* call) {
  const Capture* first = nullptr;
  for (const auto& capture : live_) {
    if (!has_stream(*capture, stream.context, true)) continue;
    invalidate(*capture, call);
    if (first == nullptr) first = capture.get();
  }
  if (first == nullptr) return;
  throw Error(Native::kCaptureImplicit,
              std::string(call) + on_thread() + ": the legacy stream was used while blocking " +
                  describe(*first) +
                  "; use another stream, or create the capturing one non-blocking");
}

void CaptureRules::check_unsafe_locked(const char* call) {
  if (t_mode == CaptureMode::kRelaxed) return;
  const Capture* first = nullptr;
  for (const auto& capture : live_) {
    const bool own = capture->thread == this_thread();
    const bool forbids =
        own ? capture->mode != CaptureMode::kRelaxed
            : capture->mode == CaptureMode::kGlobal && t_mode == CaptureMode::kGlobal;
    if (!forbids) continue;
    invalidate(*capture, call);
    if (first == nullptr) first = capture.get();
  }
  if (first == nullptr) return;
  throw Error(Native::kCaptureUnsupported, std::string(call) + on_thread() +
                                               " is not permitted while " + describe(*first) +
                                               "; do it before or after, or in relaxed mode");
}

void CaptureRules::check_unsafe(const char* call) {
  if (idle()) return;
  const std::lock_guard lock(mutex_);
  check_unsafe_locked(call);
}

void CaptureRules::check_stream_wait(StreamCapture& stream, const char* call) {
  if (idle()) return;
  const std::lock_guard lock(mutex_);
  if (stream.legacy) check_implicit_locked(stream, call);
  if (stream.capture != nullptr) {
    invalidate(*stream.capture, call);
    throw Error(Native::kCaptureUnsupported,
                std::string(call) + on_thread() + ": " + stream_name(stream) +
                    " takes part in a capture, in which nothing executes: " +
                    describe(*stream.capture) + "; end the capture first");
  }
  check_unsafe_locked(call);
}

void CaptureRules::check_context_wait(std::uint64_t context, const char* call) {
  if (idle()) return;
  const std::lock_guard lock(mutex_);
  const Capture* first = nullptr;
  for (const auto& capture : live_) {
    if (!has_stream(*capture, context, false)) continue;
    invalidate(*capture, call);
    if (first == nullptr) first = capture.get();
  }
  if (first == nullptr) return;
  throw Error(Native::kCaptureUnsupported, std::string(call) + on_thread() +
                                               " is not permitted while " + describe(*first) +
                                               ", in no mode; end the capture first");
}

void CaptureRules::check_event_wait(const EventCapture& event, const char* call) {
  const std::lock_guard lock(mutex_);
  Capture* const capture = event.capture.get();
  if (capture != nullptr && capture->ended) {
    throw Error(Native::kInvalidValue, call + on_thread() +
                                           ": the event was last recorded in a capture begun on " +
                                           stream_name(capture->origin_identity) +
                                           " that has ended; record it again first");
  }
  if (capture != nullptr) {
    invalidate(*capture, call);
    throw Error(Native::kCapturedEvent,
                call + on_thread() +
                    ": the event marks a point in a capture, where nothing executes: " +
                    describe(*capture));
  }
  check_unsafe_locked(call);
}

void CaptureRules::check_not_capturing(StreamCapture& stream, const char* call,
                                       const char* advice) {
  if (idle()) return;
  const std::lock_guard lock(mutex_);
  if (!enter_locked(stream, call)) return;
  invalidate(*stream.capture, call);
  throw Error(Native::kCaptureUnsupported,
              std::string(call) + on_thread() + ": " + describe(*stream.capture) + "; " + advice);
}

}  // namespace lockstep::hostrt
