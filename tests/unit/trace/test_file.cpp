// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_diff.h>
#include <lockstep/trace_file.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "support/trace_entries.h"

namespace lockstep {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::HasSubstr;

const char* const kRecordings[] = {
    "gpt2-fwd-b1-bf16-l2", "gpt2-fwd-b4-bf16-l2", "mlp-eager-b64-fp32", "mlp-eager-b8-fp32-again",
    "mlp-eager-b8-fp32",   "mlp-graph-b8-fp32",   "torch-streams",      "triton-softmax"};

void expect_same(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.info, b.info);
  EXPECT_EQ(a.streams, b.streams);
  EXPECT_EQ(a.graphs, b.graphs);
  EXPECT_EQ(a.entries, b.entries);
  EXPECT_EQ(a.footer, b.footer);
}

std::vector<std::string> lines_of(const std::string& bytes) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = bytes.find('\n', begin);
    lines.push_back(bytes.substr(begin, end - begin));
    begin = end == std::string::npos ? bytes.size() : end + 1;
  }
  return lines;
}

/// One entry of every kind with every key off its default.
std::vector<LaunchTraceEntry> rich_entries() {
  std::vector<LaunchTraceEntry> entries;
  for (int i = 0; i <= 14; ++i) entries.push_back(of_kind(static_cast<OperationKind>(i), "n"));
  LaunchTraceEntry& k = entries[0];
  k.grid_x = 1, k.grid_y = 2, k.grid_z = 3, k.block_x = 4, k.block_y = 5, k.block_z = 6;
  k.shared_mem_bytes = 7;
  k.cluster_x = 2, k.cluster_y = k.cluster_z = 1;
  k.cooperative = true;
  k.attributes = R"({"priority":-1})";
  TraceArgument scalar, pointer, by_value;
  scalar.size = 4;
  scalar.bytes = {std::byte{1}, std::byte{0}, std::byte{0xff}, std::byte{3}};
  pointer.tag = TraceArgument::Tag::kPointer;
  pointer.size = 8;
  pointer.buffer = 2;
  pointer.offset = 64;
  by_value.tag = TraceArgument::Tag::kStruct;
  by_value.size = 2;
  by_value.bytes = {std::byte{9}, std::byte{8}};
  k.arguments = {scalar, pointer, by_value};
  k.argument_hash = 0xabcdef;
  k.device = 3;
  k.thread_index = 4;
  k.sequence = 1000000000000;
  k.time_ns = -5;
  for (unsigned bit = 0; bit < 8; ++bit) k.set(static_cast<EntryFlag>(1u << bit));
  k.graph = 1, k.graph_version = 2, k.node = 3, k.branch = 4, k.launch = 5;
  k.unknown = {{"color", "\"red\""}, {"deep", R"({"a":[1,2.5,null,true]})"}};
  LaunchTraceEntry& c = entries[1];
  c.memcpy_kind = MemcpyKind::kDtoD;
  c.memcpy_byte_size = 144;
  c.extent = {12, 3, 4};
  c.peer_device = 1;
  c.source = c.destination = pointer;
  LaunchTraceEntry& s = entries[2];
  s.memset_byte_size = 400;
  s.memset_value = 0xabcd;
  s.memset_value_size = 2;
  s.extent = {100, 4, 1};
  s.destination = pointer;
  entries[3].graph = 0;
  entries[3].graph_version = 1;
  entries[5].event = 3;
  entries[6].event = 3;
  entries[7].alloc_byte_size = 4096;
  entries[10].mark = "push";
  LaunchTraceEntry future = of_kind(OperationKind::kUnknown, "name");
  future.kind_text = "teleport";
  future.unknown = {{"grid", "[1,2]"}, {"hash", "\"0123\""}};
  entries.push_back(future);
  for (LaunchTraceEntry& entry : entries) entry.semantic_hash = semantic_hash(entry);
  return entries;
}

