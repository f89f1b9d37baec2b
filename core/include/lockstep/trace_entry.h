// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// One entry of a trace: what was enqueued, without any address (docs/trace-format.md).
///
/// Everything here is a plain value type: copyable, no hidden state, safe to use from several
/// threads as long as no two of them write the same object.
namespace lockstep {

/// What an entry stands for. The first three are the core kinds, which are compared by default; the
/// others are recorded always and shown, compared and returned only when asked for. The numbers are
/// part of the semantic hash and never change.
enum class OperationKind : std::uint8_t {
  kKernelLaunch = 0,
  kMemcpy = 1,
  kMemset = 2,
  kGraphLaunch = 3,
  kHostFunc = 4,
  kEventRecord = 5,
  kEventWait = 6,
  kAlloc = 7,
  kFree = 8,
  kSynchronize = 9,
  kMark = 10,
  kStreamMemOp = 11,
  kExternalSemaphore = 12,
  kPrefetch = 13,
  kOpaque = 14,    ///< something launch-like that could not be decoded; never equal to anything
  kUnknown = 255,  ///< a kind this version does not know; kept, compared by kind_text and name
};

/// True for kernel launches, copies and sets.
constexpr bool is_core_kind(OperationKind kind) noexcept { return kind <= OperationKind::kMemset; }

/// The kind's name in trace files ("kernel", "memcpy", …); empty for kUnknown.
LOCKSTEP_API std::string_view to_string(OperationKind kind) noexcept;
/// The kind of that name, kUnknown when there is none.
LOCKSTEP_API OperationKind operation_kind_from_string(std::string_view text) noexcept;

/// Direction of a copy by the kind of allocation on each side. Device, array, managed, pool and
/// imported memory is D; pinned, registered and pageable memory is H.
enum class MemcpyKind : std::uint8_t { kNone = 0, kHtoD = 1, kDtoH = 2, kDtoD = 3, kHtoH = 4 };

/// "HtoD", "DtoH", "DtoD", "HtoH"; empty for kNone.
LOCKSTEP_API std::string_view to_string(MemcpyKind kind) noexcept;

/// Three unsigned sizes, in blocks or threads. Converts from one number, as CUDA's dim3 does.
struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;

  constexpr Dim3() noexcept = default;
  constexpr Dim3(std::uint32_t x_, std::uint32_t y_ = 1, std::uint32_t z_ = 1) noexcept
      : x(x_), y(y_), z(z_) {}
  friend constexpr bool operator==(const Dim3&, const Dim3&) noexcept = default;
};

/// What a copy or set covers: width in bytes, height in rows, depth in planes.
struct Extent {
  std::uint64_t width = 0;
  std::uint64_t height = 1;
  std::uint64_t depth = 1;

  friend constexpr bool operator==(const Extent&, const Extent&) noexcept = default;
};

/// State of an entry beside what it did. None of it is hashed.
enum class EntryFlag : std::uint16_t {
  kCaptured = 1u << 0,  ///< recorded while its stream captured: it did not execute
  kReplayed = 1u << 1,  ///< executed as a node of a graph launch
  kFailed = 1u << 2,    ///< the driver call returned an error
  kPending = 1u << 3,   ///< the driver call had not returned when the trace was taken
  kInternal = 1u << 4,  ///< made by the runtime itself beside the logical call
  kWarmup = 1u << 5,    ///< made by a warm-up run
  kStale = 1u << 6,     ///< used memory that was no longer allocated
  kDisabled = 1u << 7,  ///< a graph node that is switched off: it orders, but does nothing
};

/// One kernel argument as recorded. Pointers are (buffer, offset): buffers are numbered from 1 in
/// order of first use since the trace began, null is (0, 0).
struct TraceArgument {
  enum class Tag : std::uint8_t { kScalar = 0, kPointer = 1, kStruct = 2 };

  Tag tag = Tag::kScalar;
  std::uint32_t size = 0;        ///< bytes of the parameter
  std::uint32_t buffer = 0;      ///< kPointer only
  std::uint64_t offset = 0;      ///< kPointer only, in bytes
  std::vector<std::byte> bytes;  ///< kScalar and kStruct: the value

  friend bool operator==(const TraceArgument&, const TraceArgument&) = default;
};

/// One operation. `kind` says which group of fields below has a meaning; the others stay zero.
struct LOCKSTEP_API LaunchTraceEntry {
  // --- common ---
  OperationKind kind = OperationKind::kKernelLaunch;
  std::string name;                 ///< kernel: as the driver reports it; else the driver call
  std::uint32_t stream_index = 0;   ///< streams in first-seen order within the trace
  std::uint64_t semantic_hash = 0;  ///< address-free, never 0 once computed; see hash()

