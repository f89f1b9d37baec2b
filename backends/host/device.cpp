// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <optional>
#include <pthread.h>
#include <string>
#include <utility>

#include "error.h"
#include "record.h"

namespace lockstep::hostrt {
namespace {

std::atomic<Runtime*> g_runtime{nullptr};
std::atomic<bool> g_forked{false};

void note_fork() {
  if (g_runtime.load(std::memory_order_acquire) != nullptr) g_forked.store(true);
}

// Streams of this thread, by device. Their remaining work is done when the thread has ended.
thread_local std::vector<std::pair<const Device*, StreamPtr>> t_streams;

}  // namespace

StreamPtr Device::create_stream(bool blocking, std::int32_t priority) {
  auto stream = std::make_shared<Stream>(*this, blocking, /*legacy=*/false, priority);
  add(stream);
  return stream;
}

void Device::add(const StreamPtr& stream) {
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](const std::weak_ptr<Stream>& s) { return s.expired(); });
  streams_.push_back(stream);
}

StreamPtr Device::legacy_stream() {
  const std::lock_guard lock(mutex_);
  if (legacy_ == nullptr) {
    legacy_ = std::make_shared<Stream>(*this, /*blocking=*/true, /*legacy=*/true, 0);
    streams_.push_back(legacy_);
    legacy_used_.store(legacy_.get(), std::memory_order_release);
  }
  return legacy_;
}

StreamPtr Device::per_thread_stream() {
  for (const auto& [device, stream] : t_streams) {
    if (device == this) return stream;
  }
  t_streams.emplace_back(this, create_stream(/*blocking=*/true, 0));
  return t_streams.back().second;
}

std::vector<StreamPtr> Device::streams() {
  std::vector<StreamPtr> result;
  const std::lock_guard lock(mutex_);
  result.reserve(streams_.size());
  for (const auto& weak : streams_) {
    if (StreamPtr stream = weak.lock()) result.push_back(std::move(stream));
  }
  return result;
}

void Device::drain() {
  for (const StreamPtr& stream : streams()) {
    if (const FencePtr fence = stream->tail()) fence->wait();
  }
}

void Device::synchronize() {
  const std::vector<StreamPtr> all = streams();
  FailurePtr failure;
  for (const StreamPtr& stream : all) {
    if (const FencePtr fence = stream->tail()) fence->wait();
    if (failure == nullptr && !stream->abandoned()) failure = stream->failure();
  }
  if (failure == nullptr) {
    // Of streams that are gone: one is told, and with it all are out of the way of later users.
    const std::lock_guard lock(failures_mutex_);
    if (!untold_.empty()) failure = untold_.front();
    untold_.clear();
  }
  if (failure != nullptr) report(*failure);
}

void Device::note_failure(FailurePtr failure) {
  const std::lock_guard lock(failures_mutex_);
  untold_.push_back(std::move(failure));
}

void Device::report(const Failure& failure) {
  {
    const std::lock_guard lock(failures_mutex_);
    std::erase_if(untold_, [&](const FailurePtr& known) { return known.get() == &failure; });
  }
  throw Error(failure.native, failure.message);
}

Runtime::Runtime(const Settings& settings)
    : settings_(settings),
      memory_(settings.devices, settings.memory_bytes, settings.fail_allocation) {
  for (std::uint32_t i = 0; i < settings.devices; ++i) {
    devices_.push_back(std::make_unique<Device>(i, memory_, rules_));
  }
}

Runtime& Runtime::start(const std::optional<Settings>& settings) {
  if (g_forked.load(std::memory_order_acquire)) return require();
  struct Outcome {
    Runtime* runtime = nullptr;
    std::optional<Error> error;
  };
  static const auto* const outcome = [&settings] {
    auto* result = new Outcome;
    try {
      result->runtime = new Runtime(settings ? *settings : read_settings());
      call_names();
      Executor::instance().start();
      pthread_atfork(nullptr, nullptr, note_fork);
      g_runtime.store(result->runtime, std::memory_order_release);
    } catch (const Error& error) {
      result->error = error;
    }
    return result;
  }();
  if (outcome->error) throw *outcome->error;
  return *outcome->runtime;
}

Runtime& Runtime::require() {
  if (g_forked.load(std::memory_order_acquire)) {
    throw Error(Native::kNotInitialized,
                "this process was forked from one in which the host backend was already running; "
                "fork before the first use, or use exec or spawn");
  }
  Runtime* const runtime = g_runtime.load(std::memory_order_acquire);
  if (runtime == nullptr) {
    throw Error(Native::kNotInitialized, "the host backend is not initialized: call initialize");
  }
  return *runtime;
}

bool Runtime::usable() noexcept {
  return g_runtime.load(std::memory_order_acquire) != nullptr &&
         !g_forked.load(std::memory_order_acquire);
}

void Runtime::drain() {
  for (const auto& device : devices_) device->drain();
}

Device& Runtime::device(std::uint32_t ordinal) {
  if (ordinal >= devices_.size()) {
    throw Error(Native::kInvalidValue, "there is no host device " + std::to_string(ordinal) + ": " +
                                           std::to_string(devices_.size()) +
                                           " of them (LOCKSTEP_HOST_DEVICES sets how many)");
  }
  return *devices_[ordinal];
}

}  // namespace lockstep::hostrt
