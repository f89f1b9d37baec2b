// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iostream>

#include "robust/robust_test.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kMost = 500;  // far more allocations than these programs make

/// Runs a program with its n-th allocation failing, for n = 1, 2, … until it makes no n-th one.
/// Each failure is the typed message and the exit code. Returns how many failures there were.
int fail_each(const std::function<ProcessResult(const ProcessOptions&)>& program, int code,
              const std::string& sound_output) {
  for (int n = 1; n <= kMost; ++n) {
    ProcessOptions options;
    options.limit_seconds = 60;
    options.environment["LOCKSTEP_HOST_FAIL"] = "alloc:" + std::to_string(n);
    // Whatever a failure leaves allocated is found in the AddressSanitizer build.
    options.environment["ASAN_OPTIONS"] = "detect_leaks=1";
    const ProcessResult result = program(options);
    EXPECT_FALSE(result.timed_out) << "allocation " << n;
    if (result.exit_code == 0) {
      EXPECT_EQ(result.out, sound_output) << "allocation " << n;
      EXPECT_EQ(result.err, "") << "allocation " << n;
      return n - 1;
    }
    EXPECT_EQ(result.exit_code, code) << "allocation " << n << ": " << all_of(result);
    EXPECT_THAT(result.out + result.err, HasSubstr("allocation " + std::to_string(n) +
                                                   " was made to fail by LOCKSTEP_HOST_FAIL"))
        << "allocation " << n;
    EXPECT_THAT(result.err, ::testing::Not(HasSubstr("Sanitizer"))) << "allocation " << n;
    if (::testing::Test::HasFailure()) return n;
  }
  ADD_FAILURE() << "still failing after " << kMost << " allocations";
  return kMost;
}

TEST(OutOfMemory, EachAllocationOfTheDigitsExample) {
#ifndef LOCKSTEP_ROBUST_DIGITS
  GTEST_SKIP() << "the examples are not built";
#else
  const auto digits = [](const ProcessOptions& options) {
    ProcessOptions with = options;
    with.environment["LOCKSTEP_DEVICE"] = "host";
    return run({LOCKSTEP_ROBUST_DIGITS}, with);
  };
  const ProcessResult sound = digits({});
  ASSERT_EQ(sound.exit_code, 0) << all_of(sound);
  const int failures = fail_each(digits, 5, sound.out);
  std::cout << "lockstep-digits: each of " << failures << " allocations failed in turn\n";
  RecordProperty("allocations", failures);
  EXPECT_GE(failures, 10);
#endif
}

TEST(OutOfMemory, EachWayToAllocate) {
  const auto program = [](const ProcessOptions& options) {
    return robust_program({"allocate"}, options);
  };
  const ProcessResult sound = program({});
  ASSERT_EQ(sound.exit_code, 0) << all_of(sound);
  ASSERT_EQ(sound.out, "2 63\n");
  const int failures = fail_each(program, 3, sound.out);
  std::cout << "every kind: each of " << failures << " allocations failed in turn\n";
  EXPECT_GE(failures, 4);
}

}  // namespace
}  // namespace lockstep::testing
