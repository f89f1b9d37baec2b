// SPDX-License-Identifier: Apache-2.0
#include "types.h"

#include <cstring>

namespace lockstep::hip {
namespace {

// As 5.3 and later count; what 5.2 calls 1 … 8 is 0 … 7 there, and its 1-D and symbol copies have
// numbers of their own.
enum NodeType : int {
  kKernel = 0,
  kMemcpy,
  kMemset,
  kHost,
  kGraph,
  kEmpty,
  kWaitEvent,
  kEventRecord,
  kSemaphoreSignal,
  kSemaphoreWait,
  kMemAlloc,
  kMemFree,
  kMemcpyFromSymbol,
  kMemcpyToSymbol,
  kBatchMemOp,
};

int current_type(int type, const Version& version) {
  if (!version.before(5, 3)) return type;
  switch (type) {
    case 9:
    case 10:
    case 11:
      return kMemcpy;
    default:
      return type >= 1 && type <= 8 ? type - 1 : -1;
  }
}

gpu::Side side_of(bool host, hipMemcpyKind kind) {
  if (kind == hipMemcpyDefault) return gpu::Side::kAny;
  return host ? gpu::Side::kHost : gpu::Side::kDevice;
}

std::uint64_t to_number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }
void* to_pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

std::uint32_t node_kind(int type, const Version& version) {
  switch (current_type(type, version)) {
    case kKernel:
      return LOCKSTEP_NODE_KERNEL;
    case kMemcpy:
      return LOCKSTEP_NODE_COPY;
    case kMemset:
      return LOCKSTEP_NODE_SET;
    case kHost:
      return LOCKSTEP_NODE_HOST;
    case kGraph:
      return LOCKSTEP_NODE_CHILD_GRAPH;
    case kEmpty:
      return LOCKSTEP_NODE_EMPTY;
    case kWaitEvent:
      return LOCKSTEP_NODE_EVENT_WAIT;
    case kEventRecord:
      return LOCKSTEP_NODE_EVENT_RECORD;
    case kMemAlloc:
      return LOCKSTEP_NODE_ALLOC;
    case kMemFree:
      return LOCKSTEP_NODE_FREE;
    default:
      return LOCKSTEP_NODE_OTHER;
  }
}

const char* node_kind_name(int type, const Version& version) {
  switch (current_type(type, version)) {
    case kSemaphoreSignal:
    case kSemaphoreWait:
      return "external_semaphore";
    case kMemcpyFromSymbol:
    case kMemcpyToSymbol:
      return "symbol_copy";
    case kBatchMemOp:
      return "batch_mem_op";
    default:
      return "unknown node";
  }
}

std::uint32_t memory_kind(const PointerAttributes& attributes, const Version& version) {
  if (attributes.is_managed != 0) return LOCKSTEP_MEMORY_MANAGED;
  if (version.major < 6) {
    switch (attributes.type) {
      case 0:
        return LOCKSTEP_MEMORY_PINNED;
      case 1:
      case 2:  // an array
        return LOCKSTEP_MEMORY_DEVICE;
      case 3:  // unified
      case 4:
        return LOCKSTEP_MEMORY_MANAGED;
      default:
        return LOCKSTEP_MEMORY_UNKNOWN;
    }
  }
  switch (attributes.type) {
    case 1:
      return LOCKSTEP_MEMORY_PINNED;
    case 2:
    case 10:  // an array
      return LOCKSTEP_MEMORY_DEVICE;
    case 3:
    case 11:  // unified
      return LOCKSTEP_MEMORY_MANAGED;
    default:
      return LOCKSTEP_MEMORY_UNKNOWN;
  }
}

std::uint32_t update_outcome(int result) {
  switch (result) {
    case 0:
      return LOCKSTEP_UPDATE_DONE;
    case 2:
      return LOCKSTEP_UPDATE_TOPOLOGY_CHANGED;
    case 3:
      return LOCKSTEP_UPDATE_NODE_TYPE_CHANGED;
    case 4:
    case 7:  // the new function cannot take the old one's place
      return LOCKSTEP_UPDATE_FUNCTION_CHANGED;
    case 5:
      return LOCKSTEP_UPDATE_PARAMETERS_CHANGED;
    default:
      return LOCKSTEP_UPDATE_NOT_SUPPORTED;
  }
}

lockstep_code translate_error(int result) {
  switch (result) {
    case 9:    // invalid configuration
    case 12:   // invalid pitch
    case 13:   // invalid symbol
    case 17:   // invalid device pointer
    case 21:   // invalid direction of a copy
    case 52:   // no configuration
    case 98:   // invalid device function
    case 218:  // invalid kernel file
    case 303:  // shared object initialisation: a code object that does not fit
    case 911:  // invalid channel descriptor
    case 912:  // invalid texture
      return LOCKSTEP_E_INVALID_ARGUMENT;
    case 53:  // an earlier launch failed
      return LOCKSTEP_E_LAUNCH_FAILED;
    case 1052:  // the HSA layer has no memory
      return LOCKSTEP_E_OUT_OF_MEMORY;
    case 1053:  // another error of the HSA layer
    case 1054:
      return LOCKSTEP_E_INTERNAL;
    default:
      return -1;
  }
}

hipMemcpyKind copy_kind(gpu::Side from, gpu::Side to) {
  if (from == gpu::Side::kAny || to == gpu::Side::kAny) return hipMemcpyDefault;
  if (from == gpu::Side::kHost) {
    return to == gpu::Side::kHost ? hipMemcpyHostToHost : hipMemcpyHostToDevice;
  }
  return to == gpu::Side::kHost ? hipMemcpyDeviceToHost : hipMemcpyDeviceToDevice;
}

hipMemcpy3DParms to_memcpy3d(const gpu::Copy& copy) {
  hipMemcpy3DParms native;
  std::memset(static_cast<void*>(&native), 0, sizeof native);
  const auto rows = [&](std::uint64_t slice, std::uint64_t pitch) {
    return pitch != 0 ? slice / pitch : copy.height;
  };
  native.srcPtr.ptr = to_pointer(copy.source);
  native.srcPtr.pitch = copy.source_pitch;
  native.srcPtr.xsize = copy.width;
  native.srcPtr.ysize = rows(copy.source_slice_pitch, copy.source_pitch);
  native.dstPtr.ptr = to_pointer(copy.destination);
  native.dstPtr.pitch = copy.destination_pitch;
  native.dstPtr.xsize = copy.width;
  native.dstPtr.ysize = rows(copy.destination_slice_pitch, copy.destination_pitch);
  native.extent.width = copy.width;
  native.extent.height = copy.height;
  native.extent.depth = copy.depth;
  native.kind = copy_kind(copy.source_side, copy.destination_side);
  return native;
}

gpu::Copy from_memcpy3d(const hipMemcpy3DParms& native) {
  gpu::Copy copy;
  const int kind = native.kind;
  copy.source_side =
      side_of(kind == hipMemcpyHostToHost || kind == hipMemcpyHostToDevice, native.kind);
  copy.destination_side =
      side_of(kind == hipMemcpyHostToHost || kind == hipMemcpyDeviceToHost, native.kind);
  copy.width = native.extent.width;
  copy.height = native.extent.height != 0 ? native.extent.height : 1;
  copy.depth = native.extent.depth != 0 ? native.extent.depth : 1;
  const auto pitch = [&](std::size_t told) { return told != 0 ? told : copy.width; };
  const auto rows = [&](std::size_t told) { return told != 0 ? told : copy.height; };
  copy.source_pitch = pitch(native.srcPtr.pitch);
  copy.destination_pitch = pitch(native.dstPtr.pitch);
  copy.source_slice_pitch = copy.source_pitch * rows(native.srcPtr.ysize);
  copy.destination_slice_pitch = copy.destination_pitch * rows(native.dstPtr.ysize);
  copy.source = to_number(native.srcPtr.ptr) + native.srcPos.x +
                native.srcPos.y * copy.source_pitch + native.srcPos.z * copy.source_slice_pitch;
  copy.destination = to_number(native.dstPtr.ptr) + native.dstPos.x +
                     native.dstPos.y * copy.destination_pitch +
                     native.dstPos.z * copy.destination_slice_pitch;
  return copy;
}

hipMemsetParams to_memset(const gpu::Set& set) {
  hipMemsetParams native;
  std::memset(&native, 0, sizeof native);
  native.dst = to_pointer(set.destination);
  native.elementSize = set.value_size;
  native.width = set.width;
  native.height = set.height;
  native.value = set.value;
  native.pitch = set.height > 1 ? set.pitch : set.width * set.value_size;
  return native;
}

gpu::Set from_memset(const hipMemsetParams& native) {
  gpu::Set set;
  set.destination = to_number(native.dst);
  set.value = native.value;
  set.value_size = native.elementSize;
  set.width = native.width;
  set.height = native.height != 0 ? native.height : 1;
  set.pitch =
      set.height > 1 && native.pitch != 0 ? native.pitch : native.width * native.elementSize;
  return set;
}

bool is_byte_pattern(const gpu::Set& set) {
  const std::uint32_t byte = set.value & 0xFFU;
  const std::uint32_t repeated = set.value_size == 1   ? byte
                                 : set.value_size == 2 ? byte * 0x0101U
                                                       : byte * 0x01010101U;
  return repeated == set.value;
}

}  // namespace lockstep::hip
