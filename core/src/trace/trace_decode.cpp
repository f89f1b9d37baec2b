// SPDX-License-Identifier: Apache-2.0
#include "src/trace/trace_decode.h"

#include <lockstep/error.h>

#include <atomic>
#include <fmt/format.h>
#include <memory>

#include "src/trace/entry_decode.h"
#include "src/trace/graph_order.h"
#include "src/trace/json_values.h"

namespace lockstep {
namespace {

void decode_stream(const object& line, StreamDefinition& stream) {
  stream = StreamDefinition{};
  bool numbered = false;
  for (const auto& [name, value] : line) {
    if (name == "define") continue;
    if (name == "stream") {
      stream.stream = get_integer<std::uint32_t>(value, name);
      numbered = true;
    } else if (name == "device") {
      stream.device = get_integer<std::int32_t>(value, name);
    } else if (name == "context") {
      stream.context = get_integer<std::uint32_t>(value, name);
    } else if (name == "blocking") {
      stream.blocking = get_bool(value, name);
    } else if (name == "legacy") {
      stream.legacy = get_bool(value, name);
    } else {
      stream.unknown.emplace_back(name, raw_json(value));
    }
  }
  if (!numbered) fail("stream", "is missing");
}

void decode_edges(const array& edges, GraphDefinition& graph) {
  graph.edges.reserve(edges.size());
  for (const element edge : edges) {
    const array ends = get_array(edge, "edges");
    if (ends.size() != 2) fail("edges", "must be pairs of node ordinals");
    auto end = ends.begin();
    const auto from = get_integer<std::uint32_t>(*end, "edges");
    const auto to = get_integer<std::uint32_t>(*++end, "edges");
    graph.edges.emplace_back(from, to);
  }
}

void decode_graph(const object& line, GraphDefinition& graph, bool check_hash) {
  graph = GraphDefinition{};
  bool numbered = false, has_nodes = false;
  for (const auto& [name, value] : line) {
    if (name == "define") continue;
    if (name == "graph") {
      graph.graph = get_integer<std::int32_t>(value, name);
      numbered = true;
    } else if (name == "version") {
      graph.version = get_integer<std::uint32_t>(value, name);
    } else if (name == "nodes") {
      has_nodes = true;
      for (const element node : get_array(value, name)) {
        decode_entry(get_object(node, name), graph.nodes.emplace_back(), check_hash);
      }
    } else if (name == "edges") {
      decode_edges(get_array(value, name), graph);
    } else if (name == "programmatic") {
      for (const element edge : get_array(value, name)) {
        graph.programmatic_edges.push_back(get_integer<std::uint32_t>(edge, name));
      }
    } else {
      graph.unknown.emplace_back(name, raw_json(value));
    }
  }
  if (!numbered) fail("graph", "is missing");
  if (!has_nodes) fail("nodes", "is missing");
  for (const std::uint32_t edge : graph.programmatic_edges) {
    if (edge >= graph.edges.size()) fail("programmatic", "names an edge that is not there");
  }
  try {
    order_graph(graph);
  } catch (const Error& error) {
    throw DecodeError(error.what());
  }
}

void merge_unknown(std::vector<std::pair<std::string, std::string>>& into, std::string_view key,
                   std::string value) {
  for (auto& [name, text] : into) {
    if (name == key) {
      text = std::move(value);
      return;
    }
  }
  into.emplace_back(key, std::move(value));
}

/// Each backend counts its devices from 0: an ordinal alone does not name one.
bool is_same_device(const TraceDevice& left, const TraceDevice& right) {
  if (left.ordinal != right.ordinal) return false;
  if (!left.uuid.empty() && !right.uuid.empty()) return left.uuid == right.uuid;
  return left.name == right.name && left.arch == right.arch;
}

void decode_device(const element& value, TraceInfo& info) {
  TraceDevice device;
  const object fields = get_object(value, "devices");
  check_unique_keys(fields);
  for (const auto& [name, field] : fields) {
    if (name == "ordinal") device.ordinal = get_integer<std::int32_t>(field, name);
    if (name == "name") get_text(field, name, device.name);
    if (name == "arch") get_text(field, name, device.arch);
    if (name == "uuid") get_text(field, name, device.uuid);
  }
  for (TraceDevice& known : info.devices) {
    if (!is_same_device(known, device)) continue;
    if (device.uuid.empty()) device.uuid = std::move(known.uuid);
    known = std::move(device);
    return;
  }
  info.devices.push_back(std::move(device));
}

void decode_info(const object& fields, TraceInfo& info) {
  for (const auto& [name, value] : fields) {
    if (name == "lockstep_trace") continue;
    if (name == "producer") {
      get_text(value, name, info.producer);
    } else if (name == "command") {
      info.command.clear();
      for (const element word : get_array(value, name)) {
        get_text(word, name, info.command.emplace_back());
      }
    } else if (name == "pid") {
      info.pid = get_integer<std::int64_t>(value, name);
    } else if (name == "devices") {
      for (const element device : get_array(value, name)) decode_device(device, info);
    } else if (name == "driver") {
      get_text(value, name, info.driver);
    } else if (name == "simulated") {
      info.simulated = get_bool(value, name);
    } else {
      merge_unknown(info.unknown, name, raw_json(value));
    }
  }
}

void decode_footer(const object& line, TraceFooter& footer) {
  footer = TraceFooter{};
  bool counted = false;
  for (const auto& [name, value] : line) {
    if (name == "end") {
      if (!get_bool(value, name)) fail(name, "must be true");
    } else if (name == "entries") {
      footer.entries = get_integer<std::uint64_t>(value, name);
      counted = true;
    } else if (name == "dropped") {
      footer.dropped = get_integer<std::uint64_t>(value, name);
    } else if (name == "stalls") {
      footer.stalls = get_integer<std::uint64_t>(value, name);
    } else if (name == "racing") {
      footer.racing = get_integer<std::uint64_t>(value, name);
    } else if (name == "coverage") {
      footer.coverage = raw_json(value);
    } else {
      footer.unknown.emplace_back(name, raw_json(value));
    }
  }
  if (!counted) fail("entries", "is missing");
  footer.present = true;
}

}  // namespace

struct LineDecoder::Impl {
  bool check_hashes = true;
  simdjson::dom::parser parser;
};

LineDecoder::LineDecoder(bool check_hashes) : impl_(std::make_unique<Impl>()) {
  impl_->check_hashes = check_hashes;
}
LineDecoder::~LineDecoder() = default;

LineKind LineDecoder::decode(std::string_view line, DecodedLine& into) {
  element root;
  const auto code = impl_->parser.parse(line.data(), line.size(), false).get(root);
  if (code != simdjson::SUCCESS) {
    throw DecodeError(fmt::format("not JSON: {}", simdjson::error_message(code)));
  }
  object fields;
  if (root.get(fields) != simdjson::SUCCESS) throw DecodeError("not a JSON object");
  const auto first = fields.begin();
  const std::string_view first_key = first != fields.end() ? first.key() : std::string_view{};
  const auto has = [&](std::string_view key) {
    element value;
    return first_key == key || fields[key].get(value) == simdjson::SUCCESS;
  };
  if (has("kind")) {
    decode_entry(fields, into.entry, impl_->check_hashes);
    return LineKind::kEntry;
  }
  check_unique_keys(fields);
  if (has("define")) {
    const std::string_view what = get_string(fields["define"].value_unsafe(), "define");
    if (what == "stream") {
      decode_stream(fields, into.stream);
      return LineKind::kStream;
    }
    if (what == "graph") {
      decode_graph(fields, into.graph, impl_->check_hashes);
      return LineKind::kGraph;
    }
    throw DecodeError(fmt::format("\"define\" of \"{}\" is not known", what));
  }
  if (has("meta")) {
    const object meta = get_object(fields["meta"].value_unsafe(), "meta");
    check_unique_keys(meta);
    decode_info(meta, into.info);
    return LineKind::kMeta;
  }
  if (has("end")) {
    decode_footer(fields, into.footer);
    return LineKind::kFooter;
  }
  if (has("lockstep_trace")) {
    const element version = fields["lockstep_trace"].value_unsafe();
    if (get_integer<std::uint32_t>(version, "lockstep_trace") != 1) {
      throw DecodeError(fmt::format("version {} of the trace format; this program reads version 1",
                                    raw_json(version)));
    }
    decode_info(fields, into.info);
    return LineKind::kHeader;
  }
  throw DecodeError("neither an entry nor a definition, meta, header or footer line");
}

namespace {

/// Traces are written until the very end of a process, when the library's own static objects, from
/// which a new parser is made, are gone: one parser is made before and kept. Whoever finds it taken
/// makes another; no lock, which a fork might find held.
std::atomic<simdjson::dom::parser*> spare_parser{nullptr};

class BorrowedParser {
 public:
  BorrowedParser() : parser_(spare_parser.exchange(nullptr)) {
    if (!parser_) parser_ = std::make_unique<simdjson::dom::parser>();
  }
  ~BorrowedParser() { delete spare_parser.exchange(parser_.release()); }
  BorrowedParser(const BorrowedParser&) = delete;
  BorrowedParser& operator=(const BorrowedParser&) = delete;
  simdjson::dom::parser& operator*() const noexcept { return *parser_; }

 private:
  std::unique_ptr<simdjson::dom::parser> parser_;
};

}  // namespace

std::string compact_json(const std::string& text) {
  const BorrowedParser parser;
  element root;
  if ((*parser).parse(text.data(), text.size(), true).get(root) != simdjson::SUCCESS) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("not JSON text: {}", text.substr(0, 200)));
  }
  return raw_json(root);
}

void prepare_json() { static_cast<void>(compact_json("0")); }

}  // namespace lockstep
