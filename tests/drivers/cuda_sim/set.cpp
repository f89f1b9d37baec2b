// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "call.h"
#include "enqueue.h"

// Sets of memory: 8, 16 and 32 bits, one and two dimensions.
namespace cuda_sim {
namespace {

void set(const char* name, CUstream stream, const CUDA_MEMSET_NODE_PARAMS& native) {
  CUstream_st& on = stream_of(stream);
  Set made = make_set(*on.context, native);
  if (made.work == nullptr) {
    hostrt::driver::submit_empty(*on.object, made.record, name);
  } else {
    enqueue(on, std::move(made.work), name);
  }
}

CUDA_MEMSET_NODE_PARAMS flat(CUdeviceptr to, unsigned value, unsigned size, std::size_t count) {
  return {to, 0, value, size, count, 1};
}

}  // namespace

Set make_set(CUctx_st& context, const CUDA_MEMSET_NODE_PARAMS& native) {
  lockstep_set_desc desc{};
  desc.struct_size = sizeof desc;
  desc.destination = reinterpret_cast<void*>(native.dst);
  desc.width = native.width;
  desc.height = native.height;
  desc.depth = 1;
  desc.pitch = native.height > 1 ? native.pitch : 0;
  desc.value = native.value;
  desc.value_size = native.elementSize;
  // Rows that overlap; a pitch of 0 stands for packed rows elsewhere, here it is a mistake.
  if (native.height > 1 && native.width > 0 && native.pitch < native.width * native.elementSize) {
    refuse(CUDA_ERROR_INVALID_VALUE, "the pitch is less than the width");
  }
  hostrt::CheckedSet checked = hostrt::check_set(context.device, desc);
  Set made;
  made.record = checked.empty_record;
  if (checked.works.empty()) return made;
  made.work = std::make_shared<const SimWork>(&context, CU_GRAPH_NODE_TYPE_MEMSET,
                                              std::move(checked.works.front()), native);
  return made;
}

}  // namespace cuda_sim

using namespace cuda_sim;

CUDA_SIM_API cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count,
                             CUstream stream) {
  return call("cuMemsetD8Async",
              [&] { set("cuMemsetD8Async", stream, flat(to, value, 1, count)); });
}
CUDA_SIM_API cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count,
                              CUstream stream) {
  return call("cuMemsetD16Async",
              [&] { set("cuMemsetD16Async", stream, flat(to, value, 2, count)); });
}
CUDA_SIM_API cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return call("cuMemsetD32Async",
              [&] { set("cuMemsetD32Async", stream, flat(to, value, 4, count)); });
}
CUDA_SIM_API cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char value,
                               std::size_t width, std::size_t height, CUstream stream) {
  return call("cuMemsetD2D8Async", [&] {
    set("cuMemsetD2D8Async", stream, {to, pitch, value, 1, width, height});
  });
}
CUDA_SIM_API cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch, unsigned short value,
                                std::size_t width, std::size_t height, CUstream stream) {
  return call("cuMemsetD2D16Async", [&] {
    set("cuMemsetD2D16Async", stream, {to, pitch, value, 2, width, height});
  });
}
CUDA_SIM_API cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch, unsigned value,
                                std::size_t width, std::size_t height, CUstream stream) {
  return call("cuMemsetD2D32Async", [&] {
    set("cuMemsetD2D32Async", stream, {to, pitch, value, 4, width, height});
  });
}
// A blocking set of device memory does not block: it is ordered by the legacy stream.
CUDA_SIM_API cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return call("cuMemsetD8_v2", [&] { set("cuMemsetD8", nullptr, flat(to, value, 1, count)); });
}
CUDA_SIM_API cuMemsetD16_v2(CUdeviceptr to, unsigned short value, std::size_t count) {
  return call("cuMemsetD16_v2", [&] { set("cuMemsetD16", nullptr, flat(to, value, 2, count)); });
}
CUDA_SIM_API cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t count) {
  return call("cuMemsetD32_v2", [&] { set("cuMemsetD32", nullptr, flat(to, value, 4, count)); });
}
