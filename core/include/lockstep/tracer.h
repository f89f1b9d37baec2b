// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>
#include <lockstep/trace.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

/// \file
/// Traces of the running process: everything that is enqueued on any device, stream and thread.
///
/// An entry belongs to a trace when its call began after the trace did: entries are in the order in
/// which calls began, by one sequence for the whole process. Taking a trace needs no device
/// synchronisation, never calls a driver, and includes calls that have not returned yet
/// (EntryFlag::kPending). Everything here may be called from any thread, and while a stream
/// captures. Cost: one load and one branch a launch while no trace is open, tens of nanoseconds
/// while one is.
///
/// Traces stay in memory until taken. For long recordings set LOCKSTEP_TRACE
/// (docs/command-line.md), or use `lockstep record`; both write to a file in bounded memory.
///
/// After a fork the child begins with no open trace of its own; what the parent had open stays the
/// parent's. A LaunchTrace that was open across the fork is empty in the child.
namespace lockstep {

/// Which entries a trace keeps. An empty list keeps everything; an entry is kept when every list
/// that is not empty names it.
struct TraceFilter {
  std::vector<std::uint64_t> streams;  ///< Stream::identity()
  std::vector<std::int32_t> devices;   ///< ordinals within their backend
  std::vector<std::uint64_t> threads;  ///< Tracer::this_thread()
  /// A graph launch is kept whatever its kind, because its nodes may be of a wanted one; take()
  /// then gives nodes of these kinds only, unless its view names kinds itself.
  std::vector<OperationKind> kinds;
};

/// A trace with a scope. Begins when constructed, ends with take(), trace(), stop() or destruction,
/// whichever is first; an exception that leaves the body loses nothing. Any number may be open at
/// once, nested or overlapping: each has numbers (streams, buffers, graphs, …) of its own, and none
/// disturbs another or the process-wide Tracer.
///
/// Movable, not copyable. A moved-from trace is ended and empty. Different objects may be used by
/// different threads; one object by one thread at a time.
class LOCKSTEP_API LaunchTrace {
 public:
  /// \throws Error kInvalidArgument when a LOCKSTEP_TRACE… variable has a value that is not valid,
  /// kOutOfMemory.
  explicit LaunchTrace(const TraceFilter& filter = {});
  LaunchTrace(LaunchTrace&&) noexcept;
  LaunchTrace& operator=(LaunchTrace&&) noexcept;
  LaunchTrace(const LaunchTrace&) = delete;
  LaunchTrace& operator=(const LaunchTrace&) = delete;
  ~LaunchTrace();

  /// Ends the trace and returns its entries: by default those that executed, of the core kinds, in
  /// enqueue order. A second call returns nothing.
  std::vector<LaunchTraceEntry> take(const ViewOptions& view = {});
  /// Ends the trace and returns all of it: entries as enqueued, definitions of streams and graphs,
  /// counts. May be called again, also after take().
  Trace trace();
  /// What has been recorded up to now; the trace stays open.
  Trace snapshot() const;
  /// Ends the trace and keeps it. Does nothing when it has ended.
  void stop();
  bool active() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The process-wide trace: needs no object, sees every thread.
class LOCKSTEP_API Tracer {
 public:
  Tracer() = delete;

  /// Begins the process-wide trace. When one is open it is discarded and begins anew.
  /// \throws Error as LaunchTrace does.
  static void begin();
  /// Ends it and returns its entries, by default those that executed, of the core kinds. Empty when
  /// begin() was not called since the last take.
  static std::vector<LaunchTraceEntry> take(const ViewOptions& view = {});
  /// Ends it and returns all of it, as LaunchTrace::trace() does.
  static Trace take_trace();
  static bool active() noexcept;

  /// The calling thread as TraceFilter::threads names it. Never 0, never used twice in a process.
  static std::uint64_t this_thread() noexcept;
};

/// A named instant in every open trace (an entry of kind kMark). Costs one branch when none is
/// open. Does not throw: out of memory loses the mark.
LOCKSTEP_API void mark(std::string_view name) noexcept;

/// A named range: a push mark when constructed, a pop mark when destroyed, in that thread's order.
class LOCKSTEP_API MarkRange {
 public:
  explicit MarkRange(std::string_view name) noexcept;
  MarkRange(MarkRange&& other) noexcept;
  MarkRange& operator=(MarkRange&&) = delete;
  MarkRange(const MarkRange&) = delete;
  MarkRange& operator=(const MarkRange&) = delete;
  ~MarkRange();

 private:
  std::uint32_t name_;  ///< interned; 0 = nothing to end
};

}  // namespace lockstep
