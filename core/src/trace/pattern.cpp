// SPDX-License-Identifier: Apache-2.0
#include "src/trace/pattern.h"

#include <lockstep/error.h>
#include <lockstep/trace_entry.h>

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr std::size_t kLongestPattern = 4096;
constexpr int kDeepestGroup = 200;

}  // namespace

/// Builds the automaton back to front is awkward with alternatives, so that pieces carry the list
/// of their open ends until what follows is known.
class PatternParser {
 public:
  explicit PatternParser(Pattern& pattern) : pattern_(pattern), text_(pattern.text_) {}

  void parse() {
    if (text_.size() > kLongestPattern) fail("is longer than 4096 bytes");
    Piece whole = alternatives(0);
    if (at_ != text_.size()) fail("has a ')' without its '('");
    const std::uint32_t match = add({Pattern::Op::kMatch});
    connect(whole, match);
    pattern_.start_ = whole.start;
  }

 private:
  /// An open end: state number times two, plus one for its `other` arrow.
  using Ends = std::vector<std::uint32_t>;
  struct Piece {
    std::uint32_t start = 0;
    Ends ends;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the pattern \"{}\" {} (at character {})", text_, what, at_ + 1));
  }

  std::uint32_t add(const Pattern::State& state) {
    pattern_.states_.push_back(state);
    return static_cast<std::uint32_t>(pattern_.states_.size() - 1);
  }

  void connect(const Piece& piece, std::uint32_t to) {
    for (const std::uint32_t end : piece.ends) {
      Pattern::State& state = pattern_.states_[end / 2];
      (end % 2 == 0 ? state.next : state.other) = to;
    }
  }

  Piece single(const Pattern::State& state) {
    const std::uint32_t number = add(state);
    return Piece{number, {2 * number}};
  }

  /// A state that goes nowhere else: the empty expression.
  Piece empty() {
    const std::uint32_t number = add({Pattern::Op::kSplit});
    return Piece{number, {2 * number, 2 * number + 1}};
  }

  Piece alternatives(int depth) {
    if (depth > kDeepestGroup) fail("nests too deep");
    Piece result = sequence(depth);
    while (at_ < text_.size() && text_[at_] == '|') {
      ++at_;
      const Piece other = sequence(depth);
      const std::uint32_t split = add({Pattern::Op::kSplit, result.start, other.start, {}});
      result.start = split;
      result.ends.insert(result.ends.end(), other.ends.begin(), other.ends.end());
    }
    return result;
  }

  Piece sequence(int depth) {
    Piece result;
    bool first = true;
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      Piece piece = repeated(depth);
      if (first) {
        result = std::move(piece);
        first = false;
        continue;
      }
      connect(result, piece.start);
      result.ends = std::move(piece.ends);
    }
    return first ? empty() : result;
  }

  Piece repeated(int depth) {
    Piece piece = atom(depth);
    while (at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '?')) {
      const char sign = text_[at_++];
      const std::uint32_t split = add({Pattern::Op::kSplit, piece.start, 0, {}});
      if (sign == '?') {
        piece.start = split;
        piece.ends.push_back(2 * split + 1);
        continue;
      }
      connect(piece, split);
      if (sign == '*') piece.start = split;
      piece.ends = {2 * split + 1};
    }
    return piece;
  }

  Piece atom(int depth) {
    const char character = text_[at_++];
    Pattern::State state{Pattern::Op::kBytes};
    switch (character) {
      case '(': {
        if (text_.compare(at_, 2, "?:") == 0) at_ += 2;
        Piece group = alternatives(depth + 1);
        if (at_ >= text_.size()) fail("has a '(' without its ')'");
        ++at_;
        return group;
      }
      case '.':
        state.bytes.set();
        return single(state);
      case '[':
        state.bytes = set_of_bytes();
        return single(state);
      case '^':
        return single({Pattern::Op::kBegin});
      case '$':
        return single({Pattern::Op::kEnd});
      case '\\':
        state.bytes = escaped();
        return single(state);
      case '*':
      case '+':
      case '?':
        --at_;
        fail("has nothing to repeat");
      case '{':
        --at_;
        fail("counts repetitions with {}, which is not supported; write \\{ for the character");
      default:
        state.bytes.set(static_cast<unsigned char>(character));
        return single(state);
    }
  }

  Pattern::Bytes escaped() {
    if (at_ >= text_.size()) fail("ends with a '\\'");
    const char character = text_[at_++];
    Pattern::Bytes bytes;
    const auto range = [&](int from, int to) {
      for (int byte = from; byte <= to; ++byte) bytes.set(static_cast<std::size_t>(byte));
    };
    switch (character) {
      case 'd':
        range('0', '9');
        break;
      case 'w':
        range('0', '9');
        range('a', 'z');
        range('A', 'Z');
        bytes.set('_');
        break;
      case 's':
        range(9, 13);
        bytes.set(' ');
        break;
      default: {
        const bool word = (character >= 'a' && character <= 'z') ||
                          (character >= 'A' && character <= 'Z') ||
                          (character >= '0' && character <= '9');
        if (word) fail(fmt::format("has \\{}, which is not supported", character));
        bytes.set(static_cast<unsigned char>(character));
        break;
      }
    }
    return bytes;
  }

  Pattern::Bytes set_of_bytes() {
    Pattern::Bytes bytes;
    const bool negated = at_ < text_.size() && text_[at_] == '^';
    if (negated) ++at_;
    bool first = true;
    while (true) {
      if (at_ >= text_.size()) fail("has a '[' without its ']'");
      const char character = text_[at_++];
      if (character == ']' && !first) break;
      first = false;
      if (character == '\\') {
        bytes |= escaped();
        continue;
      }
      const auto from = static_cast<unsigned char>(character);
      unsigned char to = from;
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        to = static_cast<unsigned char>(text_[at_ + 1]);
        at_ += 2;
        if (to < from) fail("has a range that runs backwards");
      }
      for (int byte = from; byte <= to; ++byte) bytes.set(static_cast<std::size_t>(byte));
    }
    return negated ? ~bytes : bytes;
  }

  Pattern& pattern_;
  const std::string& text_;
  std::size_t at_ = 0;
};

