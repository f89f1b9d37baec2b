// SPDX-License-Identifier: Apache-2.0
#include "recorder/recorder.h"

#include <cstdlib>
#include <cstring>

#include "recorder/encode.h"
#include "recorder/segment.h"
#include "recorder/texts.h"

namespace lockstep::recorder {
namespace {

__thread std::int32_t t_private __attribute__((tls_model("initial-exec"))) = 0;

std::int32_t private_work(std::int32_t change) { return t_private += change; }

Ring* my_ring() noexcept {
  Ring* ring = t_ring;
  return __builtin_expect(ring != nullptr, 1) ? ring : acquire_ring();
}

/// Copies `record` into the ring. The state says whether end() is still to come.
[[gnu::hot]] EntryRecord* write_entry(Ring* ring, const lockstep_record& record, RecordType type,
                                      std::uint32_t state) noexcept {
  if (!enter(ring)) return nullptr;
  constexpr std::uint32_t kLikely = 512;  // a larger one is no guide to the next
  bool with_arguments = false;
  const std::uint32_t size = encoded_size(record, &with_arguments);
  auto* entry = reinterpret_cast<EntryRecord*>(reserve_record(ring, size));
  if (entry != nullptr) {
    encode(entry, record, with_arguments);
    if (__builtin_expect(t_private != 0, 0)) entry->flags |= kRecordPrivate;
    publish_record(ring, &entry->header, type, size, state);
    if (size <= kLikely) expect_records(ring, size);
  }
  leave(ring);
  return entry;
}

[[gnu::hot]] void* begin(const lockstep_record* record) {
  if (__atomic_load_n(&g_active, __ATOMIC_RELAXED) == 0) return nullptr;
  // memory() makes the entries of these.
  if (record->kind == LOCKSTEP_RECORD_ALLOC || record->kind == LOCKSTEP_RECORD_FREE) return nullptr;
  Ring* ring = my_ring();
  return ring != nullptr ? write_entry(ring, *record, RecordType::kEntry, 0) : nullptr;
}

/// A drainer took the record while its call was pending: what the call answered comes behind.
[[gnu::cold, gnu::noinline]] void amend(Ring* ring, std::uint64_t sequence,
                                        const EndFields& fields) noexcept {
  if (!enter(ring)) return;
  auto* record = reinterpret_cast<AmendRecord*>(reserve_record(ring, sizeof(AmendRecord)));
  if (record != nullptr) {
    record->amended = sequence;
    record->end = fields;
    publish_record(ring, &record->header, RecordType::kAmend, sizeof(AmendRecord), kStateDone);
  }
  leave(ring);
}

[[gnu::hot]] void end(void* slot, std::uint32_t flags, std::uint64_t graph, std::int32_t node) {
  Ring* ring = t_ring;
  auto* entry = static_cast<EntryRecord*>(slot);
  // After a fork, or at the end of a thread, the slot may be another ring's.
  if (slot == nullptr || ring == nullptr) return;
  const auto* place = static_cast<unsigned char*>(slot);
  if (place < ring->data() || place >= ring->data() + ring->capacity) return;
  const EndFields fields{g_control->sequence.load(std::memory_order_relaxed), graph, node, flags};
  const std::uint64_t sequence = entry->header.sequence;
  entry->end = fields;
  const std::uint32_t before = entry->header.state.exchange(kStateDone, std::memory_order_acq_rel);
  if (__builtin_expect(before != 0 && before != kStateDone, 0)) amend(ring, sequence, fields);
}

std::uint32_t intern(const char* text, std::size_t length) {
  // The lock is kept until the text is in a ring: no other thread may name it in a record before.
  lock_texts();
  bool added = false;
  const std::uint32_t id = add_text(text, length, &added);
  // Pairs with make_control(): either this sees the block, or the block's first ring gets the text.
  if (added && __atomic_load_n(&g_control, __ATOMIC_SEQ_CST) != nullptr) {
    Ring* ring = my_ring();
    if (ring != nullptr) publish_pieces(ring, RecordType::kText, id, text, length);
  }
  unlock_texts();
  return id;
}

void define_stream(std::uint64_t stream, std::int32_t device, std::uint64_t context, int blocking) {
  Ring* ring = my_ring();
  if (ring == nullptr || !enter(ring)) return;
  auto* record = reinterpret_cast<StreamRecord*>(reserve_record(ring, sizeof(StreamRecord)));
  if (record != nullptr) {
    record->stream = stream;
    record->context = context;
    record->device = device;
    record->blocking = static_cast<std::uint32_t>(blocking);
    publish_record(ring, &record->header, RecordType::kStream, sizeof(StreamRecord), kStateDone);
  }
  leave(ring);
}

void define_graph(std::uint64_t graph, std::uint32_t version, const lockstep_record* nodes,
                  std::uint32_t node_count, const lockstep_graph_edge* edges,
                  std::uint32_t edge_count) {
  Ring* ring = my_ring();
  if (ring == nullptr) return;
  std::size_t size = sizeof(GraphHeader) + std::size_t{edge_count} * sizeof(lockstep_graph_edge);
  bool with_arguments = false;
  for (std::uint32_t i = 0; i < node_count; ++i) size += encoded_size(nodes[i], &with_arguments);
  auto* bytes = static_cast<unsigned char*>(std::calloc(1, size));
  if (bytes == nullptr) {
    g_control->dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const GraphHeader header{graph, version, node_count, edge_count, 0};
  std::memcpy(bytes, &header, sizeof(header));
  unsigned char* next = bytes + sizeof(header);
  for (std::uint32_t i = 0; i < node_count; ++i) {
    auto* entry = reinterpret_cast<EntryRecord*>(next);
    entry->header.size = encoded_size(nodes[i], &with_arguments);
    entry->header.type = RecordType::kEntry;
    encode(entry, nodes[i], with_arguments);
    next += entry->header.size;
  }
  if (edge_count != 0) {
    std::memcpy(next, edges, std::size_t{edge_count} * sizeof(lockstep_graph_edge));
  }
  publish_pieces(ring, RecordType::kGraph, graph, bytes, size);
  std::free(bytes);
}

void memory(const lockstep_record* record) {
  Ring* ring = my_ring();
  if (ring != nullptr) write_entry(ring, *record, RecordType::kMemory, kStateDone);
}

void publish(RecordType type, const void* bytes, std::size_t size) {
  Ring* ring = my_ring();
  if (ring != nullptr) publish_pieces(ring, type, 0, bytes, size);
}

const lockstep_recorder kTable = {sizeof(lockstep_recorder),
                                  &g_active,
                                  next_identity,
                                  intern,
                                  begin,
                                  end,
                                  define_stream,
                                  define_graph,
                                  memory};

const Api kApi = {kLayoutVersion, sizeof(Api),    &kTable,     prepare,   control,
                  ring_at,        attach,         want,        find_text, this_thread,
                  publish,        close_recorder, private_work};

}  // namespace

const Api* api() { return &kApi; }

}  // namespace lockstep::recorder