Trace rich_trace() {
  Trace trace = trace_of(rich_entries());
  trace.info.command = {"./a.out", "x y", "\xff\xfe"};
  trace.info.pid = 42;
  trace.info.devices = {{0, "SIMULATED GPU", "sm_90", ""}, {1, "Other", "gfx942", "uuid"}};
  trace.info.driver = "13.0";
  trace.info.simulated = true;
  trace.info.unknown = {{"host", "\"node7\""}};
  trace.streams.resize(2);
  trace.streams[0].blocking = true;
  trace.streams[0].legacy = true;
  trace.streams[1].stream = 1;
  trace.streams[1].device = 1;
  trace.streams[1].context = 2;
  trace.streams[1].unknown = {{"priority", "-3"}};
  GraphDefinition graph;
  graph.version = 1;
  graph.nodes = {kernel("a"), kernel("b"), kernel("c")};
  graph.nodes[1].set(EntryFlag::kDisabled);
  graph.edges = {{0, 1}, {1, 2}};
  graph.programmatic_edges = {1};
  graph.unknown = {{"label", "\"step\""}};
  trace.graphs[{0, 1}] = graph;
  trace.footer.dropped = 1;
  trace.footer.stalls = 2;
  trace.footer.racing = 3;
  trace.footer.coverage = R"({"calls":7})";
  trace.footer.unknown = {{"note", "1.5"}};
  return trace;
}

TEST(TraceFile, EveryFieldSurvivesBothForms) {
  TemporaryFolder folder;
  const Trace trace = rich_trace();
  for (const char* name : {"a.jsonl", "a.jsonl.zst"}) {
    write_trace(folder / name, trace);
    expect_same(read_trace(folder / name), trace);
  }
  for (const std::string& line : lines_of(read_bytes(folder / "a.jsonl"))) {
    EXPECT_TRUE(json::accept(line)) << line;
  }
}

TEST(TraceFile, RecordingsRoundTripLineByLine) {
  TemporaryFolder folder;
  for (const char* name : kRecordings) {
    const Trace trace = read_trace(recording(name));
    EXPECT_TRUE(trace.footer.present);
    const auto path = folder / (std::string(name) + ".jsonl");
    write_trace(path, trace);
    expect_same(read_trace(path), trace);
    // Keys come in the documented order: but for the footer's stalls and the place of graph
    // definitions every line is the recorded one.
    auto before = lines_of(read_bytes(recording(name))), after = lines_of(read_bytes(path));
    before.pop_back();
    after.pop_back();
    EXPECT_THAT(after, testing::UnorderedElementsAreArray(before));
  }
}

// Each backend counts its devices from 0, and a recording repeats what it knew when it learns more.
TEST(TraceFile, DevicesOfTwoBackendsAreTwo) {
  TemporaryFolder folder;
  Trace trace = kernels({"k"});
  const TraceDevice host{0, "CPU", "x86_64", ""}, cuda{0, "GPU", "sm_90", "uuid-1"};
  const TraceDevice other{0, "GPU", "sm_90", "uuid-2"}, second{1, "GPU", "sm_90", "uuid-1"};
  {
    TraceWriter writer(folder / "a.jsonl", trace.info);
    for (const auto& devices : std::vector<std::vector<TraceDevice>>{
             {host}, {host, cuda}, {host, {0, "GPU", "sm_90", ""}, other, second}}) {
      trace.info.devices = devices;
      writer.write_meta(trace.info);
    }
    writer.finish();
  }
  const Trace read = read_trace(folder / "a.jsonl");
  EXPECT_EQ(read.info.devices, (std::vector<TraceDevice>{host, cuda, other, second}));
}

TEST(TraceFile, MissingHashIsComputed) {
  TemporaryFolder folder;
  TraceWriterOptions options;
  options.write_hashes = false;
  write_trace(folder / "a.jsonl", kernels({"k"}), options);
  EXPECT_THAT(read_bytes(folder / "a.jsonl"), testing::Not(HasSubstr("hash")));
  EXPECT_EQ(read_trace(folder / "a.jsonl").entries[0].semantic_hash, semantic_hash(kernel("k")));
}

TEST(TraceFile, WriterStreamsAndFlushes) {
  TemporaryFolder folder;
  const auto path = folder / "a.jsonl.zst";
  {
    TraceWriter writer(path, {});
    writer.write(StreamDefinition{});
    writer.write(kernel("a"));
    writer.flush();
    TraceReader reader(path);
    EXPECT_TRUE(std::holds_alternative<StreamDefinition>(*reader.next()));
    EXPECT_EQ(std::get<LaunchTraceEntry>(*reader.next()).name, "a");
    EXPECT_FALSE(reader.next().has_value());
    EXPECT_TRUE(reader.truncated());
    TraceInfo meta;
    meta.driver = "1.2";
    writer.write_meta(meta);
    writer.write(kernel("b"));
    EXPECT_EQ(writer.entries_written(), 2u);
    writer.finish();
    EXPECT_THROW(writer.write(kernel("c")), Error);
  }
  const Trace trace = read_trace(path);
  EXPECT_EQ(trace.entries.size(), 2u);
  EXPECT_EQ(trace.info.driver, "1.2");
  EXPECT_TRUE(trace.footer.present);
}

