// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "driver.h"

// Launches, copies and sets on streams.
namespace lockstep::cuda {
namespace {

void* to_pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

CUmemorytype type_of(gpu::Side side) {
  switch (side) {
    case gpu::Side::kHost:
      return CU_MEMORYTYPE_HOST;
    case gpu::Side::kDevice:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return CU_MEMORYTYPE_UNIFIED;
  }
}
gpu::Side side_of(CUmemorytype type) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return gpu::Side::kHost;
    case CU_MEMORYTYPE_UNIFIED:
      return gpu::Side::kAny;
    default:
      return gpu::Side::kDevice;
  }
}
std::uint64_t rows_of(std::uint64_t slice_pitch, std::uint64_t pitch, std::uint64_t height) {
  return pitch != 0 ? slice_pitch / pitch : height;
}

// What the driver's two- and three-dimensional forms have in common.
template <class Native>
Native flat_copy(const gpu::Copy& copy) {
  Native native;
  std::memset(&native, 0, sizeof native);
  native.srcMemoryType = type_of(copy.source_side);
  native.dstMemoryType = type_of(copy.destination_side);
  native.srcHost = to_pointer(copy.source);
  native.srcDevice = copy.source;
  native.dstHost = to_pointer(copy.destination);
  native.dstDevice = copy.destination;
  native.srcPitch = copy.source_pitch;
  native.dstPitch = copy.destination_pitch;
  native.WidthInBytes = copy.width;
  native.Height = copy.height;
  return native;
}

}  // namespace

CUDA_MEMCPY3D to_memcpy3d(const gpu::Copy& copy) {
  auto native = flat_copy<CUDA_MEMCPY3D>(copy);
  native.srcHeight = rows_of(copy.source_slice_pitch, copy.source_pitch, copy.height);
  native.dstHeight = rows_of(copy.destination_slice_pitch, copy.destination_pitch, copy.height);
  native.Depth = copy.depth;
  return native;
}

gpu::Copy from_memcpy3d(const CUDA_MEMCPY3D& native) {
  gpu::Copy copy;
  copy.source_side = side_of(native.srcMemoryType);
  copy.destination_side = side_of(native.dstMemoryType);
  copy.width = native.WidthInBytes;
  copy.height = native.Height != 0 ? native.Height : 1;
  copy.depth = native.Depth != 0 ? native.Depth : 1;
  const auto pitch = [&](std::size_t told) { return told != 0 ? told : copy.width; };
  copy.source_pitch = pitch(native.srcPitch);
  copy.destination_pitch = pitch(native.dstPitch);
  const auto rows = [&](std::size_t told) { return told != 0 ? told : copy.height; };
  copy.source_slice_pitch = copy.source_pitch * rows(native.srcHeight);
  copy.destination_slice_pitch = copy.destination_pitch * rows(native.dstHeight);
  const auto start = [](std::uint64_t base, std::size_t x, std::size_t y, std::size_t z,
                        std::uint64_t row,
                        std::uint64_t slice) { return base + x + y * row + z * slice; };
  const bool from_host = native.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool to_host = native.dstMemoryType == CU_MEMORYTYPE_HOST;
  copy.source = start(from_host ? reinterpret_cast<std::uintptr_t>(native.srcHost)
                                : static_cast<std::uint64_t>(native.srcDevice),
                      native.srcXInBytes, native.srcY, native.srcZ, copy.source_pitch,
                      copy.source_slice_pitch);
  copy.destination = start(to_host ? reinterpret_cast<std::uintptr_t>(native.dstHost)
                                   : static_cast<std::uint64_t>(native.dstDevice),
                           native.dstXInBytes, native.dstY, native.dstZ, copy.destination_pitch,
                           copy.destination_slice_pitch);
  return copy;
}

[[gnu::hot]] gpu::Result CudaDriver::launch(const gpu::KernelLaunch& launch, gpu::Handle stream) {
  const auto function = static_cast<CUfunction>(launch.function);
  const auto native_stream = static_cast<CUstream>(stream);
  if (launch.extended()) [[unlikely]]
    return launch_extended(launch, stream);
  return call_.cuLaunchKernel_(function, launch.grid.x, launch.grid.y, launch.grid.z,
                               launch.block.x, launch.block.y, launch.block.z, launch.shared_bytes,
                               native_stream, launch.arguments, nullptr);
}

