// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>
#include <lockstep/trace.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Rules that a trace has to keep, for CI: "no DtoH between marks". One rule a line:
///
///     rule      = quantity what [where]
///     quantity  = no | exactly N | at most N | at least N | max N | min N     (N also: one)
///     what      = HtoD | DtoH | DtoD | HtoH | copies | sets | launches | graph launches
///               | synchronisations | allocations | frees | events | opaque | entries
///                 [matching PATTERN] [of N bytes | up to N bytes | over N bytes]
///     where     = between marks            inside a range, or between the first and last other
///     mark
///               | in range NAME            inside ranges of that name, all together
///               | in each range NAME       inside every single range of that name
///               | on stream N
///
/// Words may be in any case, singular or plural; "kernel" means a launch; "copies", "to host",
/// `HtoD copies` and so on read as expected. PATTERN and NAME are one word or stand in double
/// quotes. What a rule names as its place (range, marks, stream) has to be in the trace, and the
/// trace has to have entries that executed, whatever the quantity: else the rule is broken. Only
/// `no entries` and `at most N entries` without a place or pattern hold of an empty trace.
/// Patterns: `. [] * + ? | () ^ $ \d \w \s`, found anywhere in the name as recorded or as
/// displayed. `#` begins a comment line. Full text: docs/trace-rules.md.
namespace lockstep {

struct RuleViolation {
  std::uint32_t line = 0;  ///< of the rule, from 1
  std::string rule;        ///< as written
  std::string message;     ///< for people; names index and stream
  /// The entry that broke it, as its position in the view; nothing when something is missing, be it
  /// what the rule names as its place.
  std::optional<std::uint64_t> index;
  std::optional<std::uint32_t> stream;
};

class LOCKSTEP_API TraceRules {
 public:
  /// \throws Error kInvalidFile naming `where` and line, and what was expected there.
  static TraceRules parse(std::string_view text, std::string_view where = "rules");
  /// \throws also kNotFound, kInputOutput.
  static TraceRules read(const std::filesystem::path& path);

  TraceRules(TraceRules&&) noexcept;
  TraceRules& operator=(TraceRules&&) noexcept;
  ~TraceRules();

  std::size_t size() const noexcept;
  /// Violations in the order of the rules, each rule's in the order of the trace; at most 100 of
  /// one rule are listed, the last of which says how many more there are. Rules see every kind of
  /// entry; `options` says of which view `index` counts. \throws Error as view() does.
  std::vector<RuleViolation> check(const Trace& trace, const ViewOptions& options = {}) const;

 private:
  struct Impl;
  explicit TraceRules(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
