// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_diff.h>

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "src/compare/diff_keys.h"
#include "src/trace/json_text.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kShownOfFirstChange = 3;  ///< entries a side, unless all are asked for
constexpr std::size_t kNameWidth = 60;
constexpr std::size_t kColumn = 60;

enum class Side : std::uint8_t { kLeft, kRight };

/// One line of the report; mark '…' stands for entries left out.
struct ReportLine {
  char mark;  ///< ' ', '-', '+', or '.' for entries that are not shown
  Side side = Side::kLeft;
  std::uint64_t index = 0;
};

void add_range(std::vector<ReportLine>& lines, char mark, Side side, std::uint64_t begin,
               std::uint64_t end, bool all) {
  for (std::uint64_t i = begin; i < end; ++i) {
    if (!all && i - begin == kShownOfFirstChange) {
      lines.push_back({'.'});
      return;
    }
    lines.push_back({mark, side, i});
  }
}

std::vector<ReportLine> plan(const DiffReport& report, const DiffTextOptions& options) {
  std::vector<ReportLine> lines;
  std::uint64_t shown_to = 0;  // left entries up to here stand in the report
  bool first = true;
  for (std::size_t c = 0; c < report.changes.size(); ++c) {
    const DiffChange& change = report.changes[c];
    const std::uint64_t context_begin = std::max(
        shown_to, change.left_begin - std::min<std::uint64_t>(change.left_begin, options.context));
    if (!first && context_begin > shown_to) lines.push_back({'.'});
    add_range(lines, ' ', Side::kLeft, context_begin, change.left_begin, true);
    add_range(lines, '-', Side::kLeft, change.left_begin, change.left_end, options.all);
    add_range(lines, '+', Side::kRight, change.right_begin, change.right_end, options.all);
    const std::uint64_t next =
        c + 1 < report.changes.size() ? report.changes[c + 1].left_begin : report.left_entries;
    const std::uint64_t context_end = std::min(next, change.left_end + options.context);
    add_range(lines, ' ', Side::kLeft, change.left_end, context_end, true);
    shown_to = std::max(shown_to, std::max(change.left_end, context_end));
    first = false;
    if (!options.all) break;
  }
  return lines;
}

/// Width in columns of a terminal: bytes that begin a character.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
  }));
}

std::string verdict(const DiffReport& report) {
  std::string text;
  const auto entries = [](std::uint64_t count) {
    return fmt::format("{} {}", count, count == 1 ? "entry" : "entries");
  };
  if (report.equal) {
    text = fmt::format("equal: {}", entries(report.left_entries));
  } else if (report.changes.empty()) {
    text = fmt::format("not equal: {}, all alike as far as they go", entries(report.left_entries));
  } else {
    text = fmt::format("different: {} and {}, {} alike{}; first difference at {}",
                       report.left_entries, entries(report.right_entries), report.matched,
                       report.matched_exact ? "" : " at least", *report.first_difference);
  }
  if (report.left_truncated || report.right_truncated) {
    text += fmt::format("; {} truncated", report.left_truncated && report.right_truncated
                                              ? "both traces are"
                                          : report.left_truncated ? "the left trace is"
                                                                  : "the right trace is");
  }
  if (!report.normalisers.empty()) {
    text += fmt::format("\nnormalised: {}", fmt::join(report.normalisers, ", "));
  }
  return text + "\n";
}

template <typename Lookup>
std::string render(const DiffReport& report, const std::vector<ReportLine>& lines,
                   const DiffTextOptions& options, const Lookup& lookup) {
  std::string text = verdict(report);
  std::uint64_t largest = 0;
  for (const ReportLine& line : lines) largest = std::max(largest, line.index);
  const std::size_t index_width = std::max<std::size_t>(fmt::formatted_size("{}", largest), 3) + 1;
  for (const ReportLine& line : lines) {
    if (line.mark == '.') {
      text += "  …\n";
      continue;
    }
    const LaunchTraceEntry* entry = lookup(line.side, line.index);
    if (entry == nullptr) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("the {} entries do not belong to this report: there is no entry {}",
                              line.side == Side::kLeft ? "left" : "right", line.index));
    }
    const std::string what = describe(*entry, kNameWidth);
    const std::size_t width = columns(what);
    const std::string gap(width < kColumn ? kColumn - width : 0, ' ');
    const char* color = !options.color     ? ""
                        : line.mark == '-' ? "\x1b[31m"
                        : line.mark == '+' ? "\x1b[32m"
                                           : "";
    const char* plain = *color == '\0' ? "" : "\x1b[0m";
    text += fmt::format("{}  {} {:<{}}{}{}   stream {}{}\n", color, line.mark, line.index,
                        index_width, what, gap, entry->stream_index, plain);
  }
  if (!options.all && report.changes.size() > 1) {
    const std::size_t more = report.changes.size() - 1;
    text += fmt::format("  …\n  {} more change{}; --all shows {}, --stat counts by kernel\n", more,
                        more == 1 ? "" : "s", more == 1 ? "it" : "them");
  }
  return text;
}

