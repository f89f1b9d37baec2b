// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_entry.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <xxhash.h>

#include "src/trace/entry_rules.h"

namespace lockstep {
namespace {

constexpr std::uint8_t kHashVersion = 1;

/// Collects the documented bytes, little endian and without padding. Names rarely exceed the
/// buffer on the stack; those that do spill to the heap.
class HashBytes {
 public:
  template <typename Integer>
  void put(Integer value) {
    static_assert(std::endian::native == std::endian::little, "the hash is over little endian");
    append(&value, sizeof(value));
  }

  void put_text(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    append(text.data(), text.size());
  }

  void append(const void* data, std::size_t size) {
    if (size == 0) return;
    if (spill_.empty() && size_ + size <= fixed_.size()) {
      std::memcpy(fixed_.data() + size_, data, size);
      size_ += size;
      return;
    }
    if (spill_.empty()) spill_.assign(fixed_.data(), size_);
    spill_.append(static_cast<const char*>(data), size);
  }

  /// 0 means "not computed" everywhere, so that a digest of 0 becomes 1.
  std::uint64_t digest() const {
    const std::uint64_t value = spill_.empty() ? XXH3_64bits(fixed_.data(), size_)
                                               : XXH3_64bits(spill_.data(), spill_.size());
    return value == 0 ? 1 : value;
  }

 private:
  std::array<char, 768> fixed_;
  std::size_t size_ = 0;
  std::string spill_;
};

void put_extent(HashBytes& bytes, const Extent& extent) {
  bytes.put(extent.width);
  bytes.put(extent.height);
  bytes.put(extent.depth);
}

void put_kernel(HashBytes& bytes, const LaunchTraceEntry& entry) {
  bytes.put_text(entry.name);
  for (const std::uint32_t count :
       {entry.grid_x, entry.grid_y, entry.grid_z, entry.block_x, entry.block_y, entry.block_z}) {
    bytes.put(count);
  }
  bytes.put(entry.shared_mem_bytes);
  const bool clustered = has_cluster(entry);
  bytes.put(clustered ? entry.cluster_x : 0u);
  bytes.put(clustered ? entry.cluster_y : 0u);
  bytes.put(clustered ? entry.cluster_z : 0u);
  bytes.put(static_cast<std::uint8_t>(entry.cooperative ? 1 : 0));
}

/// The smallest value that repeats to the same bytes: a 32-bit 0 and an 8-bit 0 are one set.
void put_set_value(HashBytes& bytes, std::uint32_t value, std::uint32_t size) {
  if (size == 4 && (value >> 16) == (value & 0xffffu)) {
    size = 2;
    value &= 0xffffu;
  }
  if (size == 2 && ((value >> 8) & 0xffu) == (value & 0xffu)) {
    size = 1;
    value &= 0xffu;
  }
  bytes.put(static_cast<std::uint64_t>(value));
  bytes.put(static_cast<std::uint8_t>(size));
}

}  // namespace

std::uint64_t semantic_hash(const LaunchTraceEntry& entry) {
  HashBytes bytes;
  bytes.put(kHashVersion);
  bytes.put(static_cast<std::uint8_t>(entry.kind));
  switch (entry.kind) {
    case OperationKind::kKernelLaunch:
      put_kernel(bytes, entry);
      break;
    case OperationKind::kMemcpy:
      bytes.put(static_cast<std::uint8_t>(entry.memcpy_kind));
      put_extent(bytes, effective_extent(entry));
      break;
    case OperationKind::kMemset:
      put_extent(bytes, effective_extent(entry));
      put_set_value(bytes, entry.memset_value, entry.memset_value_size);
      break;
    case OperationKind::kUnknown:
      bytes.put_text(entry.kind_text);
      bytes.put_text(entry.name);
      break;
    default:
      bytes.put_text(entry.name);
      break;
  }
  return bytes.digest();
}

std::uint64_t argument_hash(const std::vector<TraceArgument>& arguments) {
  HashBytes bytes;
  for (const TraceArgument& argument : arguments) {
    // Padding inside a struct is indeterminate, so that equal calls could hash differently.
    if (argument.tag == TraceArgument::Tag::kStruct) return 0;
    bytes.put(static_cast<std::uint8_t>(argument.tag));
    bytes.put(argument.size);
    if (argument.tag == TraceArgument::Tag::kPointer) {
      bytes.put(argument.buffer);
      bytes.put(argument.offset);
    } else {
      bytes.append(argument.bytes.data(), argument.bytes.size());
    }
  }
  return bytes.digest();
}

Extent effective_extent(const LaunchTraceEntry& entry) noexcept {
  const Extent& extent = entry.extent;
  const std::uint64_t size =
      entry.kind == OperationKind::kMemset ? entry.memset_byte_size : entry.memcpy_byte_size;
  const bool given = extent.width != 0 && extent.height != 0 && extent.depth != 0;
  if (given) return extent;
  return Extent{size, 1, 1};
}

bool LaunchTraceEntry::is_empty_operation() const noexcept {
  if (kind != OperationKind::kMemcpy && kind != OperationKind::kMemset) return false;
  return effective_extent(*this).width == 0;
}

Extent fold_extent(Extent extent, std::uint64_t source_pitch, std::uint64_t source_slice_pitch,
                   std::uint64_t destination_pitch,
                   std::uint64_t destination_slice_pitch) noexcept {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return Extent{0, 1, 1};
  const auto fits = [](std::uint64_t a, std::uint64_t b) {
    return a <= std::numeric_limits<std::uint64_t>::max() / b;
  };
  // Planes fold into rows where the first row of a plane follows the last of the plane before.
  const bool planes_touch = fits(source_pitch, extent.height) &&
                            source_slice_pitch == source_pitch * extent.height &&
                            fits(destination_pitch, extent.height) &&
                            destination_slice_pitch == destination_pitch * extent.height;
  const bool one_row = extent.height == 1;
  if (extent.depth > 1 && (planes_touch || one_row) && fits(extent.height, extent.depth)) {
    if (one_row) {
      // One row a plane: the planes are the rows, and their pitch is the slice pitch.
      source_pitch = source_slice_pitch;
      destination_pitch = destination_slice_pitch;
    }
    extent.height *= extent.depth;
    extent.depth = 1;
  }
  const bool rows_touch = source_pitch == extent.width && destination_pitch == extent.width;
  if (extent.height > 1 && rows_touch && fits(extent.width, extent.height)) {
    extent.width *= extent.height;
    extent.height = 1;
    // Rows folded within each plane; the planes are now one row each and may fold again.
    if (extent.depth > 1) {
      return fold_extent(extent, source_slice_pitch, source_slice_pitch, destination_slice_pitch,
                         destination_slice_pitch);
    }
  }
  return extent;
}

}  // namespace lockstep
