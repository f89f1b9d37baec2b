// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compile options as users of nvcc and NVRTC write them → arguments of g++ and clang++.

#include <string>
#include <vector>

namespace lockstep::hostjit {

// Throws Error(kInvalidOption) that names the option.
std::vector<std::string> translate_options(const std::vector<std::string>& options);

}  // namespace lockstep::hostjit