  // --- kernel ---
  std::uint32_t grid_x = 0, grid_y = 0, grid_z = 0;           ///< blocks
  std::uint32_t block_x = 0, block_y = 0, block_z = 0;        ///< threads
  std::uint64_t shared_mem_bytes = 0;                         ///< dynamic shared memory
  std::uint32_t cluster_x = 0, cluster_y = 0, cluster_z = 0;  ///< blocks a cluster, 0 = none
  bool cooperative = false;
  std::vector<TraceArgument> arguments;  ///< empty when not known
  std::uint64_t argument_hash = 0;       ///< 0 = unknown

  // --- memcpy ---
  MemcpyKind memcpy_kind = MemcpyKind::kNone;
  std::uint64_t memcpy_byte_size = 0;  ///< bytes moved
  std::int32_t peer_device = -1;       ///< destination device of a peer copy, else -1
  /// kPointer with buffer 0 when it is not known.
  TraceArgument source{TraceArgument::Tag::kPointer, 8, 0, 0, {}};
  /// Also of a memset, of a prefetch, and of a free of a buffer that was used.
  TraceArgument destination{TraceArgument::Tag::kPointer, 8, 0, 0, {}};

  // --- memset ---
  std::uint64_t memset_byte_size = 0;
  std::uint32_t memset_value = 0;       ///< masked to its size
  std::uint32_t memset_value_size = 0;  ///< 1, 2 or 4 bytes

  // --- memcpy and memset ---
  Extent extent;  ///< contiguous rows folded into the width, planes into rows

  // --- extensions ---
  std::string kind_text;  ///< the kind as written, kUnknown only
  std::int32_t device = 0;
  std::uint32_t thread_index = 0;  ///< threads in first-seen order
  std::uint16_t flags = 0;         ///< EntryFlag bits
  std::uint64_t sequence = 0;      ///< enqueue order within the process, from 0
  std::int64_t time_ns = 0;        ///< host time since the trace began
  std::int32_t graph = -1;         ///< graph_launch: which; replayed and captured: of which
  std::uint32_t graph_version = 0;
  std::int32_t node = -1;             ///< ordinal of the node within its graph
  std::uint32_t branch = 0;           ///< ordinal of the node's chain within its graph
  std::uint64_t launch = 0;           ///< replayed: ordinal of the graph launch within the trace
  std::int64_t event = -1;            ///< event_record, event_wait, synchronize: which record
  std::string mark;                   ///< mark only: "push", "pop" or "point"
  std::uint64_t alloc_byte_size = 0;  ///< alloc and prefetch only
  std::string attributes;             ///< launch attributes as compact JSON object text, "" = none
  /// Keys this version does not know, as JSON text (name, value), kept in order.
  std::vector<std::pair<std::string, std::string>> unknown;

  bool has(EntryFlag flag) const noexcept {
    return (flags & static_cast<std::uint16_t>(flag)) != 0;
  }
  void set(EntryFlag flag) noexcept { flags |= static_cast<std::uint16_t>(flag); }

  Dim3 grid() const noexcept { return {grid_x, grid_y, grid_z}; }
  Dim3 block() const noexcept { return {block_x, block_y, block_z}; }
  /// True for a copy or set of no bytes. It is recorded, but the executed view leaves it out.
  bool is_empty_operation() const noexcept;

  friend bool operator==(const LaunchTraceEntry&, const LaunchTraceEntry&) = default;
};

/// Semantic hash of an entry's fields (hash version 1). Reads kind and the kind's group only;
/// stream, device, flags, addresses and the name of a copy or set call are left out. Kinds other
/// than the core ones hash their kind and name. Never returns 0.
LOCKSTEP_API std::uint64_t semantic_hash(const LaunchTraceEntry& entry);

/// Argument hash over `arguments`; 0 when one of them is a struct, whose padding is not known.
/// An empty list has a hash of its own: whoever does not know the arguments must not call this.
LOCKSTEP_API std::uint64_t argument_hash(const std::vector<TraceArgument>& arguments);

/// The extent of a copy or set in normal form. Rows that are contiguous on both sides fold into
/// the width, planes into rows; anything empty becomes (0,1,1). Pitches are bytes from row to row,
/// slice pitches bytes from plane to plane; a set has one side only (pass it twice).
LOCKSTEP_API Extent fold_extent(Extent extent, std::uint64_t source_pitch,
                                std::uint64_t source_slice_pitch, std::uint64_t destination_pitch,
                                std::uint64_t destination_slice_pitch) noexcept;

/// A kernel's name for people: demangled, without result type and parameter list, control
/// characters shown as `\x1b`, cut to `width` bytes (0 = not cut) with an ellipsis.
LOCKSTEP_API std::string display_name(const std::string& name, std::size_t width = 0);
/// What an entry did, without its stream, with the name cut to `name_width` bytes (0 = not cut).
LOCKSTEP_API std::string describe(const LaunchTraceEntry& entry, std::size_t name_width = 0);
/// One line for people: `kernel  saxpy   4×1×1 / 256×1×1   stream 0`. No line feed.
LOCKSTEP_API std::string to_string(const LaunchTraceEntry& entry);
LOCKSTEP_API std::ostream& operator<<(std::ostream& out, const LaunchTraceEntry& entry);

}  // namespace lockstep
