// SPDX-License-Identifier: Apache-2.0
#include "src/compare/verify_values.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace lockstep::verifying {
namespace {

VerifyFinding value_finding(std::string what, bool note, std::string message) {
  VerifyFinding finding;
  finding.level = VerifyLevel::kValues;
  finding.note = note;
  finding.what = std::move(what);
  finding.message = std::move(message);
  return finding;
}

/// The usual reason for bytes that differ between two runs of the same step.
constexpr const char* kInPlaceHint =
    "; memory that the step also reads belongs in VerifyOptions::in_place";

bool compare_memory(const ComparedMemory& memory, std::vector<VerifyFinding>& findings) {
  const std::size_t size = memory.first_eager.size();
  std::size_t unwritten = 0, nondeterministic = 0, different = 0;
  std::size_t first_unwritten = 0, first_nondeterministic = 0, first_different = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::byte first = memory.first_eager[i], second = memory.second_eager[i];
    if (memory.poisoned && first == kFirstPoison && second == kSecondPoison) {
      if (unwritten++ == 0) first_unwritten = i;
    } else if (first != second) {
      if (nondeterministic++ == 0) first_nondeterministic = i;
    } else if (memory.replay[i] != first) {
      if (different++ == 0) first_different = i;
    }
  }
  // Memory that is poisoned before each run is not in place.
  const char* hint = memory.poisoned ? kInPlaceHint : "";
  if (size != 0 && unwritten + nondeterministic == size) {
    findings.push_back(
        unwritten == size
            ? value_finding("unwritten", false,
                            fmt::format("{}: eager writes none of its {} bytes, so nothing can be "
                                        "compared",
                                        memory.name, size))
            : value_finding(
                  "nondeterministic", false,
                  fmt::format("{}: all bytes that eager writes ({} of {}) differ between two eager "
                              "runs, so nothing can be compared{}",
                              memory.name, nondeterministic, size, hint)));
    return false;
  }
  if (different != 0) {
    findings.push_back(value_finding(
        "value", false,
        fmt::format("{}: {} of {} bytes differ; first at offset {}: 0x{:02x} in eager, 0x{:02x} in "
                    "replay{}",
                    memory.name, different, size, first_different,
                    static_cast<unsigned>(memory.first_eager[first_different]),
                    static_cast<unsigned>(memory.replay[first_different]),
                    memory.poisoned &&
                            memory.replay[first_different] == ~memory.first_eager[first_different]
                        ? " (as before the run: probably not written)"
                        : "")));
  }
  if (nondeterministic != 0) {
    findings.push_back(value_finding(
        "nondeterministic", true,
        fmt::format("{}: {} of {} bytes differ between two eager runs and were left out; first at "
                    "offset {}{}",
                    memory.name, nondeterministic, size, first_nondeterministic, hint)));
  }
  if (unwritten != 0) {
    findings.push_back(value_finding(
        "unwritten", true,
        fmt::format("{}: eager does not write {} of {} bytes, which were left out; first at offset "
                    "{}",
                    memory.name, unwritten, size, first_unwritten)));
  }
  if (size != 0 && memory.before == memory.first_eager) {
    findings.push_back(value_finding(
        "unchanged", true,
        fmt::format("{}: eager leaves all {} bytes as they were, and so does a replay that writes "
                    "none of them; give it inputs that change them",
                    memory.name, size)));
  }
  return different == 0;
}

}  // namespace

std::vector<std::byte> complement(const std::vector<std::byte>& bytes) {
  std::vector<std::byte> result(bytes.size());
  std::transform(bytes.begin(), bytes.end(), result.begin(), [](std::byte b) { return ~b; });
  return result;
}

bool compare_values(const std::vector<ComparedMemory>& memories,
                    std::vector<VerifyFinding>& findings) {
  bool equal = true;
  for (const ComparedMemory& memory : memories) equal &= compare_memory(memory, findings);
  return equal;
}

}  // namespace lockstep::verifying
