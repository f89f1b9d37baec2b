// SPDX-License-Identifier: Apache-2.0
#include "src/trace/trace_encode.h"

#include <lockstep/error.h>
#include <lockstep/trace_file.h>

#include <array>
#include <fmt/format.h>

#include "src/trace/entry_rules.h"
#include "src/trace/json_text.h"
#include "src/trace/trace_decode.h"
#include "src/trace/trace_keys.h"

namespace lockstep {
namespace {

using Unknown = std::vector<std::pair<std::string, std::string>>;

struct FlagKey {
  EntryFlag flag;
  std::string_view text;
};
constexpr std::array<FlagKey, 8> kFlagKeys = {{
    {EntryFlag::kCaptured, ",\"captured\":true"},
    {EntryFlag::kReplayed, ",\"replayed\":true"},
    {EntryFlag::kFailed, ",\"failed\":true"},
    {EntryFlag::kPending, ",\"pending\":true"},
    {EntryFlag::kInternal, ",\"internal\":true"},
    {EntryFlag::kWarmup, ",\"warmup\":true"},
    {EntryFlag::kStale, ",\"stale\":true"},
    {EntryFlag::kDisabled, ",\"disabled\":true"},
}};

/// JSON text that came from outside is checked, so that no caller can break a file with it.
void append_raw_json(std::string& out, const std::string& text) { out += compact_json(text); }

void append_unknown(std::string& out, const Unknown& unknown) {
  for (const auto& [key, value] : unknown) {
    if (!is_utf8(key)) {
      throw Error(ErrorCode::kInvalidArgument, "a key of a trace file must be UTF-8 text");
    }
    out.push_back(',');
    append_quoted(out, key);
    out.push_back(':');
    append_raw_json(out, value);
  }
}

template <typename Integer>
void append_triple(std::string& out, std::string_view comma_key_colon, Integer x, Integer y,
                   Integer z) {
  out.append(comma_key_colon);
  out.push_back('[');
  append_number(out, x);
  out.push_back(',');
  append_number(out, y);
  out.push_back(',');
  append_number(out, z);
  out.push_back(']');
}

void append_name(std::string& out, const std::string& name) {
  if (is_utf8(name)) {
    out.append(",\"name\":");
    append_quoted(out, name);
    return;
  }
  out.append(",\"name_hex\":\"");
  append_hex_bytes(out, name.data(), name.size());
  out.push_back('"');
}

void append_pointer(std::string& out, const TraceArgument& pointer) {
  append_field(out, "{\"buffer\":", pointer.buffer);
  append_field(out, ",\"offset\":", pointer.offset);
  if (pointer.tag == TraceArgument::Tag::kPointer && pointer.size != 8) {
    append_field(out, ",\"size\":", pointer.size);
  }
  out.push_back('}');
}

void append_argument(std::string& out, const TraceArgument& argument) {
  if (argument.tag == TraceArgument::Tag::kPointer) {
    append_pointer(out, argument);
    return;
  }
  out.append(argument.tag == TraceArgument::Tag::kScalar ? "{\"scalar\":\"" : "{\"struct\":\"");
  append_hex_bytes(out, argument.bytes.data(), argument.bytes.size());
  out.push_back('"');
  if (argument.size != argument.bytes.size()) append_field(out, ",\"size\":", argument.size);
  out.push_back('}');
}

[[noreturn]] void refuse(const LaunchTraceEntry& entry, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("cannot write the entry \"{}\": {}", display_name(entry.name, 80), why));
}

/// A file that its own reader refuses would lose everything after the entry.
void check_writable(const LaunchTraceEntry& entry) {
  if (entry.kind == OperationKind::kUnknown) {
    if (operation_kind_from_string(entry.kind_text) != OperationKind::kUnknown ||
        entry.kind_text.empty() || !is_utf8(entry.kind_text)) {
      refuse(entry, fmt::format("\"{}\" is not the name of an unknown kind", entry.kind_text));
    }
    return;
  }
  if (to_string(entry.kind).empty()) {
    refuse(entry, fmt::format("there is no kind {}", static_cast<int>(entry.kind)));
  }
  if (entry.kind == OperationKind::kMemset) {
    const std::string wrong = set_value_problem(entry.memset_value, entry.memset_value_size);
    if (!wrong.empty()) refuse(entry, wrong);
  }
  if (entry.kind == OperationKind::kMemset || entry.kind == OperationKind::kMemcpy) {
    const bool set = entry.kind == OperationKind::kMemset;
    const std::string wrong = extent_problem(effective_extent(entry),
                                             set ? entry.memset_byte_size : entry.memcpy_byte_size);
    if (!wrong.empty()) refuse(entry, wrong);
  }
}

bool is_known_place(const TraceArgument& place) { return place.buffer != 0; }

/// What a kind does not have means nothing there, and a reader would not know it again.
bool may_have(const LaunchTraceEntry& entry, EntryKey key) {
  return (keys_of(entry.kind) >> static_cast<unsigned>(key) & 1u) != 0;
}

void append_extent(std::string& out, const LaunchTraceEntry& entry) {
  const Extent extent = effective_extent(entry);
  if (extent.height == 1 && extent.depth == 1) return;
  append_triple(out, ",\"extent\":", extent.width, extent.height, extent.depth);
}

void append_kernel(std::string& out, const LaunchTraceEntry& entry) {
  append_triple(out, ",\"grid\":", entry.grid_x, entry.grid_y, entry.grid_z);
  append_triple(out, ",\"block\":", entry.block_x, entry.block_y, entry.block_z);
  append_field(out, ",\"shared_mem_bytes\":", entry.shared_mem_bytes);
  if (has_cluster(entry)) {
    append_triple(out, ",\"cluster\":", entry.cluster_x, entry.cluster_y, entry.cluster_z);
  }
  if (entry.cooperative) out.append(",\"cooperative\":true");
}

/// What the entry did: the group of keys that its kind has.
void append_group(std::string& out, const LaunchTraceEntry& entry) {
  switch (entry.kind) {
    case OperationKind::kKernelLaunch:
      append_kernel(out, entry);
      break;
    case OperationKind::kMemcpy:
      if (entry.memcpy_kind != MemcpyKind::kNone) {
        out.append(",\"direction\":\"").append(to_string(entry.memcpy_kind)).push_back('"');
      }
      append_field(out, ",\"bytes\":", entry.memcpy_byte_size);
      append_extent(out, entry);
      break;
    case OperationKind::kMemset:
      append_field(out, ",\"bytes\":", entry.memset_byte_size);
      append_field(out, ",\"value\":", entry.memset_value);
      append_field(out, ",\"value_size\":", entry.memset_value_size);
      append_extent(out, entry);
      break;
    case OperationKind::kGraphLaunch:
      append_field(out, ",\"graph\":", entry.graph);
      append_field(out, ",\"version\":", entry.graph_version);
      break;
    case OperationKind::kEventRecord:
    case OperationKind::kEventWait:
    case OperationKind::kSynchronize:
      if (entry.event >= 0) append_field(out, ",\"event\":", entry.event);
      break;
    case OperationKind::kAlloc:
    case OperationKind::kPrefetch:
      if (entry.alloc_byte_size != 0) append_field(out, ",\"bytes\":", entry.alloc_byte_size);
      break;
    default:
      break;
  }
}

void append_extensions(std::string& out, const LaunchTraceEntry& entry) {
  if (entry.device != 0) append_field(out, ",\"device\":", entry.device);
  if (entry.peer_device != -1 && may_have(entry, EntryKey::kPeerDevice)) {
    append_field(out, ",\"peer_device\":", entry.peer_device);
  }
  if (entry.thread_index != 0) append_field(out, ",\"thread\":", entry.thread_index);
  if (entry.sequence != 0) append_field(out, ",\"seq\":", entry.sequence);
  if (entry.time_ns != 0) append_field(out, ",\"t\":", entry.time_ns);
  if (entry.flags != 0) {
    for (const FlagKey& key : kFlagKeys) {
      if (entry.has(key.flag)) out.append(key.text);
    }
  }
  if (entry.kind != OperationKind::kGraphLaunch) {
    if (entry.graph != -1) append_field(out, ",\"graph\":", entry.graph);
    if (entry.graph_version != 0) append_field(out, ",\"version\":", entry.graph_version);
  }
  if (entry.node != -1) append_field(out, ",\"node\":", entry.node);
  if (entry.branch != 0) append_field(out, ",\"branch\":", entry.branch);
  if (entry.launch != 0) append_field(out, ",\"launch\":", entry.launch);
  if (!entry.attributes.empty()) {
    out.append(",\"attrs\":");
    append_raw_json(out, entry.attributes);
  }
  if (!entry.arguments.empty() && may_have(entry, EntryKey::kArgs)) {
    out.append(",\"args\":[");
    for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
      if (i != 0) out.push_back(',');
      append_argument(out, entry.arguments[i]);
    }
    out.push_back(']');
  }
  if (entry.argument_hash != 0 && may_have(entry, EntryKey::kArgsHash)) {
    out.append(",\"args_hash\":\"");
    append_hex64(out, entry.argument_hash);
    out.push_back('"');
  }
  if (is_known_place(entry.source) && may_have(entry, EntryKey::kSource)) {
    out.append(",\"source\":");
    append_pointer(out, entry.source);
  }
  if (is_known_place(entry.destination) && may_have(entry, EntryKey::kDestination)) {
    out.append(",\"destination\":");
    append_pointer(out, entry.destination);
  }
}

}  // namespace

