// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>

#include "cli/cli_test.h"

namespace lockstep::testing {
namespace {

const nlohmann::json* find_backend(const nlohmann::json& json, const std::string& name) {
  for (const auto& backend : json.at("backends")) {
    if (backend.at("name") == name) return &backend;
  }
  return nullptr;
}

TEST(CliDevices, ListsEveryKnownBackend) {
  const ProcessResult result = lockstep_cli({"devices", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto json = checked_json(result.out, "devices");
  for (const std::string name : {"host", "cuda", "hip"}) {
    const nlohmann::json* backend = find_backend(json, name);
    ASSERT_NE(backend, nullptr) << name << result.out;
    if (backend->at("status") == "ready") {
      EXPECT_FALSE(backend->at("devices").empty()) << name;
    } else {
      EXPECT_NE(backend->at("reason"), "") << name;
      EXPECT_TRUE(backend->at("devices").empty()) << name;
    }
  }
  EXPECT_EQ(find_backend(json, "host")->at("status"), "ready");
}

TEST(CliDevices, TableHasARowForEach) {
  const ProcessResult table = lockstep_cli({"devices"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_EQ(table.err, "");
  for (const std::string row : {"host      ready        0: ", "\ncuda      ", "\nhip       "}) {
    EXPECT_NE(("\n" + table.out).find(row), std::string::npos) << row << table.out;
  }
  const ProcessResult verbose = lockstep_cli({"devices", "--verbose"});
  EXPECT_EQ(verbose.exit_code, 0);
  EXPECT_NE(verbose.out.find("liblockstep_backend_host.so"), std::string::npos) << verbose.out;
  EXPECT_NE(verbose.out.find("interface"), std::string::npos) << verbose.out;
}

TEST(CliDevices, OneBackendAnswersByTheExitCode) {
  EXPECT_EQ(lockstep_cli({"devices", "host"}).exit_code, 0);
  const ProcessResult missing = lockstep_cli({"devices", "hots"});
  EXPECT_EQ(missing.exit_code, 4);
  EXPECT_NE(missing.err.find("there is no backend 'hots'; did you mean 'host'?"), std::string::npos)
      << missing.err;
}

TEST(CliDevices, BrokenPluginIsARowNotAnEnd) {
  const TempFolder folder("Ünï 中文");
  write_file(folder / "liblockstep_backend_broken.so", "not a library");
  ProcessOptions options;
  options.environment["LOCKSTEP_BACKEND_PATH"] = folder.path().string();
  const ProcessResult result = lockstep_cli({"devices", "--json"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto json = checked_json(result.out, "devices");
  const nlohmann::json* broken = find_backend(json, "broken");
  ASSERT_NE(broken, nullptr) << result.out;
  EXPECT_EQ(broken->at("status"), "broken");
  EXPECT_EQ(broken->at("path"), folder / "liblockstep_backend_broken.so");
  EXPECT_NE(broken->at("reason"), "");
  EXPECT_EQ(find_backend(json, "host")->at("status"), "ready");
  EXPECT_EQ(lockstep_cli({"devices", "broken"}, options).exit_code, 4);
}

TEST(CliDevices, PathThatDoesNotExistIsARow) {
  ProcessOptions options;
  options.environment["LOCKSTEP_BACKEND_PATH"] = "/nowhere/liblockstep_backend_mine.so:/nor/here";
  const ProcessResult result = lockstep_cli({"devices"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const std::string row :
       {"\nmine      broken       LOCKSTEP_BACKEND_PATH names "
        "/nowhere/liblockstep_backend_mine.so, "
        "which does not exist",
        "\nhere      broken       LOCKSTEP_BACKEND_PATH names /nor/here, which does not exist"}) {
    EXPECT_NE(result.out.find(row), std::string::npos) << result.out;
  }
  const auto json = checked_json(lockstep_cli({"devices", "--json"}, options).out, "devices");
  EXPECT_EQ(find_backend(json, "mine")->at("path"), "/nowhere/liblockstep_backend_mine.so");
  EXPECT_EQ(lockstep_cli({"devices", "mine"}, options).exit_code, 4);
}

}  // namespace
}  // namespace lockstep::testing
