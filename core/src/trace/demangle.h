// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// \file
namespace lockstep {

/// The whole demangled name, or the name as it is when it is not a mangled one.
std::string demangle(const std::string& name);

}  // namespace lockstep