void encode_entry(std::string& out, const LaunchTraceEntry& entry, bool write_hash, bool in_graph) {
  check_writable(entry);
  out.append("{\"kind\":");
  if (entry.kind == OperationKind::kUnknown) {
    append_text(out, entry.kind_text);
  } else {
    out.push_back('"');
    out.append(to_string(entry.kind));
    out.push_back('"');
  }
  const bool mark = entry.kind == OperationKind::kMark;
  if (mark && !entry.mark.empty()) {
    out.append(",\"mark\":");
    append_text(out, entry.mark);
  }
  if (is_core_kind(entry.kind) || !entry.name.empty()) append_name(out, entry.name);
  append_group(out, entry);
  // Marks and nodes belong to no stream; theirs is written only where somebody gave them one.
  if ((!in_graph && !mark) || entry.stream_index != 0) {
    append_field(out, ",\"stream\":", entry.stream_index);
  }
  if (write_hash && is_core_kind(entry.kind)) {
    out.append(",\"hash\":\"");
    append_hex64(out, entry.semantic_hash != 0 ? entry.semantic_hash : semantic_hash(entry));
    out.push_back('"');
  }
  append_extensions(out, entry);
  if (!entry.unknown.empty()) append_unknown(out, entry.unknown);
  out.push_back('}');
}

