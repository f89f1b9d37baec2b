// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_file.h>

#include <cstdlib>

#include "fuzz/fuzz_target.h"
#include "support/trace_entries.h"

namespace lockstep::fuzz {

/// Any bytes: read or refused, and what was read survives being written and read again.
void trace_reader(const std::uint8_t* data, std::size_t size) {
  static testing_support::MemoryFile file;
  file.assign({reinterpret_cast<const char*>(data), size});
  Trace trace;
  try {
    trace = read_trace(file.path());
    view(trace);
  } catch (const Error& error) {
    const bool expected =
        error.code() == ErrorCode::kInvalidFile || error.code() == ErrorCode::kTruncatedFile;
    if (!expected) throw;
    return;
  }
  for (const LaunchTraceEntry& entry : trace.entries) {
    if (to_json(entry).empty() || to_string(entry).empty()) std::abort();
  }
  static testing_support::TemporaryFolder folder;
  TraceWriterOptions options;
  options.force = true;
  write_trace(folder / "again.jsonl", trace, options);
  const Trace again = read_trace(folder / "again.jsonl");
  if (again.entries != trace.entries || again.graphs != trace.graphs) std::abort();
}

}  // namespace lockstep::fuzz

LOCKSTEP_FUZZ_TARGET(lockstep::fuzz::trace_reader)
