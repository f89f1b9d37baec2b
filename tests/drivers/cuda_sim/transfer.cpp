// SPDX-License-Identifier: Apache-2.0
#include "host/transfer.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "call.h"
#include "enqueue.h"

// Copies. Sets: set.cpp.
namespace cuda_sim {
namespace {

// What a blocking upload of pageable memory copies before it returns. The rest arrives later, and
// only the legacy stream and those that wait for it see it in order.
constexpr std::size_t kBlockingUpload = 512 * 1024;
constexpr auto kLate = std::chrono::milliseconds(2);

class LateWork final : public hostrt::Work {
 public:
  explicit LateWork(hostrt::WorkPtr inner) : inner_(std::move(inner)) {}
  hostrt::FailurePtr run() const noexcept override {
    std::this_thread::sleep_for(kLate);
    return inner_->run();
  }
  std::uint32_t node_kind() const noexcept override { return inner_->node_kind(); }
  lockstep_record record() const override { return inner_->record(); }
  bool any_thread() const noexcept override { return false; }

 private:
  const hostrt::WorkPtr inner_;
};

bool known(const void* pointer, std::uint32_t* kind) {
  hostrt::Allocation allocation;
  const bool found = hostrt::Runtime::require().memory().find(pointer, &allocation);
  *kind = allocation.kind;
  return found;
}

// Where one side of a 3-D copy begins, in a flat address space.
struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  std::size_t pitch, rows, x, y, z;

  std::byte* start(std::size_t width, std::size_t height) const {
    if (type == CU_MEMORYTYPE_ARRAY) refuse(CUDA_ERROR_NOT_SUPPORTED, "arrays");
    if (type < CU_MEMORYTYPE_HOST || type > CU_MEMORYTYPE_UNIFIED) {
      refuse(CUDA_ERROR_INVALID_VALUE, "unknown memory type");
    }
    const std::size_t row = pitch != 0 ? pitch : width;
    const std::uintptr_t base =
        type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(host) : device;
    std::uint32_t kind = 0;
    if (type == CU_MEMORYTYPE_DEVICE && base != 0 && !known(reinterpret_cast<void*>(base), &kind)) {
      refuse(CUDA_ERROR_INVALID_VALUE, "not memory of the driver");
    }
    const std::size_t slice = row * (rows != 0 ? rows : height);
    return reinterpret_cast<std::byte*>(base + x + y * row + z * slice);
  }
};

CUDA_MEMCPY3D flat(const void* destination, const void* source, std::size_t bytes) {
  CUDA_MEMCPY3D native{};
  std::uint32_t kind = 0;
  const auto type_of = [&](const void* pointer) {
    return known(pointer, &kind) && kind == LOCKSTEP_MEMORY_DEVICE ? CU_MEMORYTYPE_DEVICE
                                                                   : CU_MEMORYTYPE_HOST;
  };
  native.srcMemoryType = type_of(source);
  native.srcHost = source;
  native.srcDevice = reinterpret_cast<CUdeviceptr>(source);
  native.dstMemoryType = type_of(destination);
  native.dstHost = const_cast<void*>(destination);
  native.dstDevice = reinterpret_cast<CUdeviceptr>(destination);
  native.WidthInBytes = bytes;
  native.Height = 1;
  native.Depth = 1;
  return native;
}

CUDA_MEMCPY3D widen(const CUDA_MEMCPY2D& two) {
  CUDA_MEMCPY3D native{};
  native.srcXInBytes = two.srcXInBytes;
  native.srcY = two.srcY;
  native.srcMemoryType = two.srcMemoryType;
  native.srcHost = two.srcHost;
  native.srcDevice = two.srcDevice;
  native.srcPitch = two.srcPitch;
  native.dstXInBytes = two.dstXInBytes;
  native.dstY = two.dstY;
  native.dstMemoryType = two.dstMemoryType;
  native.dstHost = two.dstHost;
  native.dstDevice = two.dstDevice;
  native.dstPitch = two.dstPitch;
  native.WidthInBytes = two.WidthInBytes;
  native.Height = two.Height;
  native.Depth = 1;
  return native;
}

CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D native{};
  native.srcXInBytes = peer.srcXInBytes;
  native.srcY = peer.srcY;
  native.srcZ = peer.srcZ;
  native.srcMemoryType = peer.srcMemoryType;
  native.srcHost = peer.srcHost;
  native.srcDevice = peer.srcDevice;
  native.srcPitch = peer.srcPitch;
  native.srcHeight = peer.srcHeight;
  native.dstXInBytes = peer.dstXInBytes;
  native.dstY = peer.dstY;
  native.dstZ = peer.dstZ;
  native.dstMemoryType = peer.dstMemoryType;
  native.dstHost = peer.dstHost;
  native.dstDevice = peer.dstDevice;
  native.dstPitch = peer.dstPitch;
  native.dstHeight = peer.dstHeight;
  native.WidthInBytes = peer.WidthInBytes;
  native.Height = peer.Height;
  native.Depth = peer.Depth;
  return native;
}

