// SPDX-License-Identifier: Apache-2.0
#include "src/record/decode.h"

#include <cstring>

#include "src/record/record_entry.h"

namespace lockstep::record {

using recorder::EntryRecord;

void LiveAllocations::allocate(std::uint64_t address, std::uint64_t bytes,
                               std::uint64_t allocation) {
  if (address == 0) return;
  // What still lies there was freed without a word.
  auto next = by_address_.lower_bound(address);
  if (next != by_address_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second.bytes > address) by_address_.erase(before);
  }
  while (next != by_address_.end() && (next->first == address || next->first < address + bytes)) {
    next = by_address_.erase(next);
  }
  by_address_.emplace(address, Allocation{bytes, allocation});
}

void LiveAllocations::free(std::uint64_t address, std::uint64_t allocation) {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return;
  if (allocation == 0 || found->second.identity == allocation) by_address_.erase(found);
}

Place LiveAllocations::find(std::uint64_t address) const {
  if (address == 0) return {};
  auto next = by_address_.upper_bound(address);
  if (next == by_address_.begin()) return {0, 0, false};
  --next;
  const std::uint64_t offset = address - next->first;
  if (offset != 0 && offset >= next->second.bytes) return {0, 0, false};
  return {next->second.identity, offset, true};
}

void Texts::add(std::uint64_t id, std::string_view text) {
  texts_.try_emplace(static_cast<std::uint32_t>(id), text);
}

std::string_view Texts::find(std::uint32_t id) const {
  const auto found = texts_.find(id);
  return found == texts_.end() ? std::string_view{} : std::string_view{found->second};
}

namespace {

constexpr std::uint64_t rounded(std::uint64_t size) { return (size + 7) & ~std::uint64_t{7}; }

/// Whether a group of `size` bytes is there, and copies it.
bool copy_group(const EntryRecord& record, void* group, std::size_t size) {
  if (record.header.size < sizeof(EntryRecord) + size || record.group_size < size) return false;
  std::memcpy(group, reinterpret_cast<const unsigned char*>(&record) + sizeof(record), size);
  return true;
}

}  // namespace

bool Decoder::restore_kernel(const EntryRecord& record, lockstep_record& restored) {
  recorder::KernelGroup group{};
  if (!copy_group(record, &group, sizeof(group))) return false;
  auto& kernel = restored.of.kernel;
  kernel.grid = group.grid;
  kernel.block = group.block;
  kernel.cluster = group.cluster;
  kernel.cooperative = group.cooperative;
  kernel.shared_bytes = group.shared_bytes;
  kernel.attributes = group.attributes;
  kernel.parameter_count = UINT32_MAX;
  if (record.argument_count == recorder::kUnknownArguments) return true;
  const auto* layout =
      reinterpret_cast<const unsigned char*>(&record) + sizeof(record) + sizeof(group);
  const auto* end = reinterpret_cast<const unsigned char*>(&record) + record.header.size;
  const std::uint64_t layout_bytes = rounded(std::uint64_t{record.argument_count} * 4);
  if (layout_bytes > static_cast<std::uint64_t>(end - layout)) return false;
  const unsigned char* value = layout + layout_bytes;
  parameters_.assign(record.argument_count, lockstep_parameter{});
  values_.assign(record.argument_count, nullptr);
  for (std::uint32_t i = 0; i < record.argument_count; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, layout + std::size_t{i} * 4, 4);
    if (rounded(word >> 8) > static_cast<std::uint64_t>(end - value)) return false;
    parameters_[i].size = word >> 8;
    parameters_[i].tag = static_cast<std::uint8_t>(word & 0xff);
    values_[i] = value;
    value += rounded(word >> 8);
  }
  kernel.parameter_count = record.argument_count;
  kernel.parameters = parameters_.data();
  kernel.arguments = values_.data();
  return true;
}

