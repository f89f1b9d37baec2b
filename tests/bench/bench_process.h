// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <sys/types.h>

// A contender in a process of its own. A CUPTI subscriber makes every call of its process dearer,
// whether a callback is enabled for it or not: beside it nothing else could be measured. And since
// two processes differ by more than that, its base line is a process of its own too.
namespace bench {

/// The measuring side: starts this program anew with `argument`.
class BenchProcess {
 public:
  /// \throws std::runtime_error when the process cannot be started.
  explicit BenchProcess(const char* argument);
  BenchProcess(const BenchProcess&) = delete;
  BenchProcess& operator=(const BenchProcess&) = delete;
  ~BenchProcess();

  bool usable() const { return usable_; }
  /// What the process says of itself, or why it cannot be used.
  const std::string& words() const { return words_; }
  /// Has one batch made there: nanoseconds a call.
  /// \throws std::runtime_error when the process ended.
  double batch();

 private:
  std::string line();

  pid_t child_ = -1;
  int to_child_ = -1;
  std::FILE* from_child_ = nullptr;
  bool usable_ = false;
  std::string words_;
};

/// The other side: says whether it is `usable` and its `words`, and makes a batch whenever asked,
/// until the measuring side ends.
void serve_batches(bool usable, const std::string& words, const std::function<double()>& batch);

}  // namespace bench