TEST(TraceFile, UnfinishedWriterLeavesATruncatedFile) {
  TemporaryFolder folder;
  {
    TraceWriter writer(folder / "a.jsonl", {});
    writer.write(kernel("a"));
  }
  const Trace trace = read_trace(folder / "a.jsonl");
  EXPECT_EQ(trace.entries.size(), 1u);
  EXPECT_FALSE(trace.footer.present);
}

// A program that was started without standard error writes there all the same.
TEST(TraceFile, IsNoStandardOutputOfTheProgram) {
  TemporaryFolder folder;
  const auto path = folder / "a.jsonl";
  const int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  ASSERT_GE(kept, 3);
  close(STDERR_FILENO);
  TraceWriter writer(path, TraceInfo{});
  const ssize_t written = write(STDERR_FILENO, "noise\n", 6);
  dup2(kept, STDERR_FILENO);
  close(kept);
  EXPECT_EQ(written, -1);
  writer.finish();
  EXPECT_EQ(read_trace(path).entries.size(), 0u);
}

TEST(TraceFile, IsCreatedExclusively) {
  TemporaryFolder folder;
  const auto path = folder / "a.jsonl";
  write_bytes(path, "precious");
  std::string what;
  EXPECT_EQ(code_of([&] { TraceWriter(path, {}); }, &what), ErrorCode::kInputOutput);
  EXPECT_THAT(what, HasSubstr("a.jsonl"));
  EXPECT_THAT(what, HasSubstr("--force"));
  EXPECT_EQ(code_of([&] { write_trace(path, kernels({"a"})); }), ErrorCode::kInputOutput);
  EXPECT_EQ(read_bytes(path), "precious");
  TraceWriterOptions options;
  options.force = true;
  write_trace(path, kernels({"a"}), options);
  EXPECT_EQ(read_trace(path).entries.size(), 1u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}), 1);
}

