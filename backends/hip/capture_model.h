// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "../gpu/driver.h"
#include "../host/capture.h"
#include "../host/error.h"
#include "symbols.h"

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
  explicit CaptureModel(const Functions& call) : call_(call) {}

  gpu::Result begin(hipStream_t stream, std::uint32_t mode);
  gpu::Result end(hipStream_t stream, hipGraph_t* graph);
  // Corrects what the runtime said of a stream.
  gpu::Result correct(hipStream_t stream, gpu::CaptureInfo* info);
  static void exchange_thread_mode(std::uint32_t* mode);

  void stream_made(hipStream_t stream, bool non_blocking);
  // Destroys the native stream, or keeps it until a capture that it takes part in is over.
  gpu::Result stream_destroy(hipStream_t stream);
  // True when the runtime was left with a capture that it does not end.
  bool stream_broken(hipStream_t stream);
  void event_made(hipEvent_t event);
  void event_gone(hipEvent_t event);
  // A graph records it, at times that nobody tells.
  void event_in_graph(hipEvent_t event);

  // Before calls that execute nothing: 0 when they may be made.
  gpu::Result check_unsafe(const char* call);
  gpu::Result check_device_wait(const char* call);
  gpu::Result check_stream_wait(hipStream_t stream, const char* call);
  gpu::Result check_event_wait(hipEvent_t event, const char* call);
  gpu::Result check_not_capturing(hipStream_t stream, const char* call);

  gpu::Result record_event(hipEvent_t event, hipStream_t stream);
  gpu::Result wait_event(hipStream_t stream, hipEvent_t event);

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
    std::vector<hipStream_t> doomed;                  // destroyed while they took part
  };
  struct EventState {
    hostrt::EventCapture capture;
    std::atomic<bool> recorded{false};
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
  hostrt::StreamCapture& state_of(hipStream_t stream);
  // Null for events of others, whose records were not seen.
  std::shared_ptr<EventState> event_of(hipEvent_t event);
  gpu::Result finish(Token& token, gpu::Result code, hipGraph_t* graph);
  bool captures_natively(hipStream_t stream);

  const Functions& call_;
  hostrt::CaptureRules rules_;
  std::mutex mutex_;  // of what follows; taken inside of the rules' lock, never around it
  std::map<Key, std::unique_ptr<hostrt::StreamCapture>> streams_;
  std::unordered_map<hipEvent_t, std::shared_ptr<EventState>> events_;
  std::set<hipStream_t> broken_;
  std::uint64_t next_identity_ = 1;
};

}  // namespace lockstep::hip
