// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/testing.h>
#include <lockstep/trace_file.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "support/temp_folder.h"

namespace {

namespace ls = lockstep;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ls::LaunchTraceEntry kernel(const std::string& name, std::uint32_t blocks) {
  ls::LaunchTraceEntry entry;
  entry.name = name;
  entry.grid_x = blocks;
  entry.grid_y = entry.grid_z = 1;
  entry.block_x = 64;
  entry.block_y = entry.block_z = 1;
  entry.semantic_hash = ls::semantic_hash(entry);
  return entry;
}

ls::Trace trace_of(std::vector<ls::LaunchTraceEntry> entries) {
  ls::Trace trace;
  trace.info.producer = "test";
  trace.entries = std::move(entries);
  trace.footer.present = true;
  trace.footer.entries = trace.entries.size();
  return trace;
}

/// Sets a variable for one test and puts back what was there.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Variable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(TraceAssertion, EqualAndDifferent) {
  EXPECT_TRACE_EQ(trace_of({kernel("a", 1)}), trace_of({kernel("a", 1)}));
  const auto result =
      ls::testing::traces_equal(trace_of({kernel("a", 1)}), trace_of({kernel("b", 2)}));
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), HasSubstr("first difference at 0"));
}

TEST(TraceMatchers, SayWhatAnEntryIs) {
  ls::LaunchTraceEntry copy;
  copy.kind = ls::OperationKind::kMemcpy;
  copy.memcpy_kind = ls::MemcpyKind::kHtoD;
  copy.memcpy_byte_size = 12;
  ls::LaunchTraceEntry set;
  set.kind = ls::OperationKind::kMemset;
  set.memset_byte_size = 8;
  const std::vector<ls::LaunchTraceEntry> entries = {kernel("_Z5saxpyfPKfPfi", 4), copy, set};
  EXPECT_THAT(entries,
              ElementsAre(ls::testing::LaunchOf("saxpy", ls::Dim3(4), ls::Dim3(64)),
                          ls::testing::CopyOf(ls::MemcpyKind::kHtoD, 12), ls::testing::SetOf(8)));
  EXPECT_THAT(entries[0], ::testing::Not(ls::testing::LaunchOf("saxpy", ls::Dim3(5))));
  EXPECT_THAT(entries[0], ::testing::Not(ls::testing::LaunchOf("gemm")));
  EXPECT_THAT(entries[1], ::testing::Not(ls::testing::CopyOf(ls::MemcpyKind::kDtoH)));
}

TEST(GoldenFile, IsWrittenComparedAndUpdatedByMode) {
  const ls::testing::TempFolder folder;
  const auto path = folder.path() / "sub" / "step.jsonl";
  const Variable no_ci("CI", nullptr);
  {
    const Variable mode("LOCKSTEP_GOLDEN", nullptr);
    const auto missing = ls::testing::matches_golden(path, trace_of({kernel("a", 1)}));
    EXPECT_FALSE(missing);
    EXPECT_THAT(missing.message(), HasSubstr("LOCKSTEP_GOLDEN=new"));
  }
  {
    const Variable mode("LOCKSTEP_GOLDEN", "new");
    ls::LaunchTraceEntry timed = kernel("a", 1);
    timed.time_ns = 17;
    EXPECT_TRACE_MATCHES_GOLDEN(path, trace_of({timed}));
    EXPECT_EQ(ls::read_trace(path).entries.at(0).time_ns, 0) << "golden files hold no times";
    EXPECT_FALSE(ls::testing::matches_golden(path, trace_of({kernel("b", 1)})))
        << "`new` replaces nothing";
  }
  {
    const Variable mode("LOCKSTEP_GOLDEN", "update");
    EXPECT_TRACE_MATCHES_GOLDEN(path, trace_of({kernel("b", 1)}));
  }
  const Variable mode("LOCKSTEP_GOLDEN", "check");
  EXPECT_TRACE_MATCHES_GOLDEN(path, trace_of({kernel("b", 1)}));
  EXPECT_FALSE(ls::testing::matches_golden(path, trace_of({kernel("a", 1)})));
}

TEST(GoldenFile, ModeIsTakenByValueAndRefusedInCi) {
  const auto refusal = [](const char* value, const char* ci) -> std::string {
    const Variable mode("LOCKSTEP_GOLDEN", value), variable("CI", ci);
    try {
      (void)ls::testing::golden_mode();
    } catch (const ls::Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("0", nullptr), HasSubstr("may be check, new or update"));
  EXPECT_THAT(refusal("update", "true"), HasSubstr("refused while CI is set"));
  EXPECT_THAT(refusal("new", "true"), HasSubstr("refused while CI is set"));
  EXPECT_EQ(refusal("update", nullptr), "accepted");
  EXPECT_EQ(refusal("check", "true"), "accepted");
}

}  // namespace
