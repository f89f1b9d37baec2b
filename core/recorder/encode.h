// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "recorder/layout.h"

/// \file
/// lockstep_record → EntryRecord: everything the record points to is copied. What kernels need is
/// inline: a launch meets this code cold, behind all that the driver executed, and pays for each
/// line of it.
namespace lockstep::recorder {

/// No ring is smaller than a mebibyte; a record must not take much of one.
inline constexpr std::uint64_t kLargestRecord = 128 * 1024;

constexpr std::uint32_t rounded(std::uint64_t size) noexcept {
  return static_cast<std::uint32_t>((size + 7) & ~std::uint64_t{7});
}

/// encoded_size() and encode() of all kinds but kernels.
std::uint32_t encoded_group_size(const lockstep_record& record) noexcept;
void encode_group(EntryRecord* entry, const lockstep_record& record) noexcept;

/// encoded_size() of a kernel.
inline std::uint32_t encoded_kernel_size(const lockstep_record& record,
                                         bool* with_arguments) noexcept {
  constexpr std::uint64_t kPlain = sizeof(EntryRecord) + sizeof(KernelGroup);
  const auto& kernel = record.of.kernel;
  const std::uint32_t count = kernel.parameter_count;
  *with_arguments = count == 0 || (count != UINT32_MAX && kernel.parameters != nullptr &&
                                   kernel.arguments != nullptr);
  if (!*with_arguments) return rounded(kPlain);
  std::uint64_t size = kPlain + rounded(std::uint64_t{count} * sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < count && size <= kLargestRecord; ++i) {
    size += rounded(kernel.parameters[i].size);
  }
  if (size <= kLargestRecord) return rounded(size);
  *with_arguments = false;
  return rounded(kPlain);
}

/// What all kinds have in common; `group_size` bytes of the kind follow.
inline void encode_common(EntryRecord* entry, const lockstep_record& record,
                          std::uint32_t group_size) noexcept {
  entry->kind = record.kind;
  entry->flags = record.flags;
  entry->name = record.name;
  entry->device = record.device;
  entry->stream = record.stream;
  entry->end = EndFields{0, 0, -1, 0};
  entry->group_size = group_size;
  entry->argument_count = kUnknownArguments;
}

/// encode() of a kernel.
inline void encode_kernel(EntryRecord* entry, const lockstep_record& record,
                          bool with_arguments) noexcept {
  encode_common(entry, record, sizeof(KernelGroup));
  const auto& kernel = record.of.kernel;
  auto* group = reinterpret_cast<KernelGroup*>(entry + 1);
  *group = KernelGroup{kernel.grid,
                       kernel.block,
                       kernel.cluster,
                       kernel.cooperative,
                       kernel.shared_bytes,
                       kernel.attributes,
                       0};
  if (!with_arguments) return;
  const std::uint32_t count = kernel.parameter_count;
  entry->argument_count = count;
  auto* layout = reinterpret_cast<std::uint32_t*>(group + 1);
  auto* value = reinterpret_cast<unsigned char*>(layout) + rounded(std::uint64_t{count} * 4);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t size = kernel.parameters[i].size;
    layout[i] = (size << 8) | kernel.parameters[i].tag;
    if (size == 8) {
      std::memcpy(value, kernel.arguments[i], 8);
    } else if (size == 4) {
      std::memcpy(value, kernel.arguments[i], 4);
    } else if (size != 0) [[unlikely]] {
      std::memcpy(value, kernel.arguments[i], size);
    }
    value += rounded(size);
  }
}

/// Bytes that `record` takes as an EntryRecord, a multiple of 8. Arguments that would take more
/// than the largest record are left out (*with_arguments false).
inline std::uint32_t encoded_size(const lockstep_record& record, bool* with_arguments) noexcept {
  if (record.kind == LOCKSTEP_RECORD_KERNEL) return encoded_kernel_size(record, with_arguments);
  *with_arguments = false;
  return encoded_group_size(record);
}

/// Fills everything of `entry` but its header.
inline void encode(EntryRecord* entry, const lockstep_record& record,
                   bool with_arguments) noexcept {
  if (record.kind == LOCKSTEP_RECORD_KERNEL) return encode_kernel(entry, record, with_arguments);
  encode_group(entry, record);
}

}  // namespace lockstep::recorder