enum class Form { kAsync, kBlocking };

void copy(const char* name, CUstream stream, const CUDA_MEMCPY3D& native, Form form) {
  CUstream_st& on = stream_of(stream);
  Copy made = make_copy(*on.context, native);
  if (made.work == nullptr) {
    hostrt::driver::submit_empty(*on.object, made.record, name);
    return;
  }
  bool wait = made.pageable_destination || form == Form::kBlocking;
  bool executed = false;
  const auto& parameters = made.work->parameters();
  hostrt::driver::submit(*on.object, made.work, name, [&](hostrt::WorkPtr work) {
    executed = true;
    if (made.pageable_source) {
      // The caller may reuse pageable memory as soon as the call returns.
      hostrt::WorkPtr staged =
          std::make_shared<const SimWork>(on.context, CU_GRAPH_NODE_TYPE_MEMCPY,
                                          hostrt::stage_copy(made.work->inner()), parameters);
      const std::size_t bytes = native.WidthInBytes * native.Height * native.Depth;
      if (form == Form::kBlocking && bytes > kBlockingUpload) {
        staged = std::make_shared<LateWork>(std::move(staged));
        wait = false;
      }
      work = std::move(staged);
    }
    on.object->enqueue(std::move(work));
  });
  if (executed && wait) on.object->synchronize();
}

void peer_copy(const char* name, CUstream stream, const CUDA_MEMCPY3D& native) {
  CUstream_st& on = stream_of(stream);
  on.context->device.rules().check_not_capturing(on.object->capture(), name,
                                                 "a peer copy cannot be captured");
  copy(name, stream, native, Form::kAsync);
}

const void* pointer(CUdeviceptr address) { return reinterpret_cast<const void*>(address); }

}  // namespace

Copy make_copy(CUctx_st& context, const CUDA_MEMCPY3D& native) {
  Copy made;
  lockstep_copy_desc desc{};
  desc.struct_size = sizeof desc;
  desc.width = native.WidthInBytes;
  desc.height = native.Height;
  desc.depth = native.Depth;
  desc.source_device = desc.destination_device = -1;
  if (desc.width != 0 && desc.height != 0 && desc.depth != 0) {
    const Side from{native.srcMemoryType, native.srcHost,     native.srcDevice, native.srcPitch,
                    native.srcHeight,     native.srcXInBytes, native.srcY,      native.srcZ};
    const Side to{native.dstMemoryType, native.dstHost,     native.dstDevice, native.dstPitch,
                  native.dstHeight,     native.dstXInBytes, native.dstY,      native.dstZ};
    desc.source = from.start(desc.width, desc.height);
    desc.destination = to.start(desc.width, desc.height);
    desc.source_pitch = native.srcPitch;
    desc.destination_pitch = native.dstPitch;
    desc.source_slice_pitch = native.srcPitch * native.srcHeight;
    desc.destination_slice_pitch = native.dstPitch * native.dstHeight;
  }
  hostrt::CheckedCopy checked = hostrt::check_copy(context.device, desc);
  made.record = checked.record;
  made.pageable_source = checked.pageable_source;
  if (checked.work == nullptr) return made;
  std::uint32_t kind = 0;
  made.pageable_destination = !known(desc.destination, &kind);
  made.work = std::make_shared<const SimWork>(&context, CU_GRAPH_NODE_TYPE_MEMCPY,
                                              std::move(checked.work), native);
  return made;
}

}  // namespace cuda_sim

