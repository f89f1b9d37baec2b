// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "capture.h"
#include "memory.h"
#include "settings.h"
#include "stream.h"

namespace lockstep::hostrt {

class Event;

// Limits are those of a current GPU, so that what fails there fails here.
inline constexpr std::uint32_t kMaxThreadsPerBlock = 1024;
inline constexpr std::uint32_t kMaxBlockZ = 64;
inline constexpr std::uint32_t kMaxGridX = 2147483647;
inline constexpr std::uint32_t kMaxGridYZ = 65535;
inline constexpr std::uint32_t kMaxShared = 48 * 1024;
inline constexpr std::uint32_t kMaxSharedOptIn = 227 * 1024;
inline constexpr std::int32_t kHighestPriority = -5;
inline constexpr std::uint32_t kWarpSize = 1;  // a thread runs by itself

// One device. Lives as long as the process.
class Device {
 public:
  Device(std::uint32_t ordinal, MemoryMap& memory, CaptureRules& rules)
      : ordinal_(ordinal), memory_(memory), rules_(rules) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::uint32_t ordinal() const noexcept { return ordinal_; }
  std::int32_t signed_ordinal() const noexcept { return static_cast<std::int32_t>(ordinal_); }
  MemoryMap& memory() const noexcept { return memory_; }
  CaptureRules& rules() const noexcept { return rules_; }

  StreamPtr create_stream(bool blocking, std::int32_t priority);
  StreamPtr legacy_stream();
  StreamPtr per_thread_stream();
  Stream* legacy_if_used() const noexcept { return legacy_used_.load(std::memory_order_acquire); }
  // All streams that exist or still have work.
  std::vector<StreamPtr> streams();
  // Waits for everything enqueued; throws the first failure of a stream: as long as the stream
  // exists each time, and once when it was destroyed before anybody was told.
  void synchronize();
  // A stream of this device failed.
  void note_failure(FailurePtr failure);
  // Throws the failure as an error, which counts as having told somebody.
  [[noreturn]] void report(const Failure& failure);
  // Waits, and leaves failures to those who ask for them.
  void drain();

 private:
  void add(const StreamPtr& stream);

  const std::uint32_t ordinal_;
  MemoryMap& memory_;
  CaptureRules& rules_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Stream>> streams_;
  StreamPtr legacy_;
  std::atomic<Stream*> legacy_used_{nullptr};
  std::mutex failures_mutex_;
  std::vector<FailurePtr> untold_;  // in the order in which they came
};

// Everything of the process: made on first use, never destroyed, so that it may be used until the
// very end of the process.
class Runtime {
 public:
  // Starts the runtime once; a failure is remembered and thrown again. Settings: of the first call;
  // without any they are read from the environment.
  static Runtime& start(const std::optional<Settings>& settings = std::nullopt);
  // Throws when start() has not succeeded, or when this is a child forked after it had.
  static Runtime& require();
  // For release paths: false = do nothing.
  static bool usable() noexcept;

  std::uint32_t device_count() const noexcept {
    return static_cast<std::uint32_t>(devices_.size());
  }
  Device& device(std::uint32_t ordinal);
  // Waits for all work of all devices, and leaves failures to those who ask for them.
  void drain();
  const Settings& settings() const noexcept { return settings_; }
  MemoryMap& memory() noexcept { return memory_; }

 private:
  explicit Runtime(const Settings& settings);

  const Settings settings_;
  MemoryMap memory_;
  CaptureRules rules_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace lockstep::hostrt
