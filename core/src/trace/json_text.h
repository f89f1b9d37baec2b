// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

/// \file
/// Appends pieces of JSON to a string. Written by hand since it runs once an entry.
namespace lockstep {

/// True when every byte belongs to a well-formed UTF-8 sequence (no surrogates, nothing overlong).
bool is_utf8(std::string_view text) noexcept;

/// `"text"` with quotes and escapes. The text must be UTF-8.
void append_quoted(std::string& out, std::string_view text);

/// `"text"`, or `{"hex":"…"}` when the text is not UTF-8, so that no byte is lost.
void append_text(std::string& out, std::string_view text);

/// Lower-case hex digits, two a byte, no quotes.
void append_hex_bytes(std::string& out, const void* data, std::size_t size);

/// 16 hex digits, no quotes.
void append_hex64(std::string& out, std::uint64_t value);

template <typename Integer>
void append_number(std::string& out, Integer value) {
  static_assert(std::is_integral_v<Integer>);
  char digits[24];
  const auto result = std::to_chars(digits, digits + sizeof(digits), value);
  out.append(digits, static_cast<std::size_t>(result.ptr - digits));
}

/// `,"key":` with the comma left out for the first key; the caller passes `,"key":` as a literal.
template <typename Integer>
void append_field(std::string& out, std::string_view comma_key_colon, Integer value) {
  out.append(comma_key_colon);
  append_number(out, value);
}

}  // namespace lockstep
