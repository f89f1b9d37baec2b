// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_diff.h>
#include <lockstep/trace_file.h>
#include <lockstep/trace_slice.h>

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "robust/robust_test.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string data(const std::string& name) {
  return std::string(LOCKSTEP_TEST_DATA_DIR) + "/traces/" + name + ".jsonl";
}

std::size_t files_in(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& file : fs::directory_iterator(folder)) ++count;
  return count;
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// The trace is readable as far as the disk had room, and known to be cut.
void expect_cut(const std::string& path) {
  const Trace trace = read_trace(path);
  EXPECT_FALSE(trace.footer.present);
  EXPECT_GT(trace.entries.size(), 10u);
  EXPECT_FALSE(diff(trace, trace).equal);
}

TEST(FullDisk, SelfRecordingProgramsRunToTheirEnd) {
  const SmallDisk disk("64k");
  if (!disk.mounted()) GTEST_SKIP() << disk.problem();
  ProcessOptions options;
  options.environment["LOCKSTEP_TRACE"] = disk / "out.jsonl";
  const ProcessResult result = robust_program({"launch", "20000"}, options);
  EXPECT_EQ(result.exit_code, 0) << all_of(result);
  EXPECT_EQ(result.out, "done\n");
  EXPECT_THAT(result.err, HasSubstr("the trace is incomplete"));
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
  EXPECT_EQ(lines_in(result.err), 1u) << "said once:\n" << result.err;
  expect_cut(disk / "out.jsonl");
}

TEST(FullDisk, TraceThatCannotEvenBeginIsATypedError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  ProcessOptions options;
  options.environment["LOCKSTEP_TRACE"] = "/dev/full";
  const ProcessResult result = robust_program({"launch", "10"}, options);
  EXPECT_EQ(result.exit_code, 3) << all_of(result);
  EXPECT_THAT(result.out, HasSubstr("error 17: "));
  EXPECT_THAT(result.out, HasSubstr("/dev/full: No space left on device"));
  EXPECT_TRUE(fs::is_character_file("/dev/full")) << "nobody replaces a device";
}

TEST(FullDisk, RecordSaysSoAndLetsTheProgramFinish) {
  const SmallDisk disk("64k");
  if (!disk.mounted()) GTEST_SKIP() << disk.problem();
  ProcessOptions options;
  options.environment["LOCKSTEP_TRACE_BUFFER_MB"] = "1";  // soon full when nobody drains it
  const ProcessResult result =
      lockstep_cli(recorded(disk / "out.jsonl", {"launch", "60000"}), options);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 5) << all_of(result);
  EXPECT_EQ(result.out, "done\n");
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
  expect_cut(disk / "out.jsonl");
}

TEST(FullDisk, OutputsWrittenAsideLeaveNothing) {
  const SmallDisk disk("64k");
  if (!disk.mounted()) GTEST_SKIP() << disk.problem();
  const TempFolder folder;
  const std::string large = folder / "large.jsonl";
  ASSERT_EQ(robust_program({"write-many", large, "2000"}).exit_code, 0);
  const ProcessResult slice = lockstep_cli({"show", large, "--range", "0:1900", "--jsonl"});
  ASSERT_EQ(slice.exit_code, 0) << slice.err;
  write_file(folder / "slice.jsonl", slice.out);
  const ProcessResult merged =
      lockstep_cli({"merge", folder / "slice.jsonl", large, "-o", disk / "merged.jsonl"});
  EXPECT_NE(merged.exit_code, 0);
  const ProcessResult alone =
      lockstep_cli({"merge", folder / "slice.jsonl", "-o", disk / "merged.jsonl"});
  EXPECT_NE(alone.exit_code, 0) << all_of(alone);
  EXPECT_EQ(files_in(disk.path()), 0u);
  try {
    write_trace(disk / "copy.jsonl", read_trace(large));
    FAIL() << "64 KiB held it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInputOutput) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("No space left on device"));
  }
  EXPECT_THROW(slice_trace(large, disk / "slice.jsonl"), Error);
  EXPECT_EQ(files_in(disk.path()), 0u);

  ProcessOptions options;
  options.environment["TMPDIR"] = disk.path();
  const ProcessResult shown = lockstep_cli({"show", large, "--jsonl"}, options);
  EXPECT_EQ(shown.exit_code, 5) << all_of(shown).substr(0, 1000);
  EXPECT_THAT(shown.err, HasSubstr("No space left on device"));
  EXPECT_EQ(files_in(disk.path()), 0u);
}

TEST(FullDisk, KernelsThatCannotBeKeptAreAnError) {
  const SmallDisk disk("16k");
  if (!disk.mounted()) GTEST_SKIP() << disk.problem();
  ProcessOptions options;
  options.environment["LOCKSTEP_CACHE_DIR"] = disk.path();
  const ProcessResult result = robust_program({"launch", "10"}, options);
  EXPECT_EQ(result.exit_code, 3) << all_of(result);
  EXPECT_THAT(result.out, HasSubstr("error "));
  EXPECT_THAT(result.out, ::testing::AnyOf(HasSubstr("No space left"), HasSubstr(disk.path())));
}

/// What root may write anyway is made read-only by mounting it so.
struct ReadOnlyFolder {
  SmallDisk disk{"64k"};
  TempFolder folder;
  std::string path;

  ReadOnlyFolder() {
    if (disk.mounted()) {
      disk.make_read_only();
      path = disk.path();
      return;
    }
    path = folder.path().string();
    fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  }
  ~ReadOnlyFolder() { fs::permissions(folder.path(), fs::perms::owner_all); }
  ReadOnlyFolder(const ReadOnlyFolder&) = delete;
  ReadOnlyFolder& operator=(const ReadOnlyFolder&) = delete;
  bool works() const { return access(path.c_str(), W_OK) != 0; }
};

