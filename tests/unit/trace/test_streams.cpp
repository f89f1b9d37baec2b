// SPDX-License-Identifier: Apache-2.0
// Streams that had events before they had work: provisional numbers in the file, final ones read.
#include <lockstep/trace_diff.h>
#include <lockstep/trace_file.h>
#include <lockstep/trace_slice.h>

#include <fstream>
#include <gmock/gmock.h>
#include <map>
#include <sys/stat.h>
#include <thread>

#include "support/trace_entries.h"

namespace lockstep {
namespace {

using namespace testing_support;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t kFirst = 0x80000000u, kSecond = kFirst + 1;

StreamDefinition stream(std::uint32_t number, const char* key = nullptr, const char* value = "") {
  StreamDefinition definition;
  definition.stream = number;
  definition.device = number % 2 == 0 ? 0 : 1;
  if (key != nullptr) definition.unknown.emplace_back(key, value);
  return definition;
}

LaunchTraceEntry event(OperationKind kind, std::int64_t number, std::uint32_t stream) {
  LaunchTraceEntry entry = of_kind(kind, "event");
  entry.event = number;
  entry.stream_index = stream;
  return entry;
}

/// Both streams have an event before any number is known; the second one never works.
std::vector<TraceItem> items() {
  return {stream(0),
          kernel("a"),
          event(OperationKind::kEventRecord, 0, 0),
          stream(kFirst, "provisional", "true"),
          event(OperationKind::kEventWait, 0, kFirst),
          stream(kSecond, "provisional", "true"),
          event(OperationKind::kEventRecord, 1, kSecond),
          event(OperationKind::kEventRecord, 2, kFirst),
          stream(1),
          kernel("b", 1),
          stream(2, "replaces", "2147483648"),
          kernel("c", 2),
          event(OperationKind::kEventRecord, 3, kSecond),
          kernel("d", 2),
          stream(3, "replaces", "2147483649")};
}

std::vector<TraceItem> first_items(std::size_t count) {
  std::vector<TraceItem> result = items();
  result.resize(count);
  return result;
}

void write(const std::filesystem::path& path, const std::vector<TraceItem>& written, bool whole) {
  TraceWriter writer(path, {});
  for (const TraceItem& item : written) {
    std::visit(
        [&](const auto& value) {
          if constexpr (requires { writer.write(value); }) writer.write(value);
        },
        item);
  }
  if (whole) writer.finish();
}

std::vector<std::uint32_t> streams_of(const Trace& trace) {
  std::vector<std::uint32_t> streams;
  for (const LaunchTraceEntry& entry : trace.entries) streams.push_back(entry.stream_index);
  return streams;
}

void expect_final(const Trace& trace) {
  EXPECT_THAT(streams_of(trace), ElementsAre(0, 0, 2, 3, 2, 1, 2, 3, 2));
  EXPECT_EQ(trace.streams, (std::vector<StreamDefinition>{stream(0), stream(2),
                                                          [] {
                                                            StreamDefinition second = stream(3);
                                                            second.device = stream(kSecond).device;
                                                            return second;
                                                          }(),
                                                          stream(1)}));
}

/// The bytes of a file as a pipe that somebody writes.
class Pipe {
 public:
  explicit Pipe(std::string bytes) : path_(folder_ / "pipe") {
    if (::mkfifo(path_.c_str(), 0600) != 0) throw std::runtime_error("no pipe");
    writer_ = std::thread([this, bytes = std::move(bytes)] { std::ofstream(path_) << bytes; });
  }
  ~Pipe() { writer_.join(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::filesystem::path path_;
  std::thread writer_;
};

TEST(StreamNumbers, AreFinalWhereverTheyAreRead) {
  TemporaryFolder folder;
  for (const char* name : {"a.jsonl", "a.jsonl.zst"}) {
    write(folder / name, items(), true);
    const Trace trace = read_trace(folder / name);
    EXPECT_TRUE(trace.footer.present);
    expect_final(trace);
    const Pipe pipe(read_bytes(folder / name));
    const Trace piped = read_trace(pipe.path());
    EXPECT_EQ(piped.entries, trace.entries);
    EXPECT_EQ(piped.streams, trace.streams);
    EXPECT_EQ(piped.footer, trace.footer);
  }
  EXPECT_THAT(read_bytes(folder / "a.jsonl"), HasSubstr("\"replaces\":2147483648}"));
  // One by one: the number is known before the stream's first entry.
  TraceReader reader(folder / "a.jsonl");
  std::map<std::uint32_t, int> defined;
  while (const auto item = reader.next()) {
    if (const auto* definition = std::get_if<StreamDefinition>(&*item))
      ++defined[definition->stream];
    if (const auto* entry = std::get_if<LaunchTraceEntry>(&*item)) {
      EXPECT_EQ(defined[entry->stream_index], 1) << to_json(*entry);
    }
  }
  EXPECT_EQ(reader.line(), 17u);
  EXPECT_EQ(defined.size(), 4u);
}

TEST(StreamNumbers, SlicesAndComparisonsSeeFinalOnes) {
  TemporaryFolder folder;
  write(folder / "a.jsonl", items(), true);
  const Trace trace = read_trace(folder / "a.jsonl");
  write_trace(folder / "clean.jsonl", trace);
  expect_final(read_trace(folder / "clean.jsonl"));
  EXPECT_THAT(read_bytes(folder / "clean.jsonl"), testing::Not(HasSubstr("2147483648")));
  DiffOptions options;
  options.view.kind = ViewOptions::Kind::kEnqueued;
  options.view.core_kinds_only = false;
  options.per_stream = true;
  EXPECT_TRUE(diff_files(folder / "a.jsonl", folder / "clean.jsonl", options).equal);
  SliceOptions slice;
  slice.streams = {2};
  EXPECT_EQ(slice_trace(folder / "a.jsonl", folder / "slice.jsonl", slice), 4u);
  EXPECT_THAT(streams_of(read_trace(folder / "slice.jsonl")), testing::Each(2u));
}

// Wherever the file ends, streams that are two stay two, and what orders them stays.
TEST(StreamNumbers, TruncatedFilesKeepStreamsApart) {
  TemporaryFolder folder;
  write(folder / "whole.jsonl", items(), true);
  const std::string whole = read_bytes(folder / "whole.jsonl");
  const std::vector<std::uint32_t> finals = streams_of(read_trace(folder / "whole.jsonl"));
  for (std::size_t end = whole.find('\n') + 1; end < whole.size(); ++end) {
    if (whole[end] != '\n' && end % 7 != 0) continue;
    write_bytes(folder / "cut.jsonl", whole.substr(0, end + 1));
    const Trace cut = read_trace(folder / "cut.jsonl");
    std::map<std::uint32_t, std::uint32_t> numbers, back;
    for (std::size_t i = 0; i < cut.entries.size(); ++i) {
      const std::uint32_t number = cut.entries[i].stream_index;
      EXPECT_LT(number, 4u) << "cut at " << end;
      EXPECT_EQ(numbers.emplace(finals[i], number).first->second, number) << "cut at " << end;
      EXPECT_EQ(back.emplace(number, finals[i]).first->second, finals[i]) << "cut at " << end;
    }
  }
  // In the order in which they were met, behind those that worked.
  write(folder / "early.jsonl", first_items(8), false);
  EXPECT_THAT(streams_of(read_trace(folder / "early.jsonl")), ElementsAre(0, 0, 1, 2, 1));
}

TEST(StreamNumbers, FileThatGrowsEndsWhereItEndedWhenLookedThrough) {
  TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.jsonl";
  TraceWriter writer(path, {});
  writer.write(stream(kFirst, "provisional", "true"));
  writer.write(event(OperationKind::kEventRecord, 0, kFirst));
  writer.flush();
  TraceReader reader(path);
  EXPECT_EQ(std::get<StreamDefinition>(*reader.next()).stream, 0u);
  writer.write(stream(0));
  writer.write(kernel("another stream"));
  writer.write(stream(1, "replaces", "2147483648"));
  writer.finish();
  EXPECT_EQ(std::get<LaunchTraceEntry>(*reader.next()).stream_index, 0u);
  EXPECT_FALSE(reader.next().has_value());
  EXPECT_TRUE(reader.truncated());
  EXPECT_THAT(streams_of(read_trace(path)), ElementsAre(1, 0));
}

TEST(StreamNumbers, DamageBehindIsReportedWhereItStands) {
  TemporaryFolder folder;
  write(folder / "a.jsonl", first_items(8), false);
  write_bytes(folder / "a.jsonl", read_bytes(folder / "a.jsonl") + "{\"define\":\"stream\"}\n");
  for (const bool piped : {false, true}) {
    std::optional<Pipe> pipe;
    if (piped) pipe.emplace(read_bytes(folder / "a.jsonl"));
    TraceReader reader(piped ? pipe->path() : folder / "a.jsonl");
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(reader.next().has_value());
    std::string what;
    EXPECT_EQ(code_of([&] { reader.next(); }, &what), ErrorCode::kInvalidFile);
    EXPECT_THAT(what, HasSubstr(":10: \"stream\" is missing"));
  }
  // A damaged frame: what stands before it is given first.
  write(folder / "b.jsonl.zst", first_items(8), false);
  const std::string frame = read_bytes(folder / "b.jsonl.zst");
  write_bytes(folder / "b.jsonl.zst", frame + "no frame, but as long as one");
  for (const bool piped : {false, true}) {
    std::optional<Pipe> pipe;
    if (piped) pipe.emplace(read_bytes(folder / "b.jsonl.zst"));
    TraceReader reader(piped ? pipe->path() : folder / "b.jsonl.zst");
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(reader.next().has_value()) << i << piped;
    EXPECT_EQ(code_of([&] { reader.next(); }), ErrorCode::kInvalidFile);
  }
}

// Earlier recordings wrote such numbers without saying so; and anybody may use them.
TEST(StreamNumbers, LargeNumbersOfOthersStay) {
  TemporaryFolder folder;
  write(folder / "a.jsonl",
        {stream(kFirst), event(OperationKind::kEventRecord, 0, kFirst), stream(0), kernel("a"),
         kernel("b", kSecond)},
        true);
  const Trace trace = read_trace(folder / "a.jsonl");
  EXPECT_THAT(streams_of(trace), ElementsAre(kFirst, 0, kSecond));
  EXPECT_EQ(trace.streams.size(), 2u);
}

}  // namespace
}  // namespace lockstep
