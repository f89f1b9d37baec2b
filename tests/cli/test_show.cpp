// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_file.h>

#include <string>
#include <sys/resource.h>

#include "cli/cli_test.h"

namespace lockstep::testing {
namespace {

TEST(CliShow, TableAndSummary) {
  const ProcessResult result = lockstep_cli({"show", trace_path("mlp-graph-b8-fp32")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("0: NVIDIA H200, sm_90"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("       0  memcpy  HtoD 524288 B"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("31 of 31 entries in the executed view"), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("the file holds 24 entries"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("complete: 0 dropped"), std::string::npos) << result.out;
}

TEST(CliShow, JsonAddsUp) {
  const ProcessResult result =
      lockstep_cli({"show", trace_path("mlp-graph-b8-fp32"), "--json", "--stat", "--graphs"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto json = checked_json(result.out, "show");
  EXPECT_EQ(json.at("file_entries"), 24);
  EXPECT_EQ(json.at("view_entries"), 31);
  EXPECT_EQ(json.at("entries"), 31);
  EXPECT_EQ(json.at("truncated"), false);
  EXPECT_EQ(json.at("footer").at("entries"), 24);
  EXPECT_EQ(json.at("info").at("devices").at(0).at("name"), "NVIDIA H200");
  std::uint64_t of_kinds = 0, of_streams = 0, of_names = 0;
  for (const auto& [kind, count] : json.at("kinds").items()) of_kinds += count.get<std::uint64_t>();
  for (const auto& stream : json.at("streams")) of_streams += stream.at("entries").get<int>();
  for (const auto& name : json.at("names")) of_names += name.at("count").get<int>();
  EXPECT_EQ(of_kinds, 31u);
  EXPECT_EQ(of_streams, 31u);
  EXPECT_EQ(of_names, 31u);
  ASSERT_EQ(json.at("graphs").size(), 1u);
  const auto& graph = json.at("graphs").at(0);
  EXPECT_EQ(graph.at("node_list").size(), graph.at("nodes"));
  EXPECT_EQ(graph.at("edge_list").size(), graph.at("edges"));
  EXPECT_EQ(graph.at("launches"), json.at("file_kinds").at("graph_launch"));
}

TEST(CliShow, FiltersSelect) {
  const std::string file = trace_path("mlp-eager-b8-fp32");
  const auto entries = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"show", file, "--json"});
    const ProcessResult result = lockstep_cli(options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return checked_json(result.out, "show").at("entries").get<int>();
  };
  const int all = entries({});
  EXPECT_EQ(all, 24);
  EXPECT_EQ(entries({"--range", "5:9"}), 4);
  EXPECT_EQ(entries({"--range", ":9"}), 9);
  EXPECT_EQ(entries({"--range", "20:"}), 4);
  EXPECT_EQ(entries({"--range", "7:7"}), 0);
  const int kernels = entries({"--kinds", "kernel"});
  const int copies = entries({"--kinds", "memcpy,memset"});
  EXPECT_GT(kernels, 0);
  EXPECT_GT(copies, 0);
  EXPECT_EQ(kernels + copies, all);
  EXPECT_EQ(entries({"--stream", "0"}) + entries({"--stream", "1"}), all);
  EXPECT_EQ(entries({"--stream", "0,1"}), all);
  const int gemms = entries({"--name", "gemmSN_TN_kernel<float"});  // as people read it
  EXPECT_GT(gemms, 0);
  EXPECT_EQ(entries({"--name", "^_Z16gemmSN_TN_kernelIf"}), gemms);  // as it was recorded
  EXPECT_EQ(entries({"--name", "no such kernel"}), 0);
}

TEST(CliShow, SliceIsATraceOfItsOwn) {
  const TempFolder folder;
  const std::string file = trace_path("mlp-graph-b8-fp32");
  for (const std::string view : {"executed", "enqueued"}) {
    const std::string slice = folder / (view + ".jsonl");
    const ProcessResult shown =
        lockstep_cli({"show", file, "--jsonl", "--view", view, "--kinds", "all"});
    ASSERT_EQ(shown.exit_code, 0) << shown.err;
    write_file(slice, shown.out);
    EXPECT_TRUE(read_trace(slice).footer.present);
    const ProcessResult result = lockstep_cli({"diff", file, slice, "--json"});
    EXPECT_EQ(result.exit_code, 0) << view << result.out << result.err;
    EXPECT_EQ(checked_json(result.out, "diff").at("matched"), 31);
  }
}

TEST(Cases, HUGE_03_SlicesMergeToTheOriginal) {
  const TempFolder folder;
  const std::string file = trace_path("mlp-graph-b8-fp32");
  const std::vector<std::vector<std::string>> parts = {
      {"--range", "9:20"}, {"--range", ":9"}, {"--range", "20:", "--view", "enqueued"}};
  std::vector<std::string> merge = {"merge", "-o", folder / "whole.jsonl", "--json"};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::vector<std::string> show = {"show", file, "--jsonl"};
    show.insert(show.end(), parts[i].begin(), parts[i].end());
    const ProcessResult slice = lockstep_cli(show);
    ASSERT_EQ(slice.exit_code, 0) << slice.err;
    merge.push_back(folder / (std::to_string(i) + ".jsonl"));
    write_file(merge.back(), slice.out);
    EXPECT_TRUE(read_trace(merge.back()).footer.present);
  }
  const ProcessResult merged = lockstep_cli(merge);
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_EQ(checked_json(merged.out, "merge").at("entries"), 24);
  for (const std::string view : {"executed", "enqueued"}) {
    EXPECT_EQ(lockstep_cli({"diff", file, folder / "whole.jsonl", "--view", view}).exit_code, 0);
  }
  const Trace original = read_trace(file), whole = read_trace(folder / "whole.jsonl");
  ASSERT_EQ(whole.entries.size(), original.entries.size());
  for (std::size_t i = 0; i < whole.entries.size(); ++i) {
    EXPECT_EQ(whole.entries[i].semantic_hash, original.entries[i].semantic_hash) << i;
  }
  EXPECT_EQ(whole.graphs, original.graphs);

  // Not over an existing file, and not with a part missing.
  EXPECT_EQ(lockstep_cli(merge).exit_code, 2);
  merge.pop_back();
  merge.push_back("--force");
  const ProcessResult missing = lockstep_cli(merge);
  EXPECT_EQ(missing.exit_code, 3) << missing.err;
  EXPECT_EQ(read_trace(folder / "whole.jsonl").entries.size(), 24u) << "replaced in spite of it";
}

// What comes through a pipe cannot be read twice; its slice is that of the file all the same.
TEST(CliShow, SliceOfAPipeIsThatOfTheFile) {
  const TempFolder folder;
  Trace large = read_trace(trace_path("torch-streams"));
  while (large.entries.size() < 5000) {
    large.entries.push_back(large.entries[large.entries.size() - 20]);
  }
  const std::string plain = folder / "large.jsonl", compressed = folder / "large.jsonl.zst";
  write_trace(plain, large);
  write_trace(compressed, large);
  ASSERT_GT(read_file(plain).size(), std::size_t{64} << 10) << "more than a pipe holds";
  const std::string cut = truncated_copy(folder, "mlp-graph-b8-fp32");
  for (const std::string& file : {trace_path("mlp-graph-b8-fp32"), plain, compressed, cut}) {
    for (const std::vector<std::string>& more :
         std::vector<std::vector<std::string>>{{},
                                               {"--view", "enqueued", "--range", "3:"},
                                               {"--kinds", "kernel"},
                                               {"--view", "executed", "--stream", "7"}}) {
      std::vector<std::string> arguments = {"show", "--jsonl", file};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const ProcessResult expected = lockstep_cli(arguments);
      arguments[2] = "/dev/stdin";
      ProcessOptions options;
      options.input = read_file(file);
      const ProcessResult result = lockstep_cli(arguments, options);
      EXPECT_EQ(result.exit_code, file == cut ? 3 : 0) << result.err;
      EXPECT_EQ(result.exit_code, expected.exit_code) << expected.err;
      EXPECT_TRUE(result.out == expected.out) << file << ": " << result.out.substr(0, 1000);
      EXPECT_FALSE(result.out.empty());
    }
  }
}

TEST(CliShow, SliceOfARange) {
  const TempFolder folder;
  const std::string file = trace_path("mlp-eager-b8-fp32");
  const ProcessResult shown = lockstep_cli({"show", file, "--jsonl", "--range", "3:10"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  write_file(folder / "slice.jsonl", shown.out);
  const Trace slice = read_trace(folder / "slice.jsonl");
  const Trace whole = read_trace(file);
  ASSERT_EQ(slice.entries.size(), 7u);
  EXPECT_EQ(slice.footer.entries, 7u);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(slice.entries[i].name, whole.entries[3 + i].name);
    EXPECT_EQ(slice.entries[i].semantic_hash, whole.entries[3 + i].semantic_hash);
  }
  EXPECT_EQ(slice.info.devices, whole.info.devices);
}

TEST(CliShow, TruncatedIsShownAndSaid) {
  const TempFolder folder;
  const std::string cut = truncated_copy(folder, "mlp-eager-b8-fp32");
  const ProcessResult text = lockstep_cli({"show", cut});
  EXPECT_EQ(text.exit_code, 3);
  EXPECT_NE(text.out.find("23 of 23 entries"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("complete:"), std::string::npos) << text.out;
  EXPECT_NE(text.err.find("is truncated: it ends without a footer after 23 entries"),
            std::string::npos)
      << text.err;

  const ProcessResult result = lockstep_cli({"show", cut, "--json"});
  EXPECT_EQ(result.exit_code, 3);
  const auto json = checked_json(result.out, "show");
  EXPECT_EQ(json.at("truncated"), true);
  EXPECT_TRUE(json.at("footer").is_null());
  EXPECT_EQ(json.at("entries"), 23);

  const ProcessResult slice = lockstep_cli({"show", cut, "--jsonl"});
  EXPECT_EQ(slice.exit_code, 3);
  write_file(folder / "slice.jsonl", slice.out);
  EXPECT_FALSE(read_trace(folder / "slice.jsonl").footer.present);
}

TEST(CliShow, DamagedLineIsNamedAfterWhatIsReadable) {
  const TempFolder folder;
  std::string bytes = read_file(trace_path("mlp-eager-b8-fp32"));
  std::size_t line_begin = 0;
  for (int line = 1; line < 10; ++line) line_begin = bytes.find('\n', line_begin) + 1;
  bytes.insert(line_begin, "{\"kind\":\"kernel\",oops}\n");
  write_file(folder / "damaged.jsonl", bytes);
  const ProcessResult result = lockstep_cli({"show", folder / "damaged.jsonl"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("damaged.jsonl:10"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("\n       6  "), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("\n       7  "), std::string::npos) << result.out;
}

TEST(CliShow, NothingReadableGivesAnErrorAlone) {
  const TempFolder folder;
  write_file(folder / "text.jsonl", "this is no trace\n");
  write_file(folder / "first.jsonl", "{\"lockstep_trace\":1}\n{oops}\n");
  for (const std::string file : {"text.jsonl", "first.jsonl", "missing.jsonl"}) {
    for (const std::string option : {"--stat", "--graphs", "--json", "--jsonl"}) {
      const ProcessResult result = lockstep_cli({"show", folder / file, option});
      EXPECT_EQ(result.exit_code, 3) << file << option;
      EXPECT_EQ(result.out, "") << file << option;
      EXPECT_NE(result.err.find(file), std::string::npos) << result.err;
    }
  }
}

TEST(CliShow, TemporaryFolderThatIsNoneIsNamed) {
  ProcessOptions options;
  options.environment["TMPDIR"] = "/etc/hostname/none";
  const ProcessResult result =
      lockstep_cli({"show", trace_path("mlp-eager-b8-fp32"), "--jsonl"}, options);
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_EQ(result.err,
            "lockstep: error: cannot make a temporary folder in /etc/hostname/none: Not a "
            "directory; set TMPDIR to a folder that can be written\n");
}

/// A trace of few bytes that stands for 3 million entries, which would take gigabytes.
std::string many_launches_of_a_large_graph(const TempFolder& folder) {
  constexpr int kNodes = 3000, kLaunches = 1000;
  std::string text =
      "{\"lockstep_trace\":1}\n{\"define\":\"graph\",\"graph\":0,\"version\":1,\"nodes\":[";
  for (int i = 0; i < kNodes; ++i) {
    text += i == 0 ? "" : ",";
    text += R"({"kind":"kernel","name":"a","grid":[1,1,1],"block":[1,1,1],"shared_mem_bytes":0})";
  }
  text += "],\"edges\":[]}\n";
  for (int i = 0; i < kLaunches; ++i) {
    text += R"({"kind":"graph_launch","name":"l","graph":0,"version":1,"stream":0})"
            "\n";
  }
  text += R"({"end":true,"entries":1000,"dropped":0})"
          "\n";
  write_file(folder / "large.jsonl", text);
  return folder / "large.jsonl";
}

TEST(CliShow, LaunchesOfALargeGraphAreExpandedOneByOne) {
  const TempFolder folder;
  const std::string file = many_launches_of_a_large_graph(folder);
  const ProcessResult shown = lockstep_cli({"show", file, "--json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(checked_json(shown.out, "show").at("entries"), 3'000'000);
  write_file(folder / "rules", "at most 2 kernel\n");
  const ProcessResult rules = lockstep_cli({"rules", folder / "rules", file});
  EXPECT_EQ(rules.exit_code, 1) << rules.err;
  EXPECT_NE(rules.out.find("entry 2 on stream 0"), std::string::npos) << rules.out;
  EXPECT_NE(rules.out.find("2999898 more of this rule"), std::string::npos) << rules.out;
  EXPECT_EQ(lockstep_cli({"diff", file, file}).out, "equal: 3000000 entries\n");
  // Of the largest of these processes, in KiB; a sanitizer's own memory is in it.
  rusage usage = {};
  ASSERT_EQ(getrusage(RUSAGE_CHILDREN, &usage), 0);
  EXPECT_LT(usage.ru_maxrss, 1 << 20);
}

TEST(CliShow, LateDefinitionsOfGraphsAreFound) {
  const TempFolder folder;
  const std::string bytes = read_file(trace_path("mlp-graph-b8-fp32"));
  const std::size_t begin = bytes.find("{\"define\":\"graph\"");
  ASSERT_NE(begin, std::string::npos);
  const std::size_t length = bytes.find('\n', begin) + 1 - begin;
  std::string moved = bytes;
  moved.erase(begin, length);
  moved.insert(moved.rfind("{\"end\""), bytes.substr(begin, length));
  write_file(folder / "late.jsonl", moved);
  const ProcessResult result = lockstep_cli({"show", folder / "late.jsonl", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(checked_json(result.out, "show").at("entries"), 31);
}

TEST(CliShow, BytesThatATerminalWouldObeyAreShown) {
  const TempFolder folder;
  write_file(folder / "evil.jsonl",
             "{\"lockstep_trace\":1,\"producer\":\"x\\u001b[2J\",\"command\":[\"a\\u0007b\"]}\n"
             "{\"kind\":\"kernel\",\"name\":\"k\\u001b[31m\",\"grid\":[1,1,1],\"block\":[1,1,1],"
             "\"shared_mem_bytes\":0,\"stream\":0}\n"
             "{\"end\":true,\"entries\":1,\"dropped\":0}\n");
  for (const std::string option : {"--full-names", "--stat"}) {
    const ProcessResult result = lockstep_cli({"show", folder / "evil.jsonl", option});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.find('\x1b'), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find('\x07'), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("k\\x1b[31m"), std::string::npos) << result.out;
  }
}

}  // namespace
}  // namespace lockstep::testing
