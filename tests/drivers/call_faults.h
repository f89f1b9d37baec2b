// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// Faults of single calls, which every stand-in for a driver takes from its environment:
//   <PREFIX>_FAIL=NAME:N:CODE   the N-th call of NAME (as exported; "*" = of any) does nothing and
//                               answers CODE; several, separated by commas
//   <PREFIX>_LOG=FILE           one line a call: its number, name and result
namespace test_drivers {

class CallFaults {
 public:
  // `program` begins messages. A value that makes no sense ends the process, with a message and
  // exit code 2: a mistyped fault must not pass for a driver without faults.
  CallFaults(const char* program, const std::string& prefix);
  CallFaults(const CallFaults&) = delete;
  CallFaults& operator=(const CallFaults&) = delete;

  // Counts a call; the code that it has to answer in place of doing anything, 0 = none.
  int enter(const char* name) noexcept;
  void log(const char* name, int result) noexcept;

  [[noreturn]] void bad_value(const std::string& variable, std::string_view value,
                              const char* expected) const;
  // A number within a range, from `digits`, which is a part of `whole`.
  std::uint64_t number(const std::string& variable, std::string_view whole, std::string_view digits,
                       std::uint64_t low, std::uint64_t high, const char* expected) const;
  // Leaves *value alone when the variable is not set.
  void read(const char* variable, std::uint64_t low, std::uint64_t high, const char* expected,
            std::uint64_t* value) const;

 private:
  struct Rule {
    std::string name;
    std::uint64_t number = 0;
    int code = 0;
    std::atomic<std::uint64_t> seen{0};
  };
  void parse_rules(const std::string& variable, const std::string& text);

  const char* program_;
  std::vector<std::unique_ptr<Rule>> rules_;
  std::atomic<std::uint64_t> calls_{0};
  std::string log_variable_;
  int log_file_ = -1;
};

}  // namespace test_drivers
