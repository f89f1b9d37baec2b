// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/event.h>
#include <lockstep/export.h>
#include <lockstep/launch.h>
#include <lockstep/module.h>
#include <lockstep/region.h>
#include <lockstep/trace.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Device graphs: captured from streams or built by hand, instantiated, launched, updated.
namespace lockstep {

class Device;
class StreamRef;

namespace detail {
struct GraphState;
struct GraphExecState;
}  // namespace detail

class GraphExec;

enum class NodeKind : std::uint32_t {
  kKernel = 1,
  kCopy = 2,
  kSet = 3,
  kHost = 4,
  kEmpty = 5,
  kChildGraph = 6,
  kEventRecord = 7,
  kEventWait = 8,
  kAlloc = 9,
  kFree = 10,
  kOther = 99,
};

/// A node of a hand-built or captured graph: its ordinal in creation order.
struct GraphNode {
  std::uint32_t index = 0;
};

struct GraphNodeInfo {
  NodeKind kind = NodeKind::kOther;
  LaunchTraceEntry entry;  ///< what it does; kEmpty and kChildGraph: name only
};

/// Host memory that a captured copy uses.
struct HostSlot {
  enum class Kind : std::uint8_t {
    kLive,      ///< pinned buffer: kept alive, read or written anew at each replay
    kSnapshot,  ///< pageable source copied at capture, owned by the graph
    kDeclared,  ///< destination that CaptureOptions declared; must outlive every replay
  };
  Kind kind = Kind::kLive;
  const void* address = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t node = 0;
};

/// A graph that can still be changed. A shared handle, not thread-safe for changes.
class LOCKSTEP_API Graph {
 public:
  Graph() noexcept = default;
  explicit Graph(std::shared_ptr<detail::GraphState> state) noexcept : state_(std::move(state)) {}
  /// Borrows a native graph (CUgraph, hipGraph_t): never destroyed by us.
  static Graph from_native(const Device& device, void* native);

  /// Each adds a node that begins after `dependencies` have ended. Arguments are copied; buffers
  /// are kept alive. \throws Error kInvalidArgument as the stream's functions do, and for a
  /// dependency that is not a node of this graph.
  template <typename... Args>
  GraphNode add_kernel(std::span<const GraphNode> dependencies, const Kernel& kernel,
                       const LaunchConfig& config, const Args&... args) {
    const detail::ArgumentPack<sizeof...(Args)> pack(args...);
    return add_kernel_arguments(dependencies, kernel, config, pack.arguments());
  }
  template <typename... Args>
  GraphNode add_kernel(std::initializer_list<GraphNode> dependencies, const Kernel& kernel,
                       const LaunchConfig& config, const Args&... args) {
    return add_kernel(std::span<const GraphNode>(dependencies.begin(), dependencies.size()), kernel,
                      config, args...);
  }
  GraphNode add_kernel_arguments(std::span<const GraphNode> dependencies, const Kernel& kernel,
                                 const LaunchConfig& config,
                                 std::span<const KernelArgument> arguments);
  GraphNode add_copy(std::span<const GraphNode> dependencies, const CopyRegion& region);
  GraphNode add_fill(std::span<const GraphNode> dependencies,
                     const FillRegion& region);  ///< depth 1
  GraphNode add_host_function(std::span<const GraphNode> dependencies,
                              std::function<void()> function);
  GraphNode add_empty(std::span<const GraphNode> dependencies);
  GraphNode add_child(std::span<const GraphNode> dependencies, const Graph& child);  ///< cloned
  GraphNode add_event_record(std::span<const GraphNode> dependencies, const Event& event);
  GraphNode add_event_wait(std::span<const GraphNode> dependencies, const Event& event);
  /// Keeps memory allocated as long as the graph and what is instantiated from it.
  void keep_alive(detail::AllocationPtr allocation);

  std::uint32_t node_count() const;
  std::vector<GraphNodeInfo> nodes() const;                            ///< in creation order
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges() const;  ///< sorted
  /// Nodes and edges as a trace has them, child graphs inlined.
  GraphDefinition definition() const;
  std::vector<HostSlot> host_slots() const;
  /// What the graph says that differs from what was recorded while it was captured. Empty = none.
  std::vector<std::string> capture_differences() const;
  Graph clone() const;

  struct InstantiateOptions {
    bool allow_empty = false;
  };
  /// An executable copy. \throws Error kMismatch for a graph without nodes unless allowed: a
  /// capture that recorded nothing is nearly always a capture of the wrong stream or device.
  GraphExec instantiate(const InstantiateOptions& options) const;
  GraphExec instantiate() const;

  void* native_handle() const;
  explicit operator bool() const noexcept { return state_ != nullptr; }
  LOCKSTEP_INTERNAL detail::GraphState& state() const;

 private:
  std::shared_ptr<detail::GraphState> state_;
};

/// An executable graph. A shared handle; launches of one executable follow each other, on whichever
/// streams and whatever updates came between.
class LOCKSTEP_API GraphExec {
 public:
  GraphExec() noexcept = default;
  explicit GraphExec(std::shared_ptr<detail::GraphExecState> state) noexcept
      : state_(std::move(state)) {}

  /// Enqueues one run of all nodes. Illegal while the stream captures. Memory that nodes use by
  /// raw pointer and that is no longer allocated is reported, not used.
  /// \throws Error kStaleBuffer naming node, argument and address; kIllegalDuringCapture for the
  /// first launch since an update instantiated anew, when the stream of the launch before is
  /// another one that has captured since before the update: it cannot be waited for until then.
  void launch(const StreamRef& stream) const;

  struct UpdateResult {
    bool reinstantiated = false;  ///< the shape had changed: instantiated anew, once
    std::string reason;           ///< why, as the driver says; "" when updated in place
  };
  /// Gives this executable the nodes of `graph`. Where the driver cannot, instantiates anew once;
  /// the next launch on another stream than the last one's then waits for that by an event. Not
  /// beside a launch of another thread.
  UpdateResult update(const Graph& graph);
  /// Switches a node off or on; it goes on ordering its neighbours.
  void set_enabled(GraphNode node, bool enabled);

  std::uint64_t identity() const;  ///< unique in the process
  std::uint32_t version() const;   ///< counts from 1, one more at each change
  const Graph& graph() const;      ///< what it was made from, at its newest version
  std::uint64_t reinstantiations() const;
  const Device& device() const;
  void* native_handle() const;
  explicit operator bool() const noexcept { return state_ != nullptr; }
  LOCKSTEP_INTERNAL detail::GraphExecState& state() const;

 private:
  std::shared_ptr<detail::GraphExecState> state_;
};

}  // namespace lockstep
