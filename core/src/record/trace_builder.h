// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>
#include <lockstep/tracer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/record/decode.h"

/// \file
/// One trace that is being made: numbers streams, threads, buffers, graphs and events in the order
/// in which it meets them, and hands complete entries on.
namespace lockstep::record {

/// Receives what a trace consists of, definitions before their first use.
class TraceOutput {
 public:
  virtual ~TraceOutput() = default;
  virtual void add(const StreamDefinition& stream) = 0;
  /// The stream that had this provisional number is numbered now.
  virtual void resolve(std::uint32_t provisional, const StreamDefinition& stream) = 0;
  virtual void add(GraphDefinition&& graph) = 0;
  /// A pending entry may be changed by amend() with its sequence number.
  virtual void add(LaunchTraceEntry&& entry) = 0;
  virtual void amend(std::uint64_t sequence, std::uint16_t flags, std::int32_t graph,
                     std::int32_t node) = 0;
};

struct StreamInfo {
  std::int32_t device = 0;
  std::uint64_t context = 0;
  std::uint32_t blocking = 0;  ///< as define_stream takes it
};

/// One version of an executable graph as it was defined, without numbers.
struct RecordedGraph {
  std::vector<DecodedEntry> nodes;
  std::vector<lockstep_graph_edge> edges;
};

/// What all traces of a process look things up in.
class Definitions {
 public:
  virtual StreamInfo stream(std::uint64_t stream, const LaunchTraceEntry& entry) const = 0;
  /// Null when it was never defined.
  virtual const RecordedGraph* graph(std::uint64_t graph, std::uint32_t version) const = 0;

 protected:
  ~Definitions() = default;
};

class TraceBuilder {
 public:
  /// Streams that have done no work yet have no number. What they do meanwhile (waits, event
  /// records, synchronisation) is numbered from here; the output is told the number that it stands
  /// for at the stream's first work, or at the end.
  static constexpr std::uint32_t kProvisional = 0x80000000u;

  TraceBuilder(TraceOutput& output, TraceFilter filter, std::uint64_t first_sequence,
               std::uint64_t begin_ns);

  /// Private work goes to private traces, and they take nothing else.
  void make_private() noexcept { private_ = true; }
  bool accepts(const DecodedEntry& decoded) const;
  /// Adds what accepts() took. `time_ns` is the host's, `racing` counts calls on the same stream
  /// that this one overlapped.
  void add(DecodedEntry decoded, std::uint64_t time_ns, std::uint64_t racing,
           const Definitions& definitions);
  void amend(std::uint64_t sequence, const recorder::EndFields& end);
  /// Numbers the streams that have done no work. Nothing may be added after.
  void finish();

  std::uint64_t racing() const noexcept { return racing_; }
  std::uint64_t first_sequence() const noexcept { return first_sequence_; }
  /// Numbers of this trace's streams for provisional ones, were it to end now.
  std::map<std::uint32_t, std::uint32_t> final_streams() const;

 private:
  template <class Number>
  using Numbers = std::unordered_map<std::uint64_t, Number>;

  void number_stream(LaunchTraceEntry& entry, std::uint64_t stream, const Definitions& definitions);
  StreamDefinition definition_of(std::uint32_t index, std::uint64_t stream,
                                 const LaunchTraceEntry& entry, const Definitions& definitions);
  void define_graph(std::uint64_t graph, std::int32_t number, std::uint32_t version,
                    const Definitions& definitions);
  void number_places(LaunchTraceEntry& entry, const DecodedEntry& decoded);
  void place(TraceArgument& argument, const Place& place);
  std::int32_t graph_number(std::uint64_t graph);
  std::int64_t event_number(std::uint64_t event);

  TraceOutput& output_;
  TraceFilter filter_;
  std::uint64_t first_sequence_;
  std::uint64_t begin_ns_;
  bool private_ = false;
  std::uint64_t racing_ = 0;
  Numbers<std::uint32_t> streams_, threads_, buffers_, contexts_;
  Numbers<StreamDefinition> provisional_;  ///< all that ever were
  Numbers<std::int32_t> graphs_;
  Numbers<std::int64_t> events_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> defined_graphs_;
};

}  // namespace lockstep::record
