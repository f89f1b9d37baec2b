// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/normalise.h>
#include <lockstep/trace_rules.h>

#include <cstdlib>

#include "fuzz/fuzz_target.h"
#include "support/trace_entries.h"

namespace lockstep::fuzz {

/// Any text as rules, as a rename map and as a kernel's name.
void rules(const std::uint8_t* data, std::size_t size) {
  using namespace testing_support;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Trace trace =
      trace_of({kernel(text), copy(MemcpyKind::kDtoH, 4), of_kind(OperationKind::kMark, "step")});
  const auto refused = [](const auto& act) {
    try {
      act();
    } catch (const Error& error) {
      const bool expected =
          error.code() == ErrorCode::kInvalidFile || error.code() == ErrorCode::kInvalidArgument;
      if (!expected) throw;
    }
  };
  refused([&] { TraceRules::parse(text).check(trace); });
  refused([&] { rename_normaliser(parse_rename_map(text, "map")); });
  for (const Normaliser& normaliser : all_normalisers()) {
    LaunchTraceEntry once = kernel(text);
    normaliser.apply(once);
    LaunchTraceEntry twice = once;
    normaliser.apply(twice);
    if (once.name != twice.name) std::abort();
  }
}

}  // namespace lockstep::fuzz

LOCKSTEP_FUZZ_TARGET(lockstep::fuzz::rules)
