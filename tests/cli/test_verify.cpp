// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_file.h>

#include <string>

#include "cli/cli_test.h"

namespace lockstep::testing {
namespace {

/// A recording in which `blocks` was captured and then replayed as a graph of `nodes`.
std::string recording(const TempFolder& folder, const std::string& name,
                      const std::vector<std::uint32_t>& captured,
                      const std::vector<std::uint32_t>& nodes) {
  const auto kernel = [](std::uint32_t grid) {
    LaunchTraceEntry entry;
    entry.name = "step";
    entry.grid_x = grid;
    entry.grid_y = entry.grid_z = entry.block_x = entry.block_y = entry.block_z = 1;
    entry.semantic_hash = semantic_hash(entry);
    return entry;
  };
  Trace trace;
  trace.info.producer = "test";
  GraphDefinition graph;
  graph.version = 1;
  for (const std::uint32_t grid : nodes) {
    if (!graph.nodes.empty()) {
      const auto last = static_cast<std::uint32_t>(graph.nodes.size());
      graph.edges.emplace_back(last - 1, last);
    }
    graph.nodes.push_back(kernel(grid));
  }
  for (const std::uint32_t grid : captured) {
    LaunchTraceEntry entry = kernel(grid);
    entry.set(EntryFlag::kCaptured);
    entry.graph = 0;
    entry.graph_version = 1;
    trace.entries.push_back(entry);
  }
  LaunchTraceEntry launch;
  launch.kind = OperationKind::kGraphLaunch;
  launch.name = "cuGraphLaunch";
  launch.graph = 0;
  launch.graph_version = 1;
  trace.entries.push_back(launch);
  trace.graphs.emplace(std::pair{0, 1u}, graph);
  const std::string path = folder / name;
  write_trace(path, trace);
  return path;
}

TEST(CliVerify, ReplayThatDoesTheSame) {
  const TempFolder folder;
  const std::string file = recording(folder, "same.jsonl", {1, 2, 3}, {1, 2, 3});
  const ProcessResult text = lockstep_cli({"verify", file, "--level", "L2"});
  EXPECT_EQ(text.exit_code, 0) << text.out << text.err;
  const ProcessResult result = lockstep_cli({"verify", file, "--level", "L2", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  const auto json = checked_json(result.out, "verify");
  EXPECT_EQ(json.at("ok"), true);
  EXPECT_TRUE(json.at("reason").is_null());
  ASSERT_EQ(json.at("graphs").size(), 1u);
  EXPECT_EQ(json.at("graphs").at(0).at("graph"), 0);
}

TEST(CliVerify, ReplayThatDoesSomethingElse) {
  const TempFolder folder;
  const std::string file = recording(folder, "other.jsonl", {1, 2, 3}, {1, 5, 3});
  const ProcessResult text = lockstep_cli({"verify", file, "--level", "L1"});
  EXPECT_EQ(text.exit_code, 1) << text.out << text.err;
  EXPECT_NE(text.out.find("graph 0 version 1: "), std::string::npos) << text.out;
  const ProcessResult result = lockstep_cli({"verify", file, "--level", "L1", "--json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(checked_json(result.out, "verify").at("ok"), false);
  // The counts still agree.
  EXPECT_EQ(lockstep_cli({"verify", file, "--level", "L0"}).exit_code, 0);
}

TEST(CliVerify, NothingToVerifyIsNotVerified) {
  const ProcessResult text = lockstep_cli({"verify", trace_path("mlp-eager-b8-fp32")});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_NE(text.err.find("nothing to verify: the trace has no graph that was launched"),
            std::string::npos)
      << text.err;
  const ProcessResult result = lockstep_cli({"verify", trace_path("mlp-eager-b8-fp32"), "--json"});
  EXPECT_EQ(result.exit_code, 1);
  const auto json = checked_json(result.out, "verify");
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("graphs").size(), 0u);
  EXPECT_NE(json.at("reason").get<std::string>().find("nothing to verify"), std::string::npos);
}

TEST(CliVerify, ACaptureThatWasNeverLaunchedIsSaidToBeOne) {
  const TempFolder folder;
  const std::string file = recording(folder, "same.jsonl", {1, 2}, {1, 2});
  Trace trace = read_trace(file);
  trace.entries.pop_back();  // the launch
  trace.graphs.clear();
  write_trace(folder / "captured.jsonl", trace);
  const ProcessResult result = lockstep_cli({"verify", folder / "captured.jsonl"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("nothing to verify: no graph was launched while this was recorded"),
            std::string::npos)
      << result.err;
}

TEST(CliVerify, ValuesNeedTheProgram) {
  const ProcessResult result =
      lockstep_cli({"verify", trace_path("mlp-eager-b8-fp32"), "--level", "L4"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("a trace holds no values: L4 needs the program"), std::string::npos)
      << result.err;
}

TEST(CliVerify, TruncatedIsNotVerified) {
  const TempFolder folder;
  const std::string file = recording(folder, "same.jsonl", {1, 2}, {1, 2});
  const std::string bytes = read_file(file);
  write_file(folder / "cut.jsonl", bytes.substr(0, bytes.rfind("{\"end\"")));
  const ProcessResult result = lockstep_cli({"verify", folder / "cut.jsonl", "--json"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(checked_json(result.out, "verify").at("ok"), false);
  EXPECT_NE(result.err.find("is truncated"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace lockstep::testing
