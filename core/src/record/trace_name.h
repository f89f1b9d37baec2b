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

/// The command line of this process.
std::vector<std::string> own_command();

}  // namespace lockstep::record
