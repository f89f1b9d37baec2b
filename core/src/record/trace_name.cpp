// SPDX-License-Identifier: Apache-2.0
#include "src/record/trace_name.h"

#include <fstream>
#include <iterator>

namespace lockstep::record {

std::filesystem::path trace_path(const std::filesystem::path& base, std::int64_t rank, bool first,
                                 std::int64_t pid, std::uint32_t image) {
  std::string name = base.filename().string();
  std::string extension;
  for (const char* known : {".jsonl.zst", ".jsonl"}) {
    if (name.ends_with(known)) {
      extension = known;
      break;
    }
  }
  if (extension.empty()) extension = base.extension().string();
  name.resize(name.size() - extension.size());
  if (rank >= 0) name += ".rank" + std::to_string(rank);
  if (!first) name += "." + std::to_string(pid) + "." + std::to_string(image);
  return base.parent_path() / (name + extension);
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
