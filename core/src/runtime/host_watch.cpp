// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/host_watch.h"

#include <lockstep/tracer.h>

#include <algorithm>
#include <mutex>

#include "src/record/local_recorder.h"

namespace lockstep::runtime {
namespace {

struct Watches {
  std::mutex mutex;
  std::vector<HostWatch*> all;
};

/// Never destroyed: threads may wait for work while static objects are.
Watches& watches() {
  static auto* const state = new Watches;
  return *state;
}

}  // namespace

std::atomic<std::uint32_t> HostWatch::watches_{0};

HostWatch::HostWatch() : thread_(Tracer::this_thread()) {
  const std::lock_guard lock(watches().mutex);
  watches().all.push_back(this);
  watches_.store(static_cast<std::uint32_t>(watches().all.size()), std::memory_order_relaxed);
}

HostWatch::~HostWatch() {
  const std::lock_guard lock(watches().mutex);
  auto& all = watches().all;
  all.erase(std::remove(all.begin(), all.end(), this), all.end());
  watches_.store(static_cast<std::uint32_t>(all.size()), std::memory_order_relaxed);
}

std::vector<HostNotice> HostWatch::notices() const {
  const std::lock_guard lock(watches().mutex);
  return notices_;
}

void HostWatch::tell_watches(HostNotice notice) {
  const record::LocalRecorder* recorder = record::LocalRecorder::existing();
  if (recorder == nullptr) return;  // then no trace is open that could be watched
  const recorder::Control* control = recorder->api().control(false);
  if (control == nullptr) return;
  notice.sequence = control->sequence.load(std::memory_order_acquire);
  notice.thread = Tracer::this_thread();
  const bool is_private = recorder->api().private_work(0) != 0;
  const std::lock_guard lock(watches().mutex);
  for (HostWatch* watch : watches().all) {
    if (!is_private || watch->thread_ == notice.thread) watch->notices_.push_back(notice);
  }
}

}  // namespace lockstep::runtime
