// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "robust/robust_test.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

/// Everything the environment can say, each time so that obeying it shows.
struct HostileEnvironment {
  TempFolder folder;
  ProcessOptions options;

  HostileEnvironment() {
    fs::permissions(folder.path(), fs::perms::all);
    const std::string compiler = folder / "g++";
    write_file(compiler,
               "#!/bin/sh\necho >" + (folder / "compiler-ran") + "\nexec /usr/bin/g++ \"$@\"\n");
    fs::permissions(compiler, fs::perms::all);
    fs::create_directory(folder / "cache");
    fs::permissions(folder / "cache", fs::perms::all);
    write_file(folder / "trace.jsonl", "precious");
    fs::permissions(folder / "trace.jsonl", fs::perms::all);
    auto& environment = options.environment;
    environment["LOCKSTEP_HOST_DEVICES"] = "3";
    environment["LOCKSTEP_HOST_COMPILER"] = compiler;
    environment["PATH"] = folder.path().string() + ":/usr/bin:/bin";
    environment["LOCKSTEP_CACHE_DIR"] = folder / "cache";
    environment["LOCKSTEP_TRACE"] = folder / "trace.jsonl";
    environment["LOCKSTEP_TRACE_FORCE"] = "1";
    environment["CPATH"] = folder.path().string();
    options.limit_seconds = 100;
  }
  bool trace_replaced() const { return read_file(folder / "trace.jsonl") != "precious"; }
  bool compiler_ran() const { return fs::exists(folder / "compiler-ran"); }
  bool cache_used() const { return !fs::is_empty(folder / "cache"); }
};

TEST(Privileges, EnvironmentIsObeyedWithoutThem) {
  const HostileEnvironment hostile;
  const ProcessResult result = robust_program({"environment"}, hostile.options);
  EXPECT_EQ(result.exit_code, 0) << all_of(result);
  EXPECT_EQ(result.out, "devices 3, value 5\n");
  EXPECT_TRUE(hostile.trace_replaced());
  EXPECT_TRUE(hostile.compiler_ran());
  EXPECT_TRUE(hostile.cache_used());
}

TEST(Privileges, EnvironmentIsIgnoredWithThem) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a program that runs as another user";
  if (sanitized()) GTEST_SKIP() << "the sanitizers' libraries read the environment themselves";
  const HostileEnvironment hostile;
  const std::string program = hostile.folder / "program";
  fs::copy_file(LOCKSTEP_ROBUST_PROGRAM, program);
  struct statvfs mounted {};
  ASSERT_EQ(statvfs(program.c_str(), &mounted), 0);
  if ((mounted.f_flag & ST_NOSUID) != 0) GTEST_SKIP() << program << " lies where setuid is ignored";
  ASSERT_EQ(chown(program.c_str(), kNobody, static_cast<gid_t>(-1)), 0);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);

  const ProcessResult result = run({program, "environment"}, hostile.options);
  EXPECT_FALSE(hostile.trace_replaced());
  EXPECT_FALSE(hostile.compiler_ran());
  EXPECT_FALSE(hostile.cache_used());
  if (result.exit_code == 127) {
    GTEST_SKIP() << "the build tree is closed to other users: " << result.err;
  }
  EXPECT_EQ(result.exit_code, 0) << all_of(result);
  EXPECT_EQ(result.out, "devices 1, value 5\n");

  // Nor can a folder of plugins be slipped in.
  ProcessOptions plugins = hostile.options;
  plugins.environment["LOCKSTEP_BACKEND_PATH"] = hostile.folder / "no-such-plugin.so";
  EXPECT_EQ(run({program, "environment"}, plugins).out, "devices 1, value 5\n");
}

}  // namespace
}  // namespace lockstep::testing
