// SPDX-License-Identifier: Apache-2.0
#include "src/record/assembler.h"

#include <algorithm>
#include <cstring>

#include "recorder/recorder.h"

namespace lockstep::record {

using recorder::EntryRecord;
using recorder::RecordHeader;
using recorder::RecordType;

namespace {

constexpr std::uint64_t kStillOpen = ~std::uint64_t{0};

template <class Record>
const Record* as(const RecordHeader& record) {
  return record.size >= sizeof(Record) ? reinterpret_cast<const Record*>(&record) : nullptr;
}

/// Terminated strings, one after another.
std::vector<std::string> split(const unsigned char* bytes, std::size_t size) {
  std::vector<std::string> texts;
  const char* next = reinterpret_cast<const char*>(bytes);
  const char* end = next + size;
  while (next < end) {
    const std::size_t length = strnlen(next, static_cast<std::size_t>(end - next));
    texts.emplace_back(next, length);
    next += length + 1;
  }
  return texts;
}

bool enqueues(OperationKind kind) {
  return kind != OperationKind::kSynchronize && kind != OperationKind::kMark &&
         kind != OperationKind::kAlloc && kind != OperationKind::kFree;
}

}  // namespace

ClockMap::ClockMap(const recorder::Control& control)
    : clock_(control.clock),
      base_ticks_(control.base_ticks),
      base_nanoseconds_(control.base_nanoseconds) {
  update();
}

void ClockMap::update() {
  if (clock_ == recorder::kClockNanoseconds) return;
  constexpr std::uint64_t kLongEnough = 10'000'000'000;
  if (measured_for_ > kLongEnough) return;
  const std::uint64_t ticks = recorder::clock_ticks(clock_);
  const std::uint64_t now = recorder::monotonic_nanoseconds();
  if (ticks <= base_ticks_ || now <= base_nanoseconds_) return;
  measured_for_ = now - base_nanoseconds_;
  scale_ = static_cast<double>(measured_for_) / static_cast<double>(ticks - base_ticks_);
}

std::uint64_t ClockMap::nanoseconds(std::uint64_t ticks) const {
  if (clock_ == recorder::kClockNanoseconds) return ticks;
  if (ticks <= base_ticks_) return base_nanoseconds_;
  return base_nanoseconds_ +
         static_cast<std::uint64_t>(static_cast<double>(ticks - base_ticks_) * scale_);
}

Assembler::Assembler(const recorder::Control& control)
    : clock_(control), decoder_(texts_, allocations_) {
  info_.producer = "lockstep 0.1";
  info_.pid = control.pid;
}

StreamInfo Assembler::stream(std::uint64_t stream, const LaunchTraceEntry& entry) const {
  const auto found = streams_.find(stream);
  if (found != streams_.end()) return found->second;
  StreamInfo info;
  info.device = entry.device;
  return info;
}

const RecordedGraph* Assembler::graph(std::uint64_t graph, std::uint32_t version) const {
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return nullptr;
  const auto wanted = found->second.find(version);
  return wanted == found->second.end() ? nullptr : &wanted->second;
}

void Assembler::visit(const RecordHeader& record, std::uint32_t ring, bool pending) {
  if (ring >= rings_.size()) rings_.resize(ring + 1);
  RingState& state = rings_[ring];
  switch (record.type) {
    case RecordType::kThread:
      if (const auto* thread = as<recorder::ThreadRecord>(record)) state.thread = thread->thread;
      return;
    case RecordType::kStream:
      if (const auto* stream = as<recorder::StreamRecord>(record)) {
        streams_[stream->stream] = StreamInfo{stream->device, stream->context, stream->blocking};
      }
      return;
    case RecordType::kEntry:
      if (const auto* entry = as<EntryRecord>(record)) visit_entry(*entry, state, pending);
      return;
    case RecordType::kMemory:
      if (const auto* entry = as<EntryRecord>(record)) visit_memory(*entry, state);
      return;
    case RecordType::kAmend:
      if (const auto* amend = as<recorder::AmendRecord>(record)) visit_amend(*amend);
      return;
    case RecordType::kText:
    case RecordType::kGraph:
    case RecordType::kProcess:
    case RecordType::kDevice:
    case RecordType::kCoverage:
      if (const auto* piece = as<recorder::PieceRecord>(record)) visit_piece(*piece, state);
      return;
    case RecordType::kWrap:
      return;
  }
  ++damaged_;
}

std::uint64_t Assembler::count_racing(const DecodedEntry& decoded, bool pending) {
  if (decoded.stream == 0 || !enqueues(decoded.entry.kind)) return 0;
  std::uint64_t racing = 0;
  Call* own = nullptr;
  auto& calls = calls_[decoded.stream];
  for (Call& call : calls) {
    if (call.thread == decoded.thread) {
      own = &call;
    } else if (call.end > decoded.entry.sequence) {
      ++racing;
    }
  }
  const Call call{decoded.thread, decoded.entry.sequence,
                  pending ? kStillOpen : decoded.end.sequence};
  if (own != nullptr) {
    *own = call;
  } else {
    calls.push_back(call);
  }
  return racing;
}

void Assembler::give(DecodedEntry&& decoded, std::uint64_t racing) {
  if (first_entry_ && !decoded.private_work) {
    // Moved out first: the callback may add traces, and must not be called twice.
    const auto callback = std::exchange(first_entry_, nullptr);
    callback();
  }
  const std::uint64_t time = clock_.nanoseconds(decoded.ticks);
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    if (!traces_[i]->accepts(decoded)) continue;
    if (i + 1 == traces_.size()) {
      // The last one. NOLINTNEXTLINE(bugprone-use-after-move)
      traces_[i]->add(std::move(decoded), time, racing, *this);
    } else {
      traces_[i]->add(decoded, time, racing, *this);
    }
  }
}

