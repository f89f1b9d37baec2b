// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_file.h>

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/process.h"
#include "support/temp_folder.h"
#include "unit/record/file_like_memory.h"
#include "unit/record/probe_environment.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct SelfRecorded : ::testing::Test {
  TempFolder folder;
  std::string output = folder / "out.jsonl";
  std::map<std::string, std::optional<std::string>> more = probe_environment();

  ProcessResult probe(const std::string& scenario, const std::string& count = "10") const {
    ProcessOptions options;
    options.environment = more;
    options.environment.emplace("LOCKSTEP_TRACE", output);
    return run({LOCKSTEP_PROBE, scenario, count}, options);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder.path())) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }
};

class CompleteEnd : public SelfRecorded, public ::testing::WithParamInterface<const char*> {};

TEST_P(CompleteEnd, LeavesACompleteTrace) {
  const ProcessResult result = probe(GetParam());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  const Trace trace = read_trace(output);
  EXPECT_TRUE(trace.footer.present);
  EXPECT_EQ(trace.footer.entries, 10u);
  ASSERT_THAT(trace.entries, SizeIs(10));
  EXPECT_EQ(trace.entries[9].grid_x, 10u);
  EXPECT_GT(trace.info.pid, 0);
  ASSERT_THAT(trace.info.command, SizeIs(3));
  EXPECT_EQ(trace.info.command[1], GetParam());
}
INSTANTIATE_TEST_SUITE_P(Ends, CompleteEnd, ::testing::Values("plain", "exit", "exit_from_thread"),
                         [](const auto& param) {
                           const std::string text = param.param;
                           return text == "plain" ? "Return" : text == "exit" ? "Exit" : "Thread";
                         });

class AbruptEnd : public SelfRecorded, public ::testing::WithParamInterface<const char*> {};

TEST_P(AbruptEnd, LeavesAReadableTrace) {
  probe(GetParam());
  const Trace trace = read_trace(output);
  EXPECT_FALSE(trace.footer.present);
  EXPECT_THAT(trace.entries, SizeIs(10));
}
INSTANTIATE_TEST_SUITE_P(Ends, AbruptEnd, ::testing::Values("_exit", "abort", "throw", "kill_late"),
                         [](const auto& param) {
                           const std::string text = param.param;
                           return text == "_exit"   ? "QuickExit"
                                  : text == "abort" ? "Abort"
                                  : text == "throw" ? "Exception"
                                                    : "Kill";
                         });

TEST_F(SelfRecorded, ExitGoesBeforeTracesOfOtherThreads) {
  const ProcessResult result = probe("exit_while_tracing", "1000");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(read_trace(output).footer.present);
}

TEST_F(SelfRecorded, PLUG_05_StaticObjectsRecordToTheEnd) {
  const ProcessResult result = probe("static_objects");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  const Trace trace = read_trace(output);
  EXPECT_TRUE(trace.footer.present);
  ASSERT_THAT(trace.entries, SizeIs(11));
  EXPECT_EQ(trace.entries.back().name, "from a static destructor");
}

TEST_F(SelfRecorded, CompressesByName) {
  output += ".zst";
  EXPECT_EQ(probe("plain").exit_code, 0);
  EXPECT_THAT(read_file(output).substr(0, 4), ::testing::Eq("\x28\xb5\x2f\xfd"));
  EXPECT_THAT(read_trace(output).entries, SizeIs(10));
}

class Forking : public SelfRecorded, public ::testing::WithParamInterface<const char*> {};

TEST_P(Forking, TRC_15_EveryProcessHasAFileOfItsOwn) {
  const ProcessResult result = probe(GetParam());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  const std::vector<fs::path> found = files();
  ASSERT_THAT(found, SizeIs(4));
  std::vector<std::size_t> workers;
  for (const fs::path& file : found) {
    const Trace trace = read_trace(file);
    EXPECT_TRUE(trace.footer.present) << file;
    for (const LaunchTraceEntry& entry : trace.entries) {
      EXPECT_EQ(entry.name, file == output ? "parent" : "worker") << file;
    }
    if (file == output) continue;
    EXPECT_EQ(file.filename(), "out." + std::to_string(trace.info.pid) + ".0.jsonl");
    workers.push_back(trace.entries.size());
  }
  EXPECT_THAT(workers, ::testing::UnorderedElementsAre(1, 2, 3));
}
INSTANTIATE_TEST_SUITE_P(Forks, Forking, ::testing::Values("forks_after_use"),
                         [](const auto&) { return "AfterUse"; });

