// SPDX-License-Identifier: Apache-2.0
#include "msgpack.h"

namespace lockstep::hip {
namespace {

constexpr int kDeepest = 32;  // compilers nest five deep

}  // namespace

bool MsgpackReader::damaged() {
  ok_ = false;
  bytes_ = {};
  return false;
}

bool MsgpackReader::take(std::uint64_t count, std::string_view* taken) {
  if (!ok_ || count > bytes_.size()) return damaged();
  *taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return true;
}

bool MsgpackReader::byte(std::uint8_t* value) {
  std::string_view raw;
  if (!take(1, &raw)) return false;
  *value = static_cast<std::uint8_t>(raw[0]);
  return true;
}

bool MsgpackReader::big_endian(int bytes, std::uint64_t* value) {
  std::string_view raw;
  if (!take(static_cast<std::uint64_t>(bytes), &raw)) return false;
  *value = 0;
  for (const char c : raw) *value = *value << 8U | static_cast<std::uint8_t>(c);
  return true;
}

bool MsgpackReader::map(std::uint32_t* pairs) {
  std::uint8_t head = 0;
  std::uint64_t count = 0;
  if (!byte(&head)) return false;
  if ((head & 0xF0U) == 0x80U) {
    count = head & 0x0FU;
  } else if (head == 0xDE || head == 0xDF) {
    if (!big_endian(head == 0xDE ? 2 : 4, &count)) return false;
  } else {
    return damaged();
  }
  *pairs = static_cast<std::uint32_t>(count);
  return true;
}

bool MsgpackReader::array(std::uint32_t* elements) {
  std::uint8_t head = 0;
  std::uint64_t count = 0;
  if (!byte(&head)) return false;
  if ((head & 0xF0U) == 0x90U) {
    count = head & 0x0FU;
  } else if (head == 0xDC || head == 0xDD) {
    if (!big_endian(head == 0xDC ? 2 : 4, &count)) return false;
  } else {
    return damaged();
  }
  *elements = static_cast<std::uint32_t>(count);
  return true;
}

bool MsgpackReader::text(std::string_view* value) {
  std::uint8_t head = 0;
  std::uint64_t length = 0;
  if (!byte(&head)) return false;
  if ((head & 0xE0U) == 0xA0U) {
    length = head & 0x1FU;
  } else if (head >= 0xD9 && head <= 0xDB) {
    if (!big_endian(1 << (head - 0xD9), &length)) return false;
  } else {
    return damaged();
  }
  return take(length, value);
}

bool MsgpackReader::number(std::uint64_t* value) {
  std::uint8_t head = 0;
  if (!byte(&head)) return false;
  if (head < 0x80) {
    *value = head;
    return true;
  }
  if (head >= 0xCC && head <= 0xCF) return big_endian(1 << (head - 0xCC), value);
  if (head >= 0xD0 && head <= 0xD3) {  // a signed form of a number that is not negative
    const int bytes = 1 << (head - 0xD0);
    if (!big_endian(bytes, value)) return false;
    if ((*value >> (8 * bytes - 1) & 1U) == 0) return true;
  }
  return damaged();
}

bool MsgpackReader::skip(int depth) {
  if (depth > kDeepest || !ok_ || bytes_.empty()) return damaged();
  const auto head = static_cast<std::uint8_t>(bytes_.front());
  std::uint32_t count = 0;
  std::string_view ignored;
  const bool is_map = (head & 0xF0U) == 0x80U || head == 0xDE || head == 0xDF;
  const bool is_array = (head & 0xF0U) == 0x90U || head == 0xDC || head == 0xDD;
  if (is_map || is_array) {
    if (!(is_map ? map(&count) : array(&count))) return false;
    const std::uint64_t values = std::uint64_t{count} * (is_map ? 2 : 1);
    for (std::uint64_t index = 0; index < values; ++index) {
      if (!skip(depth + 1)) return false;
    }
    return true;
  }
  if ((head & 0xE0U) == 0xA0U || (head >= 0xD9 && head <= 0xDB)) return text(&ignored);
  std::uint8_t used = 0;
  byte(&used);
  std::uint64_t length = 0;
  if (head < 0x80 || head >= 0xE0) return true;                   // a small number
  if (head == 0xC0 || head == 0xC2 || head == 0xC3) return true;  // nil, false, true
  if (head >= 0xC4 && head <= 0xC6) {                             // bytes
    return big_endian(1 << (head - 0xC4), &length) && take(length, &ignored);
  }
  if (head >= 0xC7 && head <= 0xC9) {  // an extension: length, type, bytes
    return big_endian(1 << (head - 0xC7), &length) && take(length + 1, &ignored);
  }
  if (head == 0xCA || head == 0xCB) return take(head == 0xCA ? 4 : 8, &ignored);
  if (head >= 0xCC && head <= 0xD3) return take(std::uint64_t{1} << ((head - 0xCC) & 3), &ignored);
  if (head >= 0xD4 && head <= 0xD8) {  // an extension of 1, 2, 4, 8 or 16 bytes
    return take((std::uint64_t{1} << (head - 0xD4)) + 1, &ignored);
  }
  return damaged();  // 0xC1 is never used
}

}  // namespace lockstep::hip
