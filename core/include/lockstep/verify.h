// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/buffer.h>
#include <lockstep/export.h>
#include <lockstep/graph.h>
#include <lockstep/stream.h>
#include <lockstep/trace.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Does replay do what eager execution does? Levels, each including those before it.
namespace lockstep {

enum class VerifyLevel : std::uint8_t {
  kCounts = 0,    ///< L0: how many entries of each kind
  kMultiset = 1,  ///< L1: the same semantic hashes, in any order
  /// L2: every order that eager guarantees, replay guarantees too. Where eager may guarantee more
  /// than can be followed, or replay may, verified means that the level holds whatever is true, and
  /// failed that it does not; all between is "undecided".
  kOrder = 2,
  kArguments = 3,  ///< L3: equal scalars, and one bijection between the buffers of both sides
  kValues = 4,     ///< L4: bitwise equal outputs (API only)
};

/// "L0" … "L4".
LOCKSTEP_API std::string_view to_string(VerifyLevel level) noexcept;

/// One thing that did not agree (or, as a note, did not need to).
struct VerifyFinding {
  VerifyLevel level = VerifyLevel::kCounts;
  bool note = false;  ///< told, but not a failure (an additional order in replay, memory nodes)
  /// Stable word for programs: "missing", "extra", "changed", "order", "scalar", "buffer", "value",
  /// "empty", "undefined_graph", "opaque", "truncated", "dropped", "holes", "nondeterministic",
  /// "unwritten", "programmatic", "undecided" (the search for a matching gave up, or order cannot
  /// be followed, with one finding for each reason: never verified),
  /// "more" (further findings of that level, counted), "unpaired" (a range of marks without its
  /// partner); notes also "unknown_arguments", "struct", "allowed", "memory", "host_func",
  /// "unfollowed" (order by stream memory operations or semaphores), "uncaptured".
  std::string what;
  std::string message;                                     ///< for people; names both entries
  std::optional<std::uint64_t> eager_index, replay_index;  ///< positions in the two views
  std::optional<LaunchTraceEntry> eager, replay;
};

struct VerifyReport {
  VerifyLevel requested = VerifyLevel::kArguments;
  /// The highest level that held; nothing when even L0 did not, or there was nothing to compare.
  std::optional<VerifyLevel> verified;
  std::vector<VerifyFinding> findings;          ///< failures first, lowest level first
  std::vector<LaunchTraceEntry> eager, replay;  ///< what was compared

  bool ok() const noexcept { return verified && *verified >= requested; }
};

/// Text: verdict, first difference with both entries, aligned diff; or "replay verified (L0-L3)".
LOCKSTEP_API std::string to_text(const VerifyReport& report);
LOCKSTEP_API std::string to_json(const VerifyReport& report);  ///< schemas/verify.schema.json
LOCKSTEP_API std::ostream& operator<<(std::ostream& out, const VerifyReport& report);

struct VerifyOptions {
  VerifyLevel level = VerifyLevel::kArguments;
  /// kValues: device or pinned memory that the step writes, compared after replay. Required.
  std::vector<BufferView<std::byte>> outputs;
  /// kValues: memory that the step reads and also writes; restored before every run.
  std::vector<BufferView<std::byte>> in_place;
  /// kValues: called before each run, to set inputs other than those that were captured: the same
  /// ones each time. Optional.
  std::function<void(StreamRef&)> set_inputs;
  /// Kernels, by name as recorded or as displayed (`*` and `?` stand for any characters), that
  /// replay may launch beyond those of eager: left out of the comparison and told as notes.
  std::vector<std::string> allowed_extra;
};

/// Runs `step` eagerly and launches `replay`, on a stream of its own, and compares. L0-L3 need one
/// eager run and one replay. L4: two eager runs (bytes that differ between them are known to be
/// nondeterministic and are left out, and said; so are bytes that neither run wrote, because
/// outputs are poisoned before each), then outputs hold the complement of what eager wrote,
/// in-place memory is restored, then replay. In-place memory is compared too, and restored after
/// the last run; where eager leaves it as it was, a note "unchanged" says that nothing can be told
/// from it. What the calling thread enqueues counts as the step's work, on whatever stream; what
/// other threads enqueue is not seen. Blocks: waits for the device before, between and after the
/// runs. Illegal during capture. An open user trace does not see any of it.
///
/// L2 follows streams, their events, waits of the calling thread, edges of graphs, and events that
/// nodes of graphs record, where the backend says which (host). It notices, and leaves undecided
/// where replay lacks an order that would follow: queries that found work ended (Stream::query,
/// Event::query, on any thread); waits of other threads (synchronize of streams, events, devices),
/// also of threads that have nothing to do with the step; nodes that wait for an event which a
/// stream recorded, or whose event is not known (CUDA, HIP); stream memory operations. It cannot
/// notice what threads tell each other by memory, host functions of the step included, nor waits
/// and queries made by native calls: a replay that lacks an order from there alone is verified.
/// \throws Error of the runs themselves, kInvalidArgument for an empty `replay` or `step` and for
///         kValues without outputs; whatever `step` throws; never for a mismatch.
LOCKSTEP_API VerifyReport verify(const GraphExec& replay, const std::function<void(Stream&)>& step,
                                 const VerifyOptions& options = {});

/// Compares two recorded traces as eager and replay, up to kArguments. A trace holds no queries, so
/// that order by polling goes unnoticed here; the rest of what verify() says of L2 holds, for all
/// threads of the traces. A program whose threads wait for each other's work is undecided where
/// replay lacks such an order.
/// \throws Error kInvalidArgument for kValues (a trace holds no values), and as expand_graph does.
LOCKSTEP_API VerifyReport verify_traces(const Trace& eager, const Trace& replay,
                                        VerifyLevel level = VerifyLevel::kArguments,
                                        const std::vector<std::string>& allowed_extra = {});

/// One graph of a recorded trace against the captured entries it was made from, or one pair of
/// marked ranges.
struct GraphVerification {
  std::int32_t graph = -1;  ///< -1: a pair of marked ranges
  std::uint32_t version = 0;
  std::string label;  ///< ranges: what follows "eager" and "replay" in their names
  VerifyReport report;
};
/// Every graph of a trace against what was recorded while it was captured; and between the marks
/// "eager" and "replay" (push/pop ranges of the same label suffix, in pairs), the two stretches.
/// Captured entries that do not name their graph go to the graph whose nodes they equal, else to
/// the graphs in the order of their first launch. A graph that nothing was captured for (built by
/// hand, changed since, or captured before the trace began) has a note "uncaptured" and is not
/// verified, unless its operations are those of another graph's capture: then it is compared with
/// that, and a note "shared" says so.
/// \throws Error as verify_traces() does.
LOCKSTEP_API std::vector<GraphVerification> verify_recording(
    const Trace& trace, VerifyLevel level = VerifyLevel::kArguments);

/// Turns typed views into what VerifyOptions takes.
template <typename T>
BufferView<std::byte> as_bytes(const Buffer<T>& buffer) {
  return {buffer.view().allocation(), reinterpret_cast<std::byte*>(buffer.data()),
          buffer.size_bytes()};
}

}  // namespace lockstep
