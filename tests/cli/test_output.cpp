// SPDX-License-Identifier: Apache-2.0
// What holds for every verb: colours, streams that break, names of files.
#include <filesystem>
#include <string>

#include "cli/cli_test.h"

namespace lockstep::testing {
namespace {

std::vector<std::string> different() {
  return {"diff", trace_path("mlp-eager-b8-fp32"), trace_path("mlp-eager-b64-fp32")};
}

bool colored(const std::vector<std::string>& options,
             const std::map<std::string, std::optional<std::string>>& environment) {
  std::vector<std::string> arguments = different();
  arguments.insert(arguments.end(), options.begin(), options.end());
  ProcessOptions process;
  process.environment = environment;
  const ProcessResult result = lockstep_cli(arguments, process);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  return result.out.find("\x1b[") != std::string::npos;
}

TEST(CliOutput, ColoursOnlyWhereTheyAreWanted) {
  EXPECT_FALSE(colored({}, {}));  // not a terminal
  EXPECT_FALSE(colored({"--color", "auto"}, {{"TERM", "xterm"}}));
  EXPECT_TRUE(colored({"--color", "always"}, {}));
  EXPECT_TRUE(colored({"--color=always"}, {{"NO_COLOR", "1"}, {"TERM", "dumb"}}));
  EXPECT_TRUE(colored({}, {{"CLICOLOR_FORCE", "1"}}));
  EXPECT_FALSE(colored({}, {{"CLICOLOR_FORCE", "0"}}));
  EXPECT_FALSE(colored({}, {{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}));
  EXPECT_FALSE(colored({"--color", "never"}, {{"CLICOLOR_FORCE", "1"}}));
}

/// `script` gives the program a terminal, which no pipe can.
TEST(CliOutput, ColoursOnATerminal) {
  if (run({"script", "-qec", "true", "/dev/null"}).exit_code != 0) {
    GTEST_SKIP()
        << "there is no `script` program, or it gets no terminal here (is /dev/pts there?)";
  }
  const std::string command =
      std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep show " + trace_path("mlp-eager-b8-fp32");
  const auto on_terminal = [&](std::map<std::string, std::optional<std::string>> environment) {
    environment.emplace("NO_COLOR", std::nullopt);
    environment.emplace("CLICOLOR_FORCE", std::nullopt);
    ProcessOptions options;
    options.environment = environment;
    const ProcessResult result = run({"script", "-qec", command, "/dev/null"}, options);
    EXPECT_EQ(result.exit_code, 0) << result.out;
    return result.out.find("\x1b[") != std::string::npos;
  };
  EXPECT_TRUE(on_terminal({{"TERM", "xterm"}}));
  EXPECT_FALSE(on_terminal({{"TERM", "dumb"}}));
  EXPECT_FALSE(on_terminal({{"TERM", "xterm"}, {"NO_COLOR", "1"}}));
}

TEST(CliOutput, BrokenPipeIsQuiet) {
  ProcessOptions options;
  options.close_out = true;
  const ProcessResult killed = lockstep_cli({"show", trace_path("gpt2-fwd-b1-bf16-l2")}, options);
  EXPECT_EQ(killed.exit_code, 141);
  EXPECT_EQ(killed.err, "");
  // Where a parent ignores SIGPIPE the write fails instead.
  const ProcessResult failed =
      run({"sh", "-c", "trap '' PIPE; exec \"$0\" show \"$1\"",
           std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep", trace_path("gpt2-fwd-b1-bf16-l2")},
          options);
  EXPECT_EQ(failed.exit_code, 141);
  EXPECT_EQ(failed.err, "");
}

TEST(CliOutput, FullDiskIsReported) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  ProcessOptions options;
  options.out_path = "/dev/full";
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"},
        {"--version"},
        different(),
        {"show", trace_path("mlp-eager-b8-fp32")},
        {"show", trace_path("mlp-eager-b8-fp32"), "--jsonl"}}) {
    const ProcessResult result = lockstep_cli(arguments, options);
    EXPECT_EQ(result.exit_code, 5) << arguments.front();
    EXPECT_NE(result.err.find("cannot write standard output: No space left on device"),
              std::string::npos)
        << result.err;
  }
}

TEST(Cases, NAME_03_PathsOfAnyBytes) {
  const TempFolder folder("Ünï 中文 \"quoted\"\\ and\nnew line");
  ProcessOptions options;
  options.environment["LC_ALL"] = "C";
  options.folder = folder.path().string();
  for (const std::string name : {"Ünï 中文.jsonl", "diff", "a'b\"c", "\xff\xfe.jsonl"}) {
    const std::string file = folder / name;
    std::filesystem::copy_file(trace_path("mlp-eager-b8-fp32"), file);
    const ProcessResult equal =
        lockstep_cli({"diff", file, trace_path("mlp-eager-b8-fp32"), "--json"}, options);
    EXPECT_EQ(equal.exit_code, 0) << equal.err;
    EXPECT_EQ(checked_json(equal.out, "diff").at("equal"), true);
    const ProcessResult shown = lockstep_cli({"show", name, "--json"}, options);
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_EQ(checked_json(shown.out, "show").at("entries"), 24);
  }
  // Names that look like options stand behind two dashes.
  std::filesystem::copy_file(trace_path("mlp-eager-b8-fp32"), folder / "--json");
  const ProcessResult dashes = lockstep_cli({"show", "--stat", "--", "--json"}, options);
  EXPECT_EQ(dashes.exit_code, 0) << dashes.err;
  EXPECT_NE(dashes.out.find("24 of 24 entries"), std::string::npos) << dashes.out;
}

}  // namespace
}  // namespace lockstep::testing
