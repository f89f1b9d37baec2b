// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

/// \file
/// What a test may see and steer of a fake plugin that is loaded in its process. The plugin exports
/// `fake_control`, which returns the one object it has.
namespace lockstep::testing {

/// The next call of `slot` fails this way.
struct FakeFailure {
  std::string slot;
  std::int32_t code = 0;
  std::uint32_t rule = 0;
  std::string call, message, native_name;
  std::int64_t native_code = 0;
  bool invalidates = false;  ///< every capture that is going on
};

struct FakeControl {
  std::atomic<int> devices{0}, streams{0}, events{0}, modules{0}, graphs{0}, executables{0};
  std::atomic<int> allocations{0}, registrations{0};
  std::atomic<int> launches{0}, copies{0}, sets{0}, loads{0}, instantiations{0}, initializations{0};
  std::atomic<int> illegal_frees{0};    ///< plain frees while a stream captured
  std::atomic<bool> busy{false};        ///< streams say that they are not ready
  std::function<void()> on_query;       ///< called while a stream is asked whether it is ready
  std::atomic<bool> loses_sets{false};  ///< a captured set becomes an empty node
  std::atomic<std::uint32_t> update_result{0};

  std::mutex mutex;
  std::vector<FakeFailure> failures;
  std::vector<std::vector<std::byte>> last_arguments;  ///< of the last kernel that ran
  std::vector<std::uint8_t> last_tags;                 ///< as the launch gave them, empty = none

  void fail_next(FakeFailure failure) {
    const std::lock_guard lock(mutex);
    failures.push_back(std::move(failure));
  }
};

using FakeControlFunction = FakeControl* (*)();

}  // namespace lockstep::testing
