// SPDX-License-Identifier: Apache-2.0
#include "cupti_process.h"

#include <cstdlib>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti_subscriber.h"

extern char** environ;

namespace bench {
namespace {
constexpr char kUsable[] = "usable ";
}

CuptiProcess::CuptiProcess(const char* argument) {
  int requests[2], answers[2];
  if (pipe(requests) != 0 || pipe(answers) != 0) throw std::runtime_error("no pipe for CUPTI");
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
    throw std::runtime_error("the process for CUPTI did not start");
  }
  words_ = line();
  usable_ = words_.rfind(kUsable, 0) == 0;
  if (usable_) words_.erase(0, sizeof kUsable - 1);
}

CuptiProcess::~CuptiProcess() {
  close(to_child_);  // the end of its work
  if (from_child_ != nullptr) std::fclose(from_child_);
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

std::string CuptiProcess::line() {
  char text[1024] = "";
  if (from_child_ == nullptr || std::fgets(text, sizeof text, from_child_) == nullptr) {
    throw std::runtime_error("the process with CUPTI ended");
  }
  std::string result = text;
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

double CuptiProcess::batch() {
  if (write(to_child_, "b", 1) != 1) throw std::runtime_error("the process with CUPTI ended");
  return std::strtod(line().c_str(), nullptr);
}

int serve_batches(const std::function<double()>& batch) {
  CuptiSubscriber cupti;
  std::printf("%s%s\n", cupti.usable() ? kUsable : "not found: ", cupti.words().c_str());
  std::fflush(stdout);
  if (!cupti.usable()) return 0;
  cupti.enable(true);
  for (char request = 0; read(STDIN_FILENO, &request, 1) == 1;) {
    const std::uint64_t before = cupti.launches();
    const double nanoseconds = batch();
    if (cupti.launches() == before) {
      std::fprintf(stderr, "gpu_bench: CUPTI saw no launch\n");
      return 1;
    }
    std::printf("%.3f\n", nanoseconds);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace bench
