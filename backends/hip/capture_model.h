// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "../gpu/driver.h"
#include "../host/capture.h"
#include "../host/error.h"
#include "retired_streams.h"
#include "symbols.h"
#include "types.h"

// The rules of capture, kept by ourselves. HIP's releases disagree about them, accept calls that
// they should refuse, and leave streams unusable when a capture is broken. So every capture is
// relaxed to the runtime, what is illegal by the rules (those of CUDA's driver, as the host backend
// has them) never reaches it, and a capture that has to fail is ended in order, its streams joined,
// and its graph thrown away.
//
// Captures that others began are theirs: their calls go to the runtime as they are. All functions
// are thread-safe; results are the runtime's numbers.
namespace lockstep::hip {

class CaptureModel {
 public:
  explicit CaptureModel(const Functions& call) : call_(call), retired_(call) {}

  // Before anything else: what the release can be asked about events of streams that capture.
  void set_release(const Version& version);

  gpu::Result begin(hipStream_t stream, std::uint32_t mode);
  gpu::Result end(hipStream_t stream, hipGraph_t* graph);
  // Corrects what the runtime said of a stream.
  gpu::Result correct(hipStream_t stream, gpu::CaptureInfo* info);
  static void exchange_thread_mode(std::uint32_t* mode);

  void stream_made(hipStream_t stream, bool non_blocking);
  // Destroys the native stream without waiting for it, or keeps it until a capture that it takes
  // part in is over.
  gpu::Result stream_destroy(hipStream_t stream);
  // The device was waited for: streams that were busy when they were destroyed may go.
  void sweep_streams() { retired_.sweep(); }
  // Of the stream that the handle means now, never used again; 0 where somebody else made the
  // stream, who may destroy it and be given the handle anew.
  std::uint64_t lasting_identity(hipStream_t stream);
  // True when the runtime was left with a capture that it does not end.
  bool stream_broken(hipStream_t stream);
  void event_made(hipEvent_t event);
  void event_gone(hipEvent_t event);
  // A graph records it, at times that nobody tells.
  void event_in_graph(hipEvent_t event);
  // Others have its handle, and may record it unseen.
  void event_shared(hipEvent_t event);

  // Before calls that execute nothing: 0 when they may be made.
  gpu::Result check_unsafe(const char* call);
  gpu::Result check_device_wait(const char* call);
  gpu::Result check_stream_wait(hipStream_t stream, const char* call);
  gpu::Result check_not_capturing(hipStream_t stream, const char* call);

  gpu::Result record_event(hipEvent_t event, hipStream_t stream);
  gpu::Result wait_event(hipStream_t stream, hipEvent_t event);
  gpu::Result query_event(hipEvent_t event);
  gpu::Result synchronize_event(hipEvent_t event);

  // Runs `perform`, which puts one operation on the stream or makes one node of its capture.
  template <class Perform>
  gpu::Result enqueue(hipStream_t stream, const char* call, Perform&& perform) {
    if (rules_.idle()) [[likely]]
      return perform();
    return guarded([&]() -> gpu::Result {
      hostrt::CaptureScope scope(rules_, state_of(stream), call);
      const gpu::Result result = perform();
      if (result == gpu::kSuccess && scope.capturing()) {
        scope.advance(token_of(scope.shared_graph())->nodes++);
      }
      return result;
    });
  }

 private:
  // What the rules hand through as the graph of a capture: only our notes on it.
  struct Token {
    std::uint32_t nodes = 0;  // under the rules' lock
    hipStream_t origin = nullptr;
    int device = 0;
    std::vector<std::pair<hipStream_t, int>> joined;  // and their devices
    std::vector<std::uint64_t> members;               // identities of all streams in it
    std::vector<hipStream_t> doomed;                  // destroyed while they took part
    bool finished = false;                            // the doomed ones are gone
  };
  struct StreamState : hostrt::StreamCapture {
    bool borrowed = true;  // made by others, and not one of the runtime's own
  };
  struct EventState {
    hostrt::EventCapture capture;
    std::atomic<bool> recorded{false};
    std::atomic<bool> shared{false};
    std::atomic<std::uint64_t> recorded_on{0};  // identity of the last stream outside of captures
  };
  // The runtime takes an event for captured that was recorded before its stream began to capture:
  // asked about it or told to wait it refuses, or invalidates the capture.
  enum class Reach {
    kRuntime,  // it may be asked
    kDone,     // it may not, and the event is reached
    kUnknown,  // it may not, and nobody knows
  };
  // The null stream is one a device, the per-thread stream one a device and thread.
  using Key = std::tuple<hipStream_t, int, std::uint64_t>;

  static Token* token_of(const std::shared_ptr<hostrt::Graph>& graph) {
    return reinterpret_cast<Token*>(graph.get());
  }
  template <class Body>
  static gpu::Result guarded(Body&& body) {
    try {
      return body();
    } catch (const hostrt::Error& error) {
      return static_cast<gpu::Result>(error.native());
    }
  }
  Key key_of(hipStream_t stream);
  StreamState& state_of(hipStream_t stream);
  // Null for events of others, whose captures were not seen.
  std::shared_ptr<EventState> event_of(hipEvent_t event);
  // Of others: only what we recorded ourselves. Null when we never did.
  std::shared_ptr<EventState> foreign_event_of(hipEvent_t event, bool make);
  gpu::Result check_event_wait(EventState* state, const char* call);
  std::optional<gpu::Result> wait_by_rules(hipStream_t stream, EventState& state, Reach* reached);
  Reach reach(const EventState& state);
  bool known_done(const EventState& state);
  bool is_closing(std::uint64_t stream);
  bool is_dropped(std::uint64_t stream);
  // The rules are to let go of a capture, before the runtime does.
  void about_to_finish(const Token& token);
  // Before and after the rules let a stream into a capture, while the runtime does not know yet.
  void about_to_take_part(const StreamState& state);
  void note_drained(hipStream_t stream, const StreamState& state);
  gpu::Result finish(Token& token, gpu::Result code, hipGraph_t* graph);
  bool captures_natively(hipStream_t stream);

  const Functions& call_;
  hostrt::CaptureRules rules_;
  RetiredStreams retired_;
  bool may_query_ = false, may_synchronize_ = false, reads_dropped_streams_ = false;
  // Of what follows; taken inside of the rules' lock, never around it, nor around a call that
  // waits.
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<StreamState>> streams_;
  std::unordered_map<hipEvent_t, std::shared_ptr<EventState>> events_, foreign_events_;
  std::set<hipStream_t> broken_;
  std::set<std::uint64_t> drained_;  // streams that had nothing to do when their capture began
  std::set<std::uint64_t> closing_;  // streams whose capture is over by the rules only
  std::uint64_t next_identity_ = 1;
};

}  // namespace lockstep::hip
