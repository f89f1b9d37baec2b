// SPDX-License-Identifier: Apache-2.0
#include "src/trace/json_text.h"

#include <array>
#include <cstring>

namespace lockstep {
namespace {

constexpr std::array<char, 16> kHexDigits = {'0', '1', '2', '3', '4', '5', '6', '7',
                                             '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};

constexpr std::array<bool, 256> make_needs_escape() {
  std::array<bool, 256> table{};
  for (std::size_t i = 0; i < 0x20; ++i) table[i] = true;
  table['"'] = true;
  table['\\'] = true;
  return table;
}
constexpr std::array<bool, 256> kNeedsEscape = make_needs_escape();

void append_escape(std::string& out, unsigned char byte) {
  switch (byte) {
    case '"':
      out.append("\\\"");
      return;
    case '\\':
      out.append("\\\\");
      return;
    case '\b':
      out.append("\\b");
      return;
    case '\f':
      out.append("\\f");
      return;
    case '\n':
      out.append("\\n");
      return;
    case '\r':
      out.append("\\r");
      return;
    case '\t':
      out.append("\\t");
      return;
    default:
      out.append("\\u00");
      out.push_back(kHexDigits[byte >> 4]);
      out.push_back(kHexDigits[byte & 15u]);
      return;
  }
}

/// Length of the well-formed sequence of several bytes at `text`, 0 when there is none.
std::size_t sequence_length(const unsigned char* text, std::size_t left) noexcept {
  const auto tail = [&](std::size_t i) { return (text[i] & 0xc0u) == 0x80u; };
  const unsigned char first = text[0];
  if (first >= 0xc2 && first <= 0xdf) return left >= 2 && tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (left < 3 || !tail(1) || !tail(2)) return 0;
    if (first == 0xe0 && text[1] < 0xa0) return 0;  // overlong
    if (first == 0xed && text[1] > 0x9f) return 0;  // surrogate
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (left < 4 || !tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xf0 && text[1] < 0x90) return 0;  // overlong
    if (first == 0xf4 && text[1] > 0x8f) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  constexpr std::uint64_t kHighBits = 0x8080808080808080u;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t i = 0;
  while (i < text.size()) {
    std::uint64_t eight;
    while (i + sizeof(eight) <= text.size()) {
      std::memcpy(&eight, bytes + i, sizeof(eight));
      if ((eight & kHighBits) != 0) break;
      i += sizeof(eight);
    }
    while (i < text.size() && bytes[i] < 0x80) ++i;
    if (i == text.size()) return true;
    const std::size_t length = sequence_length(bytes + i, text.size() - i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (!kNeedsEscape[byte]) continue;
    out.append(text.data() + plain, i - plain);
    append_escape(out, byte);
    plain = i + 1;
  }
  out.append(text.data() + plain, text.size() - plain);
  out.push_back('"');
}

void append_text(std::string& out, std::string_view text) {
  if (is_utf8(text)) {
    append_quoted(out, text);
    return;
  }
  out.append("{\"hex\":\"");
  append_hex_bytes(out, text.data(), text.size());
  out.append("\"}");
}

void append_hex_bytes(std::string& out, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < size; ++i) {
    out.push_back(kHexDigits[bytes[i] >> 4]);
    out.push_back(kHexDigits[bytes[i] & 15u]);
  }
}

void append_hex64(std::string& out, std::uint64_t value) {
  std::array<char, 16> digits;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    digits[i] = kHexDigits[(value >> (60 - 4 * i)) & 15u];
  }
  out.append(digits.data(), digits.size());
}

}  // namespace lockstep
