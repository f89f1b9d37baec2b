// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backends.h>

#include <vector>

#include "src/runtime/plugin_search.h"

/// \file
/// Asks the probe program about plugins.
namespace lockstep::runtime {

/// One report a candidate, in the same order. All probes run at the same time; one that takes
/// longer than the limit (10 s; LOCKSTEP_PROBE_TIMEOUT_MS) is killed.
/// \throws Error kInternal when the probe program cannot be run.
std::vector<BackendReport> probe_plugins(const std::vector<Candidate>& candidates);

}  // namespace lockstep::runtime