Pattern::Pattern(const std::string& text) : text_(text) { PatternParser(*this).parse(); }

bool Pattern::search(std::string_view text) const {
  std::vector<std::uint32_t> now, next, open;
  std::vector<std::size_t> added(states_.size(), 0);  // position + 1 at which a state was added
  bool matched = false;
  const auto add = [&](std::uint32_t state, std::size_t position, auto& into) {
    open.push_back(state);
    while (!open.empty()) {
      const std::uint32_t number = open.back();
      open.pop_back();
      if (added[number] == position + 1) continue;
      added[number] = position + 1;
      const State& at = states_[number];
      switch (at.op) {
        case Op::kMatch:
          matched = true;
          break;
        case Op::kBytes:
          into.push_back(number);
          break;
        case Op::kSplit:
          open.push_back(at.next);
          open.push_back(at.other);
          break;
        case Op::kBegin:
          if (position == 0) open.push_back(at.next);
          break;
        case Op::kEnd:
          if (position == text.size()) open.push_back(at.next);
          break;
      }
    }
  };
  for (std::size_t position = 0;; ++position) {
    add(start_, position, now);  // a match may begin anywhere
    if (matched) return true;
    if (position == text.size()) return false;
    const auto byte = static_cast<unsigned char>(text[position]);
    next.clear();
    for (const std::uint32_t number : now) {
      if (states_[number].bytes.test(byte)) add(states_[number].next, position + 1, next);
    }
    if (matched) return true;
    now.swap(next);
  }
}

bool Pattern::matches_name(const std::string& name) const {
  return search(name) || search(display_name(name));
}

}  // namespace lockstep