TEST_F(SelfRecorded, TheFirstProcessThatRecordsTakesTheName) {
  // The children use the recorder before their parent does.
  const ProcessResult result = probe("forks_before_use");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  std::vector<std::size_t> others;
  for (const fs::path& file : files()) {
    const Trace trace = read_trace(file);
    EXPECT_TRUE(trace.footer.present) << file;
    if (file != output) others.push_back(trace.entries.size());
  }
  EXPECT_THAT(read_trace(output).entries, SizeIs(1)) << "the first worker";
  EXPECT_THAT(others, ::testing::UnorderedElementsAre(2, 3, 4));
}

TEST_F(SelfRecorded, ChildrenAndTracesInMemoryDoNotMix) {
  EXPECT_EQ(probe("fork_with_traces").exit_code, 0);
}

TEST_F(SelfRecorded, ExecMakesAnotherFile) {
  EXPECT_EQ(probe("execs").exit_code, 0);
  const std::vector<fs::path> found = files();
  ASSERT_THAT(found, SizeIs(2));
  const fs::path& after = found[0] == output ? found[1] : found[0];
  EXPECT_THAT(read_trace(after).entries, SizeIs(3));
  EXPECT_TRUE(read_trace(after).footer.present);
  EXPECT_FALSE(read_trace(output).footer.present);
}

TEST_F(SelfRecorded, ProgramsTheyStartMayRecordElsewhere) {
  const std::string other = folder / "b.jsonl";
  more["PROBE_OTHER_TRACE"] = other;
  const ProcessResult result = probe("starts_another");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(files(), ::testing::UnorderedElementsAre(output, other));
  EXPECT_THAT(read_trace(output).entries, SizeIs(2));
  EXPECT_THAT(read_trace(other).entries, SizeIs(3));
  EXPECT_TRUE(read_trace(other).footer.present);
}

TEST_F(SelfRecorded, TheSameFileInOtherWordsIsStillTheirs) {
  more["PROBE_OTHER_TRACE"] = folder / "./none/../out.jsonl";
  EXPECT_EQ(probe("starts_another").exit_code, 0);
  EXPECT_THAT(files(), SizeIs(2));
  EXPECT_THAT(read_trace(output).entries, SizeIs(2));
}

