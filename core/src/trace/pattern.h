// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Regular expressions in linear time and without recursion over the text, so that no name in a
/// trace and no rule can make a program hang or overflow its stack.
namespace lockstep {

/// Characters, `.`, `[a-z]`, `[^a-z]`, `\d \w \s`, `* + ?`, `|`, `( )`, `^`, `$`, and `\` before
/// anything else to mean itself. Works on bytes.
class Pattern {
 public:
  /// \throws Error kInvalidArgument that says what is wrong and where.
  explicit Pattern(const std::string& text);

  /// True when some part of `text` matches.
  bool search(std::string_view text) const;
  /// True when the name as recorded or as displayed has a part that matches.
  bool matches_name(const std::string& name) const;
  const std::string& text() const noexcept { return text_; }

 private:
  friend class PatternParser;
  using Bytes = std::bitset<256>;
  enum class Op : std::uint8_t { kBytes, kSplit, kBegin, kEnd, kMatch };
  struct State {
    Op op = Op::kBytes;
    std::uint32_t next = 0, other = 0;
    Bytes bytes = {};
  };

  std::string text_;
  std::vector<State> states_;
  std::uint32_t start_ = 0;
};

}  // namespace lockstep
