// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <thread>

#include "call.h"
#include "enqueue.h"

// Events, and memory that streams write and wait for.
namespace cuda_sim {
namespace {

// A node that stands for a record or wait of an event that is not part of the capture.
void external(CUstream_st& stream, const CUevent_st& event, std::uint32_t kind, const char* name) {
  hostrt::CaptureScope scope(stream.context->device.rules(), stream.object->capture(), name);
  if (!scope.capturing()) refuse(CUDA_ERROR_INVALID_VALUE, "external outside of a capture");
  hostrt::GraphNode node;
  node.kind = kind;
  node.event = event.object;
  hostrt::driver::capture_node(scope, std::move(node));
}

// Writes or waits for 32 bits.
class ValueWork final : public hostrt::Work {
 public:
  ValueWork(CUdeviceptr address, std::uint32_t value, bool waits, unsigned condition)
      : cell_(reinterpret_cast<std::uint32_t*>(address)),
        value_(value),
        waits_(waits),
        condition_(condition) {}

  hostrt::FailurePtr run() const noexcept override {
    const std::atomic_ref cell(*cell_);
    if (!waits_) {
      cell.store(value_);
      return nullptr;
    }
    while (!holds(cell.load())) std::this_thread::sleep_for(std::chrono::microseconds(50));
    return nullptr;
  }
  std::uint32_t node_kind() const noexcept override { return LOCKSTEP_NODE_OTHER; }
  lockstep_record record() const override {
    lockstep_record record{};
    record.struct_size = sizeof record;
    record.kind = LOCKSTEP_RECORD_STREAM_MEMOP;
    return record;
  }
  bool any_thread() const noexcept override { return !waits_; }

 private:
  bool holds(std::uint32_t now) const noexcept {
    switch (condition_) {
      case CU_STREAM_WAIT_VALUE_GEQ:
        return static_cast<std::int32_t>(now - value_) >= 0;
      case CU_STREAM_WAIT_VALUE_EQ:
        return now == value_;
      case CU_STREAM_WAIT_VALUE_AND:
        return (now & value_) != 0;
      default:
        return (~(now | value_)) != 0;
    }
  }

  std::uint32_t* const cell_;
  const std::uint32_t value_;
  const bool waits_;
  const unsigned condition_;
};

void value_operation(CUstream stream, CUdeviceptr address, std::uint32_t value, bool waits,
                     unsigned flags, const char* name) {
  CUstream_st& on = stream_of(stream);
  hostrt::Allocation allocation;
  if (address % 4 != 0 ||
      !hostrt::Runtime::require().memory().find(reinterpret_cast<void*>(address), &allocation)) {
    refuse(CUDA_ERROR_INVALID_VALUE, "not an aligned address of the driver's memory");
  }
  auto inner = std::make_shared<ValueWork>(address, value, waits, flags & 3U);
  enqueue(on,
          std::make_shared<const SimWork>(on.context, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                                          std::move(inner), std::monostate{}),
          name);
}

}  // namespace
}  // namespace cuda_sim

using namespace cuda_sim;

CUDA_SIM_API cuEventCreate(CUevent* event, unsigned flags) {
  return call("cuEventCreate", [&] {
    require(event);
    CUctx_st& context = current_context();
    constexpr unsigned kKnown =
        CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if ((flags & ~kKnown) != 0) refuse(CUDA_ERROR_INVALID_VALUE, "unknown flags");
    if ((flags & CU_EVENT_INTERPROCESS) != 0) refuse(CUDA_ERROR_NOT_SUPPORTED, "interprocess");
    const bool timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    auto* made =
        new CUevent_st{&context, std::make_shared<hostrt::Event>(context.device, timing), flags};
    Live<CUevent_st>::all().add(made);
    *event = made;
  });
}
CUDA_SIM_API cuEventDestroy_v2(CUevent event) {
  return call("cuEventDestroy_v2", [&] {
    if (!Live<CUevent_st>::all().remove(event)) refuse(CUDA_ERROR_INVALID_HANDLE, "no event");
    delete event;
  });
}
CUDA_SIM_API cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return call("cuEventRecordWithFlags", [&] {
    CUevent_st& what = live(event);
    CUstream_st& on = stream_of(stream);
    if (what.context != on.context) refuse(CUDA_ERROR_INVALID_HANDLE, "of another context");
    if (flags == CU_EVENT_RECORD_EXTERNAL) {
      external(on, what, LOCKSTEP_NODE_EVENT_RECORD, "cuEventRecordWithFlags");
    } else {
      what.object->record(*on.object);
    }
  });
}
CUDA_SIM_API cuEventRecord(CUevent event, CUstream stream) {
  return call("cuEventRecord", [&] {
    CUevent_st& what = live(event);
    CUstream_st& on = stream_of(stream);
    if (what.context != on.context) refuse(CUDA_ERROR_INVALID_HANDLE, "of another context");
    what.object->record(*on.object);
  });
}
CUDA_SIM_API cuEventQuery(CUevent event) {
  return call("cuEventQuery", [&] {
    const CUevent_st& own = live(event);
    refuse_if_lost(*own.context);
    if (!own.object->query()) refuse(CUDA_ERROR_NOT_READY, "work is pending");
  });
}
CUDA_SIM_API cuEventSynchronize(CUevent event) {
  return call("cuEventSynchronize", [&] {
    const CUevent_st& own = live(event);
    refuse_if_lost(*own.context);
    own.object->synchronize();
  });
}
CUDA_SIM_API cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  return call("cuEventElapsedTime", [&] {
    require(milliseconds);
    for (CUevent event : {begin, end}) {
      const CUevent_st& each = live(event);
      if ((each.flags & CU_EVENT_DISABLE_TIMING) != 0 || each.object->latest() == nullptr) {
        refuse(CUDA_ERROR_INVALID_HANDLE, "not timed, or never recorded");
      }
    }
    *milliseconds = static_cast<float>(hostrt::Event::elapsed_ms(*begin->object, *end->object));
  });
}
CUDA_SIM_API cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  return cuEventElapsedTime(milliseconds, begin, end);
}
CUDA_SIM_API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return call("cuStreamWaitEvent", [&] {
    CUstream_st& on = stream_of(stream);
    CUevent_st& what = live(event);
    if (flags == CU_EVENT_WAIT_EXTERNAL) {
      external(on, what, LOCKSTEP_NODE_EVENT_WAIT, "cuStreamWaitEvent");
    } else {
      what.object->wait_on(*on.object);
    }
  });
}

CUDA_SIM_API cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                  unsigned flags) {
  return call("cuStreamWriteValue32", [&] {
    value_operation(stream, address, value, false, flags, "cuStreamWriteValue32");
  });
}
CUDA_SIM_API cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned flags) {
  return call("cuStreamWaitValue32",
              [&] { value_operation(stream, address, value, true, flags, "cuStreamWaitValue32"); });
}
