// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_file.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>
#include <variant>

#include "cli/cli_test.h"

namespace lockstep::testing {
namespace {

ProcessResult record(const std::string& output, const std::vector<std::string>& command,
                     std::vector<std::string> options = {}, ProcessOptions process = {}) {
  options.insert(options.begin(), {"record", "-o", output});
  options.emplace_back("--");
  options.insert(options.end(), command.begin(), command.end());
  return lockstep_cli(options, std::move(process));
}

TEST(CliRecord, KeepsWhatTheProgramEnqueued) {
  const TempFolder folder;
  const ProcessResult result =
      record(folder / "out.jsonl", {LOCKSTEP_MARKS_PROGRAM, "100"}, {"--strict"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "made 100 marks\n");
  EXPECT_NE(result.err.find("out.jsonl: 100 entries, pid "), std::string::npos) << result.err;
  const Trace trace = read_trace(folder / "out.jsonl");
  EXPECT_TRUE(trace.footer.present);
  ASSERT_EQ(trace.entries.size(), 100u);
  EXPECT_EQ(trace.entries[99].kind, OperationKind::kMark);
  EXPECT_EQ(trace.entries[99].name, "step");
}

TEST(CliRecord, JsonIsTheLastLine) {
  const TempFolder folder;
  const ProcessResult result =
      record(folder / "out.jsonl", {LOCKSTEP_MARKS_PROGRAM, "7", "exit", "9"}, {"--json"});
  EXPECT_EQ(result.exit_code, 9) << result.err;
  const std::string said = "made 7 marks\n";
  ASSERT_EQ(result.out.rfind(said, 0), 0u) << result.out;
  const auto json = checked_json(result.out.substr(said.size()), "record");
  EXPECT_EQ(json.at("exit_code"), 9);
  EXPECT_EQ(json.at("complete"), true);
  ASSERT_EQ(json.at("files").size(), 1u);
  EXPECT_EQ(json.at("files").at(0).at("path"), folder / "out.jsonl");
  EXPECT_EQ(json.at("files").at(0).at("entries"), 7);
}

TEST(CliRecord, OptionsMayStandBeforeTheVerb) {
  const TempFolder folder;
  int file = 0;
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--color", "never"}, {"--color=never"}, {"--json", "--color", "always"}}) {
    const std::string output = folder / (std::to_string(++file) + ".jsonl");
    std::vector<std::string> arguments = options;
    // What looks like an option of ours behind the dashes is the program's.
    arguments.insert(arguments.end(), {"record", "-o", output, "--", "sh", "-c", "exit $#", "sh",
                                       "--color", "never", "--"});
    const ProcessResult result = lockstep_cli(arguments);
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_TRUE(std::filesystem::exists(output)) << result.err;
  }
}

TEST(CliRecord, ReturnsTheProgramsOwnCode) {
  const TempFolder folder;
  EXPECT_EQ(record(folder / "a.jsonl", {"sh", "-c", "exit 3"}).exit_code, 3);
  EXPECT_EQ(record(folder / "b.jsonl", {"sh", "-c", "kill -KILL $$"}).exit_code, 128 + SIGKILL);
  EXPECT_EQ(record(folder / "c.jsonl", {LOCKSTEP_MARKS_PROGRAM, "1", "signal", "6"}).exit_code,
            128 + SIGABRT);
}

TEST(CliRecord, KilledProgramLosesNothing) {
  const TempFolder folder;
  const ProcessResult result =
      record(folder / "out.jsonl", {LOCKSTEP_MARKS_PROGRAM, "500", "signal", "9"});
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_EQ(read_trace(folder / "out.jsonl").entries.size(), 500u);
}

TEST(CliRecord, SignalsReachTheProgram) {
  const TempFolder folder;
  ProcessOptions options;
  options.wait_for = "made 5 marks";
  options.when_ready = [](pid_t lockstep) { kill(lockstep, SIGTERM); };
  const ProcessResult result =
      record(folder / "out.jsonl", {LOCKSTEP_MARKS_PROGRAM, "5", "wait"}, {}, options);
  EXPECT_EQ(result.exit_code, 42) << result.err;  // the program's own answer to SIGTERM
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(read_trace(folder / "out.jsonl").entries.size(), 5u);

  options.when_ready = [](pid_t lockstep) { kill(lockstep, SIGINT); };
  const ProcessResult interrupted =
      record(folder / "int.jsonl", {LOCKSTEP_MARKS_PROGRAM, "5", "wait"}, {}, options);
  EXPECT_EQ(interrupted.exit_code, 128 + SIGINT);
  EXPECT_EQ(read_trace(folder / "int.jsonl").entries.size(), 5u);
}

/// Ctrl-C goes to the whole group: the program must get it once, and we must outlive it.
TEST(CliRecord, SignalOfTheGroupIsOutlived) {
  const TempFolder folder;
  ProcessOptions options;
  options.wait_for = "ready";
  options.when_ready = [](pid_t lockstep) { kill(-lockstep, SIGINT); };
  const ProcessResult result = record(
      folder / "out.jsonl",
      {"sh", "-c", "trap 'exit 23' INT; echo ready; while :; do sleep 0.05; done"}, {}, options);
  EXPECT_EQ(result.exit_code, 23) << result.err;
  EXPECT_TRUE(read_trace(folder / "out.jsonl").footer.present);
}

TEST(CliRecord, ProgramThatNeverUsedLockstep) {
  const TempFolder folder;
  const ProcessResult result = record(folder / "out.jsonl", {"echo", "--help"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("--help"), std::string::npos);  // not taken for ours
  EXPECT_NE(result.err.find("warning: the program enqueued nothing through Lockstep"),
            std::string::npos)
      << result.err;
  const Trace trace = read_trace(folder / "out.jsonl");
  EXPECT_TRUE(trace.footer.present);
  EXPECT_TRUE(trace.entries.empty());
  EXPECT_EQ(trace.info.command, (std::vector<std::string>{"echo", "--help"}));
}

TEST(CliRecord, NothingRecordedIsAHoleUnderStrict) {
  const TempFolder folder;
  const ProcessResult never = record(folder / "never.jsonl", {"true"}, {"--strict"});
  EXPECT_EQ(never.exit_code, 6) << never.err;
  EXPECT_NE(never.err.find(
                "error: the program enqueued nothing through Lockstep: the trace has no entries"),
            std::string::npos)
      << never.err;
  EXPECT_NE(
      never.err.find("directly before the program itself, and see what it does without (--strict)"),
      std::string::npos);
  EXPECT_EQ(never.err.find("warning"), std::string::npos) << never.err;
  EXPECT_TRUE(read_trace(folder / "never.jsonl").footer.present);

  const ProcessResult idle =
      record(folder / "idle.jsonl", {LOCKSTEP_MARKS_PROGRAM, "0", "device"}, {"--strict"});
  EXPECT_EQ(idle.exit_code, 6) << idle.err;
  EXPECT_NE(idle.err.find("error: the program enqueued nothing through Lockstep"),
            std::string::npos)
      << idle.err;
  const ProcessResult json =
      record(folder / "json.jsonl", {LOCKSTEP_MARKS_PROGRAM, "0"}, {"--strict", "--json"});
  EXPECT_EQ(json.exit_code, 6) << json.err;
  const auto answer = checked_json(json.out.substr(json.out.find('{')), "record");
  EXPECT_EQ(answer.at("exit_code"), 0);

  // One process of several is enough; a program's own failure comes first.
  EXPECT_EQ(record(folder / "some.jsonl",
                   {"sh", "-c", "\"$0\" 0; \"$0\" 2", LOCKSTEP_MARKS_PROGRAM}, {"--strict"})
                .exit_code,
            0);
  EXPECT_EQ(record(folder / "own.jsonl", {"sh", "-c", "exit 9"}, {"--strict"}).exit_code, 9);
}

TEST(CliRecord, ProgramThatCannotRun) {
  const TempFolder folder;
  const ProcessResult missing = record(folder / "out.jsonl", {"no-such-program-anywhere"});
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_NE(missing.err.find("there is no program 'no-such-program-anywhere'"), std::string::npos)
      << missing.err;
  EXPECT_EQ(record(folder / "out.jsonl", {"./nor-this"}).exit_code, 127);
  write_file(folder / "text", "not executable");
  const ProcessResult text = record(folder / "out.jsonl", {folder / "text"});
  EXPECT_EQ(text.exit_code, 126);
  EXPECT_FALSE(std::filesystem::exists(folder / "out.jsonl"));
}

TEST(CliRecord, ExistingOutputIsKeptUnlessForced) {
  const TempFolder folder;
  const std::string output = folder / "out.jsonl";
  const std::string witness = folder / "witness";
  write_file(output, "precious");
  const ProcessResult refused = record(output, {"touch", witness});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("exists; --force replaces it"), std::string::npos) << refused.err;
  EXPECT_EQ(read_file(output), "precious");
  EXPECT_FALSE(std::filesystem::exists(witness)) << "the program ran";

  const ProcessResult forced = record(output, {LOCKSTEP_MARKS_PROGRAM, "2"}, {"--force"});
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_EQ(read_trace(output).entries.size(), 2u);
  EXPECT_EQ(record(folder / "no/such/out.jsonl", {"touch", witness}).exit_code, 2);
  EXPECT_EQ(record(folder.path().string(), {"touch", witness}).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(witness));
}

TEST(CliRecord, FilesOfRanksAreKeptUnlessForced) {
  const TempFolder folder;
  const std::string output = folder / "out.jsonl";
  const std::string witness = folder / "witness";
  const std::vector<std::string> ranks = {
      "sh", "-c",
      "touch \"$1\"; for rank in 0 1; do RANK=$rank WORLD_SIZE=2 \"$0\" $((rank + 2)); done",
      LOCKSTEP_MARKS_PROGRAM, witness};
  ASSERT_EQ(record(output, ranks).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(output));
  ASSERT_TRUE(std::filesystem::remove(witness));

  const ProcessResult refused = record(output, ranks);
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("out.rank0.jsonl exists; --force replaces it"), std::string::npos)
      << refused.err;
  EXPECT_FALSE(std::filesystem::exists(witness)) << "the program ran";

