// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <utility>
#include <vector>

#include "device.h"
#include "error.h"
#include "kernel_work.h"
#include "record.h"
#include "transfer.h"

namespace lockstep::hostrt::driver {
namespace {

class HostWork final : public Work {
 public:
  HostWork(std::int32_t device, lockstep_host_function function, void* user_data)
      : device_(device), function_(function), user_data_(user_data) {}
  FailurePtr run() const noexcept override {
    const HostFunctionScope scope;
    function_(user_data_);
    return nullptr;
  }
  std::uint32_t node_kind() const noexcept override { return LOCKSTEP_NODE_HOST; }
  lockstep_record record() const override {
    return blank_record(LOCKSTEP_RECORD_HOST_FUNC, call_names().host_function, device_, 0);
  }
  bool any_thread() const noexcept override { return false; }

 private:
  const std::int32_t device_;
  const lockstep_host_function function_;
  void* const user_data_;
};

void begin(Recording& recording, const Stream& stream, lockstep_record record) {
  record.stream = stream.identity();
  recording.begin(record);
}

// Captures the work, or hands it to `execute`.
template <typename Execute>
void issue(Stream& stream, WorkPtr work, const char* call, const Execute& execute) {
  Recording recording;
  if (recording_active()) begin(recording, stream, work->record());
  CaptureScope scope(stream.device().rules(), stream.capture(), call);
  if (scope.capturing()) {
    GraphNode node;
    node.kind = work->node_kind();
    node.work = std::move(work);
    const std::uint32_t ordinal = capture_node(scope, std::move(node));
    recording.done(LOCKSTEP_RECORD_CAPTURED, scope.graph().identity(),
                   static_cast<std::int32_t>(ordinal));
    return;
  }
  execute(std::move(work));
  recording.done();
}

void* allocate_on(Stream& stream, std::uint64_t bytes) {
  Device& device = stream.device();
  const std::uint32_t name = call_names().allocate_async;
  CaptureScope scope(device.rules(), stream.capture(), "hostMemAllocAsync");
  if (scope.capturing()) {
    auto memory = std::make_shared<GraphMemory>(device.memory(), device.signed_ordinal(), bytes);
    device.memory().bind_graph_memory(memory->allocation().base, memory);
    const Allocation allocation = memory->allocation();
    GraphNode node;
    node.kind = LOCKSTEP_NODE_ALLOC;
    node.memory = std::move(memory);
    capture_node(scope, std::move(node));
    report_change(allocation, true, name, stream.identity(), LOCKSTEP_RECORD_CAPTURED);
    return allocation.pointer();
  }
  const Allocation allocation =
      device.memory().allocate(device.signed_ordinal(), bytes, LOCKSTEP_MEMORY_DEVICE);
  report_change(allocation, true, name, stream.identity());
  return allocation.pointer();
}

void free_on(Stream& stream, void* pointer) {
  Device& device = stream.device();
  const std::uint32_t name = call_names().free_async;
  CaptureScope scope(device.rules(), stream.capture(), "hostMemFreeAsync");
  if (scope.capturing()) {
    std::shared_ptr<GraphMemory> memory = scope.graph().memory_at(pointer);
    if (memory == nullptr || scope.graph().frees(*memory)) {
      throw Error(Native::kInvalidValue,
                  "a capture can free only what it has allocated itself, once");
    }
    const Allocation allocation = memory->allocation();
    GraphNode node;
    node.kind = LOCKSTEP_NODE_FREE;
    node.memory = std::move(memory);
    capture_node(scope, std::move(node));
    report_change(allocation, false, name, stream.identity(), LOCKSTEP_RECORD_CAPTURED);
    return;
  }
  const Allocation allocation = device.memory().require_base(pointer);
  if (const auto memory = allocation.graph_memory.lock()) {
    if (!memory->live()) throw Error(Native::kInvalidValue, "no launch has allocated this memory");
    memory->set_live(false);
    report_change(allocation, false, name, stream.identity());
    return;
  }
  MemoryMap& map = device.memory();
  const Allocation removed = map.remove(pointer);
  report_change(removed, false, name, stream.identity());
  stream.enqueue_action([&map, removed] { map.release(removed); });
}

}  // namespace

std::uint32_t capture_node(CaptureScope& scope, GraphNode node) {
  const std::uint32_t ordinal = scope.graph().add(std::move(node), scope.dependencies());
  scope.advance(ordinal);
  return ordinal;
}

void submit(Stream& stream, WorkPtr work, const char* call,
            const std::function<void(WorkPtr)>& execute) {
  issue(stream, std::move(work), call, execute);
}

void submit_empty(Stream& stream, const lockstep_record& record, const char* call) {
  Recording recording;
  if (recording_active()) begin(recording, stream, record);
  const CaptureScope scope(stream.device().rules(), stream.capture(), call);
  if (scope.capturing()) {
    recording.done(LOCKSTEP_RECORD_CAPTURED, scope.graph().identity());
  } else {
    recording.done();
  }
}

void launch(Stream& stream, Kernel& kernel, const lockstep_launch_desc& desc) {
  issue(stream, make_kernel_work(stream.device(), kernel, desc), "hostLaunchKernel",
        [&](WorkPtr work) { stream.enqueue(std::move(work)); });
}

void copy(Stream& stream, const lockstep_copy_desc& desc) {
  CheckedCopy checked = check_copy(stream.device(), desc);
  if (checked.work == nullptr) {
    submit_empty(stream, checked.record, "hostMemcpyAsync");
    return;
  }
  issue(stream, std::move(checked.work), "hostMemcpyAsync", [&](WorkPtr work) {
    if (!checked.pageable_source) {
      stream.enqueue(std::move(work));
    } else if (!stream.run_at_once(*work)) {
      // The caller may reuse pageable memory as soon as the call returns, as with a GPU.
      stream.enqueue(stage_copy(*work));
    }
  });
}

void set(Stream& stream, const lockstep_set_desc& desc) {
  CheckedSet checked = check_set(stream.device(), desc);
  if (checked.works.empty()) {
    submit_empty(stream, checked.empty_record, "hostMemsetAsync");
    return;
  }
  for (WorkPtr& plane : checked.works) {
    issue(stream, std::move(plane), "hostMemsetAsync",
          [&](WorkPtr work) { stream.enqueue(std::move(work)); });
  }
}

void host_function(Stream& stream, lockstep_host_function function, void* user_data) {
  issue(stream, make_host_work(stream.device(), function, user_data), "hostLaunchHostFunc",
        [&](WorkPtr work) { stream.enqueue(std::move(work)); });
}

WorkPtr make_host_work(const Device& device, lockstep_host_function function, void* user_data) {
  if (function == nullptr) throw Error(Native::kInvalidValue, "the host function is null");
  return std::make_shared<HostWork>(device.signed_ordinal(), function, user_data);
}

void* allocate(Device& device, std::uint64_t bytes, std::uint32_t kind, Stream* stream) {
  if (kind != LOCKSTEP_MEMORY_DEVICE && kind != LOCKSTEP_MEMORY_PINNED) {
    throw Error(Native::kNotSupported, "memory kind " + std::to_string(kind) +
                                           ": only device and pinned memory can be allocated");
  }
  if (bytes == 0) throw Error(Native::kInvalidValue, "an allocation of 0 bytes");
  if (stream != nullptr) {
    if (kind != LOCKSTEP_MEMORY_DEVICE) {
      throw Error(Native::kNotSupported, "only device memory is allocated in stream order");
    }
    if (&stream->device() != &device) {
      throw Error(Native::kInvalidValue, "the stream belongs to another device");
    }
    return allocate_on(*stream, bytes);
  }
  const bool pinned = kind == LOCKSTEP_MEMORY_PINNED;
  device.rules().check_unsafe(pinned ? "hostMemHostAlloc" : "hostMemAlloc");
  const Allocation allocation = device.memory().allocate(device.signed_ordinal(), bytes, kind);
  report_change(allocation, true, pinned ? call_names().allocate_host : call_names().allocate);
  return allocation.pointer();
}

void free(Device& device, void* pointer, Stream* stream) {
  if (pointer == nullptr) return;
  if (stream != nullptr) {
    free_on(*stream, pointer);
    return;
  }
  const Allocation allocation = device.memory().require_base(pointer);
  const bool pinned = allocation.kind == LOCKSTEP_MEMORY_PINNED;
  device.rules().check_unsafe(pinned ? "hostMemFreeHost" : "hostMemFree");
  const auto memory = allocation.graph_memory.lock();
  if (memory != nullptr && !memory->live()) {
    throw Error(Native::kInvalidValue, "no launch has allocated this memory");
  }
  // Work in flight may use it, also that of other devices: they all share one memory.
  Runtime::require().drain();
  const std::uint32_t name = pinned ? call_names().free_host : call_names().free;
  if (memory != nullptr) {
    memory->set_live(false);
    report_change(allocation, false, name);
    return;
  }
  const Allocation removed = device.memory().remove(pointer);
  report_change(removed, false, name);
  device.memory().release(removed);
}

void register_memory(Device& device, void* pointer, std::uint64_t bytes) {
  device.rules().check_unsafe("hostMemHostRegister");
  report_change(device.memory().add_registered(pointer, bytes), true, call_names().host_register);
}

void unregister_memory(Device& device, void* pointer) {
  device.rules().check_unsafe("hostMemHostUnregister");
  report_change(device.memory().remove_registered(pointer), false, call_names().host_unregister);
}

void synchronize(Device& device) {
  Recording recording;
  if (recording_active()) {
    recording.begin(blank_record(LOCKSTEP_RECORD_SYNCHRONIZE, call_names().device_synchronize,
                                 device.signed_ordinal(), 0));
  }
  device.rules().check_context_wait(device.ordinal(), "hostDeviceSynchronize");
  device.synchronize();
  recording.done();
}

void synchronize(Stream& stream) {
  Recording recording;
  if (recording_active()) {
    recording.begin(blank_record(LOCKSTEP_RECORD_SYNCHRONIZE, call_names().stream_synchronize,
                                 stream.device().signed_ordinal(), stream.identity()));
  }
  stream.device().rules().check_stream_wait(stream.capture(), "hostStreamSynchronize");
  stream.synchronize();
  recording.done();
}

bool query(Stream& stream) {
  stream.device().rules().check_stream_wait(stream.capture(), "hostStreamQuery");
  if (stream.pending()) return false;
  if (stream.legacy()) {
    for (const StreamPtr& other : stream.device().streams()) {
      if (other->blocking() && other->pending()) return false;
    }
  }
  if (const FailurePtr failure = stream.failure()) stream.device().report(*failure);
  return true;
}

std::uint32_t add_node(Graph& graph, GraphNode node, const std::uint32_t* dependencies,
                       std::uint32_t dependency_count) {
  if (dependency_count > 0 && dependencies == nullptr) {
    throw Error(Native::kInvalidValue, "the list of dependencies is null");
  }
  return graph.add(std::move(node), {dependencies, dependencies + dependency_count});
}

std::shared_ptr<GraphExec> instantiate(const std::shared_ptr<Graph>& graph) {
  graph->device().rules().check_unsafe("hostGraphInstantiate");
  return std::make_shared<GraphExec>(graph);
}

}  // namespace lockstep::hostrt::driver
