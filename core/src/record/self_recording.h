// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "recorder/recorder.h"
#include "src/record/trace_file_sink.h"

namespace lockstep::record {

/// The file that LOCKSTEP_TRACE asks for. Members are called under the local recorder's lock.
class SelfRecording {
 public:
  /// Null when LOCKSTEP_TRACE is not set, or under elevated privileges. The first process image
  /// that uses the recorder creates its file at once, its relatives with their first entry. \throws
  /// Error kInvalidArgument, kInputOutput.
  static std::unique_ptr<SelfRecording> from_environment(const recorder::Api& api);

  /// The same for a forked child.
  std::unique_ptr<SelfRecording> for_child() const;

  void connect(Assembler& assembler, const recorder::Control& control);
  void flush_old();
  void finish(const recorder::Control* control, std::uint64_t damaged_rings);
  /// Says once on stderr what went wrong with the file.
  void report_failure();

 private:
  SelfRecording(std::filesystem::path base, bool force);
  void create_first();
  void create(const TraceInfo& header, bool first, std::uint64_t begin_ns);
  void hold_name();

  std::filesystem::path base_;
  bool force_;
  std::int64_t rank_ = -1;
  std::optional<TraceFileSink> sink_;
  std::optional<Error> failure_;  ///< of creating the file
  bool reported_ = false;
  int name_holder_ = -1;  ///< open and locked while this image writes to the first name
};

}  // namespace lockstep::record
