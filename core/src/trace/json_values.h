// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/trace/trace_decode.h"

/// \file
/// Typed values out of parsed JSON, with errors that name the key. Included by the two files that
/// decode alone: the JSON library takes long to compile.
namespace lockstep {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

static_assert(kLinePadding >= simdjson::SIMDJSON_PADDING);

[[noreturn]] inline void fail(std::string_view key, std::string_view why) {
  throw DecodeError(fmt::format("\"{}\" {}", key, why));
}

/// Sorts `keys`. What stands twice says two things, and neither may be taken.
inline void check_unique(std::vector<std::string_view>& keys) {
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) fail(*twice, "stands twice");
}

inline void check_unique_keys(const object& fields) {
  std::vector<std::string_view> keys;
  keys.reserve(fields.size());
  for (const auto& field : fields) keys.push_back(field.key);
  check_unique(keys);
}

inline std::string raw_json(const element& value) { return simdjson::to_string(value); }

template <typename Integer>
Integer get_integer(const element& value, std::string_view key) {
  if constexpr (std::is_signed_v<Integer>) {
    std::int64_t number = 0;
    if (value.get(number) == simdjson::SUCCESS && number >= std::numeric_limits<Integer>::min() &&
        number <= std::numeric_limits<Integer>::max()) {
      return static_cast<Integer>(number);
    }
  } else {
    std::uint64_t number = 0;
    if (value.get(number) == simdjson::SUCCESS && number <= std::numeric_limits<Integer>::max()) {
      return static_cast<Integer>(number);
    }
  }
  fail(key, fmt::format("must be a whole number from {} to {}", std::numeric_limits<Integer>::min(),
                        std::numeric_limits<Integer>::max()));
}

inline bool get_bool(const element& value, std::string_view key) {
  bool flag = false;
  if (value.get(flag) != simdjson::SUCCESS) fail(key, "must be true or false");
  return flag;
}

inline std::string_view get_string(const element& value, std::string_view key) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) fail(key, "must be a string");
  return text;
}

inline array get_array(const element& value, std::string_view key) {
  array items;
  if (value.get(items) != simdjson::SUCCESS) fail(key, "must be an array");
  return items;
}

inline object get_object(const element& value, std::string_view key) {
  object fields;
  if (value.get(fields) != simdjson::SUCCESS) fail(key, "must be an object");
  return fields;
}

inline int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

inline std::uint64_t get_hash(const element& value, std::string_view key) {
  const std::string_view text = get_string(value, key);
  std::uint64_t hash = 0;
  bool good = text.size() == 16;
  for (const char character : text) {
    const int digit = hex_digit(character);
    if (digit < 0) good = false;
    hash = (hash << 4) | static_cast<std::uint64_t>(digit & 15);
  }
  if (!good) fail(key, "must be 16 hex digits");
  return hash;
}

template <typename Bytes>
void get_hex_bytes(const element& value, std::string_view key, Bytes& into) {
  const std::string_view text = get_string(value, key);
  if (text.size() % 2 != 0) fail(key, "must have two hex digits a byte");
  into.clear();
  into.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) fail(key, "must be hex digits");
    into.push_back(static_cast<typename Bytes::value_type>(16 * high + low));
  }
}

/// Text, or {"hex":"…"} where it is not UTF-8.
inline void get_text(const element& value, std::string_view key, std::string& into) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    into.assign(text);
    return;
  }
  element hex;
  if (value["hex"].get(hex) != simdjson::SUCCESS) fail(key, "must be a string");
  get_hex_bytes(hex, key, into);
}

template <typename Integer>
void get_triple(const element& value, std::string_view key, Integer& x, Integer& y, Integer& z) {
  const array items = get_array(value, key);
  if (items.size() != 3) fail(key, "must have three numbers");
  auto item = items.begin();
  x = get_integer<Integer>(*item, key);
  y = get_integer<Integer>(*++item, key);
  z = get_integer<Integer>(*++item, key);
}

}  // namespace lockstep
