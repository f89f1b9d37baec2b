// SPDX-License-Identifier: Apache-2.0
#include "transfer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "device.h"
#include "memory.h"
#include "module.h"
#include "record.h"

namespace lockstep::hostrt {
namespace {

// One side of a copy or set, in bytes.
struct Region {
  std::byte* base = nullptr;
  std::uint64_t pitch = 0;
  std::uint64_t slice = 0;
};
struct Extent {
  std::uint64_t width = 0, height = 1, depth = 1;
};

std::string text(const void* pointer) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%p", pointer);
  return buffer;
}

std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw Error(Native::kInvalidValue, "the extent is larger than the address space");
  }
  return product;
}

Region make_region(const char* side, const void* base, std::uint64_t pitch, std::uint64_t slice,
                   const Extent& extent) {
  if (pitch == 0) pitch = extent.width;
  if (pitch < extent.width) {
    throw Error(Native::kInvalidValue, std::string(side) + ": a pitch of " + std::to_string(pitch) +
                                           " bytes is less than the width of " +
                                           std::to_string(extent.width));
  }
  const std::uint64_t plane = multiply(pitch, extent.height);
  if (slice == 0) slice = plane;
  if (slice < plane) {
    throw Error(Native::kInvalidValue, std::string(side) + ": a slice pitch of " +
                                           std::to_string(slice) + " bytes is less than " +
                                           std::to_string(extent.height) + " rows of " +
                                           std::to_string(pitch));
  }
  return {static_cast<std::byte*>(const_cast<void*>(base)), pitch, slice};
}

// The module whose variable it is, which has to stay for as long as the work: its memory goes with
// it. Null for all other memory, whose owner is told to wait before it frees.
std::shared_ptr<const Module> owner_of(const char* side, const Region& region,
                                       const Allocation& allocation) {
  if (allocation.origin != Allocation::Origin::kGlobal) return nullptr;
  std::shared_ptr<const Module> module = allocation.module.lock();
  if (module == nullptr) {
    throw Error(Native::kInvalidValue, std::string(side) + ": " + text(region.base) +
                                           " is a variable of a module that was destroyed");
  }
  return module;
}

// What lies at `region`, after checking that all of it lies in there.
Allocation locate(const Device& device, const char* side, const Region& region,
                  const Extent& extent) {
  if (region.base == nullptr) {
    throw Error(Native::kInvalidValue, std::string(side) + ": null pointer");
  }
  Allocation allocation;  // kind 0: pageable host memory
  if (!device.memory().find(region.base, &allocation)) return allocation;
  std::uint64_t bytes = 0;
  if (__builtin_add_overflow(multiply(region.slice, extent.depth - 1),
                             multiply(region.pitch, extent.height - 1), &bytes) ||
      __builtin_add_overflow(bytes, extent.width, &bytes)) {
    throw Error(Native::kInvalidValue, "the extent is larger than the address space");
  }
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(region.base) - allocation.base;
  if (bytes > allocation.bytes - offset) {
    throw Error(Native::kInvalidValue, std::string(side) + ": " + std::to_string(bytes) +
                                           " bytes at " + text(region.base) + ", offset " +
                                           std::to_string(offset) +
                                           ", reach past the end of an allocation of " +
                                           std::to_string(allocation.bytes) + " bytes");
  }
  return allocation;
}

bool on_device(const Allocation& allocation) {
  return allocation.kind == LOCKSTEP_MEMORY_DEVICE || allocation.kind == LOCKSTEP_MEMORY_MANAGED;
}

std::uint32_t direction_of(const Allocation& source, const Allocation& destination) {
  if (on_device(source)) return on_device(destination) ? LOCKSTEP_COPY_DTOD : LOCKSTEP_COPY_DTOH;
  return on_device(destination) ? LOCKSTEP_COPY_HTOD : LOCKSTEP_COPY_HTOH;
}

const char* direction_name(std::uint32_t direction) {
  constexpr const char* kNames[] = {"any", "host to device", "device to host", "device to device",
                                    "host to host"};
  return direction < std::size(kNames) ? kNames[direction] : "unknown";
}

class CopyWork final : public Work {
 public:
  using Owner = std::shared_ptr<const Module>;  // null, or what the memory belongs to

  CopyWork(Region source, Owner source_owner, Region destination, Owner destination_owner,
           Extent extent, lockstep_record record)
      : source_(source),
        source_owner_(std::move(source_owner)),
        destination_(destination),
        destination_owner_(std::move(destination_owner)),
        extent_(extent),
        record_(record) {}

