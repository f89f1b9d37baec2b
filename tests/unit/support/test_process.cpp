// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <gtest/gtest.h>
#include <string>

#include "support/process.h"
#include "support/temp_folder.h"

namespace lockstep::testing {
namespace {

TEST(Process, CodeAndBothStreamsAreKept) {
  const ProcessResult result = run({"sh", "-c", "echo data; echo words >&2; exit 7"});
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.out, "data\n");
  EXPECT_EQ(result.err, "words\n");
  EXPECT_FALSE(result.timed_out);
}

TEST(Process, EnvironmentFolderAndInput) {
  const TempFolder folder;
  ProcessOptions options;
  options.environment = {{"LOCKSTEP_TEST_ADDED", "yes"}, {"HOME", std::nullopt}};
  options.folder = folder.path().string();
  options.input = std::string(300000, 'x');
  const ProcessResult result =
      run({"sh", "-c", "pwd; echo $LOCKSTEP_TEST_ADDED ${HOME-gone}; wc -c"}, options);
  EXPECT_EQ(result.out, folder.path().string() + "\nyes gone\n300000\n");
}

TEST(Process, LargeOutputOnBothStreamsDoesNotBlock) {
  const ProcessResult result =
      run({"sh", "-c", "head -c 400000 /dev/zero; head -c 400000 /dev/zero >&2"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out.size(), 400000u);
  EXPECT_EQ(result.err.size(), 400000u);
}

TEST(Process, ProgramThatIsMissing) {
  const ProcessResult result = run({"/nonexistent/program"});
  EXPECT_EQ(result.exit_code, 127);
  EXPECT_NE(result.err.find("/nonexistent/program: No such file"), std::string::npos);
}

TEST(Process, SignalWhenReady) {
  ProcessOptions options;
  options.wait_for = "ready";
  options.when_ready = [](pid_t child) { kill(child, SIGTERM); };
  const ProcessResult result = run({"sh", "-c", "echo ready; exec sleep 60"}, options);
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_FALSE(result.timed_out);
}

TEST(Process, LimitKillsTheGroup) {
  ProcessOptions options;
  options.limit_seconds = 1;
  const ProcessResult result = run({"sh", "-c", "sleep 60 & sleep 60"}, options);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
}

TEST(TempFolder, IsFreshAndRemoved) {
  std::filesystem::path path;
  {
    const TempFolder one("Ünï 中文"), two("Ünï 中文");
    path = one.path();
    EXPECT_NE(one.path(), two.path());
    write_file(one / "file", "bytes");
    EXPECT_EQ(read_file(one / "file"), "bytes");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace lockstep::testing
