// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>

#include "call.h"

// Memory: device, pinned, registered, in stream order; pools; questions about pointers.
namespace cuda_sim {
namespace {

hostrt::Allocation find(const void* pointer, bool* known) {
  hostrt::Allocation allocation;
  *known = hostrt::Runtime::require().memory().find(pointer, &allocation);
  return allocation;
}
void* to_pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

CUdeviceptr allocate(CUctx_st& context, std::size_t bytes, std::uint32_t kind,
                     hostrt::Stream* stream) {
  if (bytes == 0) refuse(CUDA_ERROR_INVALID_VALUE, "0 bytes");
  if (faults().out_of_memory(bytes)) refuse(CUDA_ERROR_OUT_OF_MEMORY, "CUDA_SIM_OOM_BYTES");
  return reinterpret_cast<CUdeviceptr>(
      hostrt::driver::allocate(context.device, bytes, kind, stream));
}

// Frees what was allocated as `kind`; like the driver, the wrong call is refused.
void free_kind(void* pointer, std::uint32_t kind) {
  CUctx_st& context = current_context();
  if (pointer == nullptr) return;
  bool known = false;
  const hostrt::Allocation allocation = find(pointer, &known);
  if (!known || allocation.kind != kind) refuse(CUDA_ERROR_INVALID_VALUE, "not such memory");
  const bool own = allocation.device < 0 || allocation.device == context.device.signed_ordinal();
  hostrt::Device& device = own ? context.device : primary_context(allocation.device).device;
  hostrt::driver::free(device, pointer, nullptr);
}

CUmemPoolHandle_st& default_pool(CUdevice device) {
  static auto* const pools = new std::map<CUcontext, CUmemPoolHandle_st>;
  static auto* const mutex = new std::mutex;
  CUcontext context = &primary_context(device);
  const std::lock_guard lock(*mutex);
  CUmemPoolHandle_st& pool = (*pools)[context];
  pool.context = context;
  Live<CUmemPoolHandle_st>::all().add(&pool);
  return pool;
}

// One answer of cuPointerGetAttribute; false: it has none for such a pointer.
bool pointer_attribute(CUpointer_attribute attribute, const void* pointer, void* data) {
  bool known = false;
  const hostrt::Allocation allocation = find(pointer, &known);
  const bool device = allocation.kind == LOCKSTEP_MEMORY_DEVICE;
  const auto give = [&](const auto& value) { std::memcpy(data, &value, sizeof value); };
  switch (static_cast<int>(attribute)) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      give(known ? &primary_context(device ? allocation.device : 0) : nullptr);
      return known;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      give(static_cast<unsigned>(!known ? 0 : device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
      return known;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: {
      const bool host = attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER;
      const bool has = known && !(host && device);
      give(has ? pointer : nullptr);
      return has;
    }
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      give(static_cast<unsigned long long>(allocation.id));
      return known;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      give(0U);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      give(known ? (device ? allocation.device : 0) : -2);
      return known;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      give(static_cast<CUdeviceptr>(allocation.base));
      return known;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      give(static_cast<std::size_t>(allocation.bytes));
      return known;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      give(known ? 1 : 0);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      give(static_cast<CUmemoryPool>(nullptr));
      return known;
    default:
      refuse(CUDA_ERROR_INVALID_VALUE, "unknown attribute");
  }
}

}  // namespace
}  // namespace cuda_sim

using namespace cuda_sim;

CUDA_SIM_API cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return call("cuMemGetInfo_v2", [&] {
    require(free);
    require(total);
    std::uint64_t free_bytes = 0;
    std::uint64_t total_bytes = 0;
    hostrt::Device& device = current_context().device;
    device.memory().usage(device.signed_ordinal(), &free_bytes, &total_bytes);
    *free = free_bytes;
    *total = total_bytes;
  });
}
CUDA_SIM_API cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  return call("cuMemAlloc_v2", [&] {
    require(address);
    *address = allocate(current_context(), bytes, LOCKSTEP_MEMORY_DEVICE, nullptr);
  });
}
CUDA_SIM_API cuMemFree_v2(CUdeviceptr address) {
  return call("cuMemFree_v2", [&] { free_kind(to_pointer(address), LOCKSTEP_MEMORY_DEVICE); });
}
CUDA_SIM_API cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return call("cuMemHostAlloc", [&] {
    require(pointer);
    *pointer = to_pointer(allocate(current_context(), bytes, LOCKSTEP_MEMORY_PINNED, nullptr));
  });
}
CUDA_SIM_API cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}
CUDA_SIM_API cuMemFreeHost(void* pointer) {
  return call("cuMemFreeHost", [&] { free_kind(pointer, LOCKSTEP_MEMORY_PINNED); });
}
CUDA_SIM_API cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer, unsigned) {
  return call("cuMemHostGetDevicePointer_v2", [&] {
    require(address);
    current_context();
    bool known = false;
    const hostrt::Allocation allocation = find(pointer, &known);
    if (!known || allocation.kind != LOCKSTEP_MEMORY_PINNED) {
      refuse(CUDA_ERROR_INVALID_VALUE, "not pinned memory");
    }
    *address = reinterpret_cast<CUdeviceptr>(pointer);
  });
}
CUDA_SIM_API cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned) {
  return call("cuMemHostRegister_v2", [&] {
    CUctx_st& context = current_context();
    bool known = false;
    const hostrt::Allocation allocation = find(pointer, &known);
    if (known && allocation.origin == hostrt::Allocation::Origin::kRegistered) {
      refuse(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "registered before");
    }
    hostrt::driver::register_memory(context.device, pointer, bytes);
  });
}
CUDA_SIM_API cuMemHostUnregister(void* pointer) {
  return call("cuMemHostUnregister", [&] {
    CUctx_st& context = current_context();
    bool known = false;
    const hostrt::Allocation allocation = find(pointer, &known);
    if (!known || allocation.origin != hostrt::Allocation::Origin::kRegistered ||
        allocation.pointer() != pointer) {
      refuse(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "not registered");
    }
    hostrt::driver::unregister_memory(context.device, pointer);
  });
}

