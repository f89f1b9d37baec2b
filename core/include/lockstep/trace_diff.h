// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>
#include <lockstep/trace.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

/// \file
/// Comparison of two traces: alignment, first difference, report.
namespace lockstep {

/// A pure, idempotent rewriting of entries before they are compared (names, mostly).
struct Normaliser {
  std::string name;  ///< listed in the report
  std::function<void(LaunchTraceEntry&)> apply;
};

struct DiffOptions {
  ViewOptions view;
  std::vector<Normaliser> normalisers;        ///< hashes are recomputed when there is one
  bool compare_arguments = false;             ///< argument hashes must agree too
  std::uint64_t exact_edit_distance = 10000;  ///< beyond it alignment is anchored, not exact
  bool per_stream = false;  ///< align each stream by itself (streams by bijection)
};

/// One stretch of an alignment.
struct DiffChange {
  enum class Kind : std::uint8_t { kInsert, kDelete, kReplace };
  Kind kind = Kind::kInsert;
  std::uint64_t left_begin = 0, left_end = 0;  ///< half-open, 0-based
  std::uint64_t right_begin = 0, right_end = 0;
};

struct DiffReport {
  bool equal = false;
  std::uint64_t left_entries = 0, right_entries = 0;
  std::uint64_t matched = 0;                      ///< entries of the common subsequence
  bool matched_exact = true;                      ///< false when alignment was anchored
  std::optional<std::uint64_t> first_difference;  ///< 0-based, nothing when equal
  std::vector<DiffChange> changes;
  std::vector<std::string> normalisers;
  bool left_truncated = false, right_truncated = false;  ///< truncated is never equal
};

/// Compares two traces in memory. \throws Error as view() does.
LOCKSTEP_API DiffReport diff(const Trace& left, const Trace& right,
                             const DiffOptions& options = {});

/// Compares two files without holding their entries: 10 million entries stay within 256 MB.
/// \throws Error as TraceReader does.
LOCKSTEP_API DiffReport diff_files(const std::filesystem::path& left,
                                   const std::filesystem::path& right,
                                   const DiffOptions& options = {});

/// Alignment of two key sequences by longest common subsequence: the changed stretches in order.
/// Exact up to `exact_edit_distance`, anchored beyond (then `*exact` is set to false): the path
/// then goes through the points that a bounded search from both ends comes farthest to. Keys that
/// one side lacks do not count towards the distance. Among equally long subsequences the one whose
/// insertions and deletions come latest is taken. Key 0 is equal to nothing, not even to itself.
LOCKSTEP_API std::vector<DiffChange> align(const std::vector<std::uint64_t>& left,
                                           const std::vector<std::uint64_t>& right,
                                           std::uint64_t exact_edit_distance, bool* exact);

struct DiffTextOptions {
  bool all = false;           ///< every change, not only the first with its context
  std::uint32_t context = 1;  ///< unchanged entries around a change
  bool color = false;
};

/// The report for people: verdict line, first difference with context, count of further changes.
LOCKSTEP_API std::string to_text(const DiffReport& report,
                                 const std::vector<LaunchTraceEntry>& left,
                                 const std::vector<LaunchTraceEntry>& right,
                                 const DiffTextOptions& options = {});
/// The same for two files, from which only the entries shown are fetched. `view` is the one that
/// the report was made with.
LOCKSTEP_API std::string to_text(const DiffReport& report, const std::filesystem::path& left,
                                 const std::filesystem::path& right, const ViewOptions& view,
                                 const DiffTextOptions& options = {});
/// The report as one JSON object (schemas/diff.schema.json), no entries inside.
LOCKSTEP_API std::string to_json(const DiffReport& report);

}  // namespace lockstep