using namespace cuda_sim;

CUDA_SIM_API cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes,
                           CUstream stream) {
  return call("cuMemcpyAsync", [&] {
    copy("cuMemcpyAsync", stream, flat(pointer(destination), pointer(source), bytes), Form::kAsync);
  });
}
CUDA_SIM_API cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void* source, std::size_t bytes,
                                  CUstream stream) {
  return call("cuMemcpyHtoDAsync_v2", [&] {
    copy("cuMemcpyHtoDAsync", stream, flat(pointer(destination), source, bytes), Form::kAsync);
  });
}
CUDA_SIM_API cuMemcpyDtoHAsync_v2(void* destination, CUdeviceptr source, std::size_t bytes,
                                  CUstream stream) {
  return call("cuMemcpyDtoHAsync_v2", [&] {
    copy("cuMemcpyDtoHAsync", stream, flat(destination, pointer(source), bytes), Form::kAsync);
  });
}
CUDA_SIM_API cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes,
                                  CUstream stream) {
  return call("cuMemcpyDtoDAsync_v2", [&] {
    copy("cuMemcpyDtoDAsync", stream, flat(pointer(destination), pointer(source), bytes),
         Form::kAsync);
  });
}
CUDA_SIM_API cuMemcpyPeerAsync(CUdeviceptr destination, CUcontext to, CUdeviceptr source,
                               CUcontext from, std::size_t bytes, CUstream stream) {
  return call("cuMemcpyPeerAsync", [&] {
    live(to, CUDA_ERROR_INVALID_CONTEXT);
    live(from, CUDA_ERROR_INVALID_CONTEXT);
    peer_copy("cuMemcpyPeerAsync", stream, flat(pointer(destination), pointer(source), bytes));
  });
}
CUDA_SIM_API cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* native, CUstream stream) {
  return call("cuMemcpy2DAsync_v2", [&] {
    require(native);
    copy("cuMemcpy2DAsync", stream, widen(*native), Form::kAsync);
  });
}
CUDA_SIM_API cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* native, CUstream stream) {
  return call("cuMemcpy3DAsync_v2", [&] {
    require(native);
    copy("cuMemcpy3DAsync", stream, *native, Form::kAsync);
  });
}
CUDA_SIM_API cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* native, CUstream stream) {
  return call("cuMemcpy3DPeerAsync", [&] {
    require(native);
    peer_copy("cuMemcpy3DPeerAsync", stream, without_contexts(*native));
  });
}

CUDA_SIM_API cuMemcpy(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes) {
  return call("cuMemcpy", [&] {
    copy("cuMemcpy", nullptr, flat(pointer(destination), pointer(source), bytes), Form::kBlocking);
  });
}
CUDA_SIM_API cuMemcpyHtoD_v2(CUdeviceptr destination, const void* source, std::size_t bytes) {
  return call("cuMemcpyHtoD_v2", [&] {
    copy("cuMemcpyHtoD", nullptr, flat(pointer(destination), source, bytes), Form::kBlocking);
  });
}
CUDA_SIM_API cuMemcpyDtoH_v2(void* destination, CUdeviceptr source, std::size_t bytes) {
  return call("cuMemcpyDtoH_v2", [&] {
    copy("cuMemcpyDtoH", nullptr, flat(destination, pointer(source), bytes), Form::kBlocking);
  });
}
CUDA_SIM_API cuMemcpyDtoD_v2(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes) {
  return call("cuMemcpyDtoD_v2", [&] {
    copy("cuMemcpyDtoD", nullptr, flat(pointer(destination), pointer(source), bytes),
         Form::kBlocking);
  });
}
