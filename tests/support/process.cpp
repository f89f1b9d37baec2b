// SPDX-License-Identifier: Apache-2.0
#include "support/process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace lockstep::testing {
namespace {

[[noreturn]] void fail(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

/// Both ends close on exec, so that no other child holds them open.
struct Pipe {
  int read = -1, write = -1;

  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
    read = ends[0];
    write = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_read();
    close_write();
  }
  void close_read() { close_end(read); }
  void close_write() { close_end(write); }

 private:
  static void close_end(int& end) {
    if (end >= 0) ::close(std::exchange(end, -1));
  }
};

std::vector<std::string> environment_of(const ProcessOptions& options) {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (options.environment.count(text.substr(0, text.find('='))) == 0) result.push_back(text);
  }
  for (const auto& [name, value] : options.environment) {
    if (value) result.push_back(name + "=" + *value);
  }
  return result;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// In the child, between fork and exec: system calls only, since another thread of the parent may
/// have held any lock.
[[noreturn]] void become(const std::vector<char*>& argv, const std::vector<char*>& environment,
                         const char* folder, int in, int out, int err) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_DFL);
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
  if (*folder == '\0' || chdir(folder) == 0) execvpe(argv[0], argv.data(), environment.data());
  const char* reason = std::strerror(errno);
  for (const char* part : {"cannot run ", static_cast<const char*>(argv[0]), ": ", reason, "\n"}) {
    if (write(2, part, std::strlen(part)) < 0) _exit(127);
  }
  _exit(127);
}

/// Reads what there is; closes the end when the other side is gone.
void drain(Pipe& pipe, std::string& text) {
  char buffer[65536];
  const ssize_t count = read(pipe.read, buffer, sizeof buffer);
  if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
  if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) pipe.close_read();
}

void feed(Pipe& pipe, const std::string& input, std::size_t& written) {
  if (written < input.size()) {
    const ssize_t count = write(pipe.write, input.data() + written, input.size() - written);
    if (count > 0) written += static_cast<std::size_t>(count);
    if (count < 0 && errno != EINTR && errno != EAGAIN) written = input.size();
  }
  if (written >= input.size()) pipe.close_write();
}

}  // namespace

ProcessResult run(const std::vector<std::string>& argv, const ProcessOptions& options) {
  Pipe in, out, err;
  const std::vector<std::string> environment = environment_of(options);
  const std::vector<char*> arguments = pointers_to(argv);
  const std::vector<char*> variables = pointers_to(environment);
  int file = -1;
  if (!options.out_path.empty()) {
    file = open(options.out_path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) fail("open");
  }
  if (options.close_out) out.close_read();

  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    become(arguments, variables, options.folder.c_str(), in.read, file >= 0 ? file : out.write,
           err.write);
  }
  if (file >= 0) close(file);
  in.close_read();
  out.close_write();
  err.close_write();
  fcntl(in.write, F_SETFL, O_NONBLOCK);
  // A child that does not read its input must not kill us.
  sigset_t pipe_signal, before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);

  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(options.limit_seconds);
  ProcessResult result;
  std::size_t written = 0;
  bool ready_told = !options.when_ready;
  int status = 0;
  bool ended = false;
  while (out.read >= 0 || err.read >= 0 || !ended) {
    pollfd ends[3] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}, {in.write, POLLOUT, 0}};
    poll(ends, 3, 20);
    if (ends[0].revents != 0) drain(out, result.out);
    if (ends[1].revents != 0) drain(err, result.err);
    if (ends[2].revents != 0) feed(in, options.input, written);
    if (!ready_told && (result.out + result.err).find(options.wait_for) != std::string::npos) {
      ready_told = true;
      options.when_ready(child);
    }
    if (!ended) ended = waitpid(child, &status, WNOHANG) == child;
    if (Clock::now() > deadline && !result.timed_out) {
      result.timed_out = true;
      kill(-child, SIGKILL);
    }
  }

  timespec no_time{};
  while (sigtimedwait(&pipe_signal, nullptr, &no_time) == SIGPIPE) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace lockstep::testing
