// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

// The legality of stream capture, as the CUDA driver has it, and nothing else: which calls are
// allowed when, what a forbidden one answers, which captures it invalidates, how streams fork, join
// and leave. Knows streams and nodes only by numbers. Used by the host backend and by the simulated
// CUDA driver.
namespace lockstep::hostrt {

class Graph;  // what is being captured; only handed through

enum class CaptureMode : std::uint32_t { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };
enum class CaptureStatus : std::uint32_t { kNone = 0, kActive = 1, kInvalidated = 2 };

struct Capture;

// A stream's part in captures. Owned by the stream; fields below the line belong to CaptureRules.
struct StreamCapture {
  std::uint64_t identity = 0;  // for messages
  std::uint64_t context = 0;   // implicit dependencies exist within one context only
  bool blocking = true;        // synchronises with the legacy stream
  bool legacy = false;
  // ----
  std::shared_ptr<Capture> capture;
  std::vector<std::uint32_t> dependencies;  // nodes that the next one depends on
};

// What an event's last record means for captures. Owned by the event.
struct EventCapture {
  std::shared_ptr<Capture> capture;  // null: recorded outside of captures, or never
  std::vector<std::uint32_t> dependencies;
};

// All functions are thread-safe and throw hostrt::Error when the call is not allowed; the capture
// concerned has then been invalidated as the driver would. `call` names the call in messages.
class CaptureRules {
 public:
  CaptureRules() = default;
  CaptureRules(const CaptureRules&) = delete;
  CaptureRules& operator=(const CaptureRules&) = delete;

  // The calling thread's mode; returns the former one.
  static CaptureMode exchange_thread_mode(CaptureMode mode) noexcept;
  // A small number for messages and for ownership of captures; never used twice.
  static std::uint64_t this_thread() noexcept;

  void begin(StreamCapture& stream, CaptureMode mode, std::shared_ptr<Graph> graph,
             const char* call);
  // The graph, when everything was in order. The capture is over in any case, except when `stream`
  // is not the one it began on: then it is invalidated and its origin still has to end it.
  std::shared_ptr<Graph> end(StreamCapture& stream, const char* call);
  CaptureStatus status(StreamCapture& stream, std::uint64_t* id, const char* call);
  // The same with what the next node of the stream would depend on, for who builds node handles.
  struct Info {
    CaptureStatus status = CaptureStatus::kNone;
    std::uint64_t id = 0;
    std::shared_ptr<Graph> graph;
    std::vector<std::uint32_t> dependencies;
  };
  Info info(StreamCapture& stream, const char* call);
  // The stream is being destroyed: an origin takes its capture along, another one leaves it.
  void release(StreamCapture& stream);

  // Calls that may have effects on any stream: allocation, registration, waiting for something
  // that is not captured, instantiating graphs. Subject to both modes.
  void check_unsafe(const char* call);
  // Waiting for or querying a stream.
  void check_stream_wait(StreamCapture& stream, const char* call);
  // Waiting for everything of a context.
  void check_context_wait(std::uint64_t context, const char* call);
  // Waiting for or querying an event from the host.
  void check_event_wait(const EventCapture& event, const char* call);
  // Calls that are never legal on a capturing stream but do not wait: launching a graph.
  void check_not_capturing(StreamCapture& stream, const char* call, const char* advice);

  // An event is recorded on a stream. True: a point in a capture, nothing is to be executed.
  bool record_event(StreamCapture& stream, EventCapture& event, const char* call);
  // The event was recorded outside of captures by other means (a node of a launched graph).
  void forget_capture(EventCapture& event);
  // The same for an event that others may have recorded again after its capture ended.
  void forget_ended_capture(EventCapture& event);
  enum class Wait { kExecute, kNothing, kCaptured };
  // A stream waits for an event; `recorded`: it has been recorded at all. Joins captures.
  Wait wait_event(StreamCapture& stream, const EventCapture& event, bool recorded,
                  const char* call);

  // The context of the stream on which the capture of the event's last record began; nothing when
  // there is none, or it is over.
  std::optional<std::uint64_t> context_of(const EventCapture& event);

  // Whether the stream of that identity takes part in a capture, valid or not.
  bool takes_part(std::uint64_t identity);
  // Runs `body` unless that stream takes part in a capture, and lets none begin meanwhile; true
  // when it ran. For calls that do not wait.
  template <class Body>
  bool unless_taking_part(std::uint64_t identity, const Body& body) {
    const std::lock_guard lock(mutex_);
    if (takes_part_locked(identity)) return false;
    body();
    return true;
  }

  // What the stream's capture records into; null when it does not capture.
  std::shared_ptr<Graph> graph_of(const StreamCapture& stream);

  // Number of captures that have not ended; 0 allows to skip everything.
  bool idle() const noexcept { return live_count_.load(std::memory_order_acquire) == 0; }

 private:
  friend class CaptureScope;
  bool enter_locked(StreamCapture& stream, const char* call);
  void check_implicit_locked(const StreamCapture& stream, const char* call);
  void check_unsafe_locked(const char* call);
  bool takes_part_locked(std::uint64_t identity) const;
  static void leave_locked(Capture& capture);
  void finish_locked(const std::shared_ptr<Capture>& capture);

  std::mutex mutex_;
  std::atomic<int> live_count_{0};
  std::vector<std::shared_ptr<Capture>> live_;
  std::uint64_t next_capture_ = 1;
};

// Held around the enqueuing of one operation on a stream: says whether it is to be captured, keeps
// the capture from changing meanwhile, and advances the stream to the node made of it.
class CaptureScope {
 public:
  CaptureScope(CaptureRules& rules, StreamCapture& stream, const char* call);
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  bool capturing() const noexcept { return capturing_; }
  Graph& graph() const noexcept;
  std::shared_ptr<Graph> shared_graph() const noexcept;
  const std::vector<std::uint32_t>& dependencies() const noexcept { return stream_.dependencies; }
  // `node` was added to graph() with dependencies().
  void advance(std::uint32_t node);

 private:
  StreamCapture& stream_;
  std::unique_lock<std::mutex> lock_;
  bool capturing_ = false;
};

}  // namespace lockstep::hostrt
