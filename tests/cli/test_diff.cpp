// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <ostream>
#include <string>
#include <tuple>

#include "cli/cli_test.h"

namespace lockstep::testing {
namespace {

struct Expected {
  std::string left, right, view;
  int left_entries, right_entries, matched;
  int first_difference;  ///< -1: null
};

/// Names the test in reports.
void PrintTo(const Expected& expected, std::ostream* out) {
  *out << expected.left << " with " << expected.right << ' ' << expected.view;
}

class DiffNumbers : public ::testing::TestWithParam<Expected> {};

TEST_P(DiffNumbers, OfRecordedPrograms) {
  const Expected& expected = GetParam();
  const ProcessResult result =
      lockstep_cli({"diff", trace_path(expected.left), trace_path(expected.right), "--json",
                    "--view", expected.view});
  const bool equal = expected.first_difference < 0;
  EXPECT_EQ(result.exit_code, equal ? 0 : 1) << result.err;
  EXPECT_EQ(result.err, "");
  const auto json = checked_json(result.out, "diff");
  EXPECT_EQ(json.at("schema"), "lockstep/diff/1");
  EXPECT_EQ(json.at("equal"), equal);
  EXPECT_EQ(json.at("left_entries"), expected.left_entries);
  EXPECT_EQ(json.at("right_entries"), expected.right_entries);
  EXPECT_EQ(json.at("matched"), expected.matched);
  EXPECT_EQ(json.at("matched_exact"), true);
  EXPECT_EQ(json.at("view"), expected.view);
  EXPECT_EQ(json.at("changes").empty(), equal);
  if (equal) {
    EXPECT_TRUE(json.at("first_difference").is_null());
  } else {
    EXPECT_EQ(json.at("first_difference"), expected.first_difference);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cli, DiffNumbers,
    ::testing::Values(
        Expected{"mlp-eager-b8-fp32", "mlp-eager-b8-fp32-again", "executed", 24, 24, 24, -1},
        Expected{"mlp-eager-b8-fp32", "mlp-eager-b64-fp32", "executed", 24, 36, 7, 6},
        Expected{"mlp-eager-b8-fp32", "mlp-graph-b8-fp32", "executed", 24, 31, 24, 12},
        Expected{"mlp-eager-b8-fp32", "mlp-graph-b8-fp32", "enqueued", 24, 24, 19, 12},
        Expected{"gpt2-fwd-b1-bf16-l2", "gpt2-fwd-b4-bf16-l2", "executed", 110, 110, 73, 58}));

TEST(CliDiff, TextBeginsWithTheVerdictAndShowsTheFirstDifference) {
  const ProcessResult result =
      lockstep_cli({"diff", trace_path("mlp-eager-b8-fp32"), trace_path("mlp-eager-b64-fp32")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out.rfind("different: 24 and 36 entries, 7 alike; first difference at 6\n", 0),
            0u)
      << result.out;
  EXPECT_NE(result.out.find("\n    5 "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\n  - 6 "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\n  + 6 "), std::string::npos) << result.out;
  EXPECT_EQ(result.err, "");
  const ProcessResult several =
      lockstep_cli({"diff", trace_path("gpt2-fwd-b1-bf16-l2"), trace_path("gpt2-fwd-b4-bf16-l2")});
  EXPECT_NE(several.out.find("--all shows them"), std::string::npos) << several.out;
}

// A port from warps of 32 to waves of 64, its block made of the width: that record, and what of it.
TEST(Cases, PORT_01_ABlockThatDiffersIsShownOnItsRecord) {
  const TempFolder folder;
  const auto trace = [&](const std::string& vendor, int block) {
    std::ofstream(folder / vendor)
        << R"({"lockstep_trace":1,"producer":"test"})" << '\n'
        << R"({"kind":"memcpy","name":")" << vendor
        << R"(MemcpyHtoDAsync","direction":"HtoD","bytes":1024,"stream":0})" << '\n'
        << R"({"kind":"kernel","name":"warp_sum","grid":[8,1,1],"block":[)" << block
        << R"(,1,1],"shared_mem_bytes":0,"stream":0})" << '\n'
        << R"({"kind":"kernel","name":"scale","grid":[8,1,1],"block":[256,1,1],)"
        << R"("shared_mem_bytes":0,"stream":0})" << '\n'
        << R"({"end":true,"entries":3,"dropped":0,"stalls":0,"coverage":{}})" << '\n';
    return folder / vendor;
  };
  const ProcessResult result = lockstep_cli({"diff", trace("cu", 128), trace("hip", 256), "--all"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.out.rfind("different: 3 and 3 entries, 2 alike; first difference at 1\n", 0), 0u)
      << result.out;
  EXPECT_NE(result.out.find("\n  - 1   kernel  warp_sum   8×1×1 / 128×1×1 "), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("\n  + 1   kernel  warp_sum   8×1×1 / 256×1×1 "), std::string::npos)
      << result.out;
  EXPECT_EQ(result.out.find("- 1 "), result.out.rfind("- "));
  EXPECT_EQ(result.out.find("+ 1 "), result.out.rfind("+ "));
}

TEST(CliDiff, AllShowsEveryChange) {
  const std::string left = trace_path("mlp-eager-b8-fp32");
  const std::string right = trace_path("mlp-eager-b64-fp32");
  const ProcessResult result = lockstep_cli({"diff", left, right, "--all"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out.find("more change"), std::string::npos);
  // 24 - 7 entries are gone and 36 - 7 are new.
  const auto count = [&](const std::string& mark) {
    int lines = 0;
    for (std::size_t at = result.out.find(mark); at != std::string::npos;
         at = result.out.find(mark, at + 1)) {
      ++lines;
    }
    return lines;
  };
  EXPECT_EQ(count("\n  - "), 17);
  EXPECT_EQ(count("\n  + "), 29);
}

TEST(CliDiff, EqualSaysHowManyEntries) {
  const ProcessResult result = lockstep_cli(
      {"diff", trace_path("mlp-eager-b8-fp32"), trace_path("mlp-eager-b8-fp32-again")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "equal: 24 entries\n");
}

TEST(CliDiff, QuietAnswersByTheExitCode) {
  const std::string left = trace_path("mlp-eager-b8-fp32");
  for (const auto& [right, code] :
       {std::pair{"mlp-eager-b8-fp32-again", 0}, {"mlp-eager-b64-fp32", 1}}) {
    const ProcessResult result = lockstep_cli({"diff", "--quiet", left, trace_path(right)});
    EXPECT_EQ(result.exit_code, code);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "");
  }
}

TEST(CliDiff, StatCountsTheNamesThatChanged) {
  const ProcessResult result = lockstep_cli({"diff", trace_path("mlp-eager-b8-fp32"),
                                             trace_path("mlp-eager-b64-fp32"), "--stat", "--json"});
  EXPECT_EQ(result.exit_code, 1);
  const auto json = checked_json(result.out, "diff");
  std::uint64_t removed = 0, added = 0;
  for (const auto& name : json.at("names")) {
    removed += name.at("removed").get<std::uint64_t>();
    added += name.at("added").get<std::uint64_t>();
    EXPECT_GE(name.at("left"), name.at("removed"));
    EXPECT_GE(name.at("right"), name.at("added"));
  }
  EXPECT_EQ(removed, 24u - 7u);
  EXPECT_EQ(added, 36u - 7u);
}

TEST(CliDiff, TruncatedSideIsNeverEqual) {
  const TempFolder folder;
  const std::string whole = trace_path("mlp-eager-b8-fp32");
  const std::string cut = truncated_copy(folder, "mlp-eager-b8-fp32");
  for (const auto& [left, right] : {std::pair{whole, cut}, {cut, whole}, {cut, cut}}) {
    const ProcessResult result = lockstep_cli({"diff", left, right, "--json"});
    EXPECT_EQ(result.exit_code, 3);
    const auto json = checked_json(result.out, "diff");
    EXPECT_EQ(json.at("equal"), false);
    EXPECT_EQ(json.at("left_truncated"), left == cut);
    EXPECT_EQ(json.at("right_truncated"), right == cut);
    EXPECT_NE(result.err.find(cut + " is truncated"), std::string::npos) << result.err;
  }
}

TEST(CliDiff, PipesCanBeCompared) {
  ProcessOptions options;
  options.input = read_file(trace_path("mlp-eager-b64-fp32"));
  const ProcessResult result =
      lockstep_cli({"diff", trace_path("mlp-eager-b8-fp32"), "/dev/stdin", "--json"}, options);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const auto json = checked_json(result.out, "diff");
  EXPECT_EQ(json.at("matched"), 7);
  EXPECT_EQ(json.at("first_difference"), 6);
}

TEST(CliDiff, NormalisersAndRenamesMakeNamesAlike) {
  const TempFolder folder;
  const auto trace = [&](const std::string& file, const std::string& name) {
    write_file(folder / file,
               "{\"lockstep_trace\":1,\"producer\":\"test\",\"command\":[]}\n"
               "{\"kind\":\"kernel\",\"name\":\"" +
                   name +
                   "\",\"grid\":[1,1,1],\"block\":[1,1,1],\"shared_mem_bytes\":0,"
                   "\"stream\":0}\n{\"end\":true,\"entries\":1,\"dropped\":0}\n");
    return folder / file;
  };
  const std::string left = trace("left.jsonl", "_ZZ3runvENKUlvE_clEv");
  const std::string right = trace("right.jsonl", "_ZZ3runvENKUlvE3_clEv");
  EXPECT_EQ(lockstep_cli({"diff", left, right}).exit_code, 1);
  for (const std::string list : {"lambdas", "all", "jit,lambdas"}) {
    const ProcessResult result = lockstep_cli({"diff", left, right, "--normalise", list, "--json"});
    EXPECT_EQ(result.exit_code, 0) << list << result.out << result.err;
    EXPECT_FALSE(checked_json(result.out, "diff").at("normalisers").empty());
  }
  EXPECT_EQ(lockstep_cli({"diff", left, right, "--normalise", "jit"}).exit_code, 1);

  const std::string other = trace("other.jsonl", "other_name");
  write_file(folder / "names", "# old => new\n_ZZ3runvENKUlvE_clEv => other_name\n");
  EXPECT_EQ(lockstep_cli({"diff", left, other}).exit_code, 1);
  const ProcessResult renamed = lockstep_cli({"diff", left, other, "--rename", folder / "names"});
  EXPECT_EQ(renamed.exit_code, 0) << renamed.out << renamed.err;
  write_file(folder / "names", "no arrow\n");
  const ProcessResult bad = lockstep_cli({"diff", left, other, "--rename", folder / "names"});
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_NE(bad.err.find("names:1"), std::string::npos) << bad.err;
  const ProcessResult none =
      lockstep_cli({"diff", left, other, "--rename", folder.path().string()});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_NE(none.err.find("is a folder, not a file of names"), std::string::npos) << none.err;
}

TEST(CliDiff, InputsThatCannotBeRead) {
  const TempFolder folder;
  const std::string good = trace_path("mlp-eager-b8-fp32");
  write_file(folder / "text.jsonl", "this is no trace\n");
  write_file(folder / "empty.jsonl", "");
  for (const std::string& bad : {folder / "missing.jsonl", folder.path().string(),
                                 folder / "text.jsonl", folder / "empty.jsonl", std::string()}) {
    const ProcessResult result = lockstep_cli({"diff", good, bad});
    EXPECT_EQ(result.exit_code, 3) << bad;
    EXPECT_EQ(result.out, "") << bad;
    EXPECT_NE(result.err.find(bad), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace lockstep::testing
