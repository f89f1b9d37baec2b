// SPDX-License-Identifier: Apache-2.0
#include "src/record/record_entry.h"

namespace lockstep {
namespace {

constexpr std::uint32_t kLayoutUnknown = UINT32_MAX;

void read_arguments(LaunchTraceEntry& entry, const lockstep_record& record) {
  const auto& kernel = record.of.kernel;
  if (kernel.parameter_count == kLayoutUnknown || kernel.parameters == nullptr) return;
  entry.arguments.resize(kernel.parameter_count);
  for (std::uint32_t i = 0; i < kernel.parameter_count; ++i) {
    const lockstep_parameter& parameter = kernel.parameters[i];
    TraceArgument& argument = entry.arguments[i];
    argument.size = parameter.size;
    if (parameter.tag == 1) {
      argument.tag = TraceArgument::Tag::kPointer;
      continue;
    }
    argument.tag = parameter.tag == 0 ? TraceArgument::Tag::kScalar : TraceArgument::Tag::kStruct;
    if (kernel.arguments != nullptr && kernel.arguments[i] != nullptr) {
      const auto* bytes = static_cast<const std::byte*>(kernel.arguments[i]);
      argument.bytes.assign(bytes, bytes + parameter.size);
    }
  }
}

void read_kernel(LaunchTraceEntry& entry, const lockstep_record& record, const TextLookup& text) {
  const auto& kernel = record.of.kernel;
  set_launch_shape(entry, kernel.grid, kernel.block, kernel.cluster);
  entry.shared_mem_bytes = kernel.shared_bytes;
  entry.cooperative = kernel.cooperative != 0;
  entry.attributes = text(kernel.attributes);
  read_arguments(entry, record);
}

void read_copy(LaunchTraceEntry& entry, const lockstep_record& record) {
  const auto& copy = record.of.copy;
  entry.memcpy_kind = static_cast<MemcpyKind>(copy.direction);
  entry.peer_device = copy.peer_device;
  entry.extent =
      fold_region({copy.width, copy.height, copy.depth}, copy.source_pitch, copy.source_slice_pitch,
                  copy.destination_pitch, copy.destination_slice_pitch);
  entry.memcpy_byte_size = entry.extent.width * entry.extent.height * entry.extent.depth;
  entry.source.tag = entry.destination.tag = TraceArgument::Tag::kPointer;
}

void read_set(LaunchTraceEntry& entry, const lockstep_record& record) {
  const auto& set = record.of.set;
  entry.extent = fold_region({set.width, set.height, 1}, set.pitch, 0, set.pitch, 0);
  entry.memset_byte_size = entry.extent.width * entry.extent.height * entry.extent.depth;
  entry.memset_value_size = set.value_size;
  entry.memset_value =
      set.value_size >= 4 ? set.value : set.value & ((1u << (8 * set.value_size)) - 1u);
  entry.destination.tag = TraceArgument::Tag::kPointer;
}

}  // namespace

Extent fold_region(const Extent& extent, std::uint64_t source_pitch,
                   std::uint64_t source_slice_pitch, std::uint64_t destination_pitch,
                   std::uint64_t destination_slice_pitch) noexcept {
  const auto or_packed = [](std::uint64_t pitch, std::uint64_t packed) {
    return pitch == 0 ? packed : pitch;
  };
  source_pitch = or_packed(source_pitch, extent.width);
  destination_pitch = or_packed(destination_pitch, extent.width);
  return fold_extent(extent, source_pitch,
                     or_packed(source_slice_pitch, source_pitch * extent.height), destination_pitch,
                     or_packed(destination_slice_pitch, destination_pitch * extent.height));
}

void set_launch_shape(LaunchTraceEntry& entry, const lockstep_dim3& grid,
                      const lockstep_dim3& block, const lockstep_dim3& cluster) noexcept {
  entry.grid_x = grid.x;
  entry.grid_y = grid.y;
  entry.grid_z = grid.z;
  entry.block_x = block.x;
  entry.block_y = block.y;
  entry.block_z = block.z;
  if (cluster.x <= 1 && cluster.y <= 1 && cluster.z <= 1) return;
  entry.cluster_x = cluster.x;
  entry.cluster_y = cluster.y;
  entry.cluster_z = cluster.z;
}

LaunchTraceEntry entry_from_record(const lockstep_record& record, const TextLookup& text) {
  LaunchTraceEntry entry;
  entry.kind = static_cast<OperationKind>(record.kind);
  entry.name = text(record.name);
  entry.device = record.device;
  entry.flags = static_cast<std::uint16_t>(record.flags);
  switch (record.kind) {
    case LOCKSTEP_RECORD_KERNEL:
      read_kernel(entry, record, text);
      break;
    case LOCKSTEP_RECORD_MEMCPY:
      read_copy(entry, record);
      break;
    case LOCKSTEP_RECORD_MEMSET:
      read_set(entry, record);
      break;
    case LOCKSTEP_RECORD_EVENT_RECORD:
    case LOCKSTEP_RECORD_EVENT_WAIT:
      entry.event = static_cast<std::int64_t>(record.of.event.event);
      break;
    case LOCKSTEP_RECORD_ALLOC:
    case LOCKSTEP_RECORD_FREE:
      entry.alloc_byte_size = record.of.memory.bytes;
      break;
    case LOCKSTEP_RECORD_GRAPH_LAUNCH:
      entry.graph_version = record.of.graph_launch.version;
      break;
    case LOCKSTEP_RECORD_MARK:
      entry.mark = record.of.mark.mark == 1 ? "push" : record.of.mark.mark == 2 ? "pop" : "point";
      break;
    default:
      break;
  }
  if (record.kind > LOCKSTEP_RECORD_OPAQUE) entry.kind = OperationKind::kOpaque;
  entry.semantic_hash = semantic_hash(entry);
  return entry;
}

}  // namespace lockstep