gpu::Result CudaDriver::launch_extended(const gpu::KernelLaunch& launch, gpu::Handle stream) {
  CUlaunchAttribute attributes[4];
  std::memset(attributes, 0, sizeof attributes);
  CUlaunchConfig config;
  std::memset(&config, 0, sizeof config);
  config.gridDimX = launch.grid.x;
  config.gridDimY = launch.grid.y;
  config.gridDimZ = launch.grid.z;
  config.blockDimX = launch.block.x;
  config.blockDimY = launch.block.y;
  config.blockDimZ = launch.block.z;
  config.sharedMemBytes = launch.shared_bytes;
  config.hStream = static_cast<CUstream>(stream);
  config.attrs = attributes;
  if (launch.cluster.x != 0) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = launch.cluster.x;
    attribute.value.clusterDim.y = launch.cluster.y;
    attribute.value.clusterDim.z = launch.cluster.z;
  }
  if (launch.cooperative) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
  }
  if (launch.has_priority) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attribute.value.priority = launch.priority;
  }
  if (launch.programmatic) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
  }
  return call_.cuLaunchKernelEx_(&config, static_cast<CUfunction>(launch.function),
                                 launch.arguments, nullptr);
}

gpu::Result CudaDriver::launch_host(lockstep_host_function function, void* user,
                                    gpu::Handle stream) {
  return call_.cuLaunchHostFunc_(static_cast<CUstream>(stream), function, user);
}

gpu::Result CudaDriver::copy(const gpu::Copy& copy, gpu::Call call, gpu::Handle stream) {
  const auto on = static_cast<CUstream>(stream);
  switch (call) {
    case gpu::Call::kCopyHostToDevice:
      return call_.cuMemcpyHtoDAsync_(copy.destination, to_pointer(copy.source), copy.width, on);
    case gpu::Call::kCopyDeviceToHost:
      return call_.cuMemcpyDtoHAsync_(to_pointer(copy.destination), copy.source, copy.width, on);
    case gpu::Call::kCopyDeviceToDevice:
      return call_.cuMemcpyDtoDAsync_(copy.destination, copy.source, copy.width, on);
    case gpu::Call::kCopyPeer:
      return call_.cuMemcpyPeerAsync_(copy.destination,
                                      static_cast<CUcontext>(copy.destination_context), copy.source,
                                      static_cast<CUcontext>(copy.source_context), copy.width, on);
    case gpu::Call::kCopy2D: {
      const auto native = flat_copy<CUDA_MEMCPY2D>(copy);
      return call_.cuMemcpy2DAsync_(&native, on);
    }
    case gpu::Call::kCopy3D: {
      const CUDA_MEMCPY3D native = to_memcpy3d(copy);
      return call_.cuMemcpy3DAsync_(&native, on);
    }
    case gpu::Call::kCopy3DPeer: {
      const CUDA_MEMCPY3D flat = to_memcpy3d(copy);
      CUDA_MEMCPY3D_PEER native;
      std::memset(&native, 0, sizeof native);
      native.srcMemoryType = flat.srcMemoryType;
      native.srcDevice = flat.srcDevice;
      native.srcPitch = flat.srcPitch;
      native.srcHeight = flat.srcHeight;
      native.srcContext = static_cast<CUcontext>(copy.source_context);
      native.dstMemoryType = flat.dstMemoryType;
      native.dstDevice = flat.dstDevice;
      native.dstPitch = flat.dstPitch;
      native.dstHeight = flat.dstHeight;
      native.dstContext = static_cast<CUcontext>(copy.destination_context);
      native.WidthInBytes = flat.WidthInBytes;
      native.Height = flat.Height;
      native.Depth = flat.Depth;
      return call_.cuMemcpy3DPeerAsync_(&native, on);
    }
    default:
      return call_.cuMemcpyAsync_(copy.destination, copy.source, copy.width, on);
  }
}

gpu::Result CudaDriver::set(const gpu::Set& set, gpu::Call call, gpu::Handle stream) {
  const auto on = static_cast<CUstream>(stream);
  const std::uint64_t count = set.width * set.height;  // the flat forms take contiguous rows
  switch (call) {
    case gpu::Call::kSet8:
      return call_.cuMemsetD8Async_(set.destination, static_cast<unsigned char>(set.value), count,
                                    on);
    case gpu::Call::kSet16:
      return call_.cuMemsetD16Async_(set.destination, static_cast<unsigned short>(set.value), count,
                                     on);
    case gpu::Call::kSet32:
      return call_.cuMemsetD32Async_(set.destination, set.value, count, on);
    case gpu::Call::kSet2D8:
      return call_.cuMemsetD2D8Async_(set.destination, set.pitch,
                                      static_cast<unsigned char>(set.value), set.width, set.height,
                                      on);
    case gpu::Call::kSet2D16:
      return call_.cuMemsetD2D16Async_(set.destination, set.pitch,
                                       static_cast<unsigned short>(set.value), set.width,
                                       set.height, on);
    default:
      return call_.cuMemsetD2D32Async_(set.destination, set.pitch, set.value, set.width, set.height,
                                       on);
  }
}

}  // namespace lockstep::cuda
