// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_entry.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// \file
/// Arguments of matched entries: scalars by value, buffers by a bijection.
namespace lockstep::verifying {

/// True when everything that level L3 compares is known of the entry: a kernel's arguments, the
/// device sides of a copy, the destination of a set.
bool has_known_arguments(const LaunchTraceEntry& entry);

/// A hash of what arguments say by themselves: sizes, scalars, offsets, and which of them are the
/// same buffer. Entries that can be matched at L3 have equal ones when both are known.
std::uint64_t argument_signature(const LaunchTraceEntry& entry);

struct ArgumentDifference {
  enum class What { kScalar, kBuffer, kStruct };
  What what = What::kScalar;
  std::string text;  ///< "argument 2: 16 in eager, 32 in replay"
};

/// One-to-one names of buffers between the two sides, grown entry by entry.
class BufferBijection {
 public:
  using Trail = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

  /// Compares two entries and names their buffers. Names that are new go to `trail` when given.
  /// The first difference is returned, and then nothing has been named. Structs that differ are
  /// differences too: their padding is not known, so the caller decides. What is not known on
  /// either side is equal to anything.
  std::optional<ArgumentDifference> unify(const LaunchTraceEntry& eager,
                                          const LaunchTraceEntry& replay, Trail* trail = nullptr);
  void undo(const Trail& trail);

 private:
  std::optional<ArgumentDifference> unify_pointer(const TraceArgument& eager,
                                                  const TraceArgument& replay,
                                                  const std::string& name, Trail& trail);

  std::unordered_map<std::uint32_t, std::uint32_t> to_replay_, to_eager_;
};

}  // namespace lockstep::verifying
