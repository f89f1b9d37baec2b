// SPDX-License-Identifier: Apache-2.0
#include "robust/program.h"

#include <lockstep/error.h>

#include <cstdio>
#include <map>

int main(int argc, char** argv) {
  using namespace lockstep::robust;
  const std::map<std::string, int (*)(const Arguments&)> scenarios = {
      {"launch-until-killed", launch_until_killed},
      {"launch", launch_some},
      {"workers", fork_workers},
      {"read-back", read_back},
      {"end", end_with_everything},
      {"fork", fork_at},
      {"record-many", record_many},
      {"write-many", write_many},
      {"compare-many", compare_many},
      {"allocate", allocate_everything},
      {"environment", tell_environment},
  };
  const auto scenario = scenarios.find(argc > 1 ? argv[1] : "");
  if (scenario == scenarios.end()) {
    std::fprintf(stderr, "robust_program: no such scenario\n");
    return 2;
  }
  try {
    return scenario->second(Arguments(argv + 2, argv + argc));
  } catch (const lockstep::Error& error) {
    std::printf("error %d: %s\n", static_cast<int>(error.code()), error.what());
    return 3;
  }
}
