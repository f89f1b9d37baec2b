// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/probe_client.h"

#include <lockstep/error.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/runtime/environment.h"
#include "src/runtime/probe_answer.h"

extern char** environ;

namespace lockstep::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kReportDescriptor = 3;

struct Probe {
  pid_t process = -1;
  int pipe = -1;
  std::string answer;
  bool timed_out = false;
  int wait_status = 0;
};

std::chrono::milliseconds time_limit() {
  const auto value = environment("LOCKSTEP_PROBE_TIMEOUT_MS");
  if (!value) return std::chrono::seconds(10);
  unsigned milliseconds = 0;
  const char* end = value->data() + value->size();
  const auto [rest, error] = std::from_chars(value->data(), end, milliseconds);
  if (error != std::errc() || rest != end || milliseconds == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "LOCKSTEP_PROBE_TIMEOUT_MS=" + *value + " is not a number of milliseconds above 0");
  }
  return std::chrono::milliseconds(milliseconds);
}

[[noreturn]] void throw_system(const std::string& what, int code) {
  throw Error(ErrorCode::kInternal, what + ": " + std::strerror(code));
}

Probe start_probe(const std::filesystem::path& program, const std::filesystem::path& plugin) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_system("no pipe for the probe program", errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // What a driver prints is not the caller's output.
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kReportDescriptor);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);

  std::string program_text = program.string(), plugin_text = plugin.string();
  std::string descriptor = std::to_string(kReportDescriptor);
  char* arguments[] = {program_text.data(), plugin_text.data(), descriptor.data(), nullptr};
  Probe probe;
  const int code =
      posix_spawn(&probe.process, program_text.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (code != 0) {
    close(ends[0]);
    throw_system("the probe program " + program_text + " cannot be run (it is installed beside " +
                     "the library; is the installation complete?)",
                 code);
  }
  probe.pipe = ends[0];
  return probe;
}

/// Waits until the end of the process or the deadline, whichever is first.
void reap(Probe& probe, Clock::time_point deadline) {
  while (true) {
    const pid_t done = waitpid(probe.process, &probe.wait_status, WNOHANG);
    if (done == probe.process || (done < 0 && errno != EINTR)) return;
    if (Clock::now() >= deadline) {
      probe.timed_out = true;
      kill(probe.process, SIGKILL);
      while (waitpid(probe.process, &probe.wait_status, 0) < 0 && errno == EINTR) {
      }
      return;
    }
    poll(nullptr, 0, 1);
  }
}

void read_answers(std::vector<Probe>& probes, Clock::time_point deadline) {
  std::vector<pollfd> open;
  while (true) {
    open.clear();
    for (const Probe& probe : probes) {
      if (probe.pipe >= 0) open.push_back({probe.pipe, POLLIN, 0});
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (open.empty() || left <= 0) break;
    if (poll(open.data(), open.size(), static_cast<int>(left)) < 0 && errno != EINTR) break;
    for (const pollfd& ready : open) {
      if (ready.revents == 0) continue;
      Probe& probe = *std::find_if(probes.begin(), probes.end(),
                                   [&](const Probe& each) { return each.pipe == ready.fd; });
      char buffer[4096];
      const ssize_t count = read(ready.fd, buffer, sizeof(buffer));
      if (count > 0) {
        probe.answer.append(buffer, static_cast<std::size_t>(count));
      } else if (count == 0 || errno != EINTR) {
        close(probe.pipe);
        probe.pipe = -1;
      }
    }
  }
}

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  const char* words = sigdescr_np(signal);
  std::string text =
      name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
  if (words != nullptr) text += std::string(" (") + words + ")";
  return text;
}

BackendReport report_of(const Candidate& candidate, const Probe& probe,
                        std::chrono::milliseconds limit) {
  BackendReport report;
  report.name = candidate.name.empty() ? candidate.path.stem().string() : candidate.name;
  report.path = candidate.path;
  report.tried = {candidate.path.string()};
  report.status = BackendStatus::kProbeFailed;
  if (probe.timed_out) {
    report.reason = "it hung while it was probed and was stopped after " +
                    std::to_string(limit.count()) + " ms (LOCKSTEP_PROBE_TIMEOUT_MS)";
  } else if (WIFSIGNALED(probe.wait_status)) {
    report.reason = "it crashed while it was probed: " + signal_text(WTERMSIG(probe.wait_status));
  } else if (WEXITSTATUS(probe.wait_status) != 0 || probe.answer.empty()) {
    report.reason = "it ended the probing process with exit code " +
                    std::to_string(WEXITSTATUS(probe.wait_status));
  } else {
    try {
      read_probe_answer(probe.answer, report);
    } catch (const Error& error) {
      report.reason = error.what();
    }
  }
  return report;
}

}  // namespace

std::vector<BackendReport> probe_plugins(const std::vector<Candidate>& candidates) {
  const std::filesystem::path program = probe_program();
  const std::chrono::milliseconds limit = time_limit();
  const Clock::time_point deadline = Clock::now() + limit;
  std::vector<Probe> probes;
  try {
    for (const Candidate& candidate : candidates) {
      probes.push_back(start_probe(program, candidate.path));
    }
  } catch (const Error&) {
    for (Probe& probe : probes) {
      close(probe.pipe);
      reap(probe, Clock::now());
    }
    throw;
  }
  read_answers(probes, deadline);
  std::vector<BackendReport> reports;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (probes[i].pipe >= 0) close(probes[i].pipe);
    reap(probes[i], deadline);
    reports.push_back(report_of(candidates[i], probes[i], limit));
  }
  return reports;
}

}  // namespace lockstep::runtime
