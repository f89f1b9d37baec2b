// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_entry.h>

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "recorder/layout.h"
#include "src/record/record_entry.h"

/// \file
/// From a record's bytes to an entry without numbers: what every trace shares. Streams, buffers,
/// graphs and events are still identities; each trace numbers them for itself.
namespace lockstep::record {

using MemoryGroup = decltype(lockstep_record{}.of.memory);

/// Where a pointer points.
struct Place {
  std::uint64_t allocation = 0;  ///< identity, 0 = null or not known
  std::uint64_t offset = 0;
  bool known = true;  ///< false: not null, and in no live allocation
};

struct DecodedEntry {
  LaunchTraceEntry entry;
  std::uint64_t stream = 0;
  std::uint64_t thread = 0;
  std::uint64_t graph = 0;
  std::uint64_t event = 0;
  std::uint64_t ticks = 0;
  bool private_work = false;     ///< for private traces only
  bool arguments_known = false;  ///< and all of them may be hashed
  std::vector<Place> arguments;  ///< one for each of entry.arguments
  Place source, destination;
  MemoryGroup memory{};  ///< alloc, free, prefetch
  recorder::EndFields end{0, 0, -1, 0};
};

/// What the process has allocated, in sequence order.
class LiveAllocations {
 public:
  void allocate(std::uint64_t address, std::uint64_t bytes, std::uint64_t allocation);
  /// By identity where it is known: the address may have been given away already.
  void free(std::uint64_t address, std::uint64_t allocation);
  Place find(std::uint64_t address) const;

 private:
  struct Allocation {
    std::uint64_t bytes;
    std::uint64_t identity;
  };
  std::map<std::uint64_t, Allocation> by_address_;
};

/// Texts by their number.
class Texts {
 public:
  void add(std::uint64_t id, std::string_view text);
  std::string_view find(std::uint32_t id) const;

 private:
  std::unordered_map<std::uint32_t, std::string> texts_;
};

/// From bytes to entries. Keeps scratch memory from one call to the next; one thread at a time.
class Decoder {
 public:
  Decoder(const Texts& texts, const LiveAllocations& allocations)
      : text_([&texts](std::uint32_t id) { return texts.find(id); }), allocations_(allocations) {}

  /// False when the record's sizes do not fit together.
  bool decode(const recorder::EntryRecord& record, DecodedEntry& decoded);

 private:
  bool restore(const recorder::EntryRecord& record, lockstep_record& restored);
  bool restore_kernel(const recorder::EntryRecord& record, lockstep_record& restored);
  void find_arguments(DecodedEntry& decoded) const;

  TextLookup text_;
  const LiveAllocations& allocations_;
  std::vector<lockstep_parameter> parameters_;
  std::vector<const void*> values_;
};

}  // namespace lockstep::record