  FailurePtr run() const noexcept override {
    for (std::uint64_t z = 0; z < extent_.depth; ++z) {
      const std::byte* from = source_.base + z * source_.slice;
      std::byte* to = destination_.base + z * destination_.slice;
      if (source_.pitch == extent_.width && destination_.pitch == extent_.width) {
        std::memmove(to, from, extent_.width * extent_.height);
        continue;
      }
      for (std::uint64_t y = 0; y < extent_.height; ++y) {
        std::memmove(to + y * destination_.pitch, from + y * source_.pitch, extent_.width);
      }
    }
    return nullptr;
  }
  std::uint32_t node_kind() const noexcept override { return LOCKSTEP_NODE_COPY; }
  lockstep_record record() const override { return record_; }

  WorkPtr staged() const {
    auto work = std::make_shared<CopyWork>(Region{}, nullptr, destination_, destination_owner_,
                                           extent_, record_);
    work->storage_.resize(extent_.width * extent_.height * extent_.depth);
    work->source_ = {work->storage_.data(), extent_.width, extent_.width * extent_.height};
    CopyWork(source_, nullptr, work->source_, nullptr, extent_, record_).run();
    return work;
  }

 private:
  Region source_;
  Owner source_owner_;
  Region destination_;
  Owner destination_owner_;
  Extent extent_;
  lockstep_record record_;
  std::vector<std::byte> storage_;
};

class SetWork final : public Work {
 public:
  SetWork(Region destination, std::shared_ptr<const Module> owner, Extent extent,
          std::uint32_t value, std::uint32_t value_size, lockstep_record record)
      : destination_(destination),
        owner_(std::move(owner)),
        extent_(extent),
        value_(value),
        value_size_(value_size),
        record_(record) {}

  FailurePtr run() const noexcept override {
    for (std::uint64_t y = 0; y < extent_.height; ++y) {
      std::byte* const row = destination_.base + y * destination_.pitch;
      switch (value_size_) {
        case 1:
          std::memset(row, static_cast<int>(value_), extent_.width);
          break;
        case 2:
          std::fill_n(reinterpret_cast<std::uint16_t*>(row), extent_.width / 2,
                      static_cast<std::uint16_t>(value_));
          break;
        default:
          std::fill_n(reinterpret_cast<std::uint32_t*>(row), extent_.width / 4, value_);
          break;
      }
    }
    return nullptr;
  }
  std::uint32_t node_kind() const noexcept override { return LOCKSTEP_NODE_SET; }
  lockstep_record record() const override { return record_; }

 private:
  const Region destination_;
  const std::shared_ptr<const Module> owner_;
  const Extent extent_;
  const std::uint32_t value_;
  const std::uint32_t value_size_;
  const lockstep_record record_;
};

void check_side(const char* side, std::int32_t wanted, const Allocation& found) {
  if (wanted < 0 || wanted == found.device) return;
  throw Error(Native::kInvalidValue,
              std::string(side) + " is said to be on device " + std::to_string(wanted) + " but " +
                  (found.device < 0 ? std::string("is host memory")
                                    : "is on device " + std::to_string(found.device)));
}

}  // namespace