  const ProcessResult forced = record(output, ranks, {"--force"});
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_EQ(read_trace(folder / "out.rank0.jsonl").entries.size(), 2u);
  EXPECT_EQ(read_trace(folder / "out.rank1.jsonl").entries.size(), 3u);
}

TEST(CliRecord, OneLostTraceCostsNoOther) {
  const TempFolder folder;
  const std::string output = folder / (std::string(248, 'n') + ".jsonl");
  const ProcessResult result = record(
      output, {"sh", "-c", "\"$0\" 3 && \"$0\" 4 && \"$0\" 5", LOCKSTEP_MARKS_PROGRAM}, {"--json"});
  EXPECT_EQ(result.exit_code, 5) << result.err;
  EXPECT_NE(result.err.find("File name too long"), std::string::npos) << result.err;
  EXPECT_EQ(read_trace(output).entries.size(), 3u);
  EXPECT_TRUE(read_trace(output).footer.present);
  const std::string said = "made 3 marks\nmade 4 marks\nmade 5 marks\n";
  ASSERT_EQ(result.out.rfind(said, 0), 0u) << result.out;
  const auto json = checked_json(result.out.substr(said.size()), "record");
  EXPECT_EQ(json.at("complete"), false);
  ASSERT_EQ(json.at("files").size(), 1u);
  EXPECT_EQ(json.at("files").at(0).at("entries"), 3);
}

/// Entries of a trace that is being written; -1 while it has no header.
int entries_so_far(const std::string& path, std::int64_t* program) {
  int count = 0;
  try {
    TraceReader reader(path);
    while (const auto item = reader.next())
      count += std::holds_alternative<LaunchTraceEntry>(*item);
    *program = reader.info().pid;
  } catch (const Error&) {
    return -1;
  }
  return count;
}

/// Whether some recording's folder has files of that process.
bool is_left_behind(std::int64_t program) {
  std::error_code ignored;  // folders of other tests come and go
  for (const std::filesystem::path& parent :
       {std::filesystem::path("/dev/shm"), std::filesystem::temp_directory_path()}) {
    for (std::filesystem::directory_iterator folder(parent, ignored), end;
         !ignored && folder != end; folder.increment(ignored)) {
      const std::string name = folder->path().filename().string();
      if (name.rfind("lockstep-record-", 0) == 0 &&
          std::filesystem::exists(folder->path() / (std::to_string(program) + ".0.image"),
                                  ignored)) {
        return true;
      }
    }
  }
  return false;
}

TEST(CliRecord, KilledRecorderLeavesATruncatedTraceAndNothingElse) {
  const TempFolder folder;
  const std::string output = folder / "out.jsonl";
  std::int64_t program = 0;
  ProcessOptions options;
  options.wait_for = "made 5 marks";
  options.when_ready = [&](pid_t recorder) {
    for (int round = 0; round < 6000 && entries_so_far(output, &program) < 5; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(recorder, SIGKILL);
    if (program > 1) kill(static_cast<pid_t>(program), SIGKILL);
  };
  const ProcessResult result = record(output, {LOCKSTEP_MARKS_PROGRAM, "5", "wait"}, {}, options);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  const Trace trace = read_trace(output);
  EXPECT_EQ(trace.entries.size(), 5u);
  EXPECT_FALSE(trace.footer.present);
  ASSERT_GT(program, 1);
  EXPECT_EQ(record(folder / "next.jsonl", {LOCKSTEP_MARKS_PROGRAM, "1"}).exit_code, 0);
  EXPECT_FALSE(is_left_behind(program));
}

/// Processes whose numbers programs have written into files there; they end with the test.
struct LeftRunning {
  const TempFolder& folder;
  ~LeftRunning() {
    for (const char* name : {"runs", "sleeps"}) {
      const int pid =
          std::filesystem::exists(folder / name) ? std::stoi(read_file(folder / name)) : 0;
      if (pid > 1) kill(pid, SIGKILL);
    }
  }
};

TEST(CliRecord, ProcessesThatOutliveTheProgramAreHoles) {
  const TempFolder folder;
  const LeftRunning left{folder};
  const std::string output = folder / "out.jsonl";
  const std::vector<std::string> command = {
      "sh",
      "-c",
      "\"$0\" \"$2\" wait >\"$1/said\" 2>&1 & echo $! >\"$1/runs\"; "
      "until grep -q made \"$1/said\"; do sleep 0.02; done",
      LOCKSTEP_MARKS_PROGRAM,
      folder.path().string(),
      "5"};
  const ProcessResult strict = record(output, command, {"--strict", "--json"});
  EXPECT_EQ(strict.exit_code, 6) << strict.err;
  const std::string pid = std::to_string(std::stoi(read_file(folder / "runs")));
  EXPECT_NE(strict.err.find("warning: pid " + pid + " (" + LOCKSTEP_MARKS_PROGRAM +
                            " 5 wait) still runs though the program has ended: what it enqueues "
                            "from now on is missing from " +
                            output),
            std::string::npos)
      << strict.err;
  const auto json = checked_json(strict.out, "record");
  EXPECT_EQ(json.at("holes"), true);
  EXPECT_EQ(json.at("files").at(0).at("coverage").at("holes"), 1);
  const Trace trace = read_trace(output);
  EXPECT_EQ(trace.entries.size(), 5u);
  EXPECT_EQ(trace.footer.coverage, R"({"holes":1})");
  ASSERT_EQ(kill(std::stoi(pid), SIGKILL), 0);

  const ProcessResult plain = record(output, command, {"--force"});
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_NE(plain.err.find("still runs"), std::string::npos) << plain.err;
}

TEST(CliRecord, ProcessesThatOnlyWaitToBeReapedAreOver) {
  const TempFolder folder;
  const LeftRunning left{folder};
  const ProcessResult result = record(
      folder / "out.jsonl",
      {"sh", "-c",
       "sh -c \"$2\" \"$0\" \"$1\" >\"$1/said\" 2>&1 & echo $! >\"$1/sleeps\"; "
       "until grep -q '^State:.Z' \"/proc/$(cat \"$1/ends\")/status\"; do sleep 0.02; done "
       "2>/dev/null",
       LOCKSTEP_MARKS_PROGRAM, folder.path().string(),
       // Not before its parent is a program that reaps nobody, as a shell might.
       "(until grep -q '^Name:.sleep' /proc/$$/status; do sleep 0.02; done; exec \"$0\" 3) & "
       "echo $! >\"$1/ends\"; exec sleep 1000"},
      {"--strict"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err.find("warning"), std::string::npos) << result.err;
  EXPECT_EQ(read_trace(folder / "out.jsonl").entries.size(), 3u);
}

TEST(CliRecord, ProcessNumbersOfAnotherNamespace) {
  std::vector<std::string> command = {"unshare", "-pf"};
  if (geteuid() != 0) command.emplace_back("-Ur");
  std::vector<std::string> probe = command;
  probe.emplace_back("true");
  const ProcessResult allowed = run(probe);
  if (allowed.exit_code != 0) GTEST_SKIP() << "no PID namespace can be made here: " << allowed.err;

  const TempFolder folder;
  const std::string output = folder / "out.jsonl";
  // The program's number there is likely to be nobody's here.
  command.insert(
      command.end(),
      {"sh", "-c",
       "i=0; while [ $i -lt 300 ]; do (:); i=$((i+1)); done; \"$0\" 5 again \"$1/go\"; :",
       LOCKSTEP_MARKS_PROGRAM, folder.path().string()});
  ProcessOptions options;
  options.wait_for = "made 5 marks";
  options.when_ready = [&](pid_t) {
    std::int64_t ignored = 0;
    for (int round = 0; round < 6000 && entries_so_far(output, &ignored) < 5; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    write_file(folder / "go", "");
  };
  const ProcessResult result = record(output, command, {"--strict"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_trace(output).entries.size(), 10u);
}

TEST(CliRecord, CompressAddsTheSuffix) {
  const TempFolder folder;
  ProcessOptions options;
  options.folder = folder.path().string();
  const ProcessResult result =
      lockstep_cli({"record", "--compress", "--", LOCKSTEP_MARKS_PROGRAM, "3"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string bytes = read_file(folder / "trace.jsonl.zst");
  EXPECT_EQ(bytes.substr(0, 4), "\x28\xb5\x2f\xfd");
  EXPECT_EQ(read_trace(folder / "trace.jsonl.zst").entries.size(), 3u);
}

TEST(Cases, NAME_03_RecordIntoUnusualNames) {
  const TempFolder folder("Ünï 中文");
  const std::string program = folder / "prögram 程序";
  std::filesystem::create_symlink(LOCKSTEP_MARKS_PROGRAM, program);
  ProcessOptions options;
  options.environment["LC_ALL"] = "C";
  const std::string output = folder / "träce \"1\".jsonl";
  const ProcessResult result = record(output, {program, "4"}, {}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Trace trace = read_trace(output);
  EXPECT_EQ(trace.entries.size(), 4u);
  EXPECT_EQ(trace.info.command.at(0), program);
}

}  // namespace
}  // namespace lockstep::testing
