// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_diff.h>
#include <lockstep/trace_slice.h>

#include <algorithm>
#include <gmock/gmock.h>

#include "support/trace_entries.h"

namespace lockstep {
namespace {

using namespace testing_support;
using testing::HasSubstr;

void expect_same(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.info, b.info);
  EXPECT_EQ(a.streams, b.streams);
  EXPECT_EQ(a.graphs, b.graphs);
  EXPECT_EQ(a.entries, b.entries);
  EXPECT_EQ(a.footer, b.footer);
}

TEST(Cases, HUGE_03_RangesMergeBackToTheOriginal) {
  TemporaryFolder folder;
  for (const char* name : {"mlp-graph-b8-fp32", "torch-streams", "gpt2-fwd-b1-bf16-l2"}) {
    const auto original = recording(name);
    const Trace trace = read_trace(original);
    std::vector<std::filesystem::path> parts;
    for (std::uint64_t begin = 0; begin < trace.entries.size(); begin += 7) {
      SliceOptions options;
      options.begin = begin;
      options.end = begin + 7;
      parts.push_back(folder / (std::string(name) + std::to_string(begin) + ".jsonl.zst"));
      const std::uint64_t count = slice_trace(original, parts.back(), options);
      EXPECT_EQ(count, std::min<std::uint64_t>(7, trace.entries.size() - begin));
      const Trace part = read_trace(parts.back());
      EXPECT_TRUE(part.footer.present);
      EXPECT_EQ(part.graphs, trace.graphs);
      EXPECT_EQ(part.entries[0].semantic_hash, trace.entries[begin].semantic_hash);
    }
    std::reverse(parts.begin(), parts.end());  // in whatever order they are named
    const auto merged = folder / (std::string(name) + ".merged.jsonl");
    EXPECT_EQ(merge_traces(parts, merged), trace.entries.size());
    expect_same(read_trace(merged), trace);
    EXPECT_TRUE(diff_files(merged, original).equal);
  }
}

TEST(Cases, HUGE_03_StreamsAndNamesMergeBackToTheOriginal) {
  TemporaryFolder folder;
  const auto original = recording("torch-streams");
  const Trace trace = read_trace(original);
  std::vector<std::filesystem::path> parts;
  for (std::uint32_t stream = 0; stream < 4; ++stream) {
    SliceOptions options;
    options.streams = {stream};
    parts.push_back(folder / (std::to_string(stream) + ".jsonl"));
    slice_trace(original, parts.back(), options);
    for (const auto& entry : read_trace(parts.back()).entries) {
      EXPECT_EQ(entry.stream_index, stream);
    }
  }
  SliceOptions by_name;
  by_name.name_pattern = "FillFunctor<float>";  // overlaps with the streams, which is allowed
  parts.push_back(folder / "fill.jsonl");
  EXPECT_EQ(slice_trace(original, parts.back(), by_name), 4u);
  merge_traces(parts, folder / "merged.jsonl");
  expect_same(read_trace(folder / "merged.jsonl"), trace);
}

TEST(Slice, OfASliceKeepsTheOriginalOrdinals) {
  TemporaryFolder folder;
  const Trace trace = kernels({"a", "b", "a", "c", "a", "d"});
  write_trace(folder / "whole.jsonl", trace);
  SliceOptions a, rest, odd;
  a.name_pattern = "^a$";
  rest.name_pattern = "[^a]";
  slice_trace(folder / "whole.jsonl", folder / "a.jsonl", a);
  slice_trace(folder / "whole.jsonl", folder / "rest.jsonl", rest);
  rest.begin = 2;
  slice_trace(folder / "rest.jsonl", folder / "rest2.jsonl", rest);
  const Trace late = read_trace(folder / "rest2.jsonl");
  ASSERT_EQ(late.entries.size(), 2u);
  EXPECT_EQ(late.entries[0].name, "c");
  merge_traces({folder / "a.jsonl", folder / "rest2.jsonl", folder / "rest.jsonl"},
               folder / "merged.jsonl");
  expect_same(read_trace(folder / "merged.jsonl"), trace);
}

TEST(Cases, HUGE_03_CutFileNamesTheLastGoodEntry) {
  TemporaryFolder folder;
  const std::string whole = read_bytes(recording("torch-streams"));
  write_bytes(folder / "cut.jsonl", whole.substr(0, whole.size() / 2));
  const std::size_t good = read_trace(folder / "cut.jsonl").entries.size();
  std::string what;
  EXPECT_EQ(code_of([&] { slice_trace(folder / "cut.jsonl", folder / "s.jsonl"); }, &what),
            ErrorCode::kTruncatedFile);
  EXPECT_THAT(what, HasSubstr("last good entry is number " + std::to_string(good - 1)));
  EXPECT_FALSE(std::filesystem::exists(folder / "s.jsonl"));
  SliceOptions options;
  options.allow_truncated = true;
  EXPECT_EQ(slice_trace(folder / "cut.jsonl", folder / "s.jsonl", options), good);
  EXPECT_TRUE(read_trace(folder / "s.jsonl").footer.present);
}

TEST(Merge, SaysWhatIsMissingOrWrong) {
  TemporaryFolder folder;
  write_trace(folder / "whole.jsonl", kernels({"a", "b", "c", "d"}));
  write_trace(folder / "other.jsonl", kernels({"a", "x", "c", "d"}));
  SliceOptions head, tail;
  head.end = 2;
  tail.begin = 3;
  slice_trace(folder / "whole.jsonl", folder / "head.jsonl", head);
  slice_trace(folder / "whole.jsonl", folder / "tail.jsonl", tail);
  slice_trace(folder / "other.jsonl", folder / "wrong.jsonl", head);
  std::string what;
  EXPECT_EQ(code_of(
                [&] {
                  merge_traces({folder / "head.jsonl", folder / "tail.jsonl"}, folder / "m.jsonl");
                },
                &what),
            ErrorCode::kMismatch);
  EXPECT_THAT(what, HasSubstr("entries 2 to 2"));
  EXPECT_EQ(code_of([&] { merge_traces({folder / "head.jsonl"}, folder / "m.jsonl"); }, &what),
            ErrorCode::kMismatch);
  EXPECT_THAT(what, HasSubstr("entries 2 to 3"));
  EXPECT_EQ(code_of(
                [&] {
                  merge_traces({folder / "head.jsonl", folder / "wrong.jsonl"}, folder / "m.jsonl");
                },
                &what),
            ErrorCode::kMismatch);
  EXPECT_THAT(what, HasSubstr("entry 1 is another one"));
  EXPECT_EQ(code_of([&] { merge_traces({folder / "whole.jsonl"}, folder / "m.jsonl"); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { merge_traces({}, folder / "m.jsonl"); }), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(folder / "m.jsonl"));
}

TEST(Slice, RefusesBadOptions) {
  TemporaryFolder folder;
  write_trace(folder / "a.jsonl", kernels({"a"}));
  SliceOptions options;
  options.name_pattern = "(";
  EXPECT_EQ(code_of([&] { slice_trace(folder / "a.jsonl", folder / "b.jsonl", options); }),
            ErrorCode::kInvalidArgument);
  options.name_pattern.clear();
  options.begin = 2;
  options.end = 1;
  EXPECT_EQ(code_of([&] { slice_trace(folder / "a.jsonl", folder / "b.jsonl", options); }),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