bool Decoder::restore(const EntryRecord& record, lockstep_record& restored) {
  restored.struct_size = sizeof(restored);
  restored.kind = record.kind;
  restored.flags = record.flags;
  restored.name = record.name;
  restored.device = record.device;
  restored.stream = record.stream;
  auto& of = restored.of;
  switch (record.kind) {
    case LOCKSTEP_RECORD_KERNEL:
      return restore_kernel(record, restored);
    case LOCKSTEP_RECORD_MEMCPY:
      return copy_group(record, &of.copy, sizeof(of.copy));
    case LOCKSTEP_RECORD_MEMSET:
      return copy_group(record, &of.set, sizeof(of.set));
    case LOCKSTEP_RECORD_GRAPH_LAUNCH:
      return copy_group(record, &of.graph_launch, sizeof(of.graph_launch));
    case LOCKSTEP_RECORD_EVENT_RECORD:
    case LOCKSTEP_RECORD_EVENT_WAIT:
    case LOCKSTEP_RECORD_SYNCHRONIZE:
      return copy_group(record, &of.event, sizeof(of.event));
    case LOCKSTEP_RECORD_ALLOC:
    case LOCKSTEP_RECORD_FREE:
    case LOCKSTEP_RECORD_PREFETCH:
      return copy_group(record, &of.memory, sizeof(of.memory));
    case LOCKSTEP_RECORD_MARK:
      return copy_group(record, &of.mark, sizeof(of.mark));
    default:
      return true;
  }
}

void Decoder::find_arguments(DecodedEntry& decoded) const {
  auto& arguments = decoded.entry.arguments;
  decoded.arguments.resize(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    TraceArgument& argument = arguments[i];
    const std::uint8_t tag = parameters_[i].tag;
    Place& place = decoded.arguments[i];
    if (tag == 0) continue;
    std::uint64_t address = 0;
    if (argument.size == sizeof(address)) std::memcpy(&address, values_[i], sizeof(address));
    if (tag == 1) {
      place = argument.size == sizeof(address) ? allocations_.find(address) : Place{0, 0, false};
      if (!place.known) decoded.arguments_known = false;
      continue;
    }
    decoded.arguments_known = false;
    // The layout does not tell. What points into live memory is taken for a pointer, so that no
    // address gets into a trace; such a guess is shown, but never hashed.
    if (tag != 255 || address == 0) continue;
    const Place guess = allocations_.find(address);
    if (!guess.known) continue;
    place = guess;
    argument.tag = TraceArgument::Tag::kPointer;
    argument.bytes.clear();
  }
}

bool Decoder::decode(const EntryRecord& record, DecodedEntry& decoded) {
  lockstep_record restored{};
  if (record.header.size < sizeof(EntryRecord) || !restore(record, restored)) return false;
  decoded.entry = entry_from_record(restored, text_);
  decoded.stream = record.stream;
  decoded.private_work = (record.flags & recorder::kRecordPrivate) != 0;
  switch (record.kind) {
    case LOCKSTEP_RECORD_KERNEL:
      decoded.arguments_known = restored.of.kernel.parameter_count != UINT32_MAX;
      if (decoded.arguments_known) find_arguments(decoded);
      break;
    case LOCKSTEP_RECORD_MEMCPY:
      decoded.source = allocations_.find(restored.of.copy.source);
      decoded.destination = allocations_.find(restored.of.copy.destination);
      break;
    case LOCKSTEP_RECORD_MEMSET:
      decoded.destination = allocations_.find(restored.of.set.destination);
      break;
    case LOCKSTEP_RECORD_GRAPH_LAUNCH:
      decoded.graph = restored.of.graph_launch.graph;
      break;
    case LOCKSTEP_RECORD_EVENT_RECORD:
    case LOCKSTEP_RECORD_EVENT_WAIT:
    case LOCKSTEP_RECORD_SYNCHRONIZE:
      decoded.event = restored.of.event.event;
      break;
    case LOCKSTEP_RECORD_ALLOC:
    case LOCKSTEP_RECORD_FREE:
    case LOCKSTEP_RECORD_PREFETCH:
      decoded.entry.alloc_byte_size =
          record.kind != LOCKSTEP_RECORD_FREE ? restored.of.memory.bytes : 0;
      decoded.memory = restored.of.memory;
      decoded.destination = allocations_.find(restored.of.memory.address);
      break;
    default:
      break;
  }
  return true;
}

}  // namespace lockstep::record
