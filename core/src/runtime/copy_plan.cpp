// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/copy_plan.h"

#include <lockstep/error.h>

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "src/record/record_entry.h"
#include "src/runtime/relaxed_mode.h"

namespace lockstep::runtime {
namespace {

[[noreturn]] void refuse(const char* function, const std::string& where, const std::string& what) {
  throw_invalid(fmt::format("{}: {}", function, what), where);
}

/// From the first byte of the first row to the end of the last slice, padding included: more than
/// there are addresses?
bool wraps(std::uint64_t row_bytes, const Extent& extent, std::uint64_t pitch,
           std::uint64_t slice_pitch, const void* first) {
  const std::uint64_t row = pitch == 0 || extent.height == 1 ? row_bytes : pitch;
  std::uint64_t plane = 0, bytes = 0, end = 0;
  if (__builtin_mul_overflow(row, extent.height, &plane)) return true;
  if (slice_pitch != 0 && extent.depth != 1) plane = slice_pitch;
  return __builtin_mul_overflow(plane, extent.depth, &bytes) ||
         __builtin_add_overflow(reinterpret_cast<std::uintptr_t>(first), bytes, &end);
}

void check_pitches(std::uint64_t row_bytes, const Extent& extent, std::uint64_t pitch,
                   std::uint64_t slice_pitch, const void* first, const char* side,
                   const char* function, const std::string& where) {
  if (wraps(row_bytes, extent, pitch, slice_pitch, first)) {
    refuse(function, where,
           fmt::format("{} slices of {} rows of {} bytes reach past the end of the address space "
                       "behind the {}",
                       extent.depth, extent.height, row_bytes, side));
  }
  if (pitch != 0 && pitch < row_bytes) {
    refuse(function, where,
           fmt::format("{} pitch {} is smaller than a row of {} bytes", side, pitch, row_bytes));
  }
  const std::uint64_t row = pitch == 0 ? row_bytes : pitch;
  if (slice_pitch != 0 && extent.depth > 1 && slice_pitch < row * extent.height) {
    refuse(function, where,
           fmt::format("{} slice pitch {} is smaller than a plane of {} bytes", side, slice_pitch,
                       row * extent.height));
  }
}

/// Bytes from the first to one past the last.
std::uint64_t covered_bytes(const Extent& extent, std::uint64_t pitch, std::uint64_t slice_pitch) {
  const std::uint64_t row = pitch == 0 ? extent.width : pitch;
  const std::uint64_t plane = slice_pitch == 0 ? row * extent.height : slice_pitch;
  return (extent.depth - 1) * plane + (extent.height - 1) * row + extent.width;
}

struct Side {
  MemoryKind kind = MemoryKind::kUnknown;
  std::optional<AllocationMap::Found> found;  ///< raw pointers into our own allocations

