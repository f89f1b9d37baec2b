// SPDX-License-Identifier: Apache-2.0
#include "bench_process.h"

#include <cstdlib>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace bench {
namespace {
constexpr char kUsable[] = "usable ";
}

BenchProcess::BenchProcess(const char* argument) {
  int requests[2], answers[2];
  if (pipe(requests) != 0 || pipe(answers) != 0) throw std::runtime_error("no pipe for a process");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, requests[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, answers[1], STDOUT_FILENO);
  for (const int end : {requests[0], requests[1], answers[0], answers[1]}) {
    posix_spawn_file_actions_addclose(&actions, end);
  }
  char self[] = "/proc/self/exe";
  std::string copy = argument;
  char* arguments[] = {self, copy.data(), nullptr};
  const int failed = posix_spawn(&child_, self, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(requests[0]);
  close(answers[1]);
  to_child_ = requests[1];
  from_child_ = fdopen(answers[0], "r");
  if (failed != 0) {
    child_ = -1;
    throw std::runtime_error("the process did not start");
  }
  words_ = line();
  usable_ = words_.rfind(kUsable, 0) == 0;
  if (usable_) words_.erase(0, sizeof kUsable - 1);
}

BenchProcess::~BenchProcess() {
  close(to_child_);  // the end of its work
  if (from_child_ != nullptr) std::fclose(from_child_);
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

std::string BenchProcess::line() {
  char text[1024] = "";
  if (from_child_ == nullptr || std::fgets(text, sizeof text, from_child_) == nullptr) {
    throw std::runtime_error("the process ended");
  }
  std::string result = text;
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

double BenchProcess::batch() {
  if (write(to_child_, "b", 1) != 1) throw std::runtime_error("the process ended");
  return std::strtod(line().c_str(), nullptr);
}

void serve_batches(bool usable, const std::string& words, const std::function<double()>& batch) {
  std::printf("%s%s\n", usable ? kUsable : "", words.c_str());
  std::fflush(stdout);
  if (!usable) return;
  for (char request = 0; read(STDIN_FILENO, &request, 1) == 1;) {
    std::printf("%.3f\n", batch());
    std::fflush(stdout);
  }
}

}  // namespace bench
