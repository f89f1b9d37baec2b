// SPDX-License-Identifier: Apache-2.0
#include "src/trace/entry_decode.h"

#include <fmt/format.h>
#include <memory>

#include "src/trace/entry_rules.h"
#include "src/trace/trace_keys.h"

namespace lockstep {
namespace {

TraceArgument get_argument(const element& value, std::string_view key) {
  TraceArgument argument;
  argument.tag = TraceArgument::Tag::kPointer;
  bool tagged = false, sized = false;
  const object fields = get_object(value, key);
  if (fields.size() > 2) check_unique_keys(fields);
  for (const auto& [name, field] : fields) {
    if (tagged && (name == "scalar" || name == "struct" || name == "buffer")) {
      fail(key, "must name one of a scalar, a struct and a buffer, once");
    }
    if (name == "scalar" || name == "struct") {
      argument.tag = name == "scalar" ? TraceArgument::Tag::kScalar : TraceArgument::Tag::kStruct;
      get_hex_bytes(field, name, argument.bytes);
      tagged = true;
    } else if (name == "buffer") {
      argument.buffer = get_integer<std::uint32_t>(field, name);
      tagged = true;
    } else if (name == "offset") {
      argument.offset = get_integer<std::uint64_t>(field, name);
    } else if (name == "size") {
      argument.size = get_integer<std::uint32_t>(field, name);
      sized = true;
    }
  }
  if (!tagged) fail(key, "must name a scalar, a struct or a buffer");
  const bool pointer = argument.tag == TraceArgument::Tag::kPointer;
  if (!sized) argument.size = pointer ? 8 : static_cast<std::uint32_t>(argument.bytes.size());
  return argument;
}

MemcpyKind get_direction(const element& value) {
  const std::string_view text = get_string(value, "direction");
  for (const MemcpyKind kind :
       {MemcpyKind::kHtoD, MemcpyKind::kDtoH, MemcpyKind::kDtoD, MemcpyKind::kHtoH}) {
    if (to_string(kind) == text) return kind;
  }
  fail("direction", "must be HtoD, DtoH, DtoD or HtoH");
}

/// Keeps the name's storage, which is what costs time when entries are read one after another.
void clear_entry(LaunchTraceEntry& entry) {
  std::string name = std::move(entry.name);
  name.clear();
  // In place: assigning a fresh entry would move every member once more.
  std::destroy_at(&entry);
  std::construct_at(&entry);
  entry.name = std::move(name);
}

/// Values that several kinds share and that have their place only once the kind is known.
struct Pending {
  std::uint64_t seen = 0;  ///< bit of every EntryKey met
  std::uint64_t bytes = 0;
  std::uint64_t value = 0;
  std::uint64_t value_size = 0;
  std::uint64_t hash = 0;
  bool has(EntryKey key) const { return (seen >> static_cast<unsigned>(key) & 1u) != 0; }
};

void decode_field(EntryKey key, std::string_view name, const element& value,
                  LaunchTraceEntry& entry, Pending& pending) {
  if (key >= EntryKey::kCaptured && key <= EntryKey::kDisabled) {
    // The keys of flags stand in the order of their bits.
    const auto bit = static_cast<unsigned>(key) - static_cast<unsigned>(EntryKey::kCaptured);
    if (get_bool(value, name)) entry.set(static_cast<EntryFlag>(1u << bit));
    return;
  }
  switch (key) {
    case EntryKey::kKind:
      break;
    case EntryKey::kName:
      entry.name.assign(get_string(value, name));
      break;
    case EntryKey::kNameHex:
      get_hex_bytes(value, name, entry.name);
      break;
    case EntryKey::kStream:
      entry.stream_index = get_integer<std::uint32_t>(value, name);
      break;
    case EntryKey::kHash:
      pending.hash = get_hash(value, name);
      break;
    case EntryKey::kGrid:
      get_triple(value, name, entry.grid_x, entry.grid_y, entry.grid_z);
      break;
    case EntryKey::kBlock:
      get_triple(value, name, entry.block_x, entry.block_y, entry.block_z);
      break;
    case EntryKey::kSharedMemBytes:
      entry.shared_mem_bytes = get_integer<std::uint64_t>(value, name);
      break;
    case EntryKey::kCluster:
      get_triple(value, name, entry.cluster_x, entry.cluster_y, entry.cluster_z);
      break;
    case EntryKey::kCooperative:
      entry.cooperative = get_bool(value, name);
      break;
    case EntryKey::kDirection:
      entry.memcpy_kind = get_direction(value);
      break;
    case EntryKey::kBytes:
      pending.bytes = get_integer<std::uint64_t>(value, name);
      break;
    case EntryKey::kValue:
      pending.value = get_integer<std::uint64_t>(value, name);
      break;
    case EntryKey::kValueSize:
      pending.value_size = get_integer<std::uint64_t>(value, name);
      break;
    case EntryKey::kExtent:
      get_triple(value, name, entry.extent.width, entry.extent.height, entry.extent.depth);
      break;
    case EntryKey::kDevice:
      entry.device = get_integer<std::int32_t>(value, name);
      break;
    case EntryKey::kPeerDevice:
      entry.peer_device = get_integer<std::int32_t>(value, name);
      break;
    case EntryKey::kThread:
      entry.thread_index = get_integer<std::uint32_t>(value, name);
      break;
    case EntryKey::kSeq:
      entry.sequence = get_integer<std::uint64_t>(value, name);
      break;
    case EntryKey::kTime:
      entry.time_ns = get_integer<std::int64_t>(value, name);
      break;
    case EntryKey::kGraph:
      entry.graph = get_integer<std::int32_t>(value, name);
      break;
    case EntryKey::kVersion:
      entry.graph_version = get_integer<std::uint32_t>(value, name);
      break;
    case EntryKey::kNode:
      entry.node = get_integer<std::int32_t>(value, name);
      break;
    case EntryKey::kBranch:
      entry.branch = get_integer<std::uint32_t>(value, name);
      break;
    case EntryKey::kLaunch:
      entry.launch = get_integer<std::uint64_t>(value, name);
      break;
    case EntryKey::kEvent:
      entry.event = get_integer<std::int64_t>(value, name);
      break;
    case EntryKey::kMark:
      get_text(value, name, entry.mark);
      break;
    case EntryKey::kAttrs:
      entry.attributes = raw_json(value);
      break;
    case EntryKey::kArgs:
      for (const element item : get_array(value, name)) {
        entry.arguments.push_back(get_argument(item, name));
      }
      break;
    case EntryKey::kArgsHash:
      entry.argument_hash = get_hash(value, name);
      break;
    case EntryKey::kSource:
      entry.source = get_argument(value, name);
      break;
    case EntryKey::kDestination:
      entry.destination = get_argument(value, name);
      break;
    default:
      entry.unknown.emplace_back(name, raw_json(value));
      break;
  }
}

/// Known keys are told apart by their bits; there is rarely more than one other.
void check_unknown(const LaunchTraceEntry& entry) {
  if (entry.unknown.size() < 2) return;
  std::vector<std::string_view> keys;
  for (const auto& [name, value] : entry.unknown) keys.emplace_back(name);
  check_unique(keys);
}

void require(const Pending& pending, EntryKey key, std::string_view name) {
  if (!pending.has(key)) fail(name, "is missing");
}

void finish_extent(LaunchTraceEntry& entry, const Pending& pending) {
  if (!pending.has(EntryKey::kExtent)) {
    entry.extent = Extent{pending.bytes, 1, 1};
    return;
  }
  const std::string problem = extent_problem(entry.extent, pending.bytes);
  if (!problem.empty()) throw DecodeError(problem);
  if (pending.bytes == 0) entry.extent = Extent{0, 1, 1};
}

void finish_entry(LaunchTraceEntry& entry, const Pending& pending, bool check_hash) {
  if (pending.has(EntryKey::kName) && pending.has(EntryKey::kNameHex)) {
    fail("name_hex", "stands beside \"name\"; an entry has one name");
  }
  if (is_core_kind(entry.kind) && !pending.has(EntryKey::kNameHex)) {
    require(pending, EntryKey::kName, "name");
  }
  switch (entry.kind) {
    case OperationKind::kKernelLaunch:
      require(pending, EntryKey::kGrid, "grid");
      require(pending, EntryKey::kBlock, "block");
      if (!has_cluster(entry)) entry.cluster_x = entry.cluster_y = entry.cluster_z = 0;
      break;
    case OperationKind::kMemcpy:
      require(pending, EntryKey::kBytes, "bytes");
      entry.memcpy_byte_size = pending.bytes;
      finish_extent(entry, pending);
      break;
    case OperationKind::kMemset: {
      require(pending, EntryKey::kBytes, "bytes");
      require(pending, EntryKey::kValue, "value");
      require(pending, EntryKey::kValueSize, "value_size");
      const std::string problem = set_value_problem(pending.value, pending.value_size);
      if (!problem.empty()) throw DecodeError(problem);
      entry.memset_byte_size = pending.bytes;
      entry.memset_value = static_cast<std::uint32_t>(pending.value);
      entry.memset_value_size = static_cast<std::uint32_t>(pending.value_size);
      finish_extent(entry, pending);
      break;
    }
    case OperationKind::kGraphLaunch:
      require(pending, EntryKey::kGraph, "graph");
      break;
    case OperationKind::kAlloc:
    case OperationKind::kPrefetch:
      entry.alloc_byte_size = pending.bytes;
      break;
    default:
      break;
  }
  const bool stored = pending.has(EntryKey::kHash);
  entry.semantic_hash = stored && !check_hash ? pending.hash : semantic_hash(entry);
  if (stored && entry.semantic_hash != pending.hash) {
    fail("hash", fmt::format("is {:016x}, but the entry's fields hash to {:016x}: one of them was "
                             "changed",
                             pending.hash, entry.semantic_hash));
  }
}

}  // namespace

void decode_entry(const object& line, LaunchTraceEntry& entry, bool check_hash) {
  clear_entry(entry);
  element kind;
  if (line["kind"].get(kind) != simdjson::SUCCESS) fail("kind", "is missing");
  const std::string_view kind_text = get_string(kind, "kind");
  entry.kind = operation_kind_from_string(kind_text);
  if (entry.kind == OperationKind::kUnknown) {
    if (kind_text.empty()) fail("kind", "is empty");
    entry.kind_text.assign(kind_text);
  }
  const std::uint64_t keys_of_kind = keys_of(entry.kind);
  Pending pending;
  for (const auto& [name, value] : line) {
    EntryKey key = find_entry_key(name);
    if ((keys_of_kind >> static_cast<unsigned>(key) & 1u) == 0) key = EntryKey::kNone;
    if (key != EntryKey::kNone) {
      if (pending.has(key)) fail(name, "stands twice");
      pending.seen |= std::uint64_t{1} << static_cast<unsigned>(key);
    }
    decode_field(key, name, value, entry, pending);
  }
  check_unknown(entry);
  finish_entry(entry, pending, check_hash);
}

}  // namespace lockstep