TEST(ReadOnly, OutputsAreTypedErrorsThatNameThem) {
  const ReadOnlyFolder folder;
  if (!folder.works()) GTEST_SKIP() << "root writes everywhere here: " << folder.disk.problem();
  const std::string output = folder.path + "/out.jsonl";
  ProcessOptions options;
  options.environment["LOCKSTEP_TRACE"] = output;
  const ProcessResult traced = robust_program({"launch", "10"}, options);
  EXPECT_EQ(traced.exit_code, 3) << all_of(traced);
  EXPECT_THAT(traced.out, HasSubstr("error 17: "));
  EXPECT_THAT(traced.out, HasSubstr(output));

  const ProcessResult record = lockstep_cli(recorded(output, {"launch", "10"}));
  EXPECT_EQ(record.exit_code, 5) << all_of(record);
  EXPECT_THAT(record.err, HasSubstr(folder.path));
  EXPECT_EQ(record.out, "") << "the program is not begun";

  const ProcessResult merged = lockstep_cli({"merge", data("mlp-eager-b8-fp32"), "-o", output});
  EXPECT_NE(merged.exit_code, 0);
  try {
    write_trace(output, read_trace(data("mlp-eager-b8-fp32")));
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInputOutput);
    EXPECT_THAT(error.what(), HasSubstr(output));
  }
}

TEST(ReadOnly, KernelsAreThenNotKept) {
  const ReadOnlyFolder folder;
  if (!folder.works()) GTEST_SKIP() << "root writes everywhere here: " << folder.disk.problem();
  ProcessOptions options;
  options.environment["LOCKSTEP_CACHE_DIR"] = folder.path;
  const ProcessResult result = robust_program({"launch", "10"}, options);
  EXPECT_EQ(result.exit_code, 0) << all_of(result);
  EXPECT_EQ(result.out, "done\n");
  EXPECT_THAT(result.err,
              HasSubstr("lockstep: warning: compiled kernels are not kept (" + folder.path));
}

std::size_t entries_left(TraceReader& reader) {
  std::size_t count = 0;
  while (auto item = reader.next()) count += std::holds_alternative<LaunchTraceEntry>(*item);
  return count;
}

struct LargeTrace {
  static constexpr std::size_t kEntries = 30000;  // megabytes: no buffer holds all of it
  TempFolder folder;
  std::string path = folder / "large.jsonl";
  std::string other = folder / "other.jsonl";
  LargeTrace() {
    EXPECT_EQ(robust_program({"write-many", path, std::to_string(kEntries)}).exit_code, 0);
    fs::copy_file(data("mlp-eager-b8-fp32"), other);
  }
};

TEST(UnderTheReader, ReplacedFilesAreReadToTheirOldEnd) {
  const LargeTrace trace;
  TraceReader reader(trace.path);
  fs::rename(trace.other, trace.path);
  EXPECT_EQ(entries_left(reader), LargeTrace::kEntries);
  EXPECT_FALSE(reader.truncated());
  EXPECT_EQ(read_trace(trace.path).entries.size(), 24u);
}

TEST(UnderTheReader, RemovedFilesToo) {
  const LargeTrace trace;
  TraceReader reader(trace.path);
  fs::remove(trace.path);
  EXPECT_EQ(entries_left(reader), LargeTrace::kEntries);
}

TEST(UnderTheReader, ForcedOutputIsANewFile) {
  const LargeTrace trace;
  TraceReader reader(trace.path);
  TraceWriterOptions force;
  force.force = true;
  TraceWriter writer(trace.path, {}, force);
  writer.finish();
  EXPECT_EQ(entries_left(reader), LargeTrace::kEntries);
  EXPECT_TRUE(read_trace(trace.path).entries.empty());
}

TEST(UnderTheReader, CutFilesAreTruncated) {
  const LargeTrace trace;
  TraceReader reader(trace.path);
  fs::resize_file(trace.path, fs::file_size(trace.path) / 2);
  EXPECT_LT(entries_left(reader), LargeTrace::kEntries);
  EXPECT_TRUE(reader.truncated());
}

TEST(UnderTheReader, OverwrittenFilesAreDamaged) {
  const LargeTrace trace;
  TraceReader reader(trace.path);
  std::string other(fs::file_size(trace.path), 'x');
  for (std::size_t i = 99; i < other.size(); i += 100) other[i] = '\n';
  write_file(trace.path, other);
  try {
    entries_left(reader);
    FAIL() << "read to the end";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidFile);
    EXPECT_THAT(error.context().where, HasSubstr(trace.path));
  }
}

TEST(UnderTheReader, ReportsOfFilesThatChangedSince) {
  const LargeTrace trace;
  const std::string left = trace.folder / "left.jsonl";
  fs::copy_file(trace.path, left);
  write_file(left, read_file(left).replace(read_file(left).rfind("layer_3"), 7, "layer_Z"));
  // The name is part of the hash, so the file has to be made without.
  TraceReaderOptions unchecked;
  unchecked.check_hashes = false;
  Trace changed = read_trace(left, unchecked);
  for (LaunchTraceEntry& entry : changed.entries) entry.semantic_hash = semantic_hash(entry);
  TraceWriterOptions force;
  force.force = true;
  write_trace(left, changed, force);
  const DiffReport report = diff_files(left, trace.path);
  ASSERT_FALSE(report.equal);
  fs::rename(trace.other, left);  // 24 entries: the difference lies beyond its end
  try {
    EXPECT_FALSE(to_text(report, left, trace.path, {}).empty());
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the left entries do not belong to this report"));
  }
}

}  // namespace
}  // namespace lockstep::testing
