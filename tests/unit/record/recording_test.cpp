// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/recording.h>
#include <lockstep/trace_file.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "support/process.h"
#include "support/temp_folder.h"
#include "unit/record/file_like_memory.h"
#include "unit/record/probe_environment.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Recorded : ::testing::Test {
  TempFolder folder;
  std::string output = folder / "out.jsonl";
  std::map<std::string, std::optional<std::string>> more = probe_environment();
  ProcessResult result;
  std::vector<std::string> told;  ///< by poll() and finish()

  /// Runs the probe while draining, as `lockstep record` does; not before it has said `begin`.
  std::vector<RecordedFile> record(const std::string& scenario, const std::string& count = "10",
                                   const std::string& begin = {}) {
    RecordingOptions options;
    options.output = output;
    options.command = {"probe", scenario};
    Recording recording(options);
    ProcessOptions process;
    process.environment = more;
    for (const auto& [name, value] : recording.environment()) process.environment[name] = value;
    std::atomic<bool> ended{false};
    std::atomic<bool> begun{begin.empty()};
    process.wait_for = begin;
    process.when_ready = [&begun](pid_t) { begun.store(true); };
    std::thread program([&] {
      result = run({LOCKSTEP_PROBE, scenario, count}, process);
      ended.store(true);
    });
    while (!ended.load()) {
      if (begun.load()) {
        keep_error([&] { recording.poll(std::chrono::milliseconds(5)); });
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    program.join();
    keep_error([&] { recording.finish(); });
    return recording.finish();
  }

  template <class Action>
  void keep_error(Action&& action) {
    try {
      action();
    } catch (const Error& error) {
      told.emplace_back(error.what());
    }
  }
};

TEST_F(Recorded, OneProgramOneFile) {
  const std::vector<RecordedFile> files = record("plain");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(told, IsEmpty());
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].path, output);
  EXPECT_EQ(files[0].entries, 10u);
  EXPECT_EQ(files[0].dropped, 0u);
  const Trace trace = read_trace(output);
  EXPECT_TRUE(trace.footer.present);
  ASSERT_THAT(trace.entries, SizeIs(10));
  EXPECT_EQ(trace.entries[0].name, "plain");
  EXPECT_EQ(trace.info.pid, files[0].pid);
  ASSERT_THAT(trace.info.command, SizeIs(3));
  EXPECT_EQ(trace.info.command[1], "plain");
}

TEST_F(Recorded, NothingRecordedIsAnEmptyFile) {
  const std::vector<RecordedFile> files = record("idle");
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].entries, 0u);
  const Trace trace = read_trace(output);
  EXPECT_TRUE(trace.footer.present);
  EXPECT_THAT(trace.entries, IsEmpty());
  EXPECT_THAT(trace.info.command, ::testing::ElementsAre("probe", "idle"));
}

TEST_F(Recorded, KilledProgramsLoseNothing) {
  for (int round = 0; round < 20; ++round) {
    output = folder / ("out" + std::to_string(round) + ".jsonl");
    const std::string count = std::to_string(1 + round * 997);
    const std::vector<RecordedFile> files = record("killed", count);
    ASSERT_EQ(result.exit_code, 128 + 9);
    ASSERT_THAT(files, SizeIs(1));
    ASSERT_EQ(std::to_string(files[0].entries), count) << "round " << round;
  }
}

TEST_F(Recorded, CallsInProgressAtTheEndArePending) {
  record("pending");
  const Trace trace = read_trace(output);
  ASSERT_THAT(trace.entries, SizeIs(2));
  EXPECT_FALSE(trace.entries[0].has(EntryFlag::kPending));
  EXPECT_TRUE(trace.entries[1].has(EntryFlag::kPending));
}

TEST_F(Recorded, EventsBeforeWorkAreOnTheirStream) {
  more["PROBE_FILE"] = output;
  record("events_long_before", "2000");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(read_trace(output).footer.present);
  expect_file_like_memory(output);
}

TEST_F(Recorded, EventsOfAKilledProgramAreOnTheirStream) {
  more["PROBE_FILE"] = output;
  record("events_then_killed", "2000");
  EXPECT_EQ(result.exit_code, 128 + 9);
  expect_file_like_memory(output);
}

class RecordedForks : public Recorded, public ::testing::WithParamInterface<const char*> {};

