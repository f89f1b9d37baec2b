// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Writes the JSON objects of `--json`. Only writing: files are read by the library.
namespace lockstep::cli {

/// A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

/// One object, built member by member in order.
class JsonObject {
 public:
  JsonObject() = default;
  JsonObject& text(std::string_view key, std::string_view value) {
    return json(key, json_string(value));
  }
  template <std::integral Number>
  JsonObject& number(std::string_view key, Number value) {
    return json(key, std::to_string(value));
  }
  JsonObject& boolean(std::string_view key, bool value) {
    return json(key, value ? "true" : "false");
  }
  JsonObject& texts(std::string_view key, const std::vector<std::string>& values);
  /// `value` is JSON text; an empty one is null.
  JsonObject& json(std::string_view key, std::string_view value);
  /// The members of an object that is already text.
  JsonObject& members_of(std::string_view object);
  JsonObject& array(std::string_view key, const std::vector<std::string>& values);

  std::string str() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace lockstep::cli
