// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>

#include <cstdlib>

#include "framework/report.h"
#include "fuzz/fuzz_target.h"
#include "support/trace_entries.h"

namespace lockstep::fuzz {

/// Any bytes as a conformance report: refused, or the same after it was written and read again.
void report(const std::uint8_t* data, std::size_t size) {
  static testing_support::MemoryFile file, again;
  file.assign({reinterpret_cast<const char*>(data), size});
  conformance::Report read;
  try {
    read = conformance::load_report(file.path());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidFile) throw;
    return;
  }
  if (conformance::to_text(read).empty()) std::abort();
  again.assign(conformance::to_json(read));
  const conformance::Report copy = conformance::load_report(again.path());
  if (copy.results.size() != read.results.size() || copy.ok() != read.ok()) std::abort();
  // Nothing is like nothing: reports without runs are not equal.
  if (conformance::compare(read, copy).equal == read.results.empty()) std::abort();
}

}  // namespace lockstep::fuzz

LOCKSTEP_FUZZ_TARGET(lockstep::fuzz::report)
