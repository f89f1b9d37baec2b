// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <string>

#include "support/temp_folder.h"

namespace lockstep::testing {
namespace {

/// A header as far as the compiler sees it, with single spaces.
std::string code_of(const std::string& path) {
  std::string text = read_file(path);
  for (std::size_t begin; (begin = text.find("/*")) != std::string::npos;) {
    text.erase(begin, text.find("*/", begin) + 2 - begin);
  }
  return std::regex_replace(text, std::regex("\\s+"), " ");
}

/// What stands between the braces of each `typedef struct`.
std::map<std::string, std::string> structures(const std::string& code) {
  std::map<std::string, std::string> bodies;
  const std::regex opening("typedef struct (\\w+) \\{");
  for (std::sregex_iterator found(code.begin(), code.end(), opening), end; found != end; ++found) {
    const auto begin = static_cast<std::size_t>(found->position() + found->length());
    std::size_t at = begin;
    for (int depth = 1; depth > 0; ++at) depth += code[at] == '{' ? 1 : code[at] == '}' ? -1 : 0;
    bodies[(*found)[1]] = code.substr(begin, at - 1 - begin);
  }
  return bodies;
}

std::map<std::string, std::string> numbers(const std::string& code) {
  std::map<std::string, std::string> values;
  const std::regex enumerator("(LOCKSTEP_\\w+) = ([^,}]*[^,} ])");
  for (std::sregex_iterator found(code.begin(), code.end(), enumerator), end; found != end;
       ++found) {
    values[(*found)[1]] = (*found)[2];
  }
  return values;
}

// Pains: a field put into the middle moves all that follow it, and nobody notices until a plugin
// that was built last year crashes.
TEST(Layout, FieldsAndNumbersAreOnlyAppendedSince10) {
  const std::string frozen = code_of(LOCKSTEP_HEADER_1_0), present = code_of(LOCKSTEP_HEADER_NOW);
  const auto old_structures = structures(frozen), new_structures = structures(present);
  ASSERT_GE(old_structures.size(), 20u);
  for (const auto& [name, body] : old_structures) {
    ASSERT_TRUE(new_structures.count(name) != 0) << name << " is gone";
    EXPECT_EQ(new_structures.at(name).substr(0, body.size()), body) << name;
  }
  const auto old_numbers = numbers(frozen), new_numbers = numbers(present);
  ASSERT_GE(old_numbers.size(), 80u);
  for (const auto& [name, value] : old_numbers) {
    ASSERT_TRUE(new_numbers.count(name) != 0) << name << " is gone";
    EXPECT_EQ(new_numbers.at(name), value) << name;
  }
}

}  // namespace
}  // namespace lockstep::testing
