// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

/// \file
/// Runs the program that `record` was given, as a shell would.
namespace lockstep::cli {

/// The file that `name` stands for: itself when it has a slash, else the first in PATH.
/// \throws Failure (kProgramNotFound, kNotExecutable) saying which.
std::string find_program(const std::string& name);

/// One running program. Signals that others send to this process meanwhile are passed on to it;
/// those of the terminal (Ctrl-C) reach it by themselves, since it is of the same process group. At
/// most one object a process at a time.
class ChildProcess {
 public:
  /// \throws Failure when the system does not start it.
  ChildProcess(const std::string& program, const std::vector<std::string>& command,
               const std::vector<std::pair<std::string, std::string>>& environment);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Puts the signal handlers back; does not wait.
  ~ChildProcess();

  /// Its exit code once it has ended, 128 + signal when it was killed.
  std::optional<int> poll();
  int wait();

 private:
  std::optional<int> reap(int flags);
  void restore_signals() noexcept;

  pid_t pid_ = -1;
  std::optional<int> code_;
  struct SavedSignals;
  SavedSignals* saved_ = nullptr;
};

}  // namespace lockstep::cli