TEST_P(RecordedForks, EveryProcessHasAFileOfItsOwn) {
  const std::vector<RecordedFile> files = record(GetParam());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  ASSERT_THAT(files, SizeIs(4));
  EXPECT_EQ(files[0].path, output);
  std::vector<std::uint64_t> counts;
  for (const RecordedFile& file : files) {
    const Trace trace = read_trace(file.path);
    EXPECT_TRUE(trace.footer.present) << file.path;
    EXPECT_EQ(trace.entries.size(), file.entries);
    counts.push_back(file.entries);
    if (file.path == output) continue;
    EXPECT_EQ(file.path.filename(), "out." + std::to_string(file.pid) + ".0.jsonl");
  }
  const std::uint64_t parent = std::string(GetParam()) == "forks_after_use" ? 9 : 4;
  EXPECT_THAT(counts, ::testing::UnorderedElementsAre(1, 2, 3, parent));
}
INSTANTIATE_TEST_SUITE_P(Forks, RecordedForks,
                         ::testing::Values("forks_before_use", "forks_after_use"),
                         [](const auto& param) {
                           return std::string(param.param) == "forks_after_use" ? "AfterUse"
                                                                                : "BeforeUse";
                         });

TEST_F(Recorded, ForksWhileTheParentMakesRings) {
  const std::vector<RecordedFile> files = record("fork_while_rings_come");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ASSERT_THAT(files, SizeIs(2));
  EXPECT_EQ(files[0].entries, 7u);
  EXPECT_EQ(files[1].entries, 1u);
}

/// The names of the workers' files are longer than the first one.
TEST_F(Recorded, OneLostTraceCostsNoOther) {
  output = folder / (std::string(248, 'n') + ".jsonl");
  const std::vector<RecordedFile> files = record("forks_after_use");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  // By poll(), unless the program ended before the first, and by finish().
  ASSERT_FALSE(told.empty());
  ASSERT_LE(told.size(), 2u);
  EXPECT_THAT(told[0], ::testing::HasSubstr(": File name too long"));
  const std::string count = "; traces that are not complete: 3";
  EXPECT_THAT(told.back(), ::testing::EndsWith("File name too long" + count));
  if (told.size() == 2) {
    EXPECT_EQ(told[1], told[0] + count);
  }
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].path, output);
  EXPECT_EQ(files[0].entries, 9u);
  EXPECT_TRUE(read_trace(output).footer.present);
}

TEST_F(Recorded, ExecMakesAnotherImage) {
  const std::vector<RecordedFile> files = record("execs");
  ASSERT_THAT(files, SizeIs(2));
  EXPECT_EQ(files[0].entries, 2u);
  EXPECT_EQ(files[0].image, 0u);
  EXPECT_EQ(files[1].entries, 3u);
  EXPECT_EQ(files[1].image, 1u);
  EXPECT_EQ(files[1].pid, files[0].pid);
}

TEST_F(Recorded, TracesInMemoryWorkBesideIt) {
  const std::vector<RecordedFile> files = record("traced");
  EXPECT_EQ(result.out, "10\n");
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].entries, 10u);
  more["LOCKSTEP_TRACE_BUFFER_MB"] = "1";
  output = folder / "full.jsonl";
  EXPECT_EQ(record("traced", "100000")[0].entries, 100000u);
  EXPECT_EQ(result.out, "100000\n");
}

TEST_F(Recorded, RanksHaveNamesOfTheirOwn) {
  more["OMPI_COMM_WORLD_RANK"] = "1";
  more["OMPI_COMM_WORLD_SIZE"] = "2";
  const std::vector<RecordedFile> files = record("plain");
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].path, folder / "out.rank1.jsonl");
  EXPECT_EQ(files[0].rank, 1u);
}

TEST_F(Recorded, SmallRingsLoseNothing) {
  more["LOCKSTEP_TRACE_BUFFER_MB"] = "1";
  const std::vector<RecordedFile> files = record("many_threads", "100000");
  EXPECT_EQ(result.exit_code, 0);
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].entries, 800000u);
  EXPECT_EQ(files[0].dropped, 0u);
  EXPECT_GT(files[0].stalls, 0u);
}

/// An odd number damages a record's number, an even one its size.
class DamagedRings : public Recorded, public ::testing::WithParamInterface<const char*> {};

TEST_P(DamagedRings, AreCountedAndHoldUpNobody) {
  more["LOCKSTEP_TRACE_BUFFER_MB"] = "1";
  const std::vector<RecordedFile> files = record("damages_a_ring", GetParam(), "damaged");
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "damaged\n14 entries, 1 dropped\n");
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].entries, 14u);
  EXPECT_EQ(files[0].dropped, 1u);
  EXPECT_THAT(files[0].problem, ::testing::HasSubstr("wrote over a buffer"));
  const Trace trace = read_trace(output);
  EXPECT_EQ(trace.footer.dropped, 1u);
  ASSERT_THAT(trace.entries, SizeIs(14));
  EXPECT_EQ(trace.entries[3].name, "plain");
  EXPECT_EQ(trace.entries[4].name, "healthy");
}
INSTANTIATE_TEST_SUITE_P(Records, DamagedRings, ::testing::Values("40000", "40001"),
                         [](const auto& param) {
                           return std::string(param.param) == "40000" ? "Size" : "Number";
                         });