void encode_stream(std::string& out, const StreamDefinition& stream) {
  append_field(out, "{\"define\":\"stream\",\"stream\":", stream.stream);
  append_field(out, ",\"device\":", stream.device);
  append_field(out, ",\"context\":", stream.context);
  out.append(stream.blocking ? ",\"blocking\":true" : ",\"blocking\":false");
  if (stream.legacy) out.append(",\"legacy\":true");
  append_unknown(out, stream.unknown);
  out.push_back('}');
}

void encode_graph(std::string& out, const GraphDefinition& graph, bool write_hashes) {
  append_field(out, "{\"define\":\"graph\",\"graph\":", graph.graph);
  append_field(out, ",\"version\":", graph.version);
  out.append(",\"nodes\":[");
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (i != 0) out.push_back(',');
    encode_entry(out, graph.nodes[i], write_hashes, true);
  }
  out.append("],\"edges\":[");
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    out.append(i == 0 ? "[" : ",[");
    append_number(out, graph.edges[i].first);
    out.push_back(',');
    append_number(out, graph.edges[i].second);
    out.push_back(']');
  }
  out.push_back(']');
  if (!graph.programmatic_edges.empty()) {
    out.append(",\"programmatic\":[");
    for (std::size_t i = 0; i < graph.programmatic_edges.size(); ++i) {
      if (i != 0) out.push_back(',');
      append_number(out, graph.programmatic_edges[i]);
    }
    out.push_back(']');
  }
  append_unknown(out, graph.unknown);
  out.push_back('}');
}

void encode_header(std::string& out, const TraceInfo& info) {
  out.append("{\"lockstep_trace\":1,\"producer\":");
  append_text(out, info.producer);
  if (!info.command.empty()) {
    out.append(",\"command\":[");
    for (std::size_t i = 0; i < info.command.size(); ++i) {
      if (i != 0) out.push_back(',');
      append_text(out, info.command[i]);
    }
    out.push_back(']');
  }
  if (info.pid != 0) append_field(out, ",\"pid\":", info.pid);
  append_unknown(out, info.unknown);
  out.push_back('}');
}

void encode_meta(std::string& out, const TraceInfo& info, bool with_unknown) {
  out.append("{\"meta\":{\"devices\":[");
  for (std::size_t i = 0; i < info.devices.size(); ++i) {
    const TraceDevice& device = info.devices[i];
    append_field(out, i == 0 ? "{\"ordinal\":" : ",{\"ordinal\":", device.ordinal);
    out.append(",\"name\":");
    append_text(out, device.name);
    out.append(",\"arch\":");
    append_text(out, device.arch);
    if (!device.uuid.empty()) {
      out.append(",\"uuid\":");
      append_text(out, device.uuid);
    }
    out.push_back('}');
  }
  out.append("],\"driver\":");
  append_text(out, info.driver);
  out.append(info.simulated ? ",\"simulated\":true" : ",\"simulated\":false");
  if (with_unknown) append_unknown(out, info.unknown);
  out.append("}}");
}

void encode_footer(std::string& out, const TraceFooter& footer) {
  append_field(out, "{\"end\":true,\"entries\":", footer.entries);
  append_field(out, ",\"dropped\":", footer.dropped);
  append_field(out, ",\"stalls\":", footer.stalls);
  if (footer.racing != 0) append_field(out, ",\"racing\":", footer.racing);
  if (!footer.coverage.empty()) {
    out.append(",\"coverage\":");
    append_raw_json(out, footer.coverage);
  }
  append_unknown(out, footer.unknown);
  out.push_back('}');
}

std::string to_json(const LaunchTraceEntry& entry) {
  std::string text;
  encode_entry(text, entry, true, false);
  return text;
}

}  // namespace lockstep
