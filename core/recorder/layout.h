// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

/// \file
/// What lies in the memory that a recorded program and its drainer share. The same layout is used
/// within one process (anonymous memory) and between two (files `<pid>.<image>.image` and
/// `<pid>.<image>.<ring>.ring` in LOCKSTEP_RECORD_DIR).
///
/// Order. Every record takes one number of Control::sequence, and every number taken is published
/// within a few instructions, because nothing that can wait or fault lies in between. A drainer
/// therefore knows which number comes next, and emits records of all rings in exactly that order.
namespace lockstep::recorder {

inline constexpr std::uint32_t kLayoutVersion = 3;
inline constexpr std::uint64_t kControlMagic = 0x31434b5453434f4cULL;
inline constexpr std::uint64_t kRingMagic = 0x31524b5453434f4cULL;
inline constexpr std::size_t kRingDataOffset = 4096;
inline constexpr std::uint32_t kMaxRings = 4096;

/// Who may drain: the parent under `lockstep record`, and this process itself.
enum Consumer : std::uint32_t { kParentConsumer = 0, kLocalConsumer = 1, kConsumers = 2 };

/// How RecordHeader::time counts.
enum Clock : std::uint32_t { kClockNanoseconds = 0, kClockTsc = 1 };

enum RingState : std::uint32_t { kRingInUse = 1, kRingClosed = 2 };

/// One for each process image.
struct Control {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t image;  ///< how often this process id had recorded before (exec)
  std::int64_t pid;
  std::int64_t rank;  ///< -1 = none
  std::uint32_t clock;
  std::uint32_t shared;      ///< 1: rings are files
  std::uint64_t base_ticks;  ///< the same instant by both clocks
  std::uint64_t base_nanoseconds;
  std::uint64_t ring_bytes;
  std::uint64_t pid_namespace;  ///< inode of the one that `pid` counts in; 0 = not known
  std::uint32_t locked;         ///< 1: its file is locked for as long as this image lives
  alignas(64) std::atomic<std::uint64_t> sequence;
  alignas(64) std::atomic<std::uint32_t> ring_count;
  std::atomic<std::uint32_t> consumers;  ///< bits of Consumer
  std::atomic<std::uint32_t> closing;    ///< 1: nobody drains any more; nothing is recorded
  std::atomic<std::uint64_t> stalls;
  std::atomic<std::uint64_t> dropped;
  /// A bit for each ring that a consumer has given up: nobody waits for it there. Not in the ring,
  /// which the consumer may be unable to map.
  std::atomic<std::uint64_t> unread[kConsumers][kMaxRings / 64];
};

/// Header of one ring; its bytes begin at kRingDataOffset. One producer at a time: the thread that
/// owns it. Positions count bytes since the ring was made and never wrap.
struct Ring {
  std::uint64_t magic;
  std::uint32_t index;
  std::uint32_t shared;
  std::uint64_t capacity;
  // The producer's own.
  alignas(64) std::uint64_t write_position;
  std::uint64_t write_offset;  ///< write_position modulo capacity
  std::uint64_t soft_limit;    ///< position up to which there is room without looking
  std::uint64_t backed_bytes;  ///< of a file: what the system has promised to hold
  std::uint64_t thread;
  std::uint32_t busy;  ///< a signal handler must not record into a half-made record
  alignas(64) std::atomic<std::uint64_t> head;
  std::atomic<std::uint32_t> state;
  alignas(64) std::atomic<std::uint64_t> tail[kConsumers];
  std::atomic<std::uint32_t> space;    ///< futex: counts up whenever there may be room
  std::atomic<std::uint32_t> waiting;  ///< the producer waits on `space`

  unsigned char* data() noexcept {
    return reinterpret_cast<unsigned char*>(this) + kRingDataOffset;
  }
};
static_assert(sizeof(Ring) <= kRingDataOffset);

enum class RecordType : std::uint16_t {
  kWrap = 1,    ///< nothing up to the end of the ring; has no sequence number
  kThread = 2,  ///< the ring has a new owner: number = thread
  kStream = 3,
  kEntry = 4,
  kMemory = 5,
  kAmend = 6,  ///< the end of a record that was consumed while pending
  // Of any length, in pieces (PieceRecord):
  kText = 16,
  kGraph = 17,
  kProcess = 18,  ///< command line, terminated strings
  kDevice = 19,
  kCoverage = 20,
};

/// RecordHeader::state.
enum : std::uint32_t {
  kStateDone = 1u << 0,    ///< the end fields are valid
  kStateTakenBy = 1u << 8  ///< << consumer: it consumed the record while pending
};

struct RecordHeader {
  std::uint32_t size;  ///< bytes with this header, a multiple of 8
  RecordType type;
  std::uint16_t reserved;
  std::uint64_t sequence;
  std::uint64_t time;
  std::atomic<std::uint32_t> state;
  std::uint32_t reserved2;
};
static_assert(sizeof(RecordHeader) == 32);

struct ThreadRecord {
  RecordHeader header;
  std::uint64_t thread;
};

struct StreamRecord {
  RecordHeader header;
  std::uint64_t stream, context;
  std::int32_t device;
  std::uint32_t blocking;
};

/// What end() says.
struct EndFields {
  std::uint64_t sequence;  ///< Control::sequence when the call returned
  std::uint64_t graph;
  std::int32_t node;
  std::uint32_t flags;
};

struct AmendRecord {
  RecordHeader header;
  std::uint64_t amended;  ///< sequence number of the record
  EndFields end;
};

/// Entries, memory reports and graph nodes. Followed by the group of its kind (`group_size` bytes),
/// then for kernels of known layout `argument_count` words of (size << 8 | tag) and the values,
/// each at a multiple of 8 bytes.
struct EntryRecord {
  RecordHeader header;
  std::uint32_t kind;
  std::uint32_t flags;
  std::uint32_t name;
  std::int32_t device;
  std::uint64_t stream;
  EndFields end;
  std::uint32_t group_size;
  std::uint32_t argument_count;  ///< kUnknownArguments = layout not known
};
/// EntryRecord::flags beside those of lockstep_record: work that only private traces see.
inline constexpr std::uint32_t kRecordPrivate = 1u << 31;
inline constexpr std::uint32_t kUnknownArguments = 0xffffffffu;

struct KernelGroup {
  lockstep_dim3 grid, block, cluster;
  std::uint32_t cooperative;
  std::uint64_t shared_bytes;
  std::uint32_t attributes;
  std::uint32_t reserved;
};

struct PieceRecord {
  RecordHeader header;
  std::uint64_t id;      ///< texts: their number
  std::uint64_t total;   ///< bytes of all pieces
  std::uint64_t offset;  ///< of this piece; its bytes follow
  std::uint64_t bytes;
};

/// Begins the bytes of a RecordType::kGraph; nodes (EntryRecord and what follows each) and edges
/// come after it.
struct GraphHeader {
  std::uint64_t graph;
  std::uint32_t version, node_count, edge_count, reserved;
};

/// Begins the bytes of a RecordType::kDevice; four terminated strings come after it: name, arch,
/// uuid, driver.
struct DeviceHeader {
  std::int32_t ordinal;
  std::uint32_t simulated;
};

/// In the file `hub`: one word that recorded processes count up and wake when a ring fills.
struct Hub {
  std::atomic<std::uint32_t> wake;
};

}  // namespace lockstep::recorder