TEST(TraceFile, WholeFilesAppearAtOnce) {
  TemporaryFolder folder;
  const auto path = folder / "a.jsonl";
  {
    TraceWriter writer = TraceWriter::aside(path, {});
    writer.write(kernel("a"));
    writer.flush();
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_TRUE(std::filesystem::is_empty(path.parent_path())) << "nothing is left behind";
  TraceWriter writer = TraceWriter::aside(path, {});
  write_bytes(path, "came first");
  EXPECT_EQ(code_of([&] { writer.finish(); }), ErrorCode::kInputOutput);
  EXPECT_EQ(read_bytes(path), "came first");
}

TEST(TraceFile, ReaderKeepsTheFileItOpened) {
  TemporaryFolder folder;
  const auto path = folder / "a.jsonl";
  write_trace(path, kernels({"old", "old"}));
  TraceReader reader(path);
  TraceWriterOptions options;
  options.force = true;
  write_trace(path, kernels({"new"}), options);
  std::size_t entries = 0;
  while (const auto item = reader.next()) {
    if (const auto* entry = std::get_if<LaunchTraceEntry>(&*item)) {
      EXPECT_EQ(entry->name, "old");
      ++entries;
    }
  }
  EXPECT_EQ(entries, 2u);
  EXPECT_FALSE(reader.truncated());
}

TEST(TraceFile, FullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  TraceWriter writer("/dev/full", {});
  writer.write(kernel("a"));
  std::string what;
  EXPECT_EQ(code_of([&] { writer.flush(); }, &what), ErrorCode::kInputOutput);
  EXPECT_THAT(what, HasSubstr("/dev/full"));
  EXPECT_THAT(what, HasSubstr("No space left"));
  EXPECT_EQ(code_of([&] { writer.write(kernel("b")); }), ErrorCode::kInputOutput)
      << "nothing may be written behind a hole";
  EXPECT_EQ(code_of([&] { writer.finish(); }), ErrorCode::kInputOutput);
}

TEST(TraceFile, PlacesThatCannotBeUsed) {
  TemporaryFolder folder;
  std::string what;
  EXPECT_EQ(code_of([&] { read_trace(folder / "none.jsonl"); }, &what), ErrorCode::kNotFound);
  EXPECT_THAT(what, HasSubstr("none.jsonl"));
  EXPECT_EQ(code_of([&] { read_trace(folder / ""); }, &what), ErrorCode::kInputOutput);
  EXPECT_THAT(what, HasSubstr("folder"));
  EXPECT_EQ(code_of([&] { TraceWriter(folder / "no/such/a.jsonl", {}); }, &what),
            ErrorCode::kInputOutput);
  EXPECT_THAT(what, HasSubstr("No such file"));
}

TEST(TraceFile, EntriesNoReaderWouldAcceptAreRefused) {
  TemporaryFolder folder;
  TraceWriter writer(folder / "a.jsonl", {});
  LaunchTraceEntry set = of_kind(OperationKind::kMemset, "set");
  EXPECT_EQ(code_of([&] { writer.write(set); }), ErrorCode::kInvalidArgument);
  set.memset_value_size = 1;
  set.memset_value = 256;
  EXPECT_EQ(code_of([&] { writer.write(set); }), ErrorCode::kInvalidArgument);
  LaunchTraceEntry wrong = copy(MemcpyKind::kHtoD, 16);
  wrong.extent = {3, 3, 3};
  EXPECT_EQ(code_of([&] { writer.write(wrong); }), ErrorCode::kInvalidArgument);
  LaunchTraceEntry raw = kernel("k");
  raw.attributes = "{not json";
  EXPECT_EQ(code_of([&] { writer.write(raw); }), ErrorCode::kInvalidArgument);
  raw.attributes = "{ \"a\" :\n 1 }";
  writer.write(raw);
  writer.finish();
  const Trace trace = read_trace(folder / "a.jsonl");
  ASSERT_EQ(trace.entries.size(), 1u);
  EXPECT_EQ(trace.entries[0].attributes, "{\"a\":1}");
}

TEST(Cases, NAME_01_NamesSurviveByteForByte) {
  TemporaryFolder folder;
  std::vector<std::string> names = {R"(a"b)",
                                    R"(a\b)",
                                    R"(a\\"b)",
                                    "tab\tnewline\n",
                                    "\x01",
                                    R"(operator"" _kg)",
                                    R"(C:\x\y)",
                                    "\xff\xfe not UTF-8",
                                    "\xed\xa0\x80",
                                    std::string("nul\0in", 6),
                                    "",
                                    "\x7f\x1b[31m"};
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte.push_back(static_cast<char>(byte));
  names.push_back(every_byte);
  const Trace trace = kernels(names);
  for (const char* file : {"a.jsonl", "a.jsonl.zst"}) {
    write_trace(folder / file, trace);
    const Trace again = read_trace(folder / file);
    ASSERT_EQ(again.entries.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(again.entries[i].name, names[i]);
      EXPECT_EQ(again.entries[i].semantic_hash, semantic_hash(trace.entries[i]));
    }
    EXPECT_TRUE(diff(trace, again).equal);
  }
  for (const std::string& line : lines_of(read_bytes(folder / "a.jsonl"))) {
    const json parsed = json::parse(line);
    EXPECT_TRUE(!parsed.contains("kind") || parsed.contains("name") != parsed.contains("name_hex"));
  }
}

TEST(Cases, NAME_03_PathsAndNamesOutsideAscii) {
  TemporaryFolder folder;
  const auto place = folder / "Ünï 中文";
  std::filesystem::create_directory(place);
  Trace trace = kernels({"Ünï_中文"});
  trace.info.command = {(place / "Prögram").string()};
  write_trace(place / "träce.jsonl", trace);
  write_trace(folder / "plain.jsonl", trace);
  EXPECT_TRUE(diff_files(place / "träce.jsonl", folder / "plain.jsonl").equal);
  EXPECT_EQ(read_trace(place / "träce.jsonl").info.command, trace.info.command);
  EXPECT_THAT(read_bytes(place / "träce.jsonl"), HasSubstr("Ünï_中文"));
}

// Times that are zero, run backwards or lie before the start leave entries where they are.
TEST(Cases, TRC_10_TimesAreNoOrderAndFilterNothing) {
  const std::vector<std::int64_t> times = {0, 0, -5, 9'000'000'000'000'000, 3, 0};
  std::vector<LaunchTraceEntry> entries;
  for (std::size_t i = 0; i < times.size(); ++i) {
    entries.push_back(kernel("k" + std::to_string(i)));
    entries.back().time_ns = times[i];
    entries.back().sequence = i + 1;
  }
  TemporaryFolder folder;
  write_trace(folder / "a.jsonl", trace_of(entries));
  const Trace again = read_trace(folder / "a.jsonl");
  const std::vector<LaunchTraceEntry> seen = view(again);
  ASSERT_EQ(seen.size(), times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(seen[i].name, "k" + std::to_string(i));
    EXPECT_EQ(seen[i].time_ns, times[i]) << i;
  }
  EXPECT_TRUE(diff(again, trace_of(entries)).equal);
}

}  // namespace
}  // namespace lockstep
