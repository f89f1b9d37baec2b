// SPDX-License-Identifier: Apache-2.0
#include "tokenizer.h"

#include <algorithm>
#include <string>

namespace lockstep::hostjit {
namespace {

bool is_identifier_start(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || byte >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_identifier_part(char c) { return is_identifier_start(c) || is_digit(c); }

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) step();
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void add(TokenKind kind, std::size_t begin) {
    tokens_.push_back({kind, begin, at_ - begin, source_.substr(begin, at_ - begin)});
  }

  void step() {
    const char c = peek();
    if (c == '\n') {
      line_start_ = true;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
    } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 2 : 3;
    } else if (c == '/' && peek(1) == '/') {
      skip_line();
    } else if (c == '/' && peek(1) == '*') {
      skip_block_comment();
    } else if (c == '#' && line_start_) {
      const std::size_t begin = at_;
      skip_directive();
      add(TokenKind::kDirective, begin);
    } else {
      line_start_ = false;
      token(c);
    }
  }

  void token(char c) {
    const std::size_t begin = at_;
    if (is_identifier_start(c)) {
      while (is_identifier_part(peek())) ++at_;
      const std::string_view word = source_.substr(begin, at_ - begin);
      if (peek() == '"' &&
          (word == "R" || word == "u8R" || word == "uR" || word == "UR" || word == "LR")) {
        raw_string();
        add(TokenKind::kLiteral, begin);
      } else if ((peek() == '"' || peek() == '\'') &&
                 (word == "u8" || word == "u" || word == "U" || word == "L")) {
        quoted(peek());
        add(TokenKind::kLiteral, begin);
      } else {
        add(TokenKind::kIdentifier, begin);
      }
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
      add(TokenKind::kNumber, begin);
    } else if (c == '"' || c == '\'') {
      quoted(c);
      add(TokenKind::kLiteral, begin);
    } else {
      ++at_;
      add(TokenKind::kPunctuator, begin);
    }
  }

  void number() {
    while (at_ < source_.size()) {
      const char c = peek();
      const bool exponent = c == 'e' || c == 'E' || c == 'p' || c == 'P';
      if (exponent && (peek(1) == '+' || peek(1) == '-')) {
        at_ += 2;
      } else if (is_identifier_part(c) || c == '.' || (c == '\'' && is_identifier_part(peek(1)))) {
        ++at_;
      } else {
        break;
      }
    }
  }

  void quoted(char quote) {
    ++at_;
    while (at_ < source_.size() && peek() != quote && peek() != '\n') {
      at_ += peek() == '\\' && at_ + 1 < source_.size() ? 2 : 1;
    }
    if (peek() == quote) ++at_;
  }

  void raw_string() {
    const std::size_t open = source_.find('(', at_);
    if (open == std::string_view::npos) {
      at_ = source_.size();
      return;
    }
    std::string closing(1, ')');
    closing.append(source_.substr(at_ + 1, open - at_ - 1));
    closing += '"';
    const std::size_t close = source_.find(closing, open);
    at_ = close == std::string_view::npos ? source_.size() : close + closing.size();
  }

  void skip_line() {
    while (at_ < source_.size() && peek() != '\n') {
      at_ += peek() == '\\' && at_ + 1 < source_.size() ? 2 : 1;
    }
  }

  void skip_block_comment() {
    const std::size_t close = source_.find("*/", at_ + 2);
    at_ = close == std::string_view::npos ? source_.size() : close + 2;
  }

  void skip_directive() {
    while (at_ < source_.size() && peek() != '\n') {
      if (peek() == '/' && peek(1) == '*') {
        skip_block_comment();
      } else if (peek() == '/' && peek(1) == '/') {
        skip_line();
      } else if (peek() == '\\' && peek(1) == '\r' && peek(2) == '\n') {
        at_ += 3;
      } else {
        at_ += peek() == '\\' && at_ + 1 < source_.size() ? 2 : 1;
      }
    }
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Tokenizer(source).run(); }

Position position_of(std::string_view source, std::size_t offset) {
  const std::string_view before = source.substr(0, offset);
  const auto line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const std::size_t newline = before.rfind('\n');
  return {line, newline == std::string_view::npos ? offset + 1 : offset - newline};
}

}  // namespace lockstep::hostjit