void Assembler::visit_entry(const EntryRecord& record, RingState& ring, bool pending) {
  if (traces_.empty() && !first_entry_) return;
  DecodedEntry decoded;
  if (!decoder_.decode(record, decoded)) {
    ++damaged_;
    return;
  }
  decoded.thread = ring.thread;
  decoded.ticks = record.header.time;
  decoded.entry.sequence = record.header.sequence;
  if (pending) {
    decoded.entry.set(EntryFlag::kPending);
  } else {
    decoded.end = record.end;
    decoded.entry.flags = static_cast<std::uint16_t>(decoded.entry.flags |
                                                     static_cast<std::uint16_t>(record.end.flags));
  }
  const std::uint64_t racing = count_racing(decoded, pending);
  give(std::move(decoded), racing);
}

void Assembler::visit_memory(const EntryRecord& record, RingState& ring) {
  DecodedEntry decoded;
  if (!decoder_.decode(record, decoded)) {
    ++damaged_;
    return;
  }
  const MemoryGroup& memory = decoded.memory;
  const bool failed = decoded.entry.has(EntryFlag::kFailed);
  if (record.kind == LOCKSTEP_RECORD_ALLOC && !failed) {
    allocations_.allocate(memory.address, memory.bytes, memory.allocation);
  } else if (record.kind == LOCKSTEP_RECORD_FREE && !failed &&
             !decoded.entry.has(EntryFlag::kCaptured)) {
    // A captured free is a node: the graph's later nodes and launches use the same addresses.
    allocations_.free(memory.address, memory.allocation);
  }
  if (traces_.empty() && !first_entry_) return;
  decoded.thread = ring.thread;
  decoded.ticks = record.header.time;
  decoded.entry.sequence = record.header.sequence;
  give(std::move(decoded), 0);
}

void Assembler::visit_amend(const recorder::AmendRecord& record) {
  for (auto& [stream, calls] : calls_) {
    for (Call& call : calls) {
      if (call.sequence == record.amended && call.end == kStillOpen) call.end = record.end.sequence;
    }
  }
  for (TraceBuilder* trace : traces_) trace->amend(record.amended, record.end);
}

