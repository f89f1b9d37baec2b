// SPDX-License-Identifier: Apache-2.0
#include "call_faults.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace test_drivers {

void CallFaults::bad_value(const std::string& variable, std::string_view value,
                           const char* expected) const {
  std::fprintf(stderr, "%s: %s='%.*s': expected %s\n", program_, variable.c_str(),
               static_cast<int>(value.size()), value.data(), expected);
  std::_Exit(2);
}

std::uint64_t CallFaults::number(const std::string& variable, std::string_view whole,
                                 std::string_view digits, std::uint64_t low, std::uint64_t high,
                                 const char* expected) const {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size() || value < low || value > high) {
    bad_value(variable, whole, expected);
  }
  return value;
}

void CallFaults::read(const char* variable, std::uint64_t low, std::uint64_t high,
                      const char* expected, std::uint64_t* value) const {
  if (const char* text = std::getenv(variable)) {
    *value = number(variable, text, text, low, high, expected);
  }
}

CallFaults::CallFaults(const char* program, const std::string& prefix)
    : program_(program), log_variable_(prefix + "_LOG") {
  const std::string fail = prefix + "_FAIL";
  if (const char* text = std::getenv(fail.c_str())) parse_rules(fail, text);
  if (const char* path = std::getenv(log_variable_.c_str())) {
    log_file_ = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_file_ < 0) bad_value(log_variable_, path, "a file that can be written");
  }
}

void CallFaults::parse_rules(const std::string& variable, const std::string& text) {
  constexpr const char* kExpected = "NAME:N:CODE, several separated by commas";
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t first = item.find(':');
    const std::size_t second = first == item.npos ? item.npos : item.find(':', first + 1);
    if (second == item.npos || first == 0) bad_value(variable, text, kExpected);
    auto rule = std::make_unique<Rule>();
    rule->name = item.substr(0, first);
    rule->number = number(variable, text, item.substr(first + 1, second - first - 1), 1, UINT64_MAX,
                          kExpected);
    rule->code =
        static_cast<int>(number(variable, text, item.substr(second + 1), 1, 9999, kExpected));
    rules_.push_back(std::move(rule));
  }
}

int CallFaults::enter(const char* name) noexcept {
  int code = 0;
  for (const auto& rule : rules_) {
    if (rule->name != "*" && rule->name != name) continue;
    if (rule->seen.fetch_add(1) + 1 == rule->number) code = rule->code;
  }
  return code;
}

void CallFaults::log(const char* name, int result) noexcept {
  if (log_file_ < 0) return;
  char line[160];
  const int length =
      std::snprintf(line, sizeof line, "%llu %s %d\n",
                    static_cast<unsigned long long>(calls_.fetch_add(1) + 1), name, result);
  // One write a line: lines of several threads and processes do not mix.
  if (write(log_file_, line, static_cast<std::size_t>(length)) != length) {
    std::fprintf(stderr, "%s: %s cannot be written: %s\n", program_, log_variable_.c_str(),
                 std::strerror(errno));
    close(log_file_);
    log_file_ = -1;
  }
}

}  // namespace test_drivers
