// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>

#include <cstdlib>

#include "fuzz/fuzz_target.h"
#include "src/runtime/probe_answer.h"

namespace lockstep::fuzz {

/// Any bytes as the manifest that the probe program prints of a plugin: taken as a whole, or
/// refused with nothing of it taken.
void manifest(const std::uint8_t* data, std::size_t size) {
  BackendReport report;
  report.name = "before";
  report.path = "/plugin.so";
  report.tried = {"/plugin.so"};
  report.status = BackendStatus::kProbeFailed;
  bool taken = true;
  try {
    runtime::read_probe_answer({reinterpret_cast<const char*>(data), size}, report);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidFile) throw;
    taken = false;
  }
  if (report.path != "/plugin.so" || report.tried.size() != 1) std::abort();
  if (to_string(report.status).empty()) std::abort();
  if (taken == (report.status == BackendStatus::kProbeFailed)) std::abort();
  if (!taken && (report.name != "before" || !report.devices.empty())) std::abort();
}

}  // namespace lockstep::fuzz

LOCKSTEP_FUZZ_TARGET(lockstep::fuzz::manifest)
