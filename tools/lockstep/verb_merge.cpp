// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_slice.h>

#include <fmt/format.h>

#include "exit_code.h"
#include "json.h"
#include "text.h"
#include "trace_input.h"
#include "verbs.h"

namespace lockstep::cli {

int run_verb(Console& console, const CommonOptions& common, const MergeOptions& options) {
  check_output(options.output, options.force);
  std::vector<std::filesystem::path> files;
  for (const std::string& file : options.files) {
    check_input(file);
    files.emplace_back(file);
  }
  TraceWriterOptions writer;
  writer.force = options.force;
  std::uint64_t entries = 0;
  try {
    entries = merge_traces(files, options.output, writer);
  } catch (const Error& error) {
    // The inputs could be opened: what the system refuses now is the output.
    if (error.code() == ErrorCode::kInputOutput) throw Failure(kInternal, error.what());
    throw;
  }
  if (common.json) {
    console.print(JsonObject()
                      .text("schema", "lockstep/merge/1")
                      .text("output", options.output)
                      .texts("files", options.files)
                      .number("entries", entries)
                      .str() +
                  "\n");
  } else {
    console.note(fmt::format("{}: {} from {}", options.output, counted(entries, "entry", "entries"),
                             counted(files.size(), "file", "files")));
  }
  return kDone;
}

}  // namespace lockstep::cli
