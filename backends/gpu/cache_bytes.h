// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

// How the files of the compile cache are put together: numbers of 64 bits, little endian, and texts
// with their length before them.
namespace lockstep::gpu {

inline void put_number(std::string& to, std::uint64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof bytes);
}
inline void put_text(std::string& to, std::string_view text) {
  put_number(to, text.size());
  to.append(text);
}

// Reads them back; a file that ends too early gives empty values, and complete() is false.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view raw = take(sizeof value);
    if (ok_) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(number()); }
  bool complete() const { return ok_ && bytes_.empty(); }
  bool ok() const { return ok_; }

 private:
  std::string_view take(std::uint64_t count) {
    if (!ok_ || count > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view bytes_;
  bool ok_ = true;
};

// magic, XXH3-64 of body, body: what a cache file is.
std::string sealed(std::string_view magic, std::string_view body);
// The body of a sealed file's bytes; empty when the file is another one, or damaged.
std::string_view unsealed(std::string_view magic, std::string_view bytes);
// Reads a whole file; empty when there is none.
std::string read_whole(const std::filesystem::path& path);
// Writes a file beside its place and renames it; false with `problem` set when that fails.
bool write_aside(const std::filesystem::path& target, std::string_view bytes, std::string* problem);

}  // namespace lockstep::gpu