CheckedCopy check_copy(const Device& device, const lockstep_copy_desc& desc) {
  const CallNames& names = call_names();
  CheckedCopy result;
  result.record = blank_record(LOCKSTEP_RECORD_MEMCPY, 0, device.signed_ordinal(), 0);
  auto& copy = result.record.of.copy;
  copy.peer_device = -1;
  copy.source = reinterpret_cast<std::uintptr_t>(desc.source);
  copy.destination = reinterpret_cast<std::uintptr_t>(desc.destination);
  if (desc.expected_direction > LOCKSTEP_COPY_HTOH) {
    throw Error(Native::kInvalidValue,
                "unknown copy direction " + std::to_string(desc.expected_direction));
  }
  const bool empty = desc.width == 0 || desc.height == 0 || desc.depth == 0;
  if (empty) {
    Allocation source;
    Allocation destination;
    device.memory().find(desc.source, &source);
    device.memory().find(desc.destination, &destination);
    copy.direction = desc.expected_direction != LOCKSTEP_COPY_NONE
                         ? desc.expected_direction
                         : direction_of(source, destination);
    copy.width = 0;
    copy.height = copy.depth = 1;
    result.record.name = names.copy[copy.direction];
    return result;
  }

  const Extent extent{desc.width, desc.height, desc.depth};
  const Region source =
      make_region("source", desc.source, desc.source_pitch, desc.source_slice_pitch, extent);
  const Region destination = make_region("destination", desc.destination, desc.destination_pitch,
                                         desc.destination_slice_pitch, extent);
  const Allocation from = locate(device, "source", source, extent);
  const Allocation to = locate(device, "destination", destination, extent);
  check_side("the source", desc.source_device, from);
  check_side("the destination", desc.destination_device, to);
  copy.direction = direction_of(from, to);
  if (desc.expected_direction != LOCKSTEP_COPY_NONE && desc.expected_direction != copy.direction) {
    throw Error(Native::kInvalidValue,
                std::string("the copy was declared ") + direction_name(desc.expected_direction) +
                    ", but by its allocations it is " + direction_name(copy.direction));
  }
  copy.width = extent.width;
  copy.height = extent.height;
  copy.depth = extent.depth;
  copy.source_pitch = source.pitch;
  copy.source_slice_pitch = source.slice;
  copy.destination_pitch = destination.pitch;
  copy.destination_slice_pitch = destination.slice;
  const bool peer = copy.direction == LOCKSTEP_COPY_DTOD && from.device != to.device;
  if (peer) {
    result.record.device = from.device;
    copy.peer_device = to.device;
  }
  result.record.name = peer                ? names.copy_peer
                       : extent.depth > 1  ? names.copy_3d
                       : extent.height > 1 ? names.copy_2d
                                           : names.copy[copy.direction];
  result.pageable_source = from.kind == LOCKSTEP_MEMORY_UNKNOWN;
  result.work =
      std::make_shared<CopyWork>(source, owner_of("source", source, from), destination,
                                 owner_of("destination", destination, to), extent, result.record);
  return result;
}

WorkPtr stage_copy(const Work& copy) { return static_cast<const CopyWork&>(copy).staged(); }

CheckedSet check_set(const Device& device, const lockstep_set_desc& desc) {
  const std::uint32_t size = desc.value_size;
  if (size != 1 && size != 2 && size != 4) {
    throw Error(Native::kInvalidValue,
                "a set has values of 1, 2 or 4 bytes, not " + std::to_string(size));
  }
  const CallNames& names = call_names();
  const std::uint32_t value = size == 4 ? desc.value : desc.value & ((1U << (8 * size)) - 1);
  CheckedSet result;
  lockstep_record record =
      blank_record(LOCKSTEP_RECORD_MEMSET, names.set[size], device.signed_ordinal(), 0);
  auto& set = record.of.set;
  set.destination = reinterpret_cast<std::uintptr_t>(desc.destination);
  set.value = value;
  set.value_size = size;
  if (desc.width == 0 || desc.height == 0 || desc.depth == 0) {
    set.height = 1;
    result.empty_record = record;
    return result;
  }

  const Extent extent{multiply(desc.width, size), desc.height, desc.depth};
  const Region region =
      make_region("destination", desc.destination, desc.pitch, desc.slice_pitch, extent);
  const bool rows = extent.height > 1 || extent.depth > 1;
  if (set.destination % size != 0 ||
      (rows && (region.pitch % size != 0 || region.slice % size != 0))) {
    throw Error(Native::kInvalidValue, "a set of " + std::to_string(8 * size) +
                                           "-bit values needs an address and pitches that are "
                                           "multiples of " +
                                           std::to_string(size) + ": " + text(desc.destination) +
                                           ", " + std::to_string(region.pitch));
  }
  const Allocation to = locate(device, "destination", region, extent);
  if (to.kind == LOCKSTEP_MEMORY_UNKNOWN) {
    throw Error(Native::kInvalidValue,
                text(desc.destination) +
                    " is pageable host memory (or was freed): a device can only set memory it "
                    "knows");
  }
  const std::shared_ptr<const Module> owner = owner_of("destination", region, to);
  if (rows) record.name = names.set_2d[size];
  set.width = extent.width;
  set.height = extent.height;
  set.pitch = region.pitch;
  for (std::uint64_t z = 0; z < extent.depth; ++z) {
    Region plane = region;
    plane.base += z * region.slice;
    set.destination = reinterpret_cast<std::uintptr_t>(plane.base);
    result.works.push_back(std::make_shared<SetWork>(
        plane, owner, Extent{extent.width, extent.height, 1}, value, size, record));
  }
  return result;
}

}  // namespace lockstep::hostrt
