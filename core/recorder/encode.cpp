// SPDX-License-Identifier: Apache-2.0
#include "recorder/encode.h"

#include <cstddef>
#include <cstring>

namespace lockstep::recorder {
namespace {

// No ring is smaller than a mebibyte; a record must not take much of one.
constexpr std::uint64_t kLargestRecord = 128 * 1024;

constexpr std::uint32_t rounded(std::uint64_t size) noexcept {
  return static_cast<std::uint32_t>((size + 7) & ~std::uint64_t{7});
}

std::uint32_t group_size(const lockstep_record& record) noexcept {
  switch (record.kind) {
    case LOCKSTEP_RECORD_KERNEL:
      return sizeof(KernelGroup);
    case LOCKSTEP_RECORD_MEMCPY:
      return sizeof(record.of.copy);
    case LOCKSTEP_RECORD_MEMSET:
      return sizeof(record.of.set);
    case LOCKSTEP_RECORD_GRAPH_LAUNCH:
      return sizeof(record.of.graph_launch);
    case LOCKSTEP_RECORD_EVENT_RECORD:
    case LOCKSTEP_RECORD_EVENT_WAIT:
    case LOCKSTEP_RECORD_SYNCHRONIZE:
      return sizeof(record.of.event);
    case LOCKSTEP_RECORD_ALLOC:
    case LOCKSTEP_RECORD_FREE:
    case LOCKSTEP_RECORD_PREFETCH:
      return sizeof(record.of.memory);
    case LOCKSTEP_RECORD_MARK:
      return rounded(sizeof(record.of.mark));
    default:
      return 0;
  }
}

bool knows_arguments(const lockstep_record& record) noexcept {
  return record.kind == LOCKSTEP_RECORD_KERNEL && record.of.kernel.parameter_count != UINT32_MAX &&
         (record.of.kernel.parameter_count == 0 ||
          (record.of.kernel.parameters != nullptr && record.of.kernel.arguments != nullptr));
}

}  // namespace

std::uint32_t encoded_size(const lockstep_record& record, bool* with_arguments) noexcept {
  const std::uint64_t plain = sizeof(EntryRecord) + group_size(record);
  *with_arguments = knows_arguments(record);
  if (!*with_arguments) return rounded(plain);
  const std::uint32_t count = record.of.kernel.parameter_count;
  std::uint64_t size = plain + rounded(std::uint64_t{count} * sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < count && size <= kLargestRecord; ++i) {
    size += rounded(record.of.kernel.parameters[i].size);
  }
  if (size <= kLargestRecord) return rounded(size);
  *with_arguments = false;
  return rounded(plain);
}

void encode(EntryRecord* entry, const lockstep_record& record, bool with_arguments) noexcept {
  entry->kind = record.kind;
  entry->flags = record.flags;
  entry->name = record.name;
  entry->device = record.device;
  entry->stream = record.stream;
  entry->end = EndFields{0, 0, -1, 0};
  entry->group_size = group_size(record);
  entry->argument_count = kUnknownArguments;
  auto* bytes = reinterpret_cast<unsigned char*>(entry) + sizeof(EntryRecord);
  if (record.kind != LOCKSTEP_RECORD_KERNEL) {
    // A caller of an older interface version may hand over less than the group: the rest is zero.
    const std::size_t known = record.struct_size > offsetof(lockstep_record, of)
                                  ? record.struct_size - offsetof(lockstep_record, of)
                                  : 0;
    const std::size_t copied = known < entry->group_size ? known : entry->group_size;
    std::memcpy(bytes, &record.of, copied);
    std::memset(bytes + copied, 0, entry->group_size - copied);
    return;
  }
  const auto& kernel = record.of.kernel;
  const KernelGroup group{kernel.grid,
                          kernel.block,
                          kernel.cluster,
                          kernel.cooperative,
                          kernel.shared_bytes,
                          kernel.attributes,
                          0};
  std::memcpy(bytes, &group, sizeof(group));
  if (!with_arguments) return;
  const std::uint32_t count = kernel.parameter_count;
  entry->argument_count = count;
  auto* layout = reinterpret_cast<std::uint32_t*>(bytes + sizeof(group));
  unsigned char* value = bytes + sizeof(group) + rounded(std::uint64_t{count} * 4);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t size = kernel.parameters[i].size;
    layout[i] = (size << 8) | kernel.parameters[i].tag;
    if (size == 8) {
      std::memcpy(value, kernel.arguments[i], 8);
    } else if (size == 4) {
      std::memcpy(value, kernel.arguments[i], 4);
    } else if (size != 0) {
      std::memcpy(value, kernel.arguments[i], size);
    }
    value += rounded(size);
  }
}

}  // namespace lockstep::recorder
