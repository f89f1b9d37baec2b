// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capture.h"
#include "state.h"

// What the opaque handles of lockstep/backend.h are. Plain data; the slots live in the file named
// like the object.

struct lockstep_device {
  int ordinal = 0;
  lockstep::gpu::Context context = nullptr;  // primary; kept until the process ends
  std::atomic<std::uint32_t> opens{0};
  std::atomic<std::uint64_t> legacy_identity{0};  // of its legacy stream; 0 = not met yet
  // Kernels may be executing (in_flight.h): on its legacy and per-thread streams; where nobody can
  // tell any more.
  std::atomic<bool> special_launched{false}, lost_track{false};
  std::string arch;
  std::int64_t max_grid[3] = {0, 0, 0}, max_block[3] = {0, 0, 0}, max_threads = 0;
};

// On the path of a launch, as its kernel is: on one line of the cache, for all are fetched again
// behind the driver's own work.
struct alignas(64) lockstep_stream {
  enum class Origin : std::uint8_t { kOwn, kBorrowed, kLegacy, kPerThread };
  lockstep_device* device = nullptr;
  std::atomic<lockstep::gpu::Handle> native{nullptr};
  lockstep::gpu::Context context = nullptr;
  std::uint64_t identity = 0;  // 0 for the per-thread stream: see stream_identity()
  Origin origin = Origin::kOwn;
  bool non_blocking = false;
  std::int32_t priority = 0;
  // A capture that this plugin did not begin may take it in: its native handle is known to others,
  // or it waited for an event of such a stream. Only then is the driver asked about captures while
  // none of ours is open.
  std::atomic<bool> known_to_others{false};
  // Kernels were launched since it was last waited for (in_flight.h).
  mutable std::atomic<bool> launched{false};
};

struct lockstep_event {
  lockstep_device* device = nullptr;
  lockstep::gpu::Handle native = nullptr;
  bool owned = true;
  bool timing = false;
  std::atomic<std::uint64_t> last_record{0};  // identity; 0 = never recorded
  std::atomic<bool> known_to_others{false};   // see lockstep_stream
  // Where in a capture it was recorded; under the capture mutex. 0 = not in a capture.
  std::uint64_t capture_id = 0;
  lockstep::gpu::CaptureClock capture_clock;
};

struct alignas(64) lockstep_kernel {
  lockstep_module* module = nullptr;
  lockstep::gpu::Handle function = nullptr;
  // Layout as the driver tells it. Pointer-ness is learned from the first typed launch: then a
  // completed copy takes its place and stays, both valid as long as the module. What is learned is
  // for nodes of graphs, of which nobody else tells it; a launch knows its own arguments.
  struct Layout {
    bool known = false;
    bool typed = false;
    bool told = false;  // typed by the driver itself
    std::vector<lockstep_parameter> parameters;
  };
  std::atomic<const Layout*> layout{nullptr};
  const Layout* told_layout = nullptr;         // as the driver tells it
  std::uint32_t name_number = 0;               // interned
  std::uint32_t parameter_count = UINT32_MAX;  // the layout's; UINT32_MAX = not known
  std::string name;                            // as the driver reports it
  lockstep::gpu::FunctionFacts facts;
  std::vector<std::unique_ptr<const Layout>> layouts;  // under the module's mutex
};

struct lockstep_module {
  lockstep_device* device = nullptr;
  lockstep::gpu::Handle native = nullptr;
  std::vector<std::pair<std::string, std::string>> lowered_names;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<lockstep_kernel>> kernels;  // by the driver's name
};

namespace lockstep::gpu {

// A native graph, shared by the graph that shows it and the executables made from it, whose node
// handles stay valid with it.
struct NativeGraph {
  Handle handle = nullptr;
  Context context = nullptr;
  bool owned = true;
  ~NativeGraph();
};

struct GraphNode {
  Handle native = nullptr;
  // What was enqueued for it, where the driver's getter is not to be trusted.
  std::optional<lockstep_record> recorded;
  // Of a child graph: those nodes of the copy in its parent of which such a thing is known.
  std::vector<GraphNode> inner;
};

class GraphDefinition;

}  // namespace lockstep::gpu

struct lockstep_graph {
  lockstep_device* device = nullptr;
  std::shared_ptr<lockstep::gpu::NativeGraph> native;
  std::uint64_t identity = 0;
  std::mutex mutex;
  std::vector<lockstep::gpu::GraphNode> nodes;  // in creation order
  // Made when nodes are asked for, thrown away when one is added.
  std::unique_ptr<lockstep::gpu::GraphDefinition> listing;
  std::map<std::uint32_t, std::unique_ptr<lockstep_graph>> children;
  ~lockstep_graph();
};

struct alignas(64) lockstep_graph_exec {
  lockstep_device* device = nullptr;
  lockstep::gpu::Handle native = nullptr;
  std::uint64_t identity = 0;
  std::atomic<std::uint32_t> version{0};
  std::atomic<bool> stale{true};  // changed since it was defined
  std::mutex mutex;
  // The graph it was made from: its node handles are what enabling takes.
  std::shared_ptr<lockstep::gpu::NativeGraph> source;
  std::vector<lockstep::gpu::GraphNode> source_nodes;
  // The graph whose parameters it has now.
  std::shared_ptr<lockstep::gpu::NativeGraph> current;
  std::vector<lockstep::gpu::GraphNode> current_nodes;
  std::vector<bool> disabled;
  bool broken = false;  // a refused update left it changed in part; stale for as long
};

namespace lockstep::gpu {

// Identity of the stream that a call on this handle means now: the per-thread stream's depends on
// the calling thread.
std::uint64_t identity_of(const lockstep_stream* stream);
// For messages: "stream 7 (0x55…)".
std::string describe(const lockstep_stream* stream);
// May the stream be capturing? Cheap, and true too often rather than too seldom.
inline bool may_capture(const lockstep_stream* stream) {
  return captures_open() || stream->known_to_others.load(std::memory_order_relaxed);
}

inline Handle native_of(const lockstep_stream* stream) {
  return stream->native.load(std::memory_order_relaxed);
}

}  // namespace lockstep::gpu
