// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>

#include "support/process.h"

// What the plugin does to the process around it: settings, forks, exits. Each in a process of its
// own.
namespace lockstep::host_test {
namespace {

using ::lockstep::testing::ProcessOptions;
using ::lockstep::testing::ProcessResult;

ProcessResult host_program(const std::string& mode,
                           std::map<std::string, std::optional<std::string>> environment = {}) {
  ProcessOptions options;
  options.environment = std::move(environment);
  // Ending with live objects is what these programs are for. Other errors are still found.
  options.environment["ASAN_OPTIONS"] = "detect_leaks=0";
  options.limit_seconds = 60;
  return ::lockstep::testing::run(
      {HOST_PROGRAM, LOCKSTEP_TEST_PLUGIN_DIR "/liblockstep_backend_host.so", mode}, options);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ProcessCases, PLUG_05_LiveObjectsAtExit) {
  for (const char* mode : {"return", "exit-in-thread", "exit-while-others-work"}) {
    for (int round = 0; round < 5; ++round) {
      const ProcessResult result = host_program(mode);
      EXPECT_EQ(result.exit_code, 0) << mode;
      EXPECT_EQ(result.out, "") << mode;
      EXPECT_EQ(result.err, "") << mode;
      EXPECT_FALSE(result.timed_out) << mode;
    }
  }
}

TEST(ProcessCases, PLUG_07_ForkBeforeFirstUseWorks) {
  const ProcessResult result = host_program("fork-before");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.out, "child: code 0\n");
  EXPECT_EQ(result.err, "");
}

TEST(ProcessCases, PLUG_07_ForkAfterFirstUseIsRefusedWithTheReason) {
  const ProcessResult result = host_program("fork-after");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(has(result.out, "child: code 4: this process was forked")) << result.out;
  EXPECT_EQ(result.err, "");
}

TEST(HostProcess, CallsBeforeInitializeAreRefused) {
  const ProcessResult result = host_program("uninitialized");
  EXPECT_TRUE(has(result.out, "code 4 the host backend is not initialized")) << result.out;
}

TEST(HostProcess, NumberOfDevices) {
  EXPECT_TRUE(has(host_program("initialize").out, "code 0 devices 1 "));
  EXPECT_TRUE(
      has(host_program("initialize", {{"LOCKSTEP_HOST_DEVICES", "3"}}).out, "code 0 devices 3 "));
  for (const char* bad : {"0", "65", "two", "", "3x", "-1"}) {
    const ProcessResult result = host_program("initialize", {{"LOCKSTEP_HOST_DEVICES", bad}});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(has(result.out, "code 1 devices 0 LOCKSTEP_HOST_DEVICES='" + std::string(bad) +
                                    "': expected the number of host devices, 1 to 64"))
        << result.out;
  }
}

TEST(HostProcess, PeersShareTheirMemory) {
  const ProcessResult result = host_program("peers", {{"LOCKSTEP_HOST_DEVICES", "2"}});
  EXPECT_EQ(result.out, "can 1 device 1 wrong 1\n") << result.err;
}

TEST(HostProcess, FreeingWaitsForTheOtherDevicesToo) {
  const ProcessResult result = host_program("free-used-by-peer", {{"LOCKSTEP_HOST_DEVICES", "2"}});
  EXPECT_EQ(result.out, "used first: 1\nused first: 1\n") << result.err;
}

TEST(HostProcess, MemoryLimitAndInjectedFailure) {
  const ProcessResult limited =
      host_program("allocate-until-it-fails", {{"LOCKSTEP_HOST_MEMORY_MB", "5"}});
  EXPECT_TRUE(has(limited.out, "6: code 2: 1048576 bytes asked for, 0 of 5242880 bytes free"))
      << limited.out;
  EXPECT_TRUE(has(limited.out, "; then 2")) << limited.out;
  const ProcessResult injected =
      host_program("allocate-until-it-fails", {{"LOCKSTEP_HOST_FAIL", "alloc:3"}});
  EXPECT_TRUE(has(injected.out, "3: code 2: allocation 3 was made to fail by LOCKSTEP_HOST_FAIL"))
      << injected.out;
  EXPECT_TRUE(has(injected.out, "; then 0")) << injected.out;
  for (const char* bad : {"alloc", "alloc:", "alloc:0", "launch:1", "alloc:x"}) {
    EXPECT_TRUE(has(host_program("initialize", {{"LOCKSTEP_HOST_FAIL", bad}}).out,
                    "code 1 devices 0 LOCKSTEP_HOST_FAIL='"))
        << bad;
  }
}

}  // namespace
}  // namespace lockstep::host_test
