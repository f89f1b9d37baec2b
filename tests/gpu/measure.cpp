// SPDX-License-Identifier: Apache-2.0
// cuda_measure: prints a table of what the driver answers. `cuda_measure --ask N` answers one.
#include "measure.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "support/process.h"

namespace measure {

CUcontext other_context() {
  cuda_facts::Driver::get();
  int count = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (cuDeviceGetCount(&count) != CUDA_SUCCESS || count < 2) return nullptr;
  if (cuDeviceGet(&device, 1) != CUDA_SUCCESS) return nullptr;
  return cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS ? context : nullptr;
}

bool simulated() {
  char name[64] = "";
  cuDeviceGetName(name, sizeof name, cuda_facts::Driver::get().device);
  return std::strncmp(name, "SIMULATED ", 10) == 0;
}

}  // namespace measure

namespace {

std::vector<measure::Question> all_questions() {
  std::vector<measure::Question> all;
  for (const auto& part :
       {measure::capture_questions(), measure::memory_questions(), measure::process_questions()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::string ask_in_a_process(const char* self, std::size_t number) {
  const auto result = lockstep::testing::run({self, "--ask", std::to_string(number)});
  std::string answer = result.out;
  while (!answer.empty() && answer.back() == '\n') answer.pop_back();
  if (result.timed_out) return answer + " (still running after 100 s)";
  if (result.exit_code != 0) {
    answer += " (exit code " + std::to_string(result.exit_code) + " " + result.err + ")";
  }
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<measure::Question> questions = all_questions();
  if (argc > 2 && std::strcmp(argv[1], "--ask") == 0) {
    const std::size_t number = std::strtoul(argv[2], nullptr, 10);
    if (number >= questions.size()) return 2;
    std::printf("%s\n", questions[number].answer().c_str());
    std::fflush(stdout);
    // What static objects of a driver say at the end is asked for by name only.
    std::_Exit(0);
  }
  std::vector<std::string> answers(questions.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (std::size_t number = next++; number < questions.size(); number = next++) {
        answers[number] = ask_in_a_process("/proc/self/exe", number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::puts("| case | asked | answer |\n|---|---|---|");
  bool all_answered = true;
  for (std::size_t number = 0; number < questions.size(); ++number) {
    const auto& question = questions[number];
    std::printf("| %s | %s | %s |\n", question.id, question.text, answers[number].c_str());
    all_answered = all_answered && !answers[number].empty() &&
                   answers[number].find("(exit code") == std::string::npos;
  }
  return all_answered ? 0 : 1;
}
