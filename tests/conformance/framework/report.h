// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "framework/runner.h"

namespace conformance {

/// The report as JSON (schemas/conformance.schema.json).
std::string to_json(const Report& report);
/// \throws lockstep::Error (kInvalidFile) naming the file and what is wrong.
Report load_report(const std::filesystem::path& path);
/// A few lines for people: counts, and every result that is not a pass.
std::string to_text(const Report& report);

struct Comparison {
  bool equal = true;
  std::string text;  ///< case by case, what differs
};
/// Two reports case by case: same cases, same outcomes.
Comparison compare(const Report& left, const Report& right);

}  // namespace conformance
