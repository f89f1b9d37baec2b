// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "drivers/cuda_sim/facts_fixture.h"

// What the driver really answers where the cases from the field ask to measure it. Each question is
// asked in a process of its own, so that none sees what another left behind.
namespace measure {

struct Question {
  const char* id;    // of the case, or what it is about
  const char* text;  // what is asked
  std::string (*answer)();
};

std::vector<Question> capture_questions();
std::vector<Question> memory_questions();
std::vector<Question> process_questions();

// "0 904 0": codes, or any numbers, one after the other.
template <class... Numbers>
std::string list(Numbers... numbers) {
  std::string text;
  ((text += (text.empty() ? "" : " ") + std::to_string(static_cast<long long>(numbers))), ...);
  return text;
}

// Not every question can be asked of the simulated driver.
bool simulated();
// A second context for questions that need one: another device's, or null where there is none.
CUcontext other_context();

}  // namespace measure
