// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/// \file
/// Functions of the program that a driver calls in stream order.
namespace lockstep::runtime {

class HostCalls;

/// A function as a driver takes it: run() with the object's address.
class HostCall {
 public:
  HostCall(HostCalls& calls, std::function<void()> function)
      : calls_(calls), function_(std::move(function)) {}

  /// For graphs, which own the object and run it once a launch.
  static void run(void* self) noexcept;
  /// For a single call: hands the object over to be destroyed elsewhere.
  static void run_once(void* self) noexcept;

 private:
  HostCalls& calls_;
  std::function<void()> function_;
};

/// What one backend keeps for its host functions. Thread-safe. Finished functions are destroyed by
/// threads that call the library: on a driver's thread, the end of a captured Buffer would call the
/// driver back.
class HostCalls {
 public:
  void failed(const char* what) noexcept;
  void finished(HostCall* call) noexcept;
  /// Destroys functions that were called.
  void collect() noexcept;
  /// Throws what a function threw, once.
  void throw_error();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<HostCall>> finished_;
  std::string error_;
  bool has_error_ = false;
};

}  // namespace lockstep::runtime
