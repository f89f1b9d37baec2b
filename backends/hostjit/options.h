// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compile options as users of nvcc and NVRTC write them → arguments of g++ and clang++.

#include <string>
#include <vector>

namespace lockstep::hostjit {

struct TranslatedOptions {
  std::vector<std::string> arguments;
  // Definitions that stand between our texts and the user's: `-DT=float` is no business of ours.
  std::string macros;
};

// Throws Error(kInvalidOption) that names the option.
TranslatedOptions translate_options(const std::vector<std::string>& options);

}  // namespace lockstep::hostjit
