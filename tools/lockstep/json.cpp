// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <fmt/format.h>

namespace lockstep::cli {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// Bytes of the UTF-8 character at the beginning of `text`; 0 when there is none (also for
/// overlong forms, surrogates and what is beyond U+10FFFF).
std::size_t character_length(std::string_view text) {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (at(i) & 0xc0u) == 0x80u; };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && at(1) < 0xa0;
    const bool surrogate = first == 0xed && at(1) > 0x9f;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && at(1) < 0x90;
    const bool beyond = first == 0xf4 && at(1) > 0x8f;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::string joined(const std::vector<std::string>& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const char first = text.front();
    if (length == 0) {
      result += kReplacement;
    } else if (first == '"' || first == '\\') {
      result += {'\\', first};
    } else if (static_cast<unsigned char>(first) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(first));
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result + '"';
}

JsonObject& JsonObject::members_of(std::string_view object) {
  const std::size_t begin = object.find('{');
  const std::size_t end = object.rfind('}');
  if (begin == std::string_view::npos || end <= begin + 1) return *this;
  if (!members_.empty()) members_ += ',';
  members_ += object.substr(begin + 1, end - begin - 1);
  return *this;
}

JsonObject& JsonObject::texts(std::string_view key, const std::vector<std::string>& values) {
  std::vector<std::string> quoted;
  for (const std::string& value : values) quoted.push_back(json_string(value));
  return json(key, joined(quoted));
}

JsonObject& JsonObject::array(std::string_view key, const std::vector<std::string>& values) {
  return json(key, joined(values));
}

JsonObject& JsonObject::json(std::string_view key, std::string_view value) {
  if (!members_.empty()) members_ += ',';
  members_ += json_string(key);
  members_ += ':';
  members_ += value.empty() ? "null" : value;
  return *this;
}

}  // namespace lockstep::cli
