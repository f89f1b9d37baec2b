// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Recording another program: the parent's side of `lockstep record`.
///
/// The rings of the recorded processes are shared memory that this side drains into trace files
/// while they run: whatever a process had enqueued is in its file, however it ended. The caller
/// starts the program with environment() added, calls poll() while it runs, and finish() after it
/// ended.
namespace lockstep {

struct RecordingOptions {
  std::filesystem::path output;      ///< out.jsonl or out.jsonl.zst
  bool force = false;                ///< replace existing files
  std::vector<std::string> command;  ///< used for the header when no process recorded anything
};

/// One trace file: one process image (a process, or what it became by exec).
struct RecordedFile {
  std::filesystem::path path;
  std::int64_t pid = 0;
  std::uint32_t image = 0;            ///< 0, or how often that process had called exec
  std::optional<std::uint32_t> rank;  ///< by the variables of MPI, torchrun, Slurm
  std::uint64_t entries = 0;
  std::uint64_t dropped = 0;  ///< at least so many are missing when there is a problem
  std::uint64_t stalls = 0;
  std::uint64_t racing = 0;
  std::string coverage;  ///< JSON object text of the footer, "" = none
  bool running = false;  ///< the process still ran: what it enqueues after finish() is missing
  std::string problem;   ///< for people: why `dropped` is not exact, "" = it is
};

/// A process that finish() left running: nothing that it enqueues afterwards is recorded.
struct RunningProcess {
  std::int64_t pid = 0;              ///< as the caller may signal it, where it has such a number
  std::vector<std::string> command;  ///< empty when it had recorded nothing yet
  std::filesystem::path path;        ///< of its trace so far, empty when it has none
};

/// One recording of a program and its descendants. Not thread-safe.
///
/// Files: the first process image that records takes `output`; others `out.<pid>.<n>.jsonl`; those
/// with a rank `out.rank3.jsonl`. When nothing recorded, `output` is written without entries.
class LOCKSTEP_API Recording {
 public:
  /// Makes the shared folder (in memory where the system has /dev/shm) and checks that `output` can
  /// be created: without `force` there may be no file yet of any name that a rank or a further
  /// process would get. \throws Error kInputOutput (native code EEXIST: context().where names the
  /// file that exists), kInvalidArgument (no name, folder missing).
  explicit Recording(RecordingOptions options);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  /// Removes the shared folder. Files are left truncated when finish() was not called.
  ~Recording();

  /// Variables to set in the program's environment.
  const std::vector<std::pair<std::string, std::string>>& environment() const noexcept;
  /// Writes out what has been enqueued. Waits up to `wait` for something to come when there is
  /// nothing. Call it at least every few milliseconds: a full ring makes the program wait.
  /// \throws Error kInputOutput once, when the first trace file cannot be written. All the others
  /// go on: keep calling it.
  void poll(std::chrono::milliseconds wait = {});
  /// Drains what is left, completes all files and returns them, the one named `output` first. A
  /// second call returns the same list. Processes that still run get up to 200 ms to end; what they
  /// enqueue after that is not recorded, counts as one of the `holes` in the coverage of their
  /// trace, and they are in running().
  /// \throws Error kInputOutput on the first call, after it has completed the others, when a trace
  /// file could not be written; poll() may have told of it before. The list is without such files.
  std::vector<RecordedFile> finish();

  /// What finish() left running, of those that had begun to record. A process that begins later
  /// finds no recording and says so itself.
  const std::vector<RunningProcess>& running() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
