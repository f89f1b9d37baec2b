// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string_view>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace lockstep::hostjit {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kUsualPath = "PATH=/usr/local/bin:/usr/bin:/bin";

// The environment, but diagnostics in English and nothing of a profiler or preload library in the
// compiler. Under elevated privileges none of it: a compiler takes programs and headers from there.
std::vector<std::string> child_environment() {
  if (getauxval(AT_SECURE) != 0) return {kUsualPath, "LC_ALL=C"};
  std::vector<std::string> variables;
  bool has_path = false;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (variable.starts_with("LC_ALL=") || variable.starts_with("LD_PRELOAD=") ||
        variable.starts_with("LD_AUDIT=") || variable.starts_with("LANGUAGE="))
      continue;
    has_path = has_path || variable.starts_with("PATH=");
    variables.emplace_back(variable);
  }
  // The compiler was found without one; it has to find its linker.
  if (!has_path) variables.emplace_back(kUsualPath);
  variables.emplace_back("LC_ALL=C");
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Reads until the end of the pipe or the deadline; false at the deadline.
bool drain(int descriptor, Clock::time_point deadline, std::string& output) {
  char buffer[16384];
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting = {descriptor, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 1'000'000)));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    const ssize_t got = read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    output.append(buffer, static_cast<std::size_t>(got));
  }
}

enum class Wait { kEnded, kEndedUnseen, kTimedOut };

// The child may have closed its output and still run.
Wait wait_until(pid_t child, Clock::time_point deadline, int& status) {
  for (;;) {
    const pid_t waited = waitpid(child, &status, WNOHANG);
    if (waited == child) return Wait::kEnded;
    // No such child any more: somebody else has waited for it, or nobody had to.
    if (waited < 0 && errno != EINTR) return Wait::kEndedUnseen;
    if (Clock::now() >= deadline) return Wait::kTimedOut;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& folder,
                          std::chrono::milliseconds timeout) {
  ProcessResult result;
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    result.output = std::string("pipe2: ") + std::strerror(errno);
    return result;
  }
  std::vector<std::string> argument_texts = arguments;
  std::vector<std::string> environment_texts = child_environment();
  std::vector<char*> argument_vector = pointers_to(argument_texts);
  std::vector<char*> environment = pointers_to(environment_texts);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A process group of its own, so that the compiler's own children can be killed with it.
  sigset_t no_signals;
  sigemptyset(&no_signals);
  // Ignored, it would hide from the compiler how its own children ended.
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGCHLD);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &no_signals);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  pid_t child = -1;
  const int error = posix_spawn(&child, argument_vector[0], &actions, &attributes,
                                argument_vector.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(pipe_ends[1]);
  if (error != 0) {
    close(pipe_ends[0]);
    result.output = arguments[0] + ": " + std::strerror(error);
    return result;
  }
  result.started = true;
  const Clock::time_point deadline = Clock::now() + timeout;
  int status = 0;
  const Wait wait = drain(pipe_ends[0], deadline, result.output)
                        ? wait_until(child, deadline, status)
                        : Wait::kTimedOut;
  if (wait == Wait::kTimedOut) {
    result.timed_out = true;
    kill(-child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  close(pipe_ends[0]);
  result.status_known = wait != Wait::kEndedUnseen;
  if (result.status_known) {
    result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return result;
}

}  // namespace lockstep::hostjit
