// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_diff.h>
#include <lockstep/trace_file.h>
#include <lockstep/verify.h>

#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include "src/trace/json_text.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kExactEditDistance = 10000;
constexpr std::size_t kMaxDiffLines = 40;

std::string_view level_words(VerifyLevel level) {
  switch (level) {
    case VerifyLevel::kCounts:
      return "counts by kind";
    case VerifyLevel::kMultiset:
      return "the same operations";
    case VerifyLevel::kOrder:
      return "order";
    case VerifyLevel::kArguments:
      return "arguments";
    case VerifyLevel::kValues:
      return "values";
  }
  return {};
}

const VerifyFinding* first_failure(const VerifyReport& report) {
  const auto found = std::find_if(report.findings.begin(), report.findings.end(),
                                  [](const VerifyFinding& finding) { return !finding.note; });
  return found == report.findings.end() ? nullptr : &*found;
}

std::string entries_text(std::size_t count) {
  return fmt::format("{} {}", count, count == 1 ? "entry" : "entries");
}

std::string verdict(const VerifyReport& report) {
  if (report.ok()) {
    return fmt::format("replay verified ({}): {}",
                       *report.verified == VerifyLevel::kCounts
                           ? std::string("L0")
                           : fmt::format("L0-{}", to_string(*report.verified)),
                       entries_text(report.eager.size()));
  }
  std::string text = "not verified: ";
  const VerifyFinding* failure = first_failure(report);
  if (failure != nullptr) {
    text += fmt::format("{} ({}) {}", to_string(failure->level), level_words(failure->level),
                        failure->what == "undecided" ? "could not be decided" : "does not hold");
  } else if (report.verified) {
    text += fmt::format("{} was asked for and could not be decided", to_string(report.requested));
  } else {
    text += "there was nothing to compare";
  }
  if (report.verified) text += fmt::format("; holds up to {}", to_string(*report.verified));
  return text + fmt::format(" (eager {}, replay {})", entries_text(report.eager.size()),
                            entries_text(report.replay.size()));
}

void append_entries(std::string& out, const VerifyFinding& finding) {
  if (finding.eager) {
    out += fmt::format("    eager  #{}  {}\n", *finding.eager_index, to_string(*finding.eager));
  }
  if (finding.replay) {
    out += fmt::format("    replay #{}  {}\n", *finding.replay_index, to_string(*finding.replay));
  }
}

std::vector<std::uint64_t> hashes(const std::vector<LaunchTraceEntry>& entries) {
  std::vector<std::uint64_t> result;
  for (const LaunchTraceEntry& entry : entries) {
    result.push_back(entry.semantic_hash != 0 ? entry.semantic_hash : semantic_hash(entry));
  }
  return result;
}

/// The changed stretches with one entry around each.
void append_aligned(std::string& out, const VerifyReport& report) {
  bool exact = true;
  const auto changes =
      align(hashes(report.eager), hashes(report.replay), kExactEditDistance, &exact);
  if (changes.empty()) return;
  std::vector<std::string> lines;
  const auto line = [&](std::string_view sign, std::uint64_t index, const LaunchTraceEntry& entry) {
    lines.push_back(fmt::format("  {} {:>4}  {}   stream {}", sign, index, describe(entry, 80),
                                entry.stream_index));
  };
  std::uint64_t shown = 0;  // entries of eager that are already in the text
  for (const DiffChange& change : changes) {
    if (change.left_begin > shown) {
      line(" ", change.left_begin - 1, report.eager[change.left_begin - 1]);
    }
    for (auto i = change.left_begin; i < change.left_end; ++i) line("-", i, report.eager[i]);
    for (auto i = change.right_begin; i < change.right_end; ++i) line("+", i, report.replay[i]);
    shown = change.left_end;
    if (shown < report.eager.size()) line(" ", shown, report.eager[shown]), ++shown;
  }
  out += exact ? "aligned (- eager, + replay):\n" : "aligned by anchors (- eager, + replay):\n";
  for (std::size_t i = 0; i < std::min(lines.size(), kMaxDiffLines); ++i) out += lines[i] + '\n';
  if (lines.size() > kMaxDiffLines) {
    out += fmt::format("  … {} more lines\n", lines.size() - kMaxDiffLines);
  }
}

/// Text as a JSON string, whatever bytes it holds: names come from files.
void append_message(std::string& out, const std::string& text) {
  if (is_utf8(text)) return append_quoted(out, text);
  std::string shown;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    shown += byte < 0x80 ? std::string(1, character) : fmt::format("\\x{:02x}", byte);
  }
  append_quoted(out, shown);
}

void append_level(std::string& out, const std::optional<VerifyLevel>& level) {
  out += level ? fmt::format("\"{}\"", to_string(*level)) : "null";
}

void append_finding(std::string& out, const VerifyFinding& finding) {
  out += "{\"level\":";
  append_level(out, finding.level);
  out += finding.note ? ",\"note\":true,\"what\":" : ",\"note\":false,\"what\":";
  append_quoted(out, finding.what);
  out += ",\"message\":";
  append_message(out, finding.message);
  const auto side = [&](std::string_view name, const std::optional<std::uint64_t>& index,
                        const std::optional<LaunchTraceEntry>& entry) {
    out += fmt::format(",\"{}_index\":{},\"{}\":{}", name, index ? std::to_string(*index) : "null",
                       name, entry ? to_json(*entry) : "null");
  };
  side("eager", finding.eager_index, finding.eager);
  side("replay", finding.replay_index, finding.replay);
  out += '}';
}

}  // namespace

std::string_view to_string(VerifyLevel level) noexcept {
  switch (level) {
    case VerifyLevel::kCounts:
      return "L0";
    case VerifyLevel::kMultiset:
      return "L1";
    case VerifyLevel::kOrder:
      return "L2";
    case VerifyLevel::kArguments:
      return "L3";
    case VerifyLevel::kValues:
      return "L4";
  }
  return "L?";
}

std::string to_text(const VerifyReport& report) {
  std::string out = verdict(report) + '\n';
  bool first = true;
  for (const VerifyFinding& finding : report.findings) {
    out += fmt::format("  {}{} {}: {}\n", finding.note ? "note: " : "", to_string(finding.level),
                       finding.what, finding.message);
    // Both entries of the first difference; later messages say enough by themselves.
    if (!finding.note && first && (finding.eager || finding.replay)) {
      append_entries(out, finding);
      first = false;
    }
  }
  if (first_failure(report) != nullptr) append_aligned(out, report);
  return out;
}

std::string to_json(const VerifyReport& report) {
  std::string out = report.ok() ? "{\"ok\":true" : "{\"ok\":false";
  out += ",\"requested\":";
  append_level(out, report.requested);
  out += ",\"verified\":";
  append_level(out, report.verified);
  out += fmt::format(",\"eager_entries\":{},\"replay_entries\":{},\"findings\":[",
                     report.eager.size(), report.replay.size());
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    if (i != 0) out += ',';
    append_finding(out, report.findings[i]);
  }
  return out + "]}";
}

std::ostream& operator<<(std::ostream& out, const VerifyReport& report) {
  return out << to_text(report);
}

}  // namespace lockstep
