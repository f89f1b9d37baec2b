// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_file.h>

#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "robust/robust_test.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

struct End {
  const char* how;
  int code;
  const char* err;  ///< what standard error holds; "" = nothing at all
  bool complete;    ///< a trace that it writes has its footer
};

void PrintTo(const End& end, std::ostream* out) { *out << end.how; }

class Ending : public ::testing::TestWithParam<End> {};

/// A program with a device, streams, buffers, a graph, work in flight and two open traces in
/// globals ends as programs do.
TEST_P(Ending, PLUG_05_IsQuietAndHasTheRightCode) {
  const End& end = GetParam();
  for (int round = 0; round < 6; ++round) {
    const TempFolder folder;
    const bool records = round % 2 == 1;
    ProcessOptions options;
    options.limit_seconds = 60;
    if (records) options.environment["LOCKSTEP_TRACE"] = folder / "out.jsonl";
    const ProcessResult result = robust_program({"end", end.how}, options);
    ASSERT_FALSE(result.timed_out) << all_of(result);
    EXPECT_EQ(result.exit_code, end.code) << all_of(result);
    EXPECT_EQ(result.out, "done\n") << all_of(result);
    if (*end.err == '\0') {
      EXPECT_EQ(result.err, "");
    } else {
      EXPECT_THAT(result.err, HasSubstr(end.err));
    }
    if (!records) continue;
    const Trace trace = read_trace(folder / "out.jsonl");
    EXPECT_EQ(trace.footer.present, end.complete);
    // Who ends at once may lose the last 100 ms, which may be everything.
    if (!end.complete) continue;
    std::size_t launches = 0, captured = 0;
    for (const LaunchTraceEntry& entry : trace.entries) {
      launches += entry.kind == OperationKind::kGraphLaunch ? 1 : 0;
      captured += entry.has(EntryFlag::kCaptured) ? 1 : 0;
    }
    EXPECT_EQ(launches, 50u);
    EXPECT_EQ(captured, std::string(end.how) == "exit-in-capture" ? 2u : 1u);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Ends, Ending,
    ::testing::Values(End{"return", 0, "", true}, End{"exit", 3, "", true},
                      End{"exit-in-thread", 5, "", true},
                      End{"exit-while-others-launch", 8, "", true},
                      End{"exit-in-capture", 9, "", true}, End{"_exit", 4, "", false},
                      End{"quick_exit", 6, "", false}, End{"abort", 128 + SIGABRT, "", false},
                      End{"throw", 128 + SIGABRT, "nobody catches this", false},
                      End{"throw-in-thread", 128 + SIGABRT, "nobody catches this", false}),
    [](const auto& tested) {
      std::string name;
      for (const char c : std::string(tested.param.how)) {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
      }
      return std::string(tested.param.how) == "_exit" ? "underscoreExit" : name;
    });

TEST(Forks, PLUG_07_BeforeTheFirstUse) {
  for (int round = 0; round < 3; ++round) {
    ProcessOptions options;
    options.limit_seconds = 60;
    const ProcessResult result = robust_program({"fork", "before-use"}, options);
    EXPECT_EQ(result.exit_code, 0) << all_of(result);
    EXPECT_EQ(result.out, "child: worked\nparent: child ended with 7, value 101\n");
    EXPECT_EQ(result.err, "");
  }
}

/// The parent's file is complete, and so is that of each child that recorded something; the others
/// have none.
void expect_whole_files(const TempFolder& folder, std::size_t children) {
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    const Trace trace = read_trace(file.path());
    EXPECT_TRUE(trace.footer.present) << file.path();
    EXPECT_EQ(trace.footer.dropped, 0u) << file.path();
    if (file.path() != folder / "out.jsonl") {
      ASSERT_EQ(trace.entries.size(), 1u) << file.path();
      EXPECT_EQ(trace.entries[0].name, "from the child");
    }
    ++files;
  }
  EXPECT_EQ(files, 1 + children) << "a child that recorded nothing has no file";
}

class ForkWithDevice : public ::testing::TestWithParam<const char*> {};

TEST_P(ForkWithDevice, PLUG_07_ChildIsToldAndParentGoesOn) {
  const std::string moment = GetParam();
  const std::size_t forks = moment.rfind("while-launching", 0) == 0 ? 20 : 1;
  if (forks > 1 && sanitized()) {
    // Seen with gcc 12's AddressSanitizer: four threads that allocate, one of 400 children hung.
    GTEST_SKIP() << "under this sanitizer a child of a busy process may hang on its first "
                    "allocation, also in a program without any of this code";
  }
  const std::size_t marked = moment == "while-launching-marked" ? forks : 0;
  for (int round = 0; round < 4; ++round) {
    const TempFolder folder;
    ProcessOptions options;
    options.limit_seconds = 60;
    const bool records = round % 2 == 1;
    if (records) options.environment["LOCKSTEP_TRACE"] = folder / "out.jsonl";
    const ProcessResult result = robust_program({"fork", moment}, options);
    ASSERT_FALSE(result.timed_out) << all_of(result);
    EXPECT_EQ(result.exit_code, 0) << all_of(result);
    EXPECT_EQ(result.err, "");
    std::size_t told = 0, lines = 0;
    for (std::size_t at = 0; at < result.out.size();) {
      const std::size_t feed = result.out.find('\n', at);
      const std::string line = result.out.substr(at, feed - at);
      at = feed == std::string::npos ? result.out.size() : feed + 1;
      ++lines;
      if (line.rfind("child: error 4: ", 0) == 0 && line.find("fork") != std::string::npos) ++told;
    }
    EXPECT_EQ(told, forks) << result.out;
    EXPECT_EQ(lines, told + 1) << result.out;
    EXPECT_THAT(result.out, HasSubstr("parent: child ended with 7, value 101\n"));
    if (records) expect_whole_files(folder, marked);
  }
}
INSTANTIATE_TEST_SUITE_P(Moments, ForkWithDevice,
                         ::testing::Values("after-use", "in-capture", "while-launching",
                                           "while-launching-marked"),
                         [](const auto& tested) {
                           const std::string moment = tested.param;
                           return moment == "after-use"         ? "AfterUse"
                                  : moment == "in-capture"      ? "InCapture"
                                  : moment == "while-launching" ? "WhileLaunching"
                                                                : "WhileLaunchingChildRecords";
                         });

}  // namespace
}  // namespace lockstep::testing
