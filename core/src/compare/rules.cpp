// SPDX-License-Identifier: Apache-2.0
#include "src/compare/rules.h"

#include <lockstep/error.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace lockstep {
namespace {

struct What {
  std::string_view word;
  std::vector<OperationKind> kinds;
  MemcpyKind direction = MemcpyKind::kNone;
};

const std::vector<What>& vocabulary() {
  using K = OperationKind;
  static const std::vector<What> words = {
      {"htod", {K::kMemcpy}, MemcpyKind::kHtoD},
      {"dtoh", {K::kMemcpy}, MemcpyKind::kDtoH},
      {"dtod", {K::kMemcpy}, MemcpyKind::kDtoD},
      {"htoh", {K::kMemcpy}, MemcpyKind::kHtoH},
      {"copy", {K::kMemcpy}},
      {"copies", {K::kMemcpy}},
      {"memcpy", {K::kMemcpy}},
      {"memcpies", {K::kMemcpy}},
      {"set", {K::kMemset}},
      {"memset", {K::kMemset}},
      {"launch", {K::kKernelLaunch}},
      {"launches", {K::kKernelLaunch}},
      {"kernel", {K::kKernelLaunch}},
      {"synchronisation", {K::kSynchronize}},
      {"synchronization", {K::kSynchronize}},
      {"allocation", {K::kAlloc}},
      {"free", {K::kFree}},
      {"event", {K::kEventRecord, K::kEventWait}},
      {"opaque", {K::kOpaque}},
      {"entry", {}},
      {"entries", {}},
  };
  return words;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

class RuleParser {
 public:
  RuleParser(std::string text, std::uint32_t line, std::string_view where)
      : where_(fmt::format("{}:{}", where, line)) {
    rule_.line = line;
    rule_.text = std::move(text);
    split();
  }

  Rule parse() {
    quantity();
    what();
    while (at_ < words_.size()) clause();
    return std::move(rule_);
  }

 private:
  struct Word {
    std::string text;
    bool quoted = false;
  };

  [[noreturn]] void fail(const std::string& message) const {
    ErrorContext context;
    context.where = where_;
    throw Error(ErrorCode::kInvalidFile,
                fmt::format("{}: {} in the rule \"{}\"", where_, message, rule_.text), context);
  }

  void split() {
    const std::string& text = rule_.text;
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] == ' ' || text[i] == '\t') {
        ++i;
        continue;
      }
      Word word;
      if (text[i] == '"') {
        word.quoted = true;
        const std::size_t end = text.find('"', i + 1);
        if (end == std::string::npos) fail("a quote is not closed");
        word.text = text.substr(i + 1, end - i - 1);
        i = end + 1;
      } else {
        const std::size_t end = std::min(text.find_first_of(" \t", i), text.size());
        word.text = text.substr(i, end - i);
        i = end;
      }
      words_.push_back(std::move(word));
    }
  }

  /// Goes past the next word when it is this one.
  bool take(std::string_view expected) {
    if (at_ >= words_.size() || words_[at_].quoted || lower(words_[at_].text) != expected) {
      return false;
    }
    ++at_;
    return true;
  }

  void need(std::string_view expected) {
    if (!take(expected)) fail(fmt::format("expected \"{}\" {}", expected, place()));
  }

  std::string place() const {
    return at_ < words_.size() ? fmt::format("instead of \"{}\"", words_[at_].text)
                               : std::string("at the end");
  }

  std::uint64_t number(std::string_view of) {
    if (take("one") || take("a")) return 1;
    if (at_ < words_.size() && !words_[at_].quoted) {
      const std::string& text = words_[at_].text;
      std::uint64_t value = 0;
      const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (code == std::errc{} && end == text.data() + text.size()) {
        ++at_;
        return value;
      }
    }
    fail(fmt::format("expected a number of {} {}", of, place()));
  }

  void quantity() {
    if (take("no")) {
      rule_.most = 0;
    } else if (take("exactly")) {
      rule_.least = rule_.most = number("entries");
    } else if (take("max")) {
      rule_.most = number("entries");
    } else if (take("min")) {
      rule_.least = number("entries");
    } else if (take("at")) {
      if (take("most")) {
        rule_.most = number("entries");
      } else {
        need("least");
        rule_.least = number("entries");
      }
    } else {
      fail(fmt::format("expected no, exactly, at most, at least, max or min {}", place()));
    }
  }

  void what() {
    if (take("graph")) {
      if (!take("launches")) need("launch");
      rule_.kinds = {OperationKind::kGraphLaunch};
      rule_.what = "graph launches";
      return;
    }
    if (at_ >= words_.size() || words_[at_].quoted) fail("expected what to count " + place());
    const std::string word = lower(words_[at_].text);
    for (const What& known : vocabulary()) {
      const bool plural = word.size() == known.word.size() + 1 && word.back() == 's' &&
                          word.compare(0, known.word.size(), known.word) == 0;
      if (word != known.word && !plural) continue;
      rule_.what = words_[at_++].text;
      rule_.kinds = known.kinds;
      rule_.direction = known.direction;
      // "DtoH copies", "kernel launches": the second word says it again.
      for (const char* again : {"copy", "copies", "launch", "launches"}) {
        if ((known.direction != MemcpyKind::kNone) == (again[0] == 'c') && !known.kinds.empty() &&
            take(again)) {
          rule_.what += fmt::format(" {}", again);
          break;
        }
      }
      if (word == "opaque" && !take("entry")) take("entries");
      return;
    }
    fail(
        fmt::format("\"{}\" is nothing that can be counted; expected HtoD, DtoH, DtoD, HtoH, "
                    "copies, sets, launches, graph launches, synchronisations, allocations, "
                    "frees, events, opaque or entries",
                    words_[at_].text));
  }

  std::string name(std::string_view of) {
    if (at_ >= words_.size()) fail(fmt::format("expected {} at the end", of));
    return words_[at_++].text;
  }

  void set_scope(RuleScope scope) {
    if (rule_.scope != RuleScope::kEverywhere) fail("a rule has one place");
    rule_.scope = scope;
  }

  void clause() {
    if (take("matching")) {
      if (rule_.pattern) fail("a rule has one pattern");
      try {
        rule_.pattern.emplace(name("a pattern"));
      } catch (const Error& error) {
        fail(error.what());
      }
    } else if (take("of")) {
      rule_.least_bytes = rule_.most_bytes = number("bytes");
      bytes();
    } else if (take("up")) {
      need("to");
      rule_.most_bytes = number("bytes");
      bytes();
    } else if (take("over")) {
      const std::uint64_t above = number("bytes");
      if (above == std::numeric_limits<std::uint64_t>::max()) fail("nothing is over that");
      rule_.least_bytes = above + 1;
      bytes();
    } else if (take("between")) {
      need("marks");
      set_scope(RuleScope::kBetweenMarks);
    } else if (take("in")) {
      const bool each = take("each");
      need("range");
      set_scope(each ? RuleScope::kInEachRange : RuleScope::kInRange);
      rule_.range = name("the name of a range");
    } else if (take("on")) {
      need("stream");
      const std::uint64_t stream = number("a stream");
      if (stream > std::numeric_limits<std::uint32_t>::max()) fail("there is no such stream");
      rule_.stream = static_cast<std::uint32_t>(stream);
    } else {
      fail(
          fmt::format("expected matching, of, up to, over, between marks, in range or on stream "
                      "{}",
                      place()));
    }
  }

  void bytes() {
    if (!take("bytes") && !take("byte")) need("bytes");
  }

  std::string where_;
  Rule rule_;
  std::vector<Word> words_;
  std::size_t at_ = 0;
};

}  // namespace

