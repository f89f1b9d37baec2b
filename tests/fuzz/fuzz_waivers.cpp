// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>

#include <cstdlib>

#include "framework/runner.h"
#include "framework/waivers.h"
#include "fuzz/fuzz_target.h"
#include "support/trace_entries.h"

namespace lockstep::fuzz {

/// Any bytes as a file of waivers: refused as a whole, or every waiver in it can be asked.
void waivers(const std::uint8_t* data, std::size_t size) {
  using conformance::Waiver;
  using conformance::Waivers;
  static testing_support::MemoryFile file;
  file.assign({reinterpret_cast<const char*>(data), size});
  Waivers loaded;
  try {
    loaded = Waivers::load(file.path());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidFile) throw;
    return;
  }
  const std::vector<Waiver> all = loaded.all();
  for (const char* driver : {"", "5.2", "13.0", "99999999999999999999.1"}) {
    for (const Waiver& waiver : all) {
      if (waiver.reason.empty() || waiver.where.empty()) std::abort();
      if (!conformance::glob_match("*", waiver.pattern)) std::abort();
      const conformance::WaiverTarget target{waiver.backend, driver, true};
      const Waiver* found = loaded.find(target, waiver.pattern, "graph");
      if (found != nullptr && found->backend != waiver.backend) std::abort();
      static_cast<void>(loaded.problems(target));
    }
  }
}

}  // namespace lockstep::fuzz

LOCKSTEP_FUZZ_TARGET(lockstep::fuzz::waivers)
