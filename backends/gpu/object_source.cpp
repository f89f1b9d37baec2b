// SPDX-License-Identifier: Apache-2.0
#include "object_source.h"

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "cache_bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep::gpu {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kMagic = "lockstep-object-1\n";

void put_texts(std::string& to, const std::vector<std::string>& texts) {
  put_number(to, texts.size());
  for (const std::string& text : texts) put_text(to, text);
}
void put_pairs(std::string& to, const Pairs& pairs) {
  put_number(to, pairs.size());
  for (const auto& [first, second] : pairs) {
    put_text(to, first);
    put_text(to, second);
  }
}

std::vector<std::string> take_texts(ByteReader& reader) {
  std::vector<std::string> texts;
  const std::uint64_t count = reader.number();
  for (std::uint64_t index = 0; index < count && reader.ok(); ++index) {
    texts.emplace_back(reader.text());
  }
  return texts;
}
Pairs take_pairs(ByteReader& reader) {
  Pairs pairs;
  const std::uint64_t count = reader.number();
  for (std::uint64_t index = 0; index < count && reader.ok(); ++index) {
    const std::string_view first = reader.text();
    pairs.emplace_back(first, reader.text());
  }
  return pairs;
}

}  // namespace

std::string object_file_name(std::string_view object) {
  char name[40];
  std::snprintf(name, sizeof name, "object-%016llx.source",
                static_cast<unsigned long long>(XXH3_64bits(object.data(), object.size())));
  return name;
}

bool write_object_source(const std::string& folder, std::string_view object,
                         const ObjectSource& source, std::string* problem) {
  if (folder.empty()) {
    *problem = "there is no cache folder: set LOCKSTEP_CACHE_DIR";
    return false;
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    *problem = "cannot make " + folder + ": " + failed.message();
    return false;
  }
  std::string body;
  put_text(body, source.source_name);
  put_text(body, source.source);
  put_texts(body, source.options);
  put_texts(body, source.kernels);
  put_pairs(body, source.headers);
  put_pairs(body, source.lowered_names);
  return write_aside(std::filesystem::path(folder) / object_file_name(object), sealed(kMagic, body),
                     problem);
}

std::optional<ObjectSource> find_object_source(const std::string& folder, std::string_view object) {
  const std::string bytes = read_whole(std::filesystem::path(folder) / object_file_name(object));
  const std::string_view body = unsealed(kMagic, bytes);
  if (body.empty()) return std::nullopt;
  ByteReader reader(body);
  ObjectSource found;
  found.source_name = reader.text();
  found.source = reader.text();
  found.options = take_texts(reader);
  found.kernels = take_texts(reader);
  found.headers = take_pairs(reader);
  found.lowered_names = take_pairs(reader);
  if (!reader.complete()) return std::nullopt;
  return found;
}

}  // namespace lockstep::gpu
