// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_entry.h>

#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using nlohmann::json;

std::vector<json> read_lines(const std::string& name) {
  std::ifstream file(std::string(LOCKSTEP_TEST_DATA_DIR) + "/" + name);
  std::vector<json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  return lines;
}

MemcpyKind direction(const std::string& text) {
  for (const auto kind :
       {MemcpyKind::kHtoD, MemcpyKind::kDtoH, MemcpyKind::kDtoD, MemcpyKind::kHtoH}) {
    if (to_string(kind) == text) return kind;
  }
  return MemcpyKind::kNone;
}

/// Reads a line with a JSON library of its own, so that our reader cannot hide a wrong hash.
LaunchTraceEntry entry_of(const json& line) {
  LaunchTraceEntry entry;
  entry.kind = operation_kind_from_string(line.at("kind").get<std::string>());
  entry.name = line.at("name").get<std::string>();
  if (line.contains("grid")) {
    entry.grid_x = line["grid"][0], entry.grid_y = line["grid"][1], entry.grid_z = line["grid"][2];
    entry.block_x = line["block"][0], entry.block_y = line["block"][1];
    entry.block_z = line["block"][2];
    entry.shared_mem_bytes = line["shared_mem_bytes"];
  }
  if (line.contains("cluster")) {
    entry.cluster_x = line["cluster"][0], entry.cluster_y = line["cluster"][1];
    entry.cluster_z = line["cluster"][2];
  }
  entry.cooperative = line.value("cooperative", false);
  if (line.contains("direction")) {
    entry.memcpy_kind = direction(line["direction"]);
    entry.memcpy_byte_size = line["bytes"];
  }
  if (line.contains("value")) {
    entry.memset_byte_size = line["bytes"];
    entry.memset_value = line["value"];
    entry.memset_value_size = line["value_size"];
  }
  if (line.contains("extent")) {
    entry.extent = {line["extent"][0], line["extent"][1], line["extent"][2]};
  }
  return entry;
}

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

TEST(SemanticHash, AgreesWithEveryVector) {
  const auto lines = read_lines("hash-vectors.jsonl");
  ASSERT_EQ(lines.size(), 35u);
  for (const json& line : lines) {
    EXPECT_EQ(hex(semantic_hash(entry_of(line))), line["hash"].get<std::string>()) << line;
  }
}

