// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>
#include <lockstep/device.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/runtime/capture_registry.h"
#include "src/runtime/former_launch.h"
#include "src/runtime/graph_contents.h"
#include "src/runtime/loaded_backend.h"
#include "src/runtime/plugin_error.h"
#include "src/runtime/process_state.h"

/// \file
/// What stands behind the public handles. Each object keeps alive what it depends on; each
/// destructor gives its plugin handle back unless the process is ending or has forked.
namespace lockstep::detail {

/// Objects on the path of a launch begin with one: behind the driver's own work each line that they
/// lie on has to be fetched again.
inline constexpr std::size_t kCacheLine = 64;

struct DeviceState {
  DeviceState(runtime::LoadedBackend& backend, const DeviceSummary& info);
  ~DeviceState();
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;

  /// Every call begins here: one load and one compare.
  void check_usable() const { check_generation(generation); }
  /// The same for an object of this device that remembers the number itself.
  void check_generation(std::uint32_t born) const {
    if (born != runtime::fork_generation()) [[unlikely]]
      runtime::throw_forked(id);
  }
  void read_limits();
  void add_module(const std::shared_ptr<ModuleState>& module);
  /// Makes every module resident, so that a capture meets no lazy loading.
  void load_modules();

  runtime::LoadedBackend& backend;
  const std::uint32_t generation;
  const DeviceSummary info;
  const std::string id;  ///< "cuda:0"
  lockstep_device* handle = nullptr;
  DeviceLimits limits;

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<ModuleState>> modules_;
};

struct alignas(kCacheLine) StreamState : std::enable_shared_from_this<StreamState> {
  StreamState(const Device& device, lockstep_stream* handle);
  ~StreamState();
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  std::string where() const;  ///< "cuda:0, stream #3"

  // What each launch looks at: one line of the cache. The slot and the number are the backend's and
  // the device's, which lie elsewhere.
  DeviceState& device_state;
  lockstep_stream* const handle;
  const decltype(lockstep_backend::launch) launch;
  const std::uint32_t generation;
  // And the rest.
  const Device device;
  const lockstep_backend& table;
  const std::uint64_t identity;
};

struct EventState : std::enable_shared_from_this<EventState> {
  EventState(const Device& device, lockstep_event* handle);
  ~EventState();
  EventState(const EventState&) = delete;
  EventState& operator=(const EventState&) = delete;

  const Device device;
  DeviceState& device_state;
  lockstep_event* const handle;
  std::mutex mutex;
  runtime::CapturedPoint captured;  ///< what it stands for when a capture recorded it
};

class Allocation {
 public:
  enum class Origin { kAllocated, kStreamOrdered, kRegistered };

  Allocation(const Device& device, void* address, std::uint64_t bytes, MemoryKind kind,
             Origin origin, std::shared_ptr<StreamState> stream, std::uint64_t capture_id);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  const Device device;
  const runtime::LoadedBackend* const backend;
  void* const address;
  const std::uint64_t bytes;
  const MemoryKind kind;
  const Origin origin;
  const std::shared_ptr<StreamState> stream;  ///< kStreamOrdered only
  const std::uint64_t capture_id;             ///< 0, or the capture that this is a node of
};

struct ModuleState {
  ModuleState(const Device& device, lockstep_module* handle, std::vector<std::string> kernels);
  ~ModuleState();
  ModuleState(const ModuleState&) = delete;
  ModuleState& operator=(const ModuleState&) = delete;

  const Device device;
  lockstep_module* const handle;
  const std::vector<std::string> kernels;  ///< name expressions it was compiled for
  std::atomic<bool> resident{false};
};

/// What a launch is compared with, each number as it is compared: no limit is the largest one.
struct LaunchLimits {
  Dim3 grid{UINT32_MAX, UINT32_MAX, UINT32_MAX}, block = grid;
  std::uint64_t threads = UINT64_MAX;           ///< in a block, of the device and of the kernel
  std::uint64_t grid_times_block = UINT64_MAX;  ///< in each dimension
};

struct alignas(kCacheLine) KernelState : std::enable_shared_from_this<KernelState> {
  KernelState() = default;
  ~KernelState() { delete[] fitted.load(std::memory_order_relaxed); }
  KernelState(const KernelState&) = delete;
  KernelState& operator=(const KernelState&) = delete;

  // What each launch looks at: two lines of the cache.
  DeviceState* device = nullptr;
  LaunchLimits limits;
  /// The first arguments that were found to fit, one element for each of `parameters`: those of the
  /// next launches are most often like them. Null before, and where the layout is not known. Owned.
  mutable std::atomic<const lockstep_parameter*> fitted{nullptr};
  std::vector<lockstep_parameter> parameters;
  lockstep_kernel* handle = nullptr;
  std::atomic<std::uint32_t> max_dynamic_shared{0};
  bool layout_known = false;
  bool tags_known = false;  ///< the layout tells pointers from other parameters
  // And the rest.
  std::shared_ptr<ModuleState> module;
  std::string name;
  std::uint32_t max_threads_per_block = 0;
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t registers_per_thread = 0;
};

struct GraphState {
  explicit GraphState(const Device& device);
  ~GraphState();
  GraphState(const GraphState&) = delete;
  GraphState& operator=(const GraphState&) = delete;

  const Device device;
  DeviceState& device_state;
  lockstep_graph* handle = nullptr;
  runtime::GraphContents contents;
};

struct alignas(kCacheLine) GraphExecState {
  GraphExecState(const Graph& graph, lockstep_graph_exec* handle);
  ~GraphExecState();
  GraphExecState(const GraphExecState&) = delete;
  GraphExecState& operator=(const GraphExecState&) = delete;

  /// The stream of a launch. This and the next: with the mutex held.
  void remember_stream(const std::shared_ptr<StreamState>& stream);
  /// The plugin's executable was replaced by one that was never launched.
  void replaced();
  /// Throws kStaleBuffer when memory that a node uses by raw pointer was freed.
  void check_pointers();
  [[gnu::noinline]] void check_each_pointer(std::uint64_t frees);

  // What each launch looks at: one line of the cache. The slot, the number and the map are the
  // backend's and the device's, which lie elsewhere.
  DeviceState& device_state;
  lockstep_graph_exec* handle;
  const decltype(lockstep_backend::graph_exec_launch) launch;
  const runtime::AllocationMap& allocations;
  std::atomic<std::uint64_t> checked_frees{0};  ///< frees() when pointers were last checked
  std::atomic<const StreamState*> last_stream_seen{nullptr};
  const std::uint32_t generation;
  // And the rest.
  Graph graph;
  const Device device;
  std::shared_ptr<const runtime::GraphContents> contents;
  std::uint64_t identity = 0;
  std::uint32_t version = 1;
  std::uint64_t reinstantiations = 0;

  std::mutex mutex;
  std::shared_ptr<StreamState> last_stream;  ///< launches follow each other: the last is enough
  std::uint64_t last_identity = 0;           ///< of that stream, in the thread that launched
  runtime::FormerLaunch former;
};

}  // namespace lockstep::detail
