// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// What a backend is known not to do. A waiver that expired, or that matches no case, is a problem:
/// lists of excuses must not outlive their reasons.
namespace conformance {

/// What a waiver may be limited to.
struct WaiverTarget {
  std::string backend;
  std::string driver;  ///< "13.0", "6.4.3": dotted numbers, compared number by number
  bool simulated = false;
};

struct Waiver {
  std::string pattern;  ///< glob over case names
  std::string variant;  ///< "", "eager", "graph" or "thread"
  std::string kind;     ///< "unsupported" (the call says so) or "expected_failure"
  std::string reason;
  std::string link;  ///< where the reason is tracked or documented
  std::string backend;
  std::string versions;  ///< driver versions, e.g. ">=5.2,<5.3"; "" = all
  std::string expires;   ///< YYYY-MM-DD, "" = never
  bool simulated_only = false;
  std::string where;  ///< file:line, for messages
  bool used = false;
};

class Waivers {
 public:
  Waivers() = default;
  /// Reads a TOML file of [[waiver]] tables. \throws lockstep::Error (kInvalidFile) naming file and
  /// line for anything unknown, missing or malformed.
  static Waivers load(const std::filesystem::path& path);

  /// The first waiver for this case, marked as used; nullptr when there is none.
  const Waiver* find(const WaiverTarget& target, std::string_view name, std::string_view variant);
  /// Waivers for this target that expired (by the current date), or that matched nothing.
  std::vector<std::string> problems(const WaiverTarget& target) const;
  const std::vector<Waiver>& all() const { return waivers_; }

 private:
  std::vector<Waiver> waivers_;
};

/// Whether dotted version `version` lies in a comma-separated list of conditions like ">=5.2".
/// \throws lockstep::Error (kInvalidFile) for a malformed condition.
bool version_in_range(std::string_view version, std::string_view conditions);

}  // namespace conformance
