// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "recorder/layout.h"

/// \file
/// The recorder of a process: rings, clock, sequence. Needs the C library only, so that a preload
/// library can carry it. A process has one: where a preload library is present, the core library
/// uses that one's, found by the exported function kPreloadSymbol.
namespace lockstep::recorder {

/// What wants entries: bits of the word that lockstep_recorder::active points to.
enum : std::uint32_t { kWantedByParent = 1, kWantedByFile = 2, kWantedByTraces = 4 };

/// Callbacks of the consumer in this process.
struct LocalConsumerHooks {
  /// A ring is `filling`, or the first ring was made. Called on the launching thread, which may
  /// hold the recorder's locks.
  void (*wake)(bool filling);
  void (*before_fork)();  ///< take the consumer's locks
  void (*after_fork)(bool child);
};

struct Api {
  std::uint32_t version;  ///< kLayoutVersion
  std::uint32_t size;     ///< of this structure
  const lockstep_recorder* table;
  /// Reads the LOCKSTEP_RECORD_DIR and LOCKSTEP_TRACE_BUFFER_MB variables. Idempotent. False: they
  /// are not valid, and `message` says why.
  bool (*prepare)(char* message, std::size_t capacity);
  /// Null until the first record, unless it is to be made; then null when it cannot.
  Control* (*control)(bool create);
  Ring* (*ring)(std::uint32_t index);
  /// Makes this process a consumer of what is recorded from now on. Returns the number of the first
  /// record that is certainly seen.
  std::uint64_t (*attach)(const LocalConsumerHooks* hooks);
  void (*want)(std::uint32_t bit, bool wanted);
  bool (*text)(std::uint32_t id, const char** text, std::size_t* length);
  std::uint64_t (*this_thread)();
  /// Publishes a RecordType of any length.
  void (*publish)(RecordType type, const void* bytes, std::size_t size);
  /// Nothing is recorded any more; who waits for room goes on.
  void (*close)();
  /// Adds `change` to how often the calling thread has begun private work, and returns that.
  /// Whatever it records while that is not 0 is marked with kRecordPrivate.
  std::int32_t (*private_work)(std::int32_t change);
};

const Api* api();

inline constexpr char kPreloadSymbol[] = "lockstep_preload_recorder_v1";
using PreloadFunction = const Api* (*)();

/// The present time by the given clock, and in nanoseconds (CLOCK_MONOTONIC).
std::uint64_t clock_ticks(std::uint32_t clock) noexcept;
std::uint64_t monotonic_nanoseconds() noexcept;

}  // namespace lockstep::recorder
