// SPDX-License-Identifier: Apache-2.0
#pragma once

// Splits CUDA C++ into tokens, exactly enough to find declarations and to keep every line and
// column: comments, literals (raw strings too), line continuations and directives are understood.

#include <cstddef>
#include <string_view>
#include <vector>

namespace lockstep::hostjit {

enum class TokenKind {
  kIdentifier,
  kNumber,
  kLiteral,     // string or character
  kPunctuator,  // always a single character
  kDirective,   // a whole preprocessor line, continuations included
};

struct Token {
  TokenKind kind;
  std::size_t offset;  // into the source
  std::size_t length;
  std::string_view text;

  bool is(std::string_view other) const { return text == other; }
  std::size_t end() const { return offset + length; }
};

// The tokens view `source`, which has to outlive them.
std::vector<Token> tokenize(std::string_view source);

struct Position {
  std::size_t line;    // from 1
  std::size_t column;  // from 1, in bytes
};
Position position_of(std::string_view source, std::size_t offset);

}  // namespace lockstep::hostjit