TEST_F(Recorded, RingsThatCannotBeHadAreToldAndHoldUpNobody) {
  more["LOCKSTEP_TRACE_BUFFER_MB"] = "1";
  const std::vector<RecordedFile> files = record("loses_a_ring", "40000", "damaged");
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].path, output);
  EXPECT_EQ(files[0].dropped, 1u);
  EXPECT_THAT(files[0].problem,
              ::testing::HasSubstr("cannot be mapped, and what it held is lost: No such"));
  const Trace trace = read_trace(output);
  EXPECT_EQ(trace.footer.dropped, 1u);
  ASSERT_THAT(trace.entries, SizeIs(10));
  EXPECT_EQ(trace.entries[9].name, "healthy");
}

/// A recording that ends while its program runs on.
struct RecordedInPart : Recorded {
  std::vector<RecordedFile> files;
  std::vector<RunningProcess> running;
  pid_t program = 0;

  void record_until_ready(const std::string& scenario) {
    RecordingOptions options;
    options.output = output;
    Recording recording(options);
    ProcessOptions process;
    process.environment = more;
    for (const auto& [name, value] : recording.environment()) process.environment[name] = value;
    process.wait_for = "ready";
    process.when_ready = [&](pid_t pid) {
      program = pid;
      keep_error([&] { files = recording.finish(); });
      running = recording.running();
      kill(pid, SIGKILL);
    };
    result = run({LOCKSTEP_PROBE, scenario, "10"}, process);
    EXPECT_EQ(result.exit_code, 128 + SIGKILL);
    EXPECT_THAT(told, IsEmpty());
  }
};

class RunsOn : public RecordedInPart, public ::testing::WithParamInterface<const char*> {};

TEST_P(RunsOn, IsAHole) {
  record_until_ready(GetParam());
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].entries, 10u);
  EXPECT_TRUE(files[0].running);
  ASSERT_THAT(running, SizeIs(1));
  EXPECT_EQ(running[0].pid, program);
  EXPECT_EQ(running[0].path, output);
  EXPECT_THAT(running[0].command, ::testing::ElementsAre(LOCKSTEP_PROBE, GetParam(), "10"));
  const Trace trace = read_trace(output);
  EXPECT_TRUE(trace.footer.present);
  EXPECT_EQ(trace.footer.coverage, R"({"hooks":7,"holes":3})");
}
INSTANTIATE_TEST_SUITE_P(AllWays, RunsOn, ::testing::Values("stays", "stays_without_files"),
                         [](const auto& param) {
                           return std::string(param.param) == "stays" ? "Open" : "WithoutFiles";
                         });

TEST_F(RecordedInPart, WhoCalledExecHasEnded) {
  record_until_ready("becomes_sleep");
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].entries, 10u);
  EXPECT_FALSE(files[0].running);
  EXPECT_THAT(running, IsEmpty());
  EXPECT_EQ(read_trace(output).footer.coverage.find("holes"), std::string::npos);
}

TEST_F(Recorded, FoldersOfRecordingsAreRemoved) {
  fs::path shared;
  {
    RecordingOptions options;
    options.output = output;
    Recording recording(options);
    shared = recording.environment().front().second;
    EXPECT_TRUE(fs::is_directory(shared));
  }
  EXPECT_FALSE(fs::exists(shared));
}

TEST_F(Recorded, OutputsAreCheckedAtTheStart) {
  write_file(output, "precious");
  const auto code_of = [](const RecordingOptions& options) {
    try {
      Recording recording(options);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kOk;
  };
  RecordingOptions options;
  options.output = output;
  EXPECT_EQ(code_of(options), ErrorCode::kInputOutput);
  options.force = true;
  EXPECT_EQ(code_of(options), ErrorCode::kOk);
  options.force = false;
  for (const char* taken : {"a.rank0.jsonl", "b.rank12.345.0.jsonl", "c.345.10.jsonl"}) {
    write_file(folder / taken, "precious");
    options.output = folder / std::string(1, taken[0]) + ".jsonl";
    EXPECT_EQ(code_of(options), ErrorCode::kInputOutput) << taken;
  }
  for (const char* free : {"d.1.jsonl", "d.rank.jsonl", "d.rankx.jsonl", "d.rank1.jsonl.zst",
                           "d.1.2.3.jsonl", "dd.rank1.jsonl", "d.rank1.5.jsonl"}) {
    write_file(folder / free, "of another");
  }
  options.output = folder / "d.jsonl";
  EXPECT_EQ(code_of(options), ErrorCode::kOk);
  options.output = folder / "missing" + "/out.jsonl";
  EXPECT_EQ(code_of(options), ErrorCode::kInvalidArgument);
  options.output = "";
  EXPECT_EQ(code_of(options), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep::testing