void Assembler::visit_piece(const recorder::PieceRecord& record, RingState& ring) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&record) + sizeof(record);
  if (record.bytes > record.header.size - sizeof(record) ||
      record.bytes > record.total - record.offset || record.offset > record.total) {
    ++damaged_;
    return;
  }
  if (record.offset == 0 && record.bytes == record.total) {
    take_pieces(record.header.type, record.id, bytes, record.total);
    return;
  }
  if (record.offset == 0) ring.pieces.clear();
  if (ring.pieces.size() != record.offset) {
    ++damaged_;
    return;
  }
  ring.pieces.insert(ring.pieces.end(), bytes, bytes + record.bytes);
  if (ring.pieces.size() != record.total) return;
  take_pieces(record.header.type, record.id, ring.pieces.data(), ring.pieces.size());
  ring.pieces = {};
}

void Assembler::take_pieces(RecordType type, std::uint64_t id, const unsigned char* bytes,
                            std::size_t size) {
  switch (type) {
    case RecordType::kText:
      texts_.add(id, {reinterpret_cast<const char*>(bytes), size});
      return;
    case RecordType::kGraph:
      define_graph(bytes, size);
      return;
    case RecordType::kProcess:
      info_.command = split(bytes, size);
      return;
    case RecordType::kDevice:
      take_device(bytes, size);
      return;
    case RecordType::kCoverage:
      coverage_.assign(reinterpret_cast<const char*>(bytes), size);
      return;
    default:
      return;
  }
}

void Assembler::define_graph(const unsigned char* bytes, std::size_t size) {
  recorder::GraphHeader header{};
  if (size < sizeof(header)) {
    ++damaged_;
    return;
  }
  std::memcpy(&header, bytes, sizeof(header));
  const unsigned char* next = bytes + sizeof(header);
  const unsigned char* end = bytes + size;
  RecordedGraph graph;
  for (std::uint32_t i = 0; i < header.node_count; ++i) {
    const auto* record = reinterpret_cast<const EntryRecord*>(next);
    if (static_cast<std::size_t>(end - next) < sizeof(EntryRecord) ||
        record->header.size > static_cast<std::size_t>(end - next)) {
      ++damaged_;
      return;
    }
    DecodedEntry node;
    if (!decoder_.decode(*record, node)) {
      ++damaged_;
      return;
    }
    graph.nodes.push_back(std::move(node));
    next += record->header.size;
  }
  if (static_cast<std::size_t>(end - next) / sizeof(lockstep_graph_edge) < header.edge_count) {
    ++damaged_;
    return;
  }
  graph.edges.resize(header.edge_count);
  if (header.edge_count != 0) {
    std::memcpy(graph.edges.data(), next, header.edge_count * sizeof(lockstep_graph_edge));
  }
  auto& versions = graphs_[header.graph];
  versions[header.version] = std::move(graph);
  while (versions.size() > kKeptVersions) versions.erase(versions.begin());
}

void Assembler::take_device(const unsigned char* bytes, std::size_t size) {
  recorder::DeviceHeader header{};
  if (size < sizeof(header)) return;
  std::memcpy(&header, bytes, sizeof(header));
  std::vector<std::string> texts = split(bytes + sizeof(header), size - sizeof(header));
  texts.resize(4);
  TraceDevice device;
  device.ordinal = header.ordinal;
  device.name = texts[0];
  device.arch = texts[1];
  device.uuid = texts[2];
  if (std::find(info_.devices.begin(), info_.devices.end(), device) != info_.devices.end()) return;
  info_.devices.push_back(std::move(device));
  if (!texts[3].empty()) info_.driver = texts[3];
  info_.simulated = info_.simulated || header.simulated != 0;
  if (info_changed_) info_changed_();
}

}  // namespace lockstep::record
