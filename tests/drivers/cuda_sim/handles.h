// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the driver's opaque handles are in the simulated driver. The rules of capture, streams,
// events, graphs and memory are those of backends/host; here they get CUDA's shapes and numbers.

// The header declares everything without a visibility; what it declares and we define is exported.
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

// The header's names for the newest forms; older forms are exported under these names too.
#undef cuDevicePrimaryCtxRelease
#undef cuEventElapsedTime
#undef cuGetProcAddress
#undef cuGraphGetEdges
#undef cuGraphInstantiate
#undef cuGraphNodeGetDependencies
#undef cuGraphNodeGetDependentNodes
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "host/device.h"
#include "host/driver.h"
#include "host/event.h"
#include "host/graph.h"
#include "host/graph_exec.h"
#include "host/module.h"
#include "host/stream.h"
#include "work.h"

struct CUctx_st {
  explicit CUctx_st(lockstep::hostrt::Device& d);
  lockstep::hostrt::Device& device;
  std::atomic<int> lost{0};  // the code that every call answers after a kernel failed
  std::atomic<int> retained{0};
  std::unique_ptr<CUstream_st> legacy;
  std::mutex mutex;
  std::set<CUcontext> peers;
};

struct CUstream_st {
  CUcontext context = nullptr;
  lockstep::hostrt::StreamPtr object;
  unsigned flags = 0;
  int priority = 0;
  std::vector<CUgraphNode> dependencies;  // what cuStreamGetCaptureInfo last pointed at
};

struct CUevent_st {
  CUcontext context = nullptr;
  lockstep::hostrt::EventPtr object;
  unsigned flags = 0;
};

struct CUfunc_st {
  CUmodule module = nullptr;
  lockstep_kernel* kernel = nullptr;
};

struct CUmod_st {
  CUcontext context = nullptr;
  std::shared_ptr<lockstep::hostrt::Module> object;
  std::deque<CUfunc_st> functions;
};

struct CUmemPoolHandle_st {
  CUcontext context = nullptr;
  std::atomic<std::uint64_t> release_threshold{0};
};

struct CUgraphNode_st {
  CUgraph graph = nullptr;
  std::uint32_t ordinal = 0;
  CUgraphNodeType type{};
  std::map<int, CUlaunchAttributeValue> attributes;  // kernel nodes
  std::unique_ptr<CUgraph_st> child;
};

struct CUgraph_st {
  CUcontext context = nullptr;
  std::shared_ptr<lockstep::hostrt::Graph> object;
  std::deque<std::unique_ptr<CUgraphNode_st>> nodes;  // by ordinal
  CUgraphNode parent = nullptr;                       // of a child node's graph
  CUgraph cloned_from = nullptr;
};

struct CUgraphExec_st {
  CUcontext context = nullptr;
  std::shared_ptr<lockstep::hostrt::GraphExec> object;
  std::shared_ptr<lockstep::hostrt::Graph> source;
};

namespace cuda_sim {

// Sets of handles that exist, so that a handle that does not is refused and not followed.
template <typename T>
class Live {
 public:
  // Never destroyed: calls may come until the very end of the process.
  static Live& all() {
    static auto* const instance = new Live;
    return *instance;
  }
  void add(T* handle) {
    const std::lock_guard lock(mutex_);
    handles_.insert(handle);
  }
  bool remove(T* handle) {
    const std::lock_guard lock(mutex_);
    return handles_.erase(handle) > 0;
  }
  bool contains(T* handle) {
    const std::lock_guard lock(mutex_);
    return handles_.count(handle) > 0;
  }

 private:
  std::mutex mutex_;
  std::set<T*> handles_;
};

// The handle, checked: CUDA_ERROR_INVALID_HANDLE (graphs and nodes: CUDA_ERROR_INVALID_VALUE).
template <typename T>
T& live(T* handle, CUresult otherwise = CUDA_ERROR_INVALID_HANDLE) {
  if (!Live<T>::all().contains(handle)) refuse(otherwise, "no such handle");
  return *handle;
}
template <typename T>
void require(T* pointer) {
  if (pointer == nullptr) refuse(CUDA_ERROR_INVALID_VALUE, "a null pointer");
}

// The primary context of a device, whether retained or not.
CUctx_st& primary_context(CUdevice device);
// Refuses when a kernel that failed has taken the context with it.
void refuse_if_lost(const CUctx_st& context);
// The calling thread's current context; refuses when there is none or when it was lost.
CUctx_st& current_context();
// A stream of the caller's: null, legacy and per-thread mean streams of the current context.
CUstream_st& stream_of(CUstream stream);

// All of a graph's handles are guarded by this.
std::recursive_mutex& graphs_mutex();
CUgraph make_graph(CUcontext context, std::shared_ptr<lockstep::hostrt::Graph> object);
void destroy_graph(CUgraph graph);
// The handle of a graph that is or was being captured.
CUgraph graph_handle(const lockstep::hostrt::Graph* object);
CUgraphNode node_handle(CUgraph graph, std::uint32_t ordinal);
// The capture's graph that nobody will get, when a capture fails.
void discard_captured_graph(const std::shared_ptr<lockstep::hostrt::Graph>& object);

}  // namespace cuda_sim
