// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>
#include <lockstep/trace_diff.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Normalisers: what to strip from entries before they are compared, because it changes from build
/// to build or from vendor to vendor without meaning anything. Files keep the raw names.
///
/// Each is pure (its result depends on the entry alone) and idempotent (applied twice it does what
/// it does once), and may be used from several threads.
namespace lockstep {

struct NormaliserInfo {
  std::string_view name;         ///< as `--normalise` and find_normaliser() take it
  std::string_view description;  ///< one line
};

/// The built-in ones, in the order in which they should be applied:
/// `build-ids` (anonymous namespaces, static kernels, internal linkage), `lambdas` (ordinals of
/// lambdas and unnamed types), `jit` (suffixes of kernels compiled at run time), `vendor` (names of
/// vendors' types and calls).
LOCKSTEP_API const std::vector<NormaliserInfo>& builtin_normalisers();

/// \throws Error kInvalidArgument that lists the names there are.
LOCKSTEP_API Normaliser find_normaliser(std::string_view name);

/// All built-in ones in order.
LOCKSTEP_API std::vector<Normaliser> all_normalisers();

/// Renames kernels. Keys are names as recorded or as display_name() shows them; a new name that is
/// a key itself is followed. \throws Error kInvalidArgument when names go round in a circle.
LOCKSTEP_API Normaliser rename_normaliser(const std::map<std::string, std::string>& names);

/// Rename map from text: `old name => new name` a line, `#` begins a comment line.
/// \throws Error kInvalidFile naming `where` and line.
LOCKSTEP_API std::map<std::string, std::string> parse_rename_map(std::string_view text,
                                                                 std::string_view where);

}  // namespace lockstep
