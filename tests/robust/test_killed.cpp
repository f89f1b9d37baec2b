// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_diff.h>
#include <lockstep/trace_file.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "robust/progress.h"
#include "robust/robust_test.h"

namespace lockstep::testing {
namespace {

using robust::Progress;
using ::testing::HasSubstr;

constexpr int kRounds = 50;
constexpr unsigned kSeed = 20260731;

struct Contents {
  std::uint64_t kernels = 0;
  bool truncated = false;
};

/// Reads a trace to its end; whatever a reader may not accept is thrown.
Contents contents_of(const std::string& path) {
  Contents contents;
  TraceReader reader(path);
  while (auto item = reader.next()) {
    const auto* entry = std::get_if<LaunchTraceEntry>(&*item);
    if (entry != nullptr && entry->kind == OperationKind::kKernelLaunch) ++contents.kernels;
  }
  contents.truncated = reader.truncated();
  return contents;
}

void wait_for(std::chrono::microseconds time) { std::this_thread::sleep_for(time); }

TEST(Killed, SelfRecordedTracesAreReadableAndLoseLittle) {
  std::mt19937 random(kSeed);
  std::uniform_int_distribution<int> moment(0, 250'000);
  const TempFolder folder;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(kSeed));
    const std::string output = folder / ("out" + std::to_string(round) + ".jsonl");
    const std::string state = folder / ("progress" + std::to_string(round));
    Progress& progress = *Progress::map(state, true);
    const std::chrono::microseconds delay(moment(random));
    std::uint64_t killed = 0;
    ProcessOptions options;
    options.environment["LOCKSTEP_TRACE"] = output;
    options.wait_for = "ready";
    options.when_ready = [&](pid_t program) {
      wait_for(delay);
      killed = robust::now();
      kill(program, SIGKILL);
    };
    const ProcessResult result = robust_program({"launch-until-killed", state, "200"}, options);
    ASSERT_EQ(result.exit_code, 128 + SIGKILL) << all_of(result);

    const Contents contents = contents_of(output);
    EXPECT_TRUE(contents.truncated);
    const std::uint64_t made = progress.returned;
    ASSERT_LE(contents.kernels, made + 1);
    // Whatever was launched 100 ms before the end is there. The thread that writes has to get a
    // processor for that: how late threads ran in this very program is added.
    const std::uint64_t allowed = 100'000'000 + 2 * progress.oversleep;
    if (contents.kernels < made) {
      const std::uint64_t lost_since = progress.at[contents.kernels % Progress::kTimes];
      EXPECT_GE(lost_since + allowed, killed)
          << made - contents.kernels << " of " << made << " launches lost, the oldest "
          << (killed - lost_since) / 1'000'000 << " ms old";
    }
    EXPECT_FALSE(diff_files(output, output).equal);
    munmap(&progress, sizeof(Progress));
  }
  const std::string last = folder / ("out" + std::to_string(kRounds - 1) + ".jsonl");
  const ProcessResult compared = lockstep_cli({"diff", last, last});
  EXPECT_EQ(compared.exit_code, 3) << all_of(compared);
  EXPECT_THAT(compared.out + compared.err, HasSubstr("truncated"));
  EXPECT_EQ(lockstep_cli({"show", last, "--stat"}).exit_code, 3);
}

TEST(Killed, SelfRecordedTracesAreWholeLinesWhateverTheMoment) {
  // From before main() on: there may be no file yet.
  std::mt19937 random(kSeed + 1);
  std::uniform_int_distribution<int> moment(0, 150'000);
  const TempFolder folder;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(kSeed + 1));
    const std::string output = folder / ("out" + std::to_string(round) + ".jsonl");
    const std::string state = folder / ("progress" + std::to_string(round));
    munmap(Progress::map(state, true), sizeof(Progress));
    const std::chrono::microseconds delay(moment(random));
    ProcessOptions options;
    options.environment["LOCKSTEP_TRACE"] = output;
    options.when_ready = [&](pid_t program) {
      wait_for(delay);
      kill(program, SIGKILL);
    };
    const ProcessResult result = robust_program({"launch-until-killed", state, "0"}, options);
    ASSERT_EQ(result.exit_code, 128 + SIGKILL) << all_of(result);
    if (!std::filesystem::exists(output)) continue;
    try {
      EXPECT_TRUE(contents_of(output).truncated);
    } catch (const Error& error) {
      // Killed between the file's creation and its first line.
      EXPECT_EQ(error.code(), ErrorCode::kTruncatedFile) << error.what();
      EXPECT_EQ(read_file(output).find('\n'), std::string::npos) << error.what();
    }
  }
}

TEST(Killed, RecordedProgramsLoseNothing) {
  std::mt19937 random(kSeed + 2);
  std::uniform_int_distribution<int> moment(0, 100'000);
  const TempFolder folder;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(kSeed + 2));
    const std::string output = folder / ("out" + std::to_string(round) + ".jsonl");
    const std::string state = folder / ("progress" + std::to_string(round));
    Progress& progress = *Progress::map(state, true);
    const std::chrono::microseconds delay(moment(random));
    ProcessOptions options;
    options.wait_for = "ready";
    options.when_ready = [&](pid_t) {
      wait_for(delay);
      kill(progress.pid, SIGKILL);
    };
    const ProcessResult result =
        lockstep_cli(recorded(output, {"launch-until-killed", state, "20"}), options);
    ASSERT_EQ(result.exit_code, 128 + SIGKILL) << all_of(result);
    const Contents contents = contents_of(output);
    EXPECT_FALSE(contents.truncated) << "the recorder lives, so it completes the file";
    // The call that was interrupted may have come as far as being recorded.
    const std::uint64_t made = progress.returned;
    EXPECT_GE(contents.kernels, made);
    EXPECT_LE(contents.kernels, made + 1);
    munmap(&progress, sizeof(Progress));
    std::filesystem::remove(output);
  }
}

}  // namespace
}  // namespace lockstep::testing
