// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a program without a shell, with its output captured and a time limit.

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::hostjit {

struct ProcessResult {
  bool started = false;    // false: `output` says why
  bool timed_out = false;  // killed, with all it had started
  // False: the program around us has taken the status (it ignores SIGCHLD, or waits for any child),
  // so that what was produced has to tell how it went.
  bool status_known = true;
  int exit_code = -1;  // 128 + signal when it was killed; -1 when it is not known
  std::string output;  // stdout and stderr together
};

// `arguments[0]` is the program's absolute path. The child gets no descriptor of ours but a read
// end of nothing, and messages in English.
ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& folder,
                          std::chrono::milliseconds timeout);

}  // namespace lockstep::hostjit
