// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

/// \file
/// Runs a program as a user's shell would and keeps everything it said.
namespace lockstep::testing {

struct ProcessResult {
  int exit_code = -1;  ///< as a shell reports it: 128 + signal when it was killed
  std::string out;
  std::string err;
  bool timed_out = false;  ///< it was killed because it ran past its limit
};

struct ProcessOptions {
  /// Added to this process's environment; nothing as value takes the variable away.
  std::map<std::string, std::optional<std::string>> environment;
  std::string folder;       ///< working directory, "" = this process's
  std::string input;        ///< what the program reads on its standard input
  std::string out_path;     ///< standard output goes to this existing file or device instead
  bool close_out = false;   ///< standard output is a pipe that nobody reads
  int limit_seconds = 100;  ///< then the whole process group is killed
  /// Called once, in this process, when the program's standard output and error together hold
  /// `wait_for` (at once when that is empty). For sending signals.
  std::function<void(pid_t)> when_ready;
  std::string wait_for;
};

/// Runs argv[0] (looked up in PATH when it has no slash) and waits for it. Safe in a program with
/// several threads; several calls may run at a time. \throws std::system_error when the system
/// cannot start any program; a program that is not found gives exit code 127 and says so in `err`.
ProcessResult run(const std::vector<std::string>& argv, const ProcessOptions& options = {});

}  // namespace lockstep::testing
