// SPDX-License-Identifier: Apache-2.0
#include "recorder/encode.h"

#include <cstddef>
#include <cstring>

namespace lockstep::recorder {
namespace {

std::uint32_t group_size(const lockstep_record& record) noexcept {
  switch (record.kind) {
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

}  // namespace

std::uint32_t encoded_group_size(const lockstep_record& record) noexcept {
  return rounded(sizeof(EntryRecord) + group_size(record));
}

void encode_group(EntryRecord* entry, const lockstep_record& record) noexcept {
  encode_common(entry, record, group_size(record));
  auto* bytes = reinterpret_cast<unsigned char*>(entry + 1);
  // A caller of an older interface version may hand over less than the group: the rest is zero.
  const std::size_t known = record.struct_size > offsetof(lockstep_record, of)
                                ? record.struct_size - offsetof(lockstep_record, of)
                                : 0;
  const std::size_t copied = known < entry->group_size ? known : entry->group_size;
  std::memcpy(bytes, &record.of, copied);
  std::memset(bytes + copied, 0, entry->group_size - copied);
}

}  // namespace lockstep::recorder
