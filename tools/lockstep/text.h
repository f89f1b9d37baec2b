// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Small text helpers of the command line.
namespace lockstep::cli {

/// A terminal must not obey what a file or plugin says: control characters are shown as `\x1b`.
std::string printable(std::string_view text, bool keep_lines = false);
/// Columns a text takes: characters of UTF-8, not bytes.
std::size_t columns(std::string_view text);
/// The text with spaces behind it up to `width` columns.
std::string padded(std::string_view text, std::size_t width);
/// "1 entry", "2 entries".
std::string counted(std::uint64_t count, std::string_view one, std::string_view many);
/// Bytes for people: "139 GiB".
std::string bytes_text(std::uint64_t bytes);
std::vector<std::string> split(std::string_view text, char separator);
/// A whole unsigned number; false when `text` is anything else.
bool parse_number(std::string_view text, std::uint64_t& value);
/// `; did you mean 'x'?` for the candidate that is nearest by edits, "" when none is near.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& candidates);

}  // namespace lockstep::cli
