// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backends.h>

#include <string>
#include <string_view>
#include <vector>

#include "src/runtime/loaded_backend.h"
#include "src/runtime/plugin_search.h"

/// \file
/// The plugins of this process.
namespace lockstep::runtime {

/// A candidate after an attempt to load it: a backend, or a report that says why not.
struct LoadAttempt {
  LoadedBackend* backend = nullptr;
  BackendReport report;
};

/// Loads one file; the outcome is kept and given again. Never throws for a bad plugin.
LoadAttempt load_candidate(const Candidate& candidate);

/// The first loadable plugin of each name, in search order.
std::vector<LoadedBackend*> load_backends();

/// The backend of that name without loading files that are named for another; null when there is
/// none, and then `attempts` says what was found of it. Files that do not load are a warning.
LoadedBackend* find_backend(std::string_view name, std::vector<BackendReport>& attempts);

/// The report for a known backend that has no file.
BackendReport not_built_report(const PluginSearch& search, const std::string& name);

/// "  cuda   no driver   why   (path)" lines.
std::string format_reports(const std::vector<BackendReport>& reports);

/// \throws Error kUnavailable when LOCKSTEP_REQUIRE_BACKENDS names one that is not ready.
void check_required_backends(const std::vector<BackendReport>& reports);
/// The same, probing first; does nothing where the variable is not set or was satisfied before.
void check_required_backends();

/// What there is, like list_backends(), but gives words in place of an error when the probe program
/// cannot be run: for messages of other errors.
std::string describe_backends();

}  // namespace lockstep::runtime