TEST(SemanticHash, AgreesWithEveryRecordedEntryAndNode) {
  std::size_t checked = 0;
  for (const char* name : {"gpt2-fwd-b1-bf16-l2", "gpt2-fwd-b4-bf16-l2", "mlp-eager-b64-fp32",
                           "mlp-eager-b8-fp32-again", "mlp-eager-b8-fp32", "mlp-graph-b8-fp32",
                           "torch-streams", "triton-softmax"}) {
    for (const json& line : read_lines("traces/" + std::string(name) + ".jsonl")) {
      std::vector<json> entries = {line};
      if (line.contains("nodes")) entries = line["nodes"].get<std::vector<json>>();
      for (const json& entry : entries) {
        if (!entry.contains("hash")) continue;
        EXPECT_EQ(hex(semantic_hash(entry_of(entry))), entry["hash"].get<std::string>()) << entry;
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, 368u);
}

TEST(SemanticHash, LeavesOutWhatIsNotSemantic) {
  LaunchTraceEntry copy;
  copy.kind = OperationKind::kMemcpy;
  copy.memcpy_kind = MemcpyKind::kHtoD;
  copy.memcpy_byte_size = 64;
  copy.name = "cuMemcpyHtoDAsync";
  const std::uint64_t hash = semantic_hash(copy);
  copy.name = "hipMemcpyHtoDAsync";
  copy.stream_index = 7;
  copy.device = 3;
  copy.flags = 0x7f;
  copy.time_ns = 99;
  copy.peer_device = 1;
  copy.grid_x = 4;
  EXPECT_EQ(semantic_hash(copy), hash);
  copy.extent = {64, 1, 1};
  EXPECT_EQ(semantic_hash(copy), hash);
  copy.extent = {32, 2, 1};
  EXPECT_NE(semantic_hash(copy), hash);
}

TEST(SemanticHash, TakesNamesOfAnyLength) {
  LaunchTraceEntry shorter, longer;
  shorter.name = std::string(5000, 'a');
  longer.name = std::string(5001, 'a');
  EXPECT_NE(semantic_hash(shorter), semantic_hash(longer));
  LaunchTraceEntry again = shorter;
  EXPECT_EQ(semantic_hash(again), semantic_hash(shorter));
}

// The extended entry point without attributes is the same launch.
TEST(Cases, GOLD_08_EntryPointIsNotPartOfTheHash) {
  LaunchTraceEntry plain;
  plain.name = "saxpy";
  plain.grid_x = 4, plain.grid_y = plain.grid_z = 1;
  plain.block_x = 256, plain.block_y = plain.block_z = 1;
  LaunchTraceEntry extended = plain;
  extended.attributes = R"({"api":"cuLaunchKernelEx"})";
  EXPECT_EQ(semantic_hash(plain), semantic_hash(extended));
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(ArgumentHash, AgreesWithEveryVector) {
  const auto lines = read_lines("argument-hash-vectors.jsonl");
  ASSERT_EQ(lines.size(), 6u);
  for (const json& line : lines) {
    std::vector<TraceArgument> arguments;
    for (const json& parameter : line["params"]) {
      TraceArgument argument;
      if (parameter.contains("scalar")) {
        argument.bytes = bytes_of(parameter["scalar"]);
        argument.size = static_cast<std::uint32_t>(argument.bytes.size());
      } else {
        argument.tag = TraceArgument::Tag::kPointer;
        argument.size = 8;
        argument.buffer = parameter["buffer"];
        argument.offset = parameter["offset"];
      }
      arguments.push_back(argument);
    }
    EXPECT_EQ(hex(argument_hash(arguments)), line["args_hash"].get<std::string>()) << line;
  }
}

TEST(ArgumentHash, IsUnknownWhereAStructMayHavePadding) {
  TraceArgument argument;
  argument.tag = TraceArgument::Tag::kStruct;
  argument.size = 8;
  argument.bytes.resize(8);
  EXPECT_EQ(argument_hash({argument}), 0u);
}

TEST(FoldExtent, FoldsRowsAndPlanesThatTouchOnBothSides) {
  EXPECT_EQ(fold_extent({100, 4, 1}, 100, 400, 100, 400), (Extent{400, 1, 1}));
  EXPECT_EQ(fold_extent({100, 4, 1}, 100, 400, 128, 512), (Extent{100, 4, 1}));
  EXPECT_EQ(fold_extent({12, 3, 4}, 12, 36, 12, 36), (Extent{144, 1, 1}));
  EXPECT_EQ(fold_extent({12, 3, 4}, 16, 48, 16, 48), (Extent{12, 12, 1}));
  EXPECT_EQ(fold_extent({12, 3, 4}, 16, 64, 16, 64), (Extent{12, 3, 4}));
  EXPECT_EQ(fold_extent({12, 3, 4}, 12, 64, 12, 48), (Extent{36, 4, 1}));
  EXPECT_EQ(fold_extent({12, 1, 4}, 64, 64, 48, 48), (Extent{12, 4, 1}));
  EXPECT_EQ(fold_extent({12, 1, 4}, 99, 12, 99, 12), (Extent{48, 1, 1}));
}

TEST(FoldExtent, MakesEveryEmptyExtentTheSame) {
  EXPECT_EQ(fold_extent({0, 5, 7}, 1, 1, 1, 1), (Extent{0, 1, 1}));
  EXPECT_EQ(fold_extent({5, 0, 7}, 1, 1, 1, 1), (Extent{0, 1, 1}));
  EXPECT_EQ(fold_extent({5, 7, 0}, 1, 1, 1, 1), (Extent{0, 1, 1}));
}

TEST(EntryText, ShowsWhatEachKindDid) {
  LaunchTraceEntry kernel;
  kernel.name = "_Z5saxpyifPKfPf";
  kernel.grid_x = 4, kernel.grid_y = kernel.grid_z = 1;
  kernel.block_x = 256, kernel.block_y = kernel.block_z = 1;
  EXPECT_EQ(to_string(kernel), "kernel  saxpy   4×1×1 / 256×1×1   stream 0");
  LaunchTraceEntry copy;
  copy.kind = OperationKind::kMemcpy;
  copy.memcpy_kind = MemcpyKind::kHtoD;
  copy.memcpy_byte_size = 40;
  copy.stream_index = 2;
  EXPECT_EQ(to_string(copy), "memcpy  HtoD 40 B   stream 2");
  LaunchTraceEntry set;
  set.kind = OperationKind::kMemset;
  set.memset_byte_size = 400;
  set.extent = {100, 4, 1};
  set.memset_value = 0xab;
  set.memset_value_size = 1;
  EXPECT_EQ(to_string(set), "memset  100×4×1 B value 0xab   stream 0");
}

TEST(EntryText, NamesAreDemangledShortenedAndHarmless) {
  EXPECT_EQ(display_name("_ZN2ns5innerIdEEvPT_"), "ns::inner<double>");
  EXPECT_EQ(display_name("_ZN12_GLOBAL__N_16anon_kEPi"), "(anonymous namespace)::anon_k");
  EXPECT_EQ(display_name("_Znot a name"), "_Znot a name");
  EXPECT_EQ(display_name("red\x1b[31m"), "red\\x1b[31m");
  EXPECT_EQ(display_name("中文中文", 4), "中…");
  EXPECT_EQ(display_name("abcdef", 3), "abc…");
}

TEST(EntryText, KindNamesGoBothWays) {
  for (int i = 0; i <= 14; ++i) {
    const auto kind = static_cast<OperationKind>(i);
    ASSERT_FALSE(to_string(kind).empty());
    EXPECT_EQ(operation_kind_from_string(to_string(kind)), kind);
  }
  EXPECT_EQ(operation_kind_from_string("teleport"), OperationKind::kUnknown);
  EXPECT_EQ(to_string(OperationKind::kUnknown), "");
}

}  // namespace
}  // namespace lockstep
