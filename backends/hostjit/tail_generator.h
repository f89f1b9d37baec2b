// SPDX-License-Identifier: Apache-2.0
#pragma once

// The generated end of a translation unit: one entry for each kernel, and the exported table.

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hostjit {

// "  & ns :: k<float,3> " → "ns::k<float,3>" for comparing; keeps blanks between words.
std::string normalized_expression(std::string_view expression);

// Without blanks around it and without a leading '&'; throws Error(kInvalidOption) for what cannot
// be a name.
std::string checked_expression(std::string_view expression);

std::string generate_tail(const std::vector<std::string>& expressions);

// As a C++ string literal, quotes included.
std::string string_literal(std::string_view text);

}  // namespace lockstep::hostjit
