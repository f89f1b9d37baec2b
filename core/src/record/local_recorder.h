// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tracer.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "recorder/recorder.h"
#include "src/record/assembler.h"
#include "src/record/outputs.h"
#include "src/record/self_recording.h"

/// \file
/// The recording of this process by itself: traces in memory, and the file of LOCKSTEP_TRACE.
namespace lockstep::record {

/// A trace in memory that is open or has ended.
struct MemoryTrace {
  MemoryTrace(TraceFilter filter, std::uint64_t first_sequence, std::uint64_t begin_ns)
      : builder(output, std::move(filter), first_sequence, begin_ns) {}

  MemoryOutput output;
  TraceBuilder builder;
  TraceInfo info;      ///< filled when it ends
  TraceFooter footer;  ///< counts before it began, then those of its own
  std::uint64_t generation = 0;
  bool open = true;

  Trace trace() const;
};

/// One a process, never destroyed: it is used while static objects are, and after.
class LocalRecorder {
 public:
  /// Prepares recording on the first call. \throws Error as host_recorder() does.
  static LocalRecorder& get();
  /// Null when nothing has prepared it, or that failed.
  static LocalRecorder* existing() noexcept;

  const recorder::Api& api() const noexcept { return api_; }

  std::unique_ptr<MemoryTrace> open(const TraceFilter& filter);
  /// Drains what was enqueued before the call and ends the trace.
  void close(MemoryTrace& trace) noexcept;
  Trace snapshot(const MemoryTrace& trace);
  /// Destroys a trace that is closed. What a parent recorded is kept in its children, untouched:
  /// freeing it would copy every page of it.
  void discard(std::unique_ptr<MemoryTrace> trace) noexcept;
  /// False in a child for what its parent had opened.
  bool is_current(const MemoryTrace& trace) const noexcept;

  /// The process-wide trace of Tracer.
  void begin_global();
  std::unique_ptr<MemoryTrace> end_global() noexcept;
  bool global_is_open() noexcept;

 private:
  LocalRecorder(const recorder::Api& api);

  struct Segment;
  class Turn;

  static void on_wake(bool filling) noexcept;
  static void on_before_fork() noexcept;
  static void on_after_fork(bool child) noexcept;
  static void on_exit() noexcept __attribute__((destructor));
  static void* run_thread(void* self);

  void start_thread() noexcept;
  /// Null until something was recorded or a trace was begun.
  Segment* segment();
  std::uint64_t enqueued();
  /// Up to that number. Ends early, and returns false, while `give_way` (may be null) is not 0.
  bool drain(std::uint64_t until, const std::atomic<std::uint32_t>* give_way);
  void remove(MemoryTrace& trace);
  void report_failure();
  void exit();

  const recorder::Api& api_;
  const std::uint64_t first_;
  // Whoever drains lets others have the lock between two records: a backlog may take seconds, and
  // nothing else must. The thread that only drains gives way to all, threads that wait for what is
  // drained give way to forks and to the end of the process.
  std::atomic<std::uint32_t> waiting_{0};  ///< threads that want the lock, but the one that drains
  std::atomic<std::uint32_t> forks_waiting_{0};  ///< of these, those that fork or exit
  std::atomic<bool> exiting_{false};             ///< a thread exits and waits for the lock
  std::mutex mutex_;  ///< guards all below that is not atomic; held while draining
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<SelfRecording> file_;
  std::vector<std::unique_ptr<SelfRecording>> files_of_parents_;
  std::vector<std::unique_ptr<Segment>> segments_of_parents_;
  std::vector<std::unique_ptr<MemoryTrace>> traces_of_parents_;
  std::unique_ptr<MemoryTrace> global_;
  std::uint32_t open_traces_ = 0;
  std::atomic<std::uint64_t> generation_{1};
  std::atomic<std::uint32_t> wake_{0};
  std::atomic<bool> thread_runs_{false};
  std::atomic<bool> wants_thread_{false};
  bool finished_ = false;
};

}  // namespace lockstep::record
