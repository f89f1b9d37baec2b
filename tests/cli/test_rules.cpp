// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "cli/cli_test.h"

namespace lockstep::testing {
namespace {

TEST(CliRules, KeptAndBroken) {
  const TempFolder folder;
  const std::string file = trace_path("mlp-eager-b8-fp32");
  write_file(folder / "kept", "# of the eager program\nat least 1 launches\nno HtoH\n");
  const ProcessResult kept = lockstep_cli({"rules", folder / "kept", file});
  EXPECT_EQ(kept.exit_code, 0) << kept.out << kept.err;
  EXPECT_EQ(kept.out, "2 rules are kept\n");

  write_file(folder / "broken", "at least 1 launches\nno DtoH\n");
  const ProcessResult broken = lockstep_cli({"rules", folder / "broken", file});
  EXPECT_EQ(broken.exit_code, 1) << broken.err;
  EXPECT_NE(broken.out.find("broken:2: "), std::string::npos) << broken.out;

  const ProcessResult result = lockstep_cli({"rules", folder / "broken", file, "--json"});
  EXPECT_EQ(result.exit_code, 1);
  const auto json = checked_json(result.out, "rules");
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("rules"), 2);
  ASSERT_EQ(json.at("violations").size(), 1u);
  EXPECT_EQ(json.at("violations").at(0).at("line"), 2);
  EXPECT_EQ(json.at("violations").at(0).at("index"), 23);
}

TEST(CliRules, WhatIsNotThereIsBroken) {
  const TempFolder folder;
  const std::string file = trace_path("mlp-eager-b8-fp32");
  write_file(folder / "misspelt", "no DtoH in range stpe\nno HtoH on stream 77\n");
  const ProcessResult misspelt = lockstep_cli({"rules", folder / "misspelt", file});
  EXPECT_EQ(misspelt.exit_code, 1) << misspelt.err;
  EXPECT_NE(misspelt.out.find("misspelt:1: there is no range \"stpe\": the trace has "),
            std::string::npos)
      << misspelt.out;
  EXPECT_NE(misspelt.out.find("misspelt:2: there is no stream 77: the trace has the stream"),
            std::string::npos)
      << misspelt.out;
  EXPECT_EQ(misspelt.out.find("kept"), std::string::npos) << misspelt.out;
  const ProcessResult json = lockstep_cli({"rules", folder / "misspelt", file, "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(checked_json(json.out, "rules").at("violations").size(), 2u);

  write_file(folder / "none", "# no rule yet\n");
  const ProcessResult none = lockstep_cli({"rules", folder / "none", file});
  EXPECT_EQ(none.exit_code, 3) << none.out;
  EXPECT_NE(none.err.find("has no rules"), std::string::npos) << none.err;
}

TEST(CliRules, ATraceWithoutEntriesKeepsNothing) {
  const TempFolder folder;
  const std::string trace = folder / "empty.jsonl";
  ASSERT_EQ(lockstep_cli({"record", "-o", trace, "--", "true"}).exit_code, 0);
  write_file(folder / "rules", "no DtoH\n");
  const ProcessResult result = lockstep_cli({"rules", folder / "rules", trace});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.out.find("rules:1: the trace has no entries that executed"), std::string::npos)
      << result.out;
}

TEST(CliRules, WhatCannotBeReadIsThree) {
  const TempFolder folder;
  write_file(folder / "odd", "at least 1 launches\nplenty of everything\n");
  const ProcessResult odd = lockstep_cli({"rules", folder / "odd", trace_path("triton-softmax")});
  EXPECT_EQ(odd.exit_code, 3);
  EXPECT_NE(odd.err.find("odd:2"), std::string::npos) << odd.err;

  write_file(folder / "rules", "at least 1 launches\n");
  const std::string cut = truncated_copy(folder, "mlp-eager-b8-fp32");
  const ProcessResult truncated = lockstep_cli({"rules", folder / "rules", cut, "--json"});
  EXPECT_EQ(truncated.exit_code, 3);
  EXPECT_EQ(checked_json(truncated.out, "rules").at("ok"), false);
}

}  // namespace
}  // namespace lockstep::testing