void append_range(std::string& out, std::string_view key, std::uint64_t begin, std::uint64_t end) {
  out.append(key);
  out.push_back('[');
  append_number(out, begin);
  out.push_back(',');
  append_number(out, end);
  out.push_back(']');
}

}  // namespace

std::string to_text(const DiffReport& report, const std::vector<LaunchTraceEntry>& left,
                    const std::vector<LaunchTraceEntry>& right, const DiffTextOptions& options) {
  return render(report, plan(report, options), options,
                [&](Side side, std::uint64_t index) -> const LaunchTraceEntry* {
                  const auto& entries = side == Side::kLeft ? left : right;
                  return index < entries.size() ? &entries[index] : nullptr;
                });
}

std::string to_text(const DiffReport& report, const std::filesystem::path& left,
                    const std::filesystem::path& right, const ViewOptions& view_options,
                    const DiffTextOptions& options) {
  const std::vector<ReportLine> lines = plan(report, options);
  std::map<std::pair<Side, std::uint64_t>, LaunchTraceEntry> entries;
  for (const Side side : {Side::kLeft, Side::kRight}) {
    std::vector<std::uint64_t> wanted;
    for (const ReportLine& line : lines) {
      if (line.mark != '.' && line.side == side) wanted.push_back(line.index);
    }
    std::sort(wanted.begin(), wanted.end());
    auto next = wanted.begin();
    if (next == wanted.end()) continue;
    visit_view(side == Side::kLeft ? left : right, view_options,
               [&](std::uint64_t index, const LaunchTraceEntry& entry) {
                 if (index == *next) {
                   entries.emplace(std::pair{side, index}, entry);
                   while (next != wanted.end() && *next == index) ++next;
                 }
                 return next != wanted.end();
               });
  }
  return render(report, lines, options,
                [&](Side side, std::uint64_t index) -> const LaunchTraceEntry* {
                  const auto found = entries.find({side, index});
                  return found == entries.end() ? nullptr : &found->second;
                });
}

std::string to_json(const DiffReport& report) {
  const auto truth = [](bool value) { return value ? "true" : "false"; };
  std::string out = fmt::format("{{\"equal\":{}", truth(report.equal));
  append_field(out, ",\"left_entries\":", report.left_entries);
  append_field(out, ",\"right_entries\":", report.right_entries);
  append_field(out, ",\"matched\":", report.matched);
  out += fmt::format(",\"matched_exact\":{},\"first_difference\":", truth(report.matched_exact));
  if (report.first_difference) {
    append_number(out, *report.first_difference);
  } else {
    out += "null";
  }
  out += fmt::format(",\"left_truncated\":{},\"right_truncated\":{},\"normalisers\":[",
                     truth(report.left_truncated), truth(report.right_truncated));
  for (std::size_t i = 0; i < report.normalisers.size(); ++i) {
    if (i != 0) out.push_back(',');
    append_text(out, report.normalisers[i]);
  }
  out += "],\"changes\":[";
  for (std::size_t i = 0; i < report.changes.size(); ++i) {
    const DiffChange& change = report.changes[i];
    const char* kind = change.kind == DiffChange::Kind::kInsert   ? "insert"
                       : change.kind == DiffChange::Kind::kDelete ? "delete"
                                                                  : "replace";
    out += fmt::format("{}{{\"kind\":\"{}\"", i == 0 ? "" : ",", kind);
    append_range(out, ",\"left\":", change.left_begin, change.left_end);
    append_range(out, ",\"right\":", change.right_begin, change.right_end);
    out.push_back('}');
  }
  return out + "]}";
}

}  // namespace lockstep
