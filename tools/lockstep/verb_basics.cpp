// SPDX-License-Identifier: Apache-2.0
// --help and --version.
#include <fmt/format.h>

#include "exit_code.h"
#include "json.h"
#include "verbs.h"

namespace lockstep::cli {

int run_verb(Console& console, const CommonOptions&, const HelpOptions& options) {
  console.print(options.text);
  return kDone;
}

int run_verb(Console& console, const CommonOptions& common, const VersionOptions&) {
  constexpr int kTraceVersion = 1, kHashVersion = 1;
  if (common.json) {
    JsonObject object;
    object.text("schema", "lockstep/version/1")
        .text("version", LOCKSTEP_VERSION)
        .number("trace_version", kTraceVersion)
        .number("hash_version", kHashVersion)
        .text("compiler", __VERSION__);
    console.print(object.str() + "\n");
  } else {
    console.print(fmt::format("lockstep {} (trace files version {}, hashes version {})\n",
                              LOCKSTEP_VERSION, kTraceVersion, kHashVersion));
  }
  return kDone;
}

}  // namespace lockstep::cli
