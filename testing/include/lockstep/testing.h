// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>
#include <lockstep/trace_diff.h>

#include <cstdint>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>

/// \file
/// Traces in GoogleTest: target lockstep::testing. Everything here is called from the test's
/// thread.
namespace lockstep::testing {

/// Success when the two traces hold the same operations in the same order; otherwise the failure's
/// text is the aligned diff. By default the executed view of the core kinds is compared.
::testing::AssertionResult traces_equal(const Trace& expected, const Trace& actual,
                                        const DiffOptions& options = {});

/// What LOCKSTEP_GOLDEN says (by its value; anything else is an error): `check` (the default)
/// compares, `new` writes golden files that are missing, `update` replaces those that differ.
enum class GoldenMode : std::uint8_t { kCheck, kNew, kUpdate };

/// \throws Error kInvalidArgument for a value that is none of the three, and for `new` and `update`
///         when CI is set: golden files change where somebody looks at the change.
GoldenMode golden_mode();

/// Compares `actual` with the golden trace in `path`, or writes it as the mode says. What is
/// written has no times, process ids or allocations in it, so that it changes only when the work
/// does.
::testing::AssertionResult matches_golden(const std::filesystem::path& path, const Trace& actual,
                                          const DiffOptions& options = {});

/// An entry that launches a kernel whose name, as people read it, matches; grid and block where
/// they are given. `name` is a substring.
::testing::Matcher<const LaunchTraceEntry&> LaunchOf(const std::string& name,
                                                     std::optional<Dim3> grid = {},
                                                     std::optional<Dim3> block = {});
/// An entry that copies in that direction; that many bytes where they are given.
::testing::Matcher<const LaunchTraceEntry&> CopyOf(MemcpyKind direction,
                                                   std::optional<std::uint64_t> bytes = {});
/// An entry that sets memory; that many bytes where they are given.
::testing::Matcher<const LaunchTraceEntry&> SetOf(std::optional<std::uint64_t> bytes = {});

}  // namespace lockstep::testing

#define EXPECT_TRACE_EQ(expected, actual) \
  EXPECT_TRUE(::lockstep::testing::traces_equal(expected, actual))
#define ASSERT_TRACE_EQ(expected, actual) \
  ASSERT_TRUE(::lockstep::testing::traces_equal(expected, actual))
#define EXPECT_TRACE_MATCHES_GOLDEN(path, actual) \
  EXPECT_TRUE(::lockstep::testing::matches_golden(path, actual))
