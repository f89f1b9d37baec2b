// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "scratch_folder.h"
#include "src/trace/view_filter.h"
#include "verbs.h"

/// \file
/// Reads traces for the verbs: checks what was named, then goes through a view in bounded memory.
namespace lockstep::cli {

/// "executed" or "enqueued".
std::string view_name(const SelectionOptions& selection);
/// \throws Failure (kUsage) naming a kind that does not exist.
ViewOptions parse_selection(const SelectionOptions& selection);

/// \throws Failure (kUnreadable) when `path` is missing, a folder, or may not be read. `what` it
/// should be, for the message.
void check_input(const std::filesystem::path& path, std::string_view what = "a trace");
/// \throws Failure (kUsage) when `path` exists and `force` is not given, or its folder is missing.
void check_output(const std::filesystem::path& path, bool force);
/// All bytes of a small file. \throws Failure (kUnreadable).
std::string read_text_file(const std::filesystem::path& path, std::string_view what);
/// True for what can be read twice.
bool can_read_twice(const std::filesystem::path& path);

/// A trace that can be read again and again: the file itself, or for what can be read once only (a
/// pipe) a copy, complete or truncated like what was read.
class RereadableTrace {
 public:
  /// \throws Failure as check_input() does, Error as TraceReader does.
  explicit RereadableTrace(const std::string& path);
  const std::filesystem::path& file() const noexcept { return file_; }

 private:
  std::optional<ScratchFolder> copy_;
  std::filesystem::path file_;
};

/// Goes through one view of a trace file. Memory: definitions and the nodes of one launch.
class ViewReader {
 public:
  using Sink = std::function<void(std::uint64_t position, const LaunchTraceEntry& entry)>;

  ViewReader(std::filesystem::path path, const ViewOptions& options);

  /// Reads the whole file; positions count from 0 within the view.
  /// \throws Error as TraceReader and view() do, after what could be read was handed out.
  void for_each(const Sink& sink);

  /// Everything but the entries. Grows while for_each() runs.
  const Trace& trace() const noexcept { return trace_; }
  /// After the end.
  bool truncated() const noexcept { return truncated_; }
  /// Entries of the file, not of the view, by kind as written.
  const std::map<std::string, std::uint64_t>& kinds() const noexcept { return kinds_; }
  /// Launches of each graph version.
  const std::map<std::pair<std::int32_t, std::uint32_t>, std::uint64_t>& launches() const noexcept {
    return launches_;
  }
  std::uint64_t file_entries() const noexcept { return file_entries_; }
  std::uint64_t view_entries() const noexcept { return position_; }

 private:
  void define(GraphDefinition&& graph);
  void count(const LaunchTraceEntry& entry);
  void read_late_definitions();

  std::filesystem::path path_;
  ViewFilter filter_;
  Trace trace_;
  std::map<std::string, std::uint64_t> kinds_;
  std::map<std::pair<std::int32_t, std::uint32_t>, std::uint64_t> launches_;
  std::uint64_t file_entries_ = 0;
  std::uint64_t position_ = 0;
  bool truncated_ = false;
  bool looked_ahead_ = false;
};

/// The kind of an entry as files write it.
std::string kind_name(const LaunchTraceEntry& entry);

}  // namespace lockstep::cli
