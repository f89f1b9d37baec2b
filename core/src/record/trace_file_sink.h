// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "src/record/assembler.h"
#include "src/record/outputs.h"

namespace lockstep::record {

/// A process image's trace file while it is being recorded.
class TraceFileSink {
 public:
  /// \throws Error kInputOutput.
  TraceFileSink(std::filesystem::path path, const TraceInfo& header, bool force,
                std::uint64_t begin_ns);

  /// Gives this sink what the assembler makes from now on. The assembler must outlive it.
  void connect(Assembler& assembler);
  /// Hands everything to the system that is complete, or has waited for a while.
  void flush_old();
  void flush() { output_.flush(); }
  /// Completes the file; its counts. Every ring that the reader gave up is an entry lost, at least.
  /// `holes` are added to those that the coverage counts.
  TraceFooter finish(const recorder::Control* control, std::uint64_t damaged_rings,
                     std::uint64_t holes = 0);

  const std::filesystem::path& path() const noexcept { return path_; }
  const std::optional<Error>& failure() const noexcept { return output_.failure(); }

 private:
  /// What is known of the devices by now, unless the file says so already.
  void write_meta();

  std::filesystem::path path_;
  FileOutput output_;
  TraceBuilder builder_;
  Assembler* assembler_ = nullptr;
  TraceInfo written_;  ///< by the header, or the last write_meta
};

}  // namespace lockstep::record