/// The name of a forked worker's file is longer than the first one.
TEST_F(SelfRecorded, WorkersWhoseFileHasNoNameGoOn) {
  output = folder / (std::string(248, 'n') + ".jsonl");
  const ProcessResult result = probe("forks_after_use");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(files(), SizeIs(1));
  EXPECT_THAT(read_trace(output).entries, SizeIs(9));
  EXPECT_THAT(result.err, HasSubstr("lockstep: the trace is incomplete: "));
  EXPECT_THAT(result.err, HasSubstr("File name too long"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 3) << "once each:\n"
                                                                       << result.err;
}

TEST_F(SelfRecorded, WorkersThatMayNotSeeTheFolderGoOn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can drop privileges";
  fs::permissions(folder.path(), fs::perms::owner_all);
  const ProcessResult result = probe("drops_privileges");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(files(), SizeIs(1));
  EXPECT_THAT(read_trace(output).entries, SizeIs(2));
  EXPECT_THAT(result.err, HasSubstr("lockstep: the trace is incomplete: "));
  EXPECT_THAT(result.err, HasSubstr("Permission denied"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST_F(SelfRecorded, FoldersThatAreGoneAreATypedError) {
  ProcessOptions options;
  options.environment["LOCKSTEP_TRACE"] = "out.jsonl";
  const ProcessResult result =
      run({"sh", "-c", "mkdir \"$0\" && cd \"$0\" && rmdir \"$0\" && exec \"$1\" plain 3",
           folder / "gone", LOCKSTEP_PROBE},
          options);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.out, HasSubstr("error 17: LOCKSTEP_TRACE is 'out.jsonl'"));
}

TEST_F(SelfRecorded, RanksHaveNamesOfTheirOwn) {
  more["RANK"] = "3";
  more["WORLD_SIZE"] = "8";
  EXPECT_EQ(probe("plain").exit_code, 0);
  EXPECT_THAT(read_trace(folder / "out.rank3.jsonl").entries, SizeIs(10));
  more["WORLD_SIZE"] = "1";
  EXPECT_EQ(probe("plain").exit_code, 0);
  EXPECT_THAT(read_trace(output).entries, SizeIs(10));
}

TEST_F(SelfRecorded, ExistingTracesAreReplacedOnRequestOnly) {
  write_file(output, "precious");
  const ProcessResult refused = probe("plain");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.out, HasSubstr("error 17"));
  EXPECT_THAT(refused.err, HasSubstr(output));
  EXPECT_EQ(read_file(output), "precious");
  more["LOCKSTEP_TRACE_FORCE"] = "1";
  EXPECT_EQ(probe("plain").exit_code, 0);
  EXPECT_THAT(read_trace(output).entries, SizeIs(10));
  more["LOCKSTEP_TRACE_FORCE"] = "maybe";
  EXPECT_THAT(probe("plain").out, HasSubstr("error 1: LOCKSTEP_TRACE_FORCE is 'maybe'"));
}

TEST_F(SelfRecorded, ProgramsThatRecordNothingHaveAnEmptyTrace) {
  EXPECT_EQ(probe("plain", "0").exit_code, 0);
  const Trace trace = read_trace(output);
  EXPECT_TRUE(trace.footer.present);
  EXPECT_THAT(trace.entries, IsEmpty());
}

TEST_F(SelfRecorded, WaitsStandInOrderOnTheStreamTheyBelongTo) {
  EXPECT_EQ(probe("waits_first").exit_code, 0);
  const Trace trace = read_trace(output);
  ASSERT_THAT(trace.entries, SizeIs(5));
  std::vector<std::pair<std::string, std::uint32_t>> order;
  for (const LaunchTraceEntry& entry : trace.entries) {
    order.emplace_back(entry.name, entry.stream_index);
  }
  EXPECT_THAT(order, ::testing::ElementsAre(std::pair("a", 0u), std::pair("fakeEventRecord", 0u),
                                            std::pair("fakeStreamWaitEvent", 1u),
                                            std::pair("b", 0u), std::pair("c", 1u)));
}

TEST_F(SelfRecorded, EventsBeforeWorkAreOnTheirStream) {
  for (const char* count : {"1", "2000", "70000"}) {
    output = folder / (std::string(count) + ".jsonl");
    more["PROBE_FILE"] = output;
    EXPECT_EQ(probe("events_first", count).exit_code, 0);
    expect_file_like_memory(output);
  }
  EXPECT_THAT(read_file(folder / "1.jsonl"), ::testing::Not(HasSubstr("2147483648")))
      << "numbers that are known soon are written at once";
}

TEST_F(SelfRecorded, EventsLongBeforeWorkAreOnTheirStream) {
  more["PROBE_FILE"] = output;
  EXPECT_EQ(probe("events_long_before", "1").exit_code, 0);
  EXPECT_THAT(read_file(output), HasSubstr("\"replaces\":2147483649}"));
  expect_file_like_memory(output);
}

TEST_F(SelfRecorded, EventsBeforeWorkOfATruncatedFileAreOnTheirStream) {
  more["PROBE_FILE"] = output;
  EXPECT_EQ(probe("events_then_killed", "1").exit_code, 128 + 9);
  EXPECT_FALSE(read_trace(output).footer.present);
  expect_file_like_memory(output);
}

class BufferSize : public SelfRecorded, public ::testing::WithParamInterface<const char*> {};

TEST_P(BufferSize, BIG_03_LargeOnesRecord) {
  more["LOCKSTEP_TRACE_BUFFER_MB"] = GetParam();
  EXPECT_EQ(probe("traced").out, "10\n");
  EXPECT_THAT(read_trace(output).entries, SizeIs(10));
}
INSTANTIATE_TEST_SUITE_P(Megabytes, BufferSize, ::testing::Values("1", "2047", "2048", "4096"));

class BadBufferSize : public SelfRecorded, public ::testing::WithParamInterface<const char*> {};

TEST_P(BadBufferSize, BIG_03_IsAConfigurationError) {
  more["LOCKSTEP_TRACE_BUFFER_MB"] = GetParam();
  const ProcessResult result = probe("traced");
  EXPECT_EQ(result.exit_code, 3);
  const std::string said = std::string("LOCKSTEP_TRACE_BUFFER_MB is '") + GetParam() + "'";
  EXPECT_THAT(result.out, HasSubstr("error 1: " + said));
  EXPECT_THAT(result.err, HasSubstr(said));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_FALSE(fs::exists(output));
}
INSTANTIATE_TEST_SUITE_P(Values, BadBufferSize,
                         ::testing::Values("0", "-1", "abc", "", "1.5", "99999999999999999999"));

TEST_F(SelfRecorded, FullRingsMakeLaunchersWaitAndAreCounted) {
  more["LOCKSTEP_TRACE_BUFFER_MB"] = "1";
  EXPECT_EQ(probe("many_threads", "100000").exit_code, 0);
  TraceReader reader(output);
  std::uint64_t entries = 0;
  std::optional<TraceFooter> footer;
  while (auto item = reader.next()) {
    if (std::holds_alternative<LaunchTraceEntry>(*item)) ++entries;
    if (const auto* found = std::get_if<TraceFooter>(&*item)) footer = *found;
  }
  EXPECT_EQ(entries, 800000u);
  ASSERT_TRUE(footer.has_value());
  EXPECT_GT(footer->stalls, 0u);
  EXPECT_EQ(footer->dropped, 0u);
}

}  // namespace
}  // namespace lockstep::testing
