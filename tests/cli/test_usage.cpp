// SPDX-License-Identifier: Apache-2.0
#include <ostream>
#include <string>

#include "cli/cli_test.h"

namespace lockstep::testing {
namespace {

const std::vector<std::string> kVerbs = {"devices", "record", "show", "diff",
                                         "verify",  "merge",  "rules"};

TEST(CliUsage, HelpOfEveryVerbIsOnStandardOutput) {
  const ProcessResult all = lockstep_cli({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(all.err, "");
  for (const std::string& verb : kVerbs) {
    EXPECT_NE(all.out.find("\n  " + verb + " "), std::string::npos) << all.out;
    const ProcessResult one = lockstep_cli({verb, "--help"});
    EXPECT_EQ(one.exit_code, 0) << verb;
    EXPECT_EQ(one.err, "") << verb;
    EXPECT_NE(one.out.find("Usage: lockstep " + verb), std::string::npos) << one.out;
    EXPECT_NE(one.out.find("--json"), std::string::npos) << one.out;
    EXPECT_NE(one.out.find("Exit codes:"), std::string::npos) << one.out;
  }
}

TEST(CliUsage, Version) {
  const ProcessResult text = lockstep_cli({"--version"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.out.rfind("lockstep 0.", 0), 0u) << text.out;
  const ProcessResult result = lockstep_cli({"--version", "--json"});
  EXPECT_EQ(result.exit_code, 0);
  const auto json = checked_json(result.out, "version");
  EXPECT_EQ(json.at("trace_version"), 1);
  EXPECT_EQ(json.at("hash_version"), 1);
}

struct Mistake {
  std::vector<std::string> arguments;
  std::string says;
};

/// Names the test in reports, without what would need quoting there.
void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << "lockstep";
  for (const std::string& argument : mistake.arguments) {
    *out << ' ';
    for (const char c : argument) *out << (c == '(' || c == '=' ? '_' : c);
  }
}

class CliMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(CliMistakes, EndWithTwoAndAHint) {
  const ProcessResult result = lockstep_cli(GetParam().arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err.rfind("lockstep: error: ", 0), 0u) << result.err;
  EXPECT_NE(result.err.find(GetParam().says), std::string::npos) << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    Cli, CliMistakes,
    ::testing::Values(
        Mistake{{}, "no verb given"},
        Mistake{{"dif", "a", "b"}, "there is no verb 'dif'; did you mean 'diff'?"},
        Mistake{{"rceord", "--", "ls"}, "did you mean 'record'?"},
        Mistake{{"frobnicate"}, "there is no verb 'frobnicate'; lockstep --help"},
        Mistake{{"--jsn"}, "did you mean '--json'?"},
        Mistake{{"diff", "a", "b", "--vieww", "x"},
                "lockstep diff has no option '--vieww'; did you mean '--view'?"},
        Mistake{{"show", "a", "--colour=never"}, "did you mean '--color'?"},
        Mistake{{"diff", "a"}, "right"}, Mistake{{"show"}, "file"},
        Mistake{{"show", "a", "b"}, "b"}, Mistake{{"show", "a", "--view", "sideways"}, "sideways"},
        Mistake{{"show", "a", "--kinds", "kernel,memcopy"},
                "there is no kind 'memcopy'; did you mean 'memcpy'?"},
        Mistake{{"show", "a", "--range", "9:3"}, "'9:3'"},
        Mistake{{"show", "a", "--range", "1"}, "--range takes A:B"},
        Mistake{{"show", "a", "--range", "-1:3"}, "--range takes A:B"},
        Mistake{{"show", "a", "--range", "0:99999999999999999999"},
                "99999999999999999999 is beyond the last position"},
        Mistake{{"diff", "a", "b", "-q", "--json"}, "they exclude each other"},
        Mistake{{"record", "-o", "", "--", "ls"}, "the output file has no name"},
        Mistake{{"record", "--compress", "-o", "", "--", "ls"}, "the output file has no name"},
        Mistake{{"show", "a", "--stream", "one"}, "'one' is not one"},
        Mistake{{"show", "a", "--stream", "4294967296"}, "there is no stream 4294967296"},
        Mistake{{"show", "a", "--jsonl", "--stream", "0,4294967296"}, "no stream 4294967296"},
        Mistake{{"--color", "record", "--", "ls"}, "record"},
        Mistake{{"show", "a", "--name", "("}, "--name: "},
        Mistake{{"show", "a", "--json", "--jsonl"}, "exclude each other"},
        Mistake{{"--color", "red", "devices"}, "red"},
        Mistake{{"verify", "a", "--level", "L4"}, "L4"}, Mistake{{"record"}, "no program given"},
        Mistake{{"record", "--"}, "no program given"},
        Mistake{{"record", "ls", "-l"}, "put two dashes before the program"},
        Mistake{{"record", "ls"}, "put two dashes before the program"},
        Mistake{{"record", "--frce", "--", "ls"}, "did you mean '--force'?"},
        Mistake{{"merge", "a", "b"}, "--output"}));

}  // namespace
}  // namespace lockstep::testing
