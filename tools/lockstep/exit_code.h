// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

/// \file
/// Exit codes of the command line (docs/command-line.md): stable, scripts depend on them.
namespace lockstep::cli {

enum ExitCode : int {
  kDone = 0,          ///< equal, verified, or simply done
  kDifferent = 1,     ///< different, not verified, a rule broken
  kUsage = 2,         ///< the command line itself; nothing was done
  kUnreadable = 3,    ///< an input that cannot be read, is damaged or truncated
  kNotAvailable = 4,  ///< a backend or device that was asked for cannot be used
  kInternal = 5,      ///< a failure of our own, or output that cannot be written
  kHoles = 6,         ///< record --strict: the trace is not complete, or has no entries
  kNotExecutable = 126,
  kProgramNotFound = 127,
  kBrokenPipe = 141,  ///< as a shell reports a program that SIGPIPE ended
};

/// Ends a verb with a message and a code of its choice.
class Failure : public std::runtime_error {
 public:
  Failure(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

/// Whoever read our standard output went away: end quietly.
class BrokenPipe : public std::exception {
 public:
  const char* what() const noexcept override { return "standard output was closed"; }
};

}  // namespace lockstep::cli
