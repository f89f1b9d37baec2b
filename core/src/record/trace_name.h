// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// \file
/// Names of trace files, and what a process says of itself.
namespace lockstep::record {

/// `base` for the first process image; `out.<pid>.<n>.jsonl` for others; `out.rank3.jsonl` and
/// `out.rank3.<pid>.<n>.jsonl` for those with a rank (not negative).
std::filesystem::path trace_path(const std::filesystem::path& base, std::int64_t rank, bool first,
                                 std::int64_t pid, std::uint32_t image);

/// The first file, by name, that recording to `base` may want to make: `base`, or one that
/// trace_path() makes of it for any rank, process and image. Empty when none is to be seen.
std::filesystem::path existing_trace(const std::filesystem::path& base);

/// The command line of this process.
std::vector<std::string> own_command();

}  // namespace lockstep::record
