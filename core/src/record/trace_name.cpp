// SPDX-License-Identifier: Apache-2.0
#include "src/record/trace_name.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>

namespace lockstep::record {

namespace {

struct NameParts {
  std::string stem;
  std::string extension;
};

NameParts split_name(const std::filesystem::path& base) {
  NameParts parts{base.filename().string(), {}};
  for (const char* known : {".jsonl.zst", ".jsonl"}) {
    if (parts.stem.ends_with(known)) {
      parts.extension = known;
      break;
    }
  }
  if (parts.extension.empty()) parts.extension = base.extension().string();
  parts.stem.resize(parts.stem.size() - parts.extension.size());
  return parts;
}

/// Takes `before` and the digits behind it from the front of `text`. False when they are not there.
bool take_number(std::string_view& text, std::string_view before) {
  if (!text.starts_with(before)) return false;
  const std::string_view rest = text.substr(before.size());
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0) return false;
  text = rest.substr(digits);
  return true;
}

bool is_name_of(std::string_view name, const NameParts& base) {
  if (!name.starts_with(base.stem)) return false;
  name.remove_prefix(base.stem.size());
  take_number(name, ".rank");
  // Not the digits of an extension: out.1 is no process of out.
  if (std::string_view image = name; take_number(image, ".") && take_number(image, ".")) {
    name = image;
  }
  return name == base.extension;
}

}  // namespace

std::filesystem::path trace_path(const std::filesystem::path& base, std::int64_t rank, bool first,
                                 std::int64_t pid, std::uint32_t image) {
  auto [name, extension] = split_name(base);
  if (rank >= 0) name += ".rank" + std::to_string(rank);
  if (!first) name += "." + std::to_string(pid) + "." + std::to_string(image);
  return base.parent_path() / (name + extension);
}

std::filesystem::path existing_trace(const std::filesystem::path& base) {
  const NameParts parts = split_name(base);
  std::filesystem::path found;
  // A folder that may be written to and not be listed: no file is replaced there either, as every
  // one is made exclusively.
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(base, error))) return base;
  for (std::filesystem::directory_iterator entry(base.parent_path(), error), end;
       !error && entry != end; entry.increment(error)) {
    if (!is_name_of(entry->path().filename().native(), parts)) continue;
    if (found.empty() || entry->path() < found) found = entry->path();
  }
  return found;
}

std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::string> command;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', begin), bytes.size());
    command.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return command;
}

}  // namespace lockstep::record
