// SPDX-License-Identifier: Apache-2.0
#include "cache_bytes.h"

#include <atomic>
#include <fstream>
#include <system_error>
#include <unistd.h>

// Inline: the plugin then needs no library beside the standard ones.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep::gpu {

std::string sealed(std::string_view magic, std::string_view body) {
  std::string bytes(magic);
  put_number(bytes, XXH3_64bits(body.data(), body.size()));
  bytes += body;
  return bytes;
}

std::string_view unsealed(std::string_view magic, std::string_view bytes) {
  if (bytes.size() < magic.size() + 8 || !bytes.starts_with(magic)) return {};
  const std::string_view body = bytes.substr(magic.size() + 8);
  std::uint64_t stored = 0;
  std::memcpy(&stored, bytes.data() + magic.size(), sizeof stored);
  return stored == XXH3_64bits(body.data(), body.size()) ? body : std::string_view{};
}

std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  char block[16384];
  // A folder opens and cannot be read: where stream iterators would throw, read() leaves a mark.
  while (file.read(block, sizeof block), file.gcount() > 0) {
    bytes.append(block, static_cast<std::size_t>(file.gcount()));
  }
  return file.bad() ? std::string() : bytes;
}

bool write_aside(const std::filesystem::path& target, std::string_view bytes,
                 std::string* problem) {
  static std::atomic<unsigned> counter{0};
  std::filesystem::path aside = target;
  aside += ".tmp." + std::to_string(getpid()) + "." + std::to_string(counter.fetch_add(1));
  std::ofstream file(aside, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code code;
  if (file.good()) {
    std::filesystem::rename(aside, target, code);
    if (!code) return true;
  }
  *problem = "cannot write " + target.string() + (code ? ": " + code.message() : "");
  std::filesystem::remove(aside, code);
  return false;
}

}  // namespace lockstep::gpu
