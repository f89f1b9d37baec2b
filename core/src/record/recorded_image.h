// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/recording.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "src/record/trace_file_sink.h"

namespace lockstep::record {

/// One process image that records into the shared folder, seen from the parent.
class RecordedImage {
 public:
  /// Chooses the name of an image's file when it is known to need one.
  using NameFile = std::function<std::filesystem::path(const recorder::Control&)>;

  /// Maps `<folder>/<pid>.<n>.image`. Null while that is not complete, or when it is no such file.
  static std::unique_ptr<RecordedImage> open(const std::filesystem::path& file);
  ~RecordedImage();
  RecordedImage(const RecordedImage&) = delete;
  RecordedImage& operator=(const RecordedImage&) = delete;

  std::uint64_t created() const noexcept { return control_->base_nanoseconds; }
  /// Writes out what has been enqueued; returns how many records that were.
  std::uint64_t drain(const NameFile& name_file, bool force);
  /// Drains what is left and completes the file. Nothing when the image recorded no entry. One that
  /// is `running` is no longer recorded: a hole in the coverage.
  /// \throws Error when the file could not be written.
  std::optional<RecordedFile> finish(const NameFile& name_file, bool force, bool running);
  /// Takes its rings out of the shared folder; the image's file stays, so that its name is known.
  void remove_files();
  /// False when the process has ended. Cheap: one that has ended and is not reaped yet may count as
  /// alive.
  bool alive() const;
  /// Whether this image is still there, and could record more. Exact: neither what is not reaped
  /// nor what has called exec is.
  bool runs() const;
  /// By which number this process knows that one; its own in a PID namespace that is not seen here.
  std::int64_t pid() const;
  /// Its command line, empty when it had recorded nothing.
  const std::vector<std::string>& command() const noexcept { return assembler_.info().command; }
  /// Why the file could not be written; null while nothing is wrong with it.
  const Error* failure() const noexcept;

 private:
  struct MappedRing {
    recorder::Ring* ring;
    std::size_t bytes;
  };

  RecordedImage(const std::filesystem::path& file, recorder::Control* control);
  /// Whether its file is locked; by whom, 0 = by somebody without a number here.
  std::optional<std::int64_t> lock_holder() const;
  bool is_mapped() const;
  recorder::Ring* map_ring(std::uint32_t index);
  void check() const;
  void create_file(const NameFile& name_file, bool force);
  void flush_now_and_then();

  std::filesystem::path folder_;
  std::filesystem::path file_;
  bool foreign_;  ///< its process id counts in another PID namespace, or in none that is known
  recorder::Control* control_;
  std::vector<MappedRing> rings_;
  std::string unmapped_;  ///< why a ring could not be had, "" = all could
  SegmentReader reader_;
  Assembler assembler_;
  std::optional<TraceFileSink> sink_;
  std::optional<Error> failure_;
  std::chrono::steady_clock::time_point flushed_{};
};

}  // namespace lockstep::record
