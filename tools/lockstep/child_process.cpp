// SPDX-License-Identifier: Apache-2.0
#include "child_process.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "exit_code.h"
#include "text.h"

extern char** environ;

namespace lockstep::cli {
namespace {

constexpr std::array<int, 6> kForwarded = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

std::atomic<pid_t> forward_to{-1};
static_assert(std::atomic<pid_t>::is_always_lock_free);

/// What the kernel sends (a terminal's Ctrl-C, a hangup) goes to the whole process group.
void forward(int number, siginfo_t* info, void*) {
  const int before = errno;
  const pid_t child = forward_to.load();
  if (child > 0 && info->si_code <= 0) kill(child, number);
  errno = before;
}

sigset_t forwarded_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kForwarded) sigaddset(&set, number);
  return set;
}

std::vector<std::string> merged_environment(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [other, value] : added) replaced = replaced || other == name;
    if (!replaced) result.emplace_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

bool is_file(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

struct ChildProcess::SavedSignals {
  std::array<struct sigaction, kForwarded.size()> actions{};
};

std::string find_program(const std::string& name) {
  const auto usable = [](const std::string& path) {
    return is_file(path) && access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    if (usable(name)) return name;
    if (access(name.c_str(), F_OK) != 0) {
      throw Failure(kProgramNotFound, fmt::format("{}: {}", name, std::strerror(errno)));
    }
    throw Failure(kNotExecutable, fmt::format("{}: is not an executable file", name));
  }
  const char* path = std::getenv("PATH");
  bool found = false;
  if (!name.empty()) {
    for (const std::string& folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
      std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
      if (usable(candidate)) return candidate;
      found = found || is_file(candidate);
    }
  }
  if (found) throw Failure(kNotExecutable, fmt::format("{}: is not executable", name));
  throw Failure(kProgramNotFound, fmt::format("there is no program '{}' in PATH", name));
}

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& command,
                           const std::vector<std::pair<std::string, std::string>>& environment) {
  const std::vector<std::string> variables = merged_environment(environment);
  const std::vector<char*> argv = pointers_to(command);
  const std::vector<char*> envp = pointers_to(variables);

  // A signal that comes between here and the start waits, and is passed on right after.
  const sigset_t forwarded = forwarded_set();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &forwarded, &before);
  saved_ = new SavedSignals;
  for (std::size_t i = 0; i < kForwarded.size(); ++i) {
    sigaction(kForwarded[i], nullptr, &saved_->actions[i]);
    if (saved_->actions[i].sa_handler == SIG_IGN) continue;  // as nohup wants it
    struct sigaction action {};
    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(kForwarded[i], &action, nullptr);
  }
  std::signal(SIGCHLD, SIG_DFL);  // inherited as ignored it would hide how the program ended

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &before);
  const int reason =
      posix_spawn(&pid_, program.c_str(), nullptr, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  forward_to = reason == 0 ? pid_ : -1;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (reason != 0) {
    restore_signals();
    throw Failure(reason == ENOENT ? kProgramNotFound : kNotExecutable,
                  fmt::format("cannot run {}: {}", program, std::strerror(reason)));
  }
}

ChildProcess::~ChildProcess() { restore_signals(); }

void ChildProcess::restore_signals() noexcept {
  forward_to = -1;
  if (saved_ == nullptr) return;
  for (std::size_t i = 0; i < kForwarded.size(); ++i) {
    sigaction(kForwarded[i], &saved_->actions[i], nullptr);
  }
  delete std::exchange(saved_, nullptr);
}

std::optional<int> ChildProcess::poll() { return reap(WNOHANG); }

int ChildProcess::wait() {
  while (!code_) reap(0);
  return *code_;
}

std::optional<int> ChildProcess::reap(int flags) {
  if (code_) return code_;
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, flags);
  if (ended < 0 && errno != EINTR) {
    throw Failure(kInternal, fmt::format("cannot wait for the program: {}", std::strerror(errno)));
  }
  if (ended == pid_) {
    forward_to = -1;  // its number may soon be another's
    code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return code_;
}

}  // namespace lockstep::cli
