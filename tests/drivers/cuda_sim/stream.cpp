// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "call.h"
#include "enqueue.h"

// Streams and capture.
namespace cuda_sim {
namespace {

// The driver gives the place of a stream that was destroyed to the next one; its id is a new one.
class StreamPlaces {
 public:
  CUstream take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return new CUstream_st;
    CUstream stream = free_.back();
    free_.pop_back();
    return stream;
  }
  void give_back(CUstream stream) {
    const std::lock_guard lock(mutex_);
    *stream = CUstream_st();
    free_.push_back(stream);
  }
  static StreamPlaces& all() {
    static auto* const instance = new StreamPlaces;
    return *instance;
  }

 private:
  std::mutex mutex_;
  std::vector<CUstream> free_;
};

// Launches behind a stream that waits: the queue has an end, and who waits for room in it holds
// what other threads need in order to make streams.
constexpr std::size_t kQueueLength = 1021;
std::mutex& channel() {
  static auto* const instance = new std::mutex;
  return *instance;
}

CUstream_st& per_thread_stream(CUctx_st& context) {
  thread_local std::map<CUcontext, std::unique_ptr<CUstream_st>> t_streams;
  std::unique_ptr<CUstream_st>& stream = t_streams[&context];
  if (stream == nullptr) {
    stream = std::make_unique<CUstream_st>();
    stream->context = &context;
    stream->object = context.device.per_thread_stream();
  }
  return *stream;
}

CUstream_st& legacy_stream(CUctx_st& context) {
  const std::lock_guard lock(context.mutex);
  if (context.legacy->object == nullptr) context.legacy->object = context.device.legacy_stream();
  return *context.legacy;
}

hostrt::CaptureRules& rules_of(const CUstream_st& stream) { return stream.context->device.rules(); }

// Ends what the driver would lose with the capture of `stream`, when that is over.
class CapturedGraph {
 public:
  explicit CapturedGraph(CUstream_st& stream)
      : stream_(stream), graph_(rules_of(stream).graph_of(stream.object->capture())) {}
  void discard_if_over() {
    if (graph_ == nullptr) return;
    if (rules_of(stream_).graph_of(stream_.object->capture()) == nullptr) {
      discard_captured_graph(graph_);
    }
  }

 private:
  CUstream_st& stream_;
  std::shared_ptr<hostrt::Graph> graph_;
};

}  // namespace

CUstream_st& stream_of(CUstream stream) {
  if (stream == nullptr || stream == CU_STREAM_LEGACY) return legacy_stream(current_context());
  if (stream == CU_STREAM_PER_THREAD) return per_thread_stream(current_context());
  CUstream_st& own = live(stream);
  refuse_if_lost(*own.context);
  return own;
}

void wait_for_room(hostrt::Stream& stream) {
  if (stream.unfinished() < kQueueLength) return;
  const std::lock_guard lock(channel());
  while (stream.unfinished() >= kQueueLength) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace cuda_sim

using namespace cuda_sim;

CUDA_SIM_API cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return call("cuStreamCreateWithPriority", [&] {
    require(stream);
    CUctx_st& context = current_context();
    if (flags > CU_STREAM_NON_BLOCKING) refuse(CUDA_ERROR_INVALID_VALUE, "unknown flags");
    const std::lock_guard lock(channel());
    CUstream made = StreamPlaces::all().take();
    made->context = &context;
    made->flags = flags;
    made->priority = std::clamp(priority, int{hostrt::kHighestPriority}, 0);
    made->object = context.device.create_stream(flags == CU_STREAM_DEFAULT, made->priority);
    Live<CUstream_st>::all().add(made);
    *stream = made;
  });
}
CUDA_SIM_API cuStreamCreate(CUstream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}
CUDA_SIM_API cuStreamDestroy_v2(CUstream stream) {
  return call("cuStreamDestroy_v2", [&] {
    CUstream_st& own = live(stream);
    CapturedGraph captured(own);
    // What was enqueued is still executed.
    rules_of(own).release(own.object->capture());
    captured.discard_if_over();
    const CUctx_st& context = *own.context;
    Live<CUstream_st>::all().remove(stream);
    StreamPlaces::all().give_back(stream);
    // Says so too (measured); what is left of the stream is gone with the context.
    refuse_if_lost(context);
  });
}
CUDA_SIM_API cuStreamSynchronize(CUstream stream) {
  return call("cuStreamSynchronize",
              [&] { hostrt::driver::synchronize(*stream_of(stream).object); });
}
CUDA_SIM_API cuStreamQuery(CUstream stream) {
  return call("cuStreamQuery", [&] {
    if (!hostrt::driver::query(*stream_of(stream).object)) {
      refuse(CUDA_ERROR_NOT_READY, "work is pending");
    }
  });
}
CUDA_SIM_API cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return call("cuStreamGetCtx", [&] {
    require(context);
    *context = stream_of(stream).context;
  });
}
CUDA_SIM_API cuStreamGetPriority(CUstream stream, int* priority) {
  return call("cuStreamGetPriority", [&] {
    require(priority);
    *priority = stream_of(stream).priority;
  });
}
// These two are as illegal on a capturing stream as work that cannot be captured.
CUDA_SIM_API cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return call("cuStreamGetFlags", [&] {
    require(flags);
    CUstream_st& of = stream_of(stream);
    if (!of.object->legacy()) {
      rules_of(of).check_not_capturing(of.object->capture(), "cuStreamGetFlags", "");
    }
    *flags = of.flags;
  });
}
CUDA_SIM_API cuStreamGetId(CUstream stream, unsigned long long* id) {
  return call("cuStreamGetId", [&] {
    require(id);
    CUstream_st& of = stream_of(stream);
    if (!of.object->legacy()) {
      rules_of(of).check_not_capturing(of.object->capture(), "cuStreamGetId", "");
    }
    *id = of.object->identity();
  });
}

