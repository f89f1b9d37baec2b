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
