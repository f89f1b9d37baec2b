// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/error.h>
#include <lockstep/trace_file.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <variant>

#include "src/record/trace_builder.h"

namespace lockstep::record {

/// A trace in memory.
class MemoryOutput final : public TraceOutput {
 public:
  void add(const StreamDefinition& stream) override;
  void resolve(std::uint32_t provisional, const StreamDefinition& stream) override;
  void add(GraphDefinition&& graph) override;
  void add(LaunchTraceEntry&& entry) override;
  void amend(std::uint64_t sequence, std::uint16_t flags, std::int32_t graph,
             std::int32_t node) override;

  /// The trace with final stream numbers.
  Trace trace(const TraceBuilder& builder) const;

 private:
  Trace trace_;
  std::unordered_map<std::uint64_t, std::size_t> pending_;  ///< sequence → entry
};

/// A trace on its way into a file, in bounded memory. Entries that are pending or whose stream has
/// no number yet, and what follows them, wait here for a while, because a written line cannot be
/// changed. A stream that has no number by then is written with its provisional one, and the
/// definition that replaces it says so (docs/trace-format.md).
///
/// Nothing throws in the middle of a drain: the first error is kept, the file is left truncated,
/// and what comes after is thrown away. The owner asks for failure() and reports it.
class FileOutput final : public TraceOutput {
 public:
  explicit FileOutput(TraceWriter writer) : writer_(std::move(writer)) {}

  void add(const StreamDefinition& stream) override;
  void resolve(std::uint32_t provisional, const StreamDefinition& stream) override;
  void add(GraphDefinition&& graph) override;
  void add(LaunchTraceEntry&& entry) override;
  void amend(std::uint64_t sequence, std::uint16_t flags, std::int32_t graph,
             std::int32_t node) override;

  /// Writes what had already come when this was called the last time, complete or not.
  void release_old();
  void write_meta(const TraceInfo& info);
  void flush();
  /// Completes the file.
  void finish(const TraceFooter& footer);
  std::uint64_t entries_written() const noexcept { return writer_.entries_written(); }
  const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  struct Resolution {
    std::uint32_t provisional = 0;
    StreamDefinition stream;
  };
  using Item = std::variant<StreamDefinition, Resolution, GraphDefinition, LaunchTraceEntry>;
  struct Provisional {
    std::optional<std::uint32_t> number;
    bool written = false;  ///< the provisional number stands in the file
  };
  static constexpr std::size_t kMost = 65536;

  template <class Action>
  void guarded(Action&& action);
  void push(Item&& item);
  /// Writes up to the first item that may change yet.
  void settle();
  void release_front(std::size_t count);
  bool may_change(const Item& item) const;
  /// Whether a provisional number that comes now has to wait for the final one.
  bool waits(std::uint32_t stream) const;
  void write(StreamDefinition& stream);
  void write(Resolution& resolution);
  void write(GraphDefinition& graph) { writer_.write(graph); }
  void write(LaunchTraceEntry& entry);

  TraceWriter writer_;
  std::optional<Error> failure_;
  std::deque<Item> waiting_;
  std::unordered_map<std::uint32_t, Provisional> provisional_;
  std::uint64_t written_ = 0;  ///< items that have left `waiting_`
  std::uint64_t old_ = 0;      ///< items that had come at the last release_old()
};

}  // namespace lockstep::record
