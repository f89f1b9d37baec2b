// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backends.h>

#include <string_view>

namespace lockstep::runtime {

/// Reads what the probe program prints about one plugin: its manifest, whose texts are the
/// plugin's own. `report` keeps its path and what was tried. \throws Error (kInvalidFile) saying
/// what is wrong; nothing of the answer is then in `report`.
void read_probe_answer(std::string_view answer, BackendReport& report);

}  // namespace lockstep::runtime
