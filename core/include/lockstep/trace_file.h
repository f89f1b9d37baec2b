// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>
#include <lockstep/trace.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <variant>

/// \file
/// Trace files, version 1: JSON Lines, plain (`.jsonl`) or as independent zstd frames
/// (`.jsonl.zst`). Readers tell the two apart by the first bytes, not by the name.
namespace lockstep {

struct TraceWriterOptions {
  bool force = false;     ///< replace an existing file
  bool compress = false;  ///< zstd; also chosen by a name that ends in .zst
  int compression_level = 3;
  bool write_hashes = true;
  std::size_t flush_bytes = std::size_t{1}
                            << 20;  ///< one zstd frame, or one write, about this large
};

/// Writes one trace, line by line, in bounded memory. Creates the file exclusively unless `force`.
/// Not thread-safe. A writer that is destroyed without finish() leaves a truncated file on purpose:
/// nobody may take it for complete.
class LOCKSTEP_API TraceWriter {
 public:
  /// \throws Error kInputOutput, naming the path and the system's reason.
  TraceWriter(const std::filesystem::path& path, const TraceInfo& header,
              const TraceWriterOptions& options = {});
  TraceWriter(TraceWriter&&) noexcept;
  TraceWriter& operator=(TraceWriter&&) noexcept;
  ~TraceWriter();

  /// The same, but written beside `path` and renamed by finish(): nobody meets half of it, and
  /// nothing is left behind when the writer is destroyed before.
  static TraceWriter aside(const std::filesystem::path& path, const TraceInfo& header,
                           const TraceWriterOptions& options = {});

  void write_meta(const TraceInfo& info);
  void write(const StreamDefinition& stream);
  void write(const GraphDefinition& graph);
  /// The entry's hash is computed when it is 0.
  /// \throws Error kInvalidArgument for an entry that no reader would accept (the file stays
  /// whole), kInputOutput when the system refuses (a full disk): nothing can be written after.
  void write(const LaunchTraceEntry& entry);
  /// Hands everything written so far to the system.
  void flush();
  /// Writes the footer (entries is counted by the writer) and closes the file.
  void finish(TraceFooter footer = {});
  std::uint64_t entries_written() const noexcept;

 private:
  struct Impl;
  explicit TraceWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// One line of a trace, decoded.
using TraceItem =
    std::variant<LaunchTraceEntry, StreamDefinition, GraphDefinition, TraceInfo, TraceFooter>;

struct TraceReaderOptions {
  bool check_hashes = true;  ///< a stored hash that disagrees with its fields is an error
};

/// Reads a trace item by item in bounded memory (of pipes: docs/trace-format.md). Not thread-safe.
class LOCKSTEP_API TraceReader {
 public:
  /// Reads and checks the header. \throws Error kNotFound, kInputOutput, kInvalidFile (not a trace,
  /// a version this reader does not know, with file and line), kTruncatedFile (not one whole line).
  explicit TraceReader(const std::filesystem::path& path, const TraceReaderOptions& options = {});
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;
  ~TraceReader();

  const TraceInfo& info() const noexcept;  ///< header and every meta line met so far, merged
  /// The next item; nothing at the end. \throws Error kInvalidFile naming file and line.
  std::optional<TraceItem> next();
  /// Valid after the end: true when there was no footer, or a line or frame was cut.
  bool truncated() const noexcept;
  std::uint64_t line() const noexcept;  ///< number of the line read last, from 1

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whole file into memory. A truncated trace is returned with `footer.present` false, readable to
/// its last whole line. \throws as TraceReader does.
LOCKSTEP_API Trace read_trace(const std::filesystem::path& path,
                              const TraceReaderOptions& options = {});

/// Writes a whole trace aside and renames it, so that no reader meets half of it.
LOCKSTEP_API void write_trace(const std::filesystem::path& path, const Trace& trace,
                              const TraceWriterOptions& options = {});

/// One entry as one JSON object text, as it stands in a file (no line feed).
LOCKSTEP_API std::string to_json(const LaunchTraceEntry& entry);

}  // namespace lockstep