  bool is_host() const { return kind == MemoryKind::kPinned || kind == MemoryKind::kUnknown; }
};

Side classify(detail::DeviceState& device, const void* pointer,
              const detail::AllocationPtr* owner) {
  if (owner != nullptr && *owner != nullptr) return {(*owner)->kind, std::nullopt};
  if (auto found = device.backend.allocations.find(pointer)) return {found->kind, found};
  lockstep_pointer_info info = {};
  info.struct_size = sizeof(info);
  ErrorRecord error;
  // A pointer that the driver does not know is pageable host memory.
  if (device.backend.table.pointer_info(device.handle, pointer, &info, &error) != LOCKSTEP_OK) {
    return {};
  }
  return {static_cast<MemoryKind>(info.memory_kind), std::nullopt};
}

/// Pinned memory for a snapshot; null where the backend has none, and then ordinary memory serves
/// as well, only slower.
void* allocate_pinned(detail::DeviceState& device, std::uint64_t bytes, bool capturing) {
  // Allocating is illegal for a thread that captures; in relaxed mode it is not.
  const RelaxedMode relaxed(device);
  if (capturing && !relaxed.holds()) return nullptr;
  lockstep_allocation_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.bytes = bytes;
  desc.memory_kind = LOCKSTEP_MEMORY_PINNED;
  void* address = nullptr;
  ErrorRecord error;
  return device.backend.table.memory_allocate(device.handle, &desc, &address, &error) == LOCKSTEP_OK
             ? address
             : nullptr;
}

std::byte* make_snapshot(CopyPlan& plan, detail::DeviceState& device, const Device& handle,
                         const CopyRegion& region, bool capturing) {
  const Extent& extent = region.extent;
  const std::uint64_t bytes = extent.width * extent.height * extent.depth;
  std::byte* memory = nullptr;
  if (void* pinned = allocate_pinned(device, bytes, capturing)) {
    plan.contents.keep(
        std::make_shared<detail::Allocation>(handle, pinned, bytes, MemoryKind::kPinned,
                                             detail::Allocation::Origin::kAllocated, nullptr, 0));
    memory = static_cast<std::byte*>(pinned);
  } else {
    auto heap = std::make_shared<std::vector<std::byte>>(bytes);
    memory = heap->data();
    plan.contents.keep(std::static_pointer_cast<const void>(std::move(heap)));
  }
  const auto* source = static_cast<const std::byte*>(region.source);
  const std::uint64_t row = region.source_pitch == 0 ? extent.width : region.source_pitch;
  const std::uint64_t plane =
      region.source_slice_pitch == 0 ? row * extent.height : region.source_slice_pitch;
  std::byte* out = memory;
  for (std::uint64_t z = 0; z < extent.depth; ++z) {
    for (std::uint64_t y = 0; y < extent.height; ++y) {
      std::memcpy(out, source + z * plane + y * row, extent.width);
      out += extent.width;
    }
  }
  return memory;
}

[[noreturn]] void refuse_host_memory(const char* function, const std::string& where,
                                     const std::string& what) {
  ErrorContext context;
  context.where = where;
  throw Error(ErrorCode::kIllegalDuringCapture, fmt::format("{} on {}: {}", function, where, what),
              context);
}

void keep_side(GraphContents& contents, const Side& side, const void* pointer,
               const detail::AllocationPtr* owner, const char* role, std::uint64_t capture_id) {
  if (owner != nullptr && *owner != nullptr) {
    if (capture_id == 0 || (*owner)->capture_id != capture_id) contents.keep(*owner);
  } else if (side.found) {
    contents.raw_pointers.push_back(
        {reinterpret_cast<std::uintptr_t>(pointer), side.found->id, 0, role});
  }
}

bool is_declared(const std::vector<std::span<std::byte>>& declared, const void* pointer,
                 std::uint64_t bytes) {
  const auto* first = static_cast<const std::byte*>(pointer);
  return std::any_of(declared.begin(), declared.end(), [&](std::span<std::byte> span) {
    return first >= span.data() && first + bytes <= span.data() + span.size();
  });
}

MemcpyKind direction(const Side& destination, const Side& source) {
  if (source.is_host()) return destination.is_host() ? MemcpyKind::kHtoH : MemcpyKind::kHtoD;
  return destination.is_host() ? MemcpyKind::kDtoH : MemcpyKind::kDtoD;
}

void plan_source(CopyPlan& plan, detail::DeviceState& device, const Device& handle,
                 const CopyRegion& region, const Side& side, const HostMemoryRules& rules,
                 const char* function, const std::string& where) {
  const std::uint64_t bytes = region.extent.width * region.extent.height * region.extent.depth;
  if (side.kind == MemoryKind::kPinned) {
    plan.contents.slots.push_back(
        {HostSlot::Kind::kLive, region.source,
         covered_bytes(region.extent, region.source_pitch, region.source_slice_pitch), 0});
    return;
  }
  if (bytes > rules.snapshot_limit_bytes) {
    refuse_host_memory(
        function, where,
        fmt::format(
            "the source is {} bytes of pageable host memory, more than the {} that are "
            "snapshotted (CaptureOptions::snapshot_limit_bytes); use a pinned buffer, which "
            "each replay reads anew",
            bytes, rules.snapshot_limit_bytes));
  }
  std::byte* snapshot = make_snapshot(plan, device, handle, region, rules.capture_id != 0);
  plan.desc.source = snapshot;
  plan.desc.source_pitch = plan.desc.source_slice_pitch = 0;
  plan.contents.slots.push_back({HostSlot::Kind::kSnapshot, snapshot, bytes, 0});
}

void plan_destination(CopyPlan& plan, const CopyRegion& region, const Side& side,
                      const HostMemoryRules& rules, const char* function,
                      const std::string& where) {
  const std::uint64_t bytes =
      covered_bytes(region.extent, region.destination_pitch, region.destination_slice_pitch);
  if (side.kind == MemoryKind::kPinned) {
    plan.contents.slots.push_back({HostSlot::Kind::kLive, region.destination, bytes, 0});
    return;
  }
  if (rules.declared != nullptr && !is_declared(*rules.declared, region.destination, bytes)) {
    refuse_host_memory(
        function, where,
        fmt::format("the destination is {} bytes of pageable host memory that each replay would "
                    "write; declare it in CaptureOptions::host_destinations and keep it as long as "
                    "the graph, or use a pinned buffer",
                    bytes));
  }
  plan.contents.slots.push_back({HostSlot::Kind::kDeclared, region.destination, bytes, 0});
}

}  // namespace

bool is_empty(const Extent& extent) noexcept {
  return extent.width == 0 || extent.height == 0 || extent.depth == 0;
}

lockstep_copy_desc describe_copy(const CopyRegion& region, const char* function,
                                 const std::string& where) {
  const Extent& extent = region.extent;
  if (!is_empty(extent)) {
    if (region.destination == nullptr) refuse(function, where, "the destination is null");
    if (region.source == nullptr) refuse(function, where, "the source is null");
    check_pitches(extent.width, extent, region.source_pitch, region.source_slice_pitch,
                  region.source, "source", function, where);
    check_pitches(extent.width, extent, region.destination_pitch, region.destination_slice_pitch,
                  region.destination, "destination", function, where);
  }
  lockstep_copy_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.source = region.source;
  desc.destination = region.destination;
  desc.width = extent.width;
  desc.height = extent.height;
  desc.depth = extent.depth;
  desc.source_pitch = region.source_pitch;
  desc.source_slice_pitch = region.source_slice_pitch;
  desc.destination_pitch = region.destination_pitch;
  desc.destination_slice_pitch = region.destination_slice_pitch;
  desc.expected_direction = static_cast<std::uint32_t>(region.expected);
  desc.source_device = desc.destination_device = -1;
  return desc;
}

lockstep_set_desc describe_fill(const FillRegion& region, const char* function,
                                const std::string& where) {
  if (region.value_size != 1 && region.value_size != 2 && region.value_size != 4) {
    refuse(function, where,
           fmt::format("a value of {} bytes; 1, 2 and 4 are possible", region.value_size));
  }
  if (!is_empty(region.extent)) {
    if (region.destination == nullptr) refuse(function, where, "the destination is null");
    if (reinterpret_cast<std::uintptr_t>(region.destination) % region.value_size != 0) {
      refuse(function, where,
             fmt::format("the destination {} is not aligned to its values of {} "
                         "bytes; nothing was written",
                         fmt::ptr(region.destination), region.value_size));
    }
    if (region.pitch % region.value_size != 0 || region.slice_pitch % region.value_size != 0) {
      refuse(function, where,
             fmt::format("pitch {} or slice pitch {} is no multiple of the values' "
                         "{} bytes",
                         region.pitch, region.slice_pitch, region.value_size));
    }
    std::uint64_t row_bytes = 0;
    if (__builtin_mul_overflow(region.extent.width, region.value_size, &row_bytes)) {
      refuse(function, where,
             "a row reaches past the end of the address space behind the destination");
    }
    check_pitches(row_bytes, region.extent, region.pitch, region.slice_pitch, region.destination,
                  "destination", function, where);
  }
  lockstep_set_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.destination = region.destination;
  desc.width = region.extent.width;
  desc.height = region.extent.height;
  desc.depth = region.extent.depth;
  desc.pitch = region.pitch;
  desc.slice_pitch = region.slice_pitch;
  desc.value =
      region.value_size == 4 ? region.value : region.value & ((1u << (8 * region.value_size)) - 1u);
  desc.value_size = region.value_size;
  return desc;
}

void CopyPlan::commit(GraphContents& graph, std::uint32_t node) const {
  graph.add_child(contents, node);
}

CopyPlan plan_copy(detail::DeviceState& device, const Device& handle, const CopyRegion& region,
                   const CopyOwners& owners, const HostMemoryRules& rules, const char* function,
                   const std::string& where) {
  CopyPlan plan;
  plan.desc = describe_copy(region, function, where);
  if (is_empty(region.extent)) return plan;
  const Side source = classify(device, region.source, owners.source);
  const Side destination = classify(device, region.destination, owners.destination);
  keep_side(plan.contents, source, region.source, owners.source, "source", rules.capture_id);
  keep_side(plan.contents, destination, region.destination, owners.destination, "destination",
            rules.capture_id);
  if (destination.is_host()) {
    plan_destination(plan, region, destination, rules, function, where);
  }
  if (source.is_host()) {
    plan_source(plan, device, handle, region, source, rules, function, where);
  }
  LaunchTraceEntry& entry = plan.entry;
  entry.kind = OperationKind::kMemcpy;
  entry.memcpy_kind = direction(destination, source);
  entry.extent = fold_region(region.extent, plan.desc.source_pitch, plan.desc.source_slice_pitch,
                             plan.desc.destination_pitch, plan.desc.destination_slice_pitch);
  entry.memcpy_byte_size = entry.extent.width * entry.extent.height * entry.extent.depth;
  entry.semantic_hash = semantic_hash(entry);
  return plan;
}

LaunchTraceEntry fill_entry(const FillRegion& region) {
  LaunchTraceEntry entry;
  entry.kind = OperationKind::kMemset;
  entry.extent = fold_region({region.extent.width * region.value_size, region.extent.height, 1},
                             region.pitch, 0, region.pitch, 0);
  entry.memset_byte_size = entry.extent.width * entry.extent.height;
  entry.memset_value_size = region.value_size;
  entry.memset_value =
      region.value_size == 4 ? region.value : region.value & ((1u << (8 * region.value_size)) - 1u);
  entry.semantic_hash = semantic_hash(entry);
  return entry;
}

void keep_filled(GraphContents& contents, std::uint32_t node, detail::DeviceState& device,
                 const FillRegion& region, const detail::AllocationPtr* owner,
                 std::uint64_t capture_id) {
  if (owner != nullptr && *owner != nullptr) {
    if (capture_id == 0 || (*owner)->capture_id != capture_id) contents.keep(*owner);
  } else if (const auto found = device.backend.allocations.find(region.destination)) {
    contents.raw_pointers.push_back(
        {reinterpret_cast<std::uintptr_t>(region.destination), found->id, node, "destination"});
  }
}

}  // namespace lockstep::runtime
