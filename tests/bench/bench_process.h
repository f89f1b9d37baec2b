// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <sys/types.h>

// A process of its own for the CUPTI subscriber. A subscriber makes every call of its process
// dearer, whether a callback is enabled for it or not: beside it nothing else could be measured.
namespace bench {

/// The measuring side: starts this program anew with `argument`.
class CuptiProcess {
 public:
  /// \throws std::runtime_error when the process cannot be started.
  explicit CuptiProcess(const char* argument);
  CuptiProcess(const CuptiProcess&) = delete;
  CuptiProcess& operator=(const CuptiProcess&) = delete;
  ~CuptiProcess();

  bool usable() const { return usable_; }
  /// Which library it is, or why there is none.
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

/// The other side: makes a batch whenever asked. The program's exit code.
int serve_batches(const std::function<double()>& batch);

}  // namespace bench
