// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <mutex>

#include "../gpu/capture.h"
#include "driver.h"
#include "refusal.h"

// Launches, copies and sets on streams.
namespace lockstep::hip {
namespace {

void* to_pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

struct HostCall {
  lockstep_host_function function;
  void* user;
};
void run_host_call(hipStream_t, hipError_t, void* data) {
  const std::unique_ptr<HostCall> call(static_cast<HostCall*>(data));
  call->function(call->user);
  host_call_ended();
}

}  // namespace

gpu::Result HipDriver::launch(const gpu::KernelLaunch& launch, gpu::Handle stream) {
  const auto on = static_cast<hipStream_t>(stream);
  return captures_.enqueue(on, "hipModuleLaunchKernel", [&] { return enqueue_launch(launch, on); });
}
gpu::Result HipDriver::launch_host(lockstep_host_function function, void* user,
                                   gpu::Handle stream) {
  const auto on = static_cast<hipStream_t>(stream);
  return captures_.enqueue(on, "hipLaunchHostFunc", [&] {
    return call_.hipLaunchHostFunc_ != nullptr ? call_.hipLaunchHostFunc_(on, function, user)
                                               : launch_by_callback(function, user, on);
  });
}
gpu::Result HipDriver::copy(const gpu::Copy& copy, gpu::Call call, gpu::Handle stream) {
  const auto on = static_cast<hipStream_t>(stream);
  return captures_.enqueue(on, call_name(call), [&] { return enqueue_copy(copy, call, on); });
}
gpu::Result HipDriver::set(const gpu::Set& set, gpu::Call call, gpu::Handle stream) {
  const auto on = static_cast<hipStream_t>(stream);
  return captures_.enqueue(on, call_name(call), [&] { return enqueue_set(set, call, on); });
}

gpu::Result HipDriver::enqueue_launch(const gpu::KernelLaunch& launch, hipStream_t native_stream) {
  const auto function = static_cast<hipFunction_t>(launch.function);
  if (!launch.extended()) [[likely]] {
    return call_.hipModuleLaunchKernel_(
        function, launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x, launch.block.y,
        launch.block.z, launch.shared_bytes, native_stream, launch.arguments, nullptr);
  }
  // hipDrvLaunchKernelEx, which takes attributes, cannot be captured before the middle of 2026.
  const bool only_cooperative =
      launch.cooperative && launch.cluster.x == 0 && !launch.has_priority && !launch.programmatic;
  if (!only_cooperative || call_.hipModuleLaunchCooperativeKernel_ == nullptr) {
    return not_supported(
        "of launch attributes only cooperative is there, from ROCm 5.7 on: a capture of AMD's "
        "takes "
        "no others");
  }
  return call_.hipModuleLaunchCooperativeKernel_(
      function, launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x, launch.block.y,
      launch.block.z, launch.shared_bytes, native_stream, launch.arguments);
}

gpu::Result HipDriver::launch_by_callback(lockstep_host_function function, void* user,
                                          hipStream_t stream) {
  if (call_.hipStreamAddCallback_ == nullptr) {
    return not_supported("this release has neither hipLaunchHostFunc nor hipStreamAddCallback");
  }
  // A replay would run it, and free what it was given, more than once.
  if (gpu::captures_open()) {
    return not_supported("releases before ROCm 5.7 do not capture host functions");
  }
  auto call = std::make_unique<HostCall>(HostCall{function, user});
  host_call_begins();
  const int result = call_.hipStreamAddCallback_(stream, run_host_call, call.get(), 0);
  if (result == hipSuccess) {
    (void)call.release();  // run_host_call frees it
  } else {
    host_call_ended();
  }
  return result;
}

gpu::Result HipDriver::enqueue_copy(const gpu::Copy& copy, gpu::Call call, hipStream_t on) {
  void* const to = to_pointer(copy.destination);
  void* const from = to_pointer(copy.source);
  switch (call) {
    case gpu::Call::kCopyHostToDevice:
      return call_.hipMemcpyHtoDAsync_(to, from, copy.width, on);
    case gpu::Call::kCopyDeviceToHost:
      return call_.hipMemcpyDtoHAsync_(to, from, copy.width, on);
    case gpu::Call::kCopyDeviceToDevice:
      return call_.hipMemcpyDtoDAsync_(to, from, copy.width, on);
    case gpu::Call::kCopyPeer:
      return call_.hipMemcpyPeerAsync_(to, copy.destination_device, from, copy.source_device,
                                       copy.width, on);
    case gpu::Call::kCopy2D:
      return call_.hipMemcpy2DAsync_(to, copy.destination_pitch, from, copy.source_pitch,
                                     copy.width, copy.height,
                                     copy_kind(copy.source_side, copy.destination_side), on);
    case gpu::Call::kCopy3D:
    case gpu::Call::kCopy3DPeer: {
      const hipMemcpy3DParms native = to_memcpy3d(copy);
      return call_.hipMemcpy3DAsync_(&native, on);
    }
    default:
      return call_.hipMemcpyAsync_(to, from, copy.width,
                                   copy_kind(copy.source_side, copy.destination_side), on);
  }
}

gpu::Result HipDriver::enqueue_set(const gpu::Set& set, gpu::Call call, hipStream_t on) {
  void* const to = to_pointer(set.destination);
  const std::uint64_t count = set.width * set.height;  // the flat forms take contiguous rows
  if (is_broken_set(set.destination, count * set.value_size) &&
      (call == gpu::Call::kSet8 || call == gpu::Call::kSet16 || call == gpu::Call::kSet32)) {
    return set_bytes(set, count * set.value_size, on);
  }
  switch (call) {
    case gpu::Call::kSet8:
      return call_.hipMemsetD8Async_(to, static_cast<unsigned char>(set.value), count, on);
    case gpu::Call::kSet16:
      return call_.hipMemsetD16Async_(to, static_cast<unsigned short>(set.value), count, on);
    case gpu::Call::kSet32:
      return call_.hipMemsetD32Async_(to, static_cast<int>(set.value), count, on);
    default:
      break;
  }
  // 5.7 answers that an argument is invalid.
  if (library_.version.before(6, 0) && captures_now(on)) {
    return not_supported("ROCm 5 does not capture sets of several rows with a pitch");
  }
  if (is_byte_pattern(set)) {
    return call_.hipMemset2DAsync_(to, set.pitch, static_cast<int>(set.value & 0xFFU),
                                   set.width * set.value_size, set.height, on);
  }
  if (set.value_size == 2 && call_.hipMemsetD2D16Async_ != nullptr) {
    return call_.hipMemsetD2D16Async_(to, set.pitch, static_cast<unsigned short>(set.value),
                                      set.width, set.height, on);
  }
  if (set.value_size == 4 && call_.hipMemsetD2D32Async_ != nullptr) {
    return call_.hipMemsetD2D32Async_(to, set.pitch, set.value, set.width, set.height, on);
  }
  return set_rows(set, on);
}

// The runtime is asked, since the rules are locked while they watch over a call.
bool HipDriver::captures_now(hipStream_t stream) const {
  if (!gpu::captures_open()) return false;
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  return call_.hipStreamGetCaptureInfo_v2_(stream, &status, nullptr, nullptr, nullptr, nullptr) ==
             hipSuccess &&
         status != hipStreamCaptureStatusNone;
}

// 5.2 fills up to the next multiple of 8 first, and does not look whether the set ends before it:
// it writes behind the end, and then everywhere.
bool HipDriver::is_broken_set(std::uint64_t destination, std::uint64_t bytes) const {
  const std::uint64_t head = (8 - destination % 8) % 8;
  return bytes < head && library_.version.before(5, 3);
}

// Byte by byte, copied from a table of all bytes: every other form of a set ends in the same place.
gpu::Result HipDriver::set_bytes(const gpu::Set& set, std::uint64_t bytes, hipStream_t stream) {
  constexpr std::size_t kValues = 256;
  std::call_once(byte_table_made_, [&] {
    void* made = nullptr;
    if (call_.hipHostMalloc_(&made, kValues, hipHostMallocPortable) != hipSuccess) return;
    byte_table_ = static_cast<unsigned char*>(made);  // never given back
    for (std::size_t value = 0; value < kValues; ++value) {
      byte_table_[value] = static_cast<unsigned char>(value);
    }
  });
  if (byte_table_ == nullptr) return hipErrorOutOfMemory;
  for (std::uint64_t i = 0; i < bytes; ++i) {
    const std::uint32_t value = set.value >> i % set.value_size * 8 & 0xFFU;
    const int result =
        call_.hipMemcpyHtoDAsync_(to_pointer(set.destination + i), byte_table_ + value, 1, stream);
    if (result != hipSuccess) return result;
  }
  return hipSuccess;
}

// One call a row, where the runtime sets no 16 or 32-bit values in two dimensions. A capture would
// make as many nodes of it, which is another graph than the same program makes elsewhere.
gpu::Result HipDriver::set_rows(const gpu::Set& set, hipStream_t stream) {
  if (captures_now(stream)) {
    return not_supported(
        "releases before ROCm 7.2 set 16 and 32-bit values row by row, which is no single node");
  }
  gpu::Set one = set;
  one.height = 1;
  const gpu::Call call = set.value_size == 2 ? gpu::Call::kSet16 : gpu::Call::kSet32;
  for (std::uint64_t row = 0; row < set.height; ++row) {
    one.destination = set.destination + row * set.pitch;
    if (const gpu::Result result = enqueue_set(one, call, stream)) return result;
  }
  return hipSuccess;
}

}  // namespace lockstep::hip
