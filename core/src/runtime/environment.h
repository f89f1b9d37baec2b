// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Reading the environment, the one place that knows when it must not be trusted.
namespace lockstep::runtime {

/// The variable's value; nothing when it is not set, empty, or the process runs with elevated
/// privileges (set-user-id and the like), where whoever set it may not be whom it would affect.
std::optional<std::string> environment(const char* name);

/// Parts between separators, without empty ones.
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace lockstep::runtime