CUDA_SIM_API cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return call("cuStreamBeginCapture_v2", [&] {
    CUstream_st& on = stream_of(stream);
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) refuse(CUDA_ERROR_INVALID_VALUE, "unknown mode");
    auto graph = std::make_shared<hostrt::Graph>(on.context->device);
    rules_of(on).begin(on.object->capture(), static_cast<hostrt::CaptureMode>(mode), graph,
                       "cuStreamBeginCapture");
    make_graph(on.context, std::move(graph));
  });
}
CUDA_SIM_API cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return call("cuStreamEndCapture", [&] {
    require(graph);
    *graph = nullptr;
    CUstream_st& on = stream_of(stream);
    CapturedGraph captured(on);
    try {
      const auto made = rules_of(on).end(on.object->capture(), "cuStreamEndCapture");
      *graph = graph_handle(made.get());
    } catch (const hostrt::Error&) {
      captured.discard_if_over();
      throw;
    }
  });
}
CUDA_SIM_API cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return call("cuStreamIsCapturing", [&] {
    require(status);
    CUstream_st& of = stream_of(stream);
    *status = static_cast<CUstreamCaptureStatus>(
        rules_of(of).status(of.object->capture(), nullptr, "cuStreamIsCapturing"));
  });
}

namespace {

CUresult capture_info(const char* name, CUstream stream, CUstreamCaptureStatus* status,
                      cuuint64_t* id, CUgraph* graph, const CUgraphNode** dependencies,
                      std::size_t* count) {
  return call(name, [&] {
    require(status);
    CUstream_st& of = stream_of(stream);
    const auto info = rules_of(of).info(of.object->capture(), name);
    *status = static_cast<CUstreamCaptureStatus>(info.status);
    if (info.status != hostrt::CaptureStatus::kActive) return;
    const std::lock_guard lock(graphs_mutex());
    CUgraph handle = graph_handle(info.graph.get());
    of.dependencies.clear();
    for (const std::uint32_t ordinal : info.dependencies) {
      of.dependencies.push_back(node_handle(handle, ordinal));
    }
    if (id != nullptr) *id = info.id;
    if (graph != nullptr) *graph = handle;
    if (dependencies != nullptr) *dependencies = of.dependencies.data();
    if (count != nullptr) *count = of.dependencies.size();
  });
}

}  // namespace

CUDA_SIM_API cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status,
                                       cuuint64_t* id, CUgraph* graph,
                                       const CUgraphNode** dependencies, std::size_t* count) {
  return capture_info("cuStreamGetCaptureInfo_v2", stream, status, id, graph, dependencies, count);
}
#if CUDA_VERSION >= 12030
// All edges are full ones.
CUDA_SIM_API cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status,
                                       cuuint64_t* id, CUgraph* graph,
                                       const CUgraphNode** dependencies,
                                       const CUgraphEdgeData** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return capture_info("cuStreamGetCaptureInfo_v3", stream, status, id, graph, dependencies, count);
}
#endif
CUDA_SIM_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return call("cuThreadExchangeStreamCaptureMode", [&] {
    require(mode);
    if (*mode > CU_STREAM_CAPTURE_MODE_RELAXED) refuse(CUDA_ERROR_INVALID_VALUE, "unknown mode");
    const auto now = static_cast<hostrt::CaptureMode>(*mode);
    *mode = static_cast<CUstreamCaptureMode>(hostrt::CaptureRules::exchange_thread_mode(now));
  });
}