TraceRules::TraceRules(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceRules::TraceRules(TraceRules&&) noexcept = default;
TraceRules& TraceRules::operator=(TraceRules&&) noexcept = default;
TraceRules::~TraceRules() = default;

std::size_t TraceRules::size() const noexcept { return impl_->rules.size(); }

TraceRules TraceRules::parse(std::string_view text, std::string_view where) {
  auto impl = std::make_unique<Impl>();
  std::uint32_t line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!content.empty() && content.back() == '\r') content.remove_suffix(1);
    const std::size_t begin = content.find_first_not_of(" \t");
    if (begin == std::string_view::npos || content[begin] == '#') continue;
    content.remove_prefix(begin);
    impl->rules.push_back(RuleParser(std::string(content), line, where).parse());
  }
  return TraceRules(std::move(impl));
}

TraceRules TraceRules::read(const std::filesystem::path& path) {
  const auto fail = [&](int reason) {
    throw Error(reason == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInputOutput,
                fmt::format("cannot read {}: {}", path.string(), std::strerror(reason)));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(errno);
  std::string text;
  std::array<char, 4096> chunk;
  ssize_t count = 0;
  while ((count = ::read(file, chunk.data(), chunk.size())) > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
  const int reason = errno;
  ::close(file);
  if (count < 0) fail(reason);
  return parse(text, path.string());
}

}  // namespace lockstep