CUDA_SIM_API cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  return call("cuMemAllocAsync", [&] {
    require(address);
    CUstream_st& on = stream_of(stream);
    *address = allocate(*on.context, bytes, LOCKSTEP_MEMORY_DEVICE, on.object.get());
  });
}
CUDA_SIM_API cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool,
                                     CUstream stream) {
  return call("cuMemAllocFromPoolAsync", [&] {
    require(address);
    CUstream_st& on = stream_of(stream);
    if (live(pool, CUDA_ERROR_INVALID_VALUE).context != on.context) {
      refuse(CUDA_ERROR_INVALID_VALUE, "the pool belongs to another device");
    }
    *address = allocate(*on.context, bytes, LOCKSTEP_MEMORY_DEVICE, on.object.get());
  });
}
CUDA_SIM_API cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return call("cuMemFreeAsync", [&] {
    CUstream_st& on = stream_of(stream);
    if (address == 0) refuse(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    hostrt::driver::free(on.context->device, to_pointer(address), on.object.get());
  });
}
CUDA_SIM_API cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return call("cuDeviceGetDefaultMemPool", [&] {
    require(pool);
    *pool = &default_pool(device);
  });
}
CUDA_SIM_API cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return cuDeviceGetDefaultMemPool(pool, device);
}
CUDA_SIM_API cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return call("cuMemPoolGetAttribute", [&] {
    require(value);
    const CUmemPoolHandle_st& of = live(pool, CUDA_ERROR_INVALID_VALUE);
    cuuint64_t number = 0;
    switch (static_cast<int>(attribute)) {
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        number = of.release_threshold.load();
        break;
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: {
        std::uint64_t free = 0;
        std::uint64_t total = 0;
        hostrt::Device& device = of.context->device;
        device.memory().usage(device.signed_ordinal(), &free, &total);
        number = total - free;
        break;
      }
      default:
        refuse(CUDA_ERROR_INVALID_VALUE, "not an attribute of simulated pools");
    }
    std::memcpy(value, &number, sizeof number);
  });
}
CUDA_SIM_API cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return call("cuMemPoolSetAttribute", [&] {
    require(value);
    CUmemPoolHandle_st& of = live(pool, CUDA_ERROR_INVALID_VALUE);
    if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
      refuse(CUDA_ERROR_INVALID_VALUE, "not an attribute of simulated pools that can be set");
    }
    cuuint64_t number = 0;
    std::memcpy(&number, value, sizeof number);
    of.release_threshold.store(number);
  });
}
// There is nothing to give back: the pool keeps no memory.
CUDA_SIM_API cuMemPoolTrimTo(CUmemoryPool pool, std::size_t) {
  return call("cuMemPoolTrimTo", [&] {
    live(pool, CUDA_ERROR_INVALID_VALUE).context->device.rules().check_unsafe("cuMemPoolTrimTo");
  });
}

CUDA_SIM_API cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  return call("cuPointerGetAttribute", [&] {
    require(data);
    current_context();
    if (!pointer_attribute(attribute, to_pointer(address), data)) {
      refuse(CUDA_ERROR_INVALID_VALUE, "not memory of the driver");
    }
  });
}
// Asked together, unknown pointers are answered with zeros and no error.
CUDA_SIM_API cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                    CUdeviceptr address) {
  return call("cuPointerGetAttributes", [&] {
    require(attributes);
    require(data);
    current_context();
    for (unsigned i = 0; i < count; ++i) {
      pointer_attribute(attributes[i], to_pointer(address), data[i]);
    }
  });
}
CUDA_SIM_API cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  return call("cuMemGetAddressRange_v2", [&] {
    current_context();
    bool known = false;
    const hostrt::Allocation allocation = find(to_pointer(address), &known);
    if (!known) refuse(CUDA_ERROR_NOT_FOUND, "not memory of the driver");
    if (base != nullptr) *base = allocation.base;
    if (bytes != nullptr) *bytes = allocation.bytes;
  });
}
