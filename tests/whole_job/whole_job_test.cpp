// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_diff.h>
#include <lockstep/trace_file.h>

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_folder.h"

namespace {

namespace ls = lockstep;
using ::testing::HasSubstr;

ls::testing::ProcessResult run_example(const std::string& name, std::vector<std::string> arguments,
                                       const ls::testing::ProcessOptions& options = {}) {
  arguments.insert(arguments.begin(), std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep-" + name);
  return ls::testing::run(arguments, options);
}

TEST(Digits, ClassifiesVerifiesAndEqualsGolden) {
  const ls::testing::TempFolder folder;
  const auto result = run_example("digits", {"--device", "host", "--out", folder.path().string()});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* batch : {"batch 1: ", "batch 8: ", "batch 64: "}) {
    EXPECT_THAT(result.out,
                HasSubstr(std::string(batch) +
                          "349 of 360 right, graph of 6 nodes, replay verified (L0-L4)"));
  }
  ls::DiffOptions options;
  options.compare_arguments = true;
  const ls::Trace golden = ls::read_trace(LOCKSTEP_GOLDEN_DIR "/digits.jsonl.zst");
  for (const char* name : {"digits-eager.jsonl", "digits-replay.jsonl"}) {
    const ls::DiffReport report = ls::diff(golden, ls::read_trace(folder.path() / name), options);
    EXPECT_TRUE(report.equal) << name << ": " << ls::to_json(report);
    // 6 weights; 360 + 45 + 6 batches of 2 copies and 4 kernels.
    EXPECT_EQ(report.left_entries, 6u + 411u * 6u);
    EXPECT_EQ(report.right_entries, report.left_entries);
  }
  const auto verified =
      ls::testing::run({std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep", "verify",
                        (folder.path() / "digits-replay.jsonl").string()});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(
      verified.out,
      ::testing::MatchesRegex("(graph [0-9] version 1: replay verified .L0-L3.: 6 entries\n){3}"));
}

class EveryExample : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryExample, RunsOnTheDeviceOfTheEnvironment) {
  ls::testing::ProcessOptions options;
  options.environment = {{"LOCKSTEP_DEVICE", "host"}};
  const auto result = run_example(GetParam(), {}, options);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("device host:0"));
  EXPECT_THAT(result.out, HasSubstr("replay verified (L0-L4)"));
  EXPECT_EQ(result.err, "");
}

TEST_P(EveryExample, AnExplicitDeviceThatIsNotThereIsFour) {
  for (const char* device : {"cuda:4000", "host:77"}) {
    const auto result = run_example(GetParam(), {"--device", device});
    EXPECT_EQ(result.exit_code, 4) << device << ": " << result.err;
    EXPECT_NE(result.err, "");
    EXPECT_EQ(result.out, "") << "nothing ran on another device instead";
  }
}

TEST_P(EveryExample, UnknownDevicesAndOptionsAreUsage) {
  const auto option = run_example(GetParam(), {"--colour", "red"});
  EXPECT_EQ(option.exit_code, 2);
  EXPECT_EQ(option.err, std::string("lockstep-") + GetParam() +
                            ": '--colour' was not expected; --help lists the options\n");
  const auto valueless = run_example(GetParam(), {"--device"});
  EXPECT_EQ(valueless.exit_code, 2);
  EXPECT_THAT(valueless.err, HasSubstr(std::string("lockstep-") + GetParam() + ": --device"));
  EXPECT_EQ(run_example(GetParam(), {"--help"}).exit_code, 0);
  const auto unknown = run_example(GetParam(), {"--device", "foo"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("host")) << "the message lists what there is";
}

TEST_P(EveryExample, AFolderThatCannotBeMadeIsNamedWithTheReason) {
  const auto result = run_example(GetParam(), {"--device", "host", "--out", "/proc/nope"});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err, HasSubstr(": --out /proc/nope: the folder cannot be made: No such file"));
}

INSTANTIATE_TEST_SUITE_P(Examples, EveryExample,
                         ::testing::Values("digits", "streams", "attention", "reduce"),
                         [](const auto& example) { return std::string(example.param); });

TEST(Digits, DamagedInputIsThree) {
  const ls::testing::TempFolder folder;
  std::filesystem::copy(LOCKSTEP_DIGITS_DATA, folder.path(),
                        std::filesystem::copy_options::recursive);
  std::ofstream(folder.path() / "digits_test.csv", std::ios::app) << "1,2,three\n";
  const auto result = run_example("digits", {"--device", "host", "--data", folder.path().string()});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("digits_test.csv: line 361"));
  EXPECT_THAT(result.err, HasSubstr("three"));
}

// The same program in twenty fresh processes: same hashes, same stream indices.
TEST(Streams, TwentyProcessesRecordTheSame) {
  const ls::testing::TempFolder folder;
  std::set<std::vector<std::pair<std::uint64_t, std::uint32_t>>> recordings;
  for (int i = 0; i < 20; ++i) {
    const auto path = folder.path() / ("run" + std::to_string(i) + ".jsonl");
    ls::testing::ProcessOptions options;
    options.environment = {{"LOCKSTEP_TRACE", path.string()}};
    const auto result = run_example("streams", {"--device", "host"}, options);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const ls::Trace trace = ls::read_trace(path);
    ASSERT_TRUE(trace.footer.present);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> recording;
    for (const auto& entry : ls::view(trace)) {
      recording.emplace_back(entry.semantic_hash, entry.stream_index);
    }
    // Eager: 5 kernels and the copy out; then a set, the graph's 5 kernels and a copy again.
    EXPECT_EQ(recording.size(), 13u);
    recordings.insert(recording);
  }
  EXPECT_EQ(recordings.size(), 1u);
}

}  // namespace
