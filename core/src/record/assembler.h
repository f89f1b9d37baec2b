// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/record/decode.h"
#include "src/record/segment_reader.h"
#include "src/record/trace_builder.h"

/// \file
/// Turns the records of one process image into entries and gives them to every open trace.
/// Definitions are kept from the first record on, whether a trace is open or not.
namespace lockstep::record {

/// Ticks of a recorder's clock as nanoseconds of CLOCK_MONOTONIC.
class ClockMap {
 public:
  explicit ClockMap(const recorder::Control& control);
  /// Measures again; call it now and then until the scale is good.
  void update();
  std::uint64_t nanoseconds(std::uint64_t ticks) const;

 private:
  std::uint32_t clock_;
  std::uint64_t base_ticks_;
  std::uint64_t base_nanoseconds_;
  std::uint64_t measured_for_ = 0;
  double scale_ = 1;
};

class Assembler final : public RecordVisitor, public Definitions {
 public:
  explicit Assembler(const recorder::Control& control);
  Assembler(const Assembler&) = delete;
  Assembler& operator=(const Assembler&) = delete;

  /// Traces are the caller's; they must be removed before they go.
  void add_trace(TraceBuilder* trace) { traces_.push_back(trace); }
  void remove_trace(TraceBuilder* trace) { std::erase(traces_, trace); }

  /// Called before the first entry reaches the traces, and whenever info() has changed.
  void on_first_entry(std::function<void()> callback) { first_entry_ = std::move(callback); }
  void on_info(std::function<void()> callback) { info_changed_ = std::move(callback); }

  /// Command, pid, devices, driver as far as they are known.
  const TraceInfo& info() const noexcept { return info_; }
  void set_command(std::vector<std::string> command) { info_.command = std::move(command); }
  const std::string& coverage() const noexcept { return coverage_; }
  ClockMap& clock() noexcept { return clock_; }
  /// Records whose contents did not fit together.
  std::uint64_t damaged_records() const noexcept { return damaged_; }
  void add_text(std::uint64_t id, std::string_view text) { texts_.add(id, text); }

  void visit(const recorder::RecordHeader& record, std::uint32_t ring, bool pending) override;
  StreamInfo stream(std::uint64_t stream, const LaunchTraceEntry& entry) const override;
  const RecordedGraph* graph(std::uint64_t graph, std::uint32_t version) const override;

 private:
  /// The last call of a thread on a stream: enough to see what overlaps.
  struct Call {
    std::uint64_t thread;
    std::uint64_t sequence;
    std::uint64_t end;
  };
  struct RingState {
    std::uint64_t thread = 0;
    std::vector<unsigned char> pieces;
  };

  void visit_entry(const recorder::EntryRecord& record, RingState& ring, bool pending);
  void visit_memory(const recorder::EntryRecord& record, RingState& ring);
  void visit_amend(const recorder::AmendRecord& record);
  void visit_piece(const recorder::PieceRecord& record, RingState& ring);
  void take_pieces(recorder::RecordType type, std::uint64_t id, const unsigned char* bytes,
                   std::size_t size);
  void define_graph(const unsigned char* bytes, std::size_t size);
  void take_device(const unsigned char* bytes, std::size_t size);
  void give(DecodedEntry&& decoded, std::uint64_t racing);
  std::uint64_t count_racing(const DecodedEntry& decoded, bool pending);

  ClockMap clock_;
  Texts texts_;
  LiveAllocations allocations_;
  Decoder decoder_;
  std::unordered_map<std::uint64_t, StreamInfo> streams_;
  /// The newest versions. A launch is recorded with the version it ran, under the lock that a
  /// change takes, so that older ones are not launched any more; a plugin that does so all the same
  /// has a launch of an undefined graph, which is equal to nothing.
  static constexpr std::size_t kKeptVersions = 2;
  std::unordered_map<std::uint64_t, std::map<std::uint32_t, RecordedGraph>> graphs_;
  std::unordered_map<std::uint64_t, std::vector<Call>> calls_;
  std::vector<RingState> rings_;
  std::vector<TraceBuilder*> traces_;
  std::function<void()> first_entry_, info_changed_;
  TraceInfo info_;
  std::string coverage_;
  std::uint64_t damaged_ = 0;
};

}  // namespace lockstep::record
