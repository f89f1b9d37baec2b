// SPDX-License-Identifier: Apache-2.0
#include "framework/waivers.h"

#include <lockstep/error.h>

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "framework/report.h"
#include "framework/runner.h"
#include "support/temp_folder.h"

namespace {

using conformance::Waivers;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const conformance::WaiverTarget kHip{"hip", "5.7.1", true};

class WaiversTest : public ::testing::Test {
 protected:
  Waivers load(const std::string& text) {
    std::ofstream(folder_.path() / "waivers.toml") << text;
    return Waivers::load(folder_.path() / "waivers.toml");
  }
  std::string refusal(const std::string& text) {
    try {
      load(text);
    } catch (const lockstep::Error& error) {
      EXPECT_EQ(error.code(), lockstep::ErrorCode::kInvalidFile);
      return error.what();
    }
    return "accepted";
  }

  lockstep::testing::TempFolder folder_;
};

constexpr char kGood[] = R"([[waiver]]
backend = "hip"
case = "capture*"
kind = "unsupported"
reason = "no capture of module launches"
versions = ">=5.0,<5.8"
)";

TEST_F(WaiversTest, MatchesByGlobBackendAndVersion) {
  Waivers waivers = load(kGood);
  ASSERT_NE(waivers.find(kHip, "capture.ends", "eager"), nullptr);
  EXPECT_EQ(waivers.find(kHip, "graph.by_hand", "eager"), nullptr);
  EXPECT_EQ(waivers.find({"hip", "6.4", true}, "capture.ends", "eager"), nullptr);
  EXPECT_EQ(waivers.find({"cuda", "5.7", true}, "capture.ends", "eager"), nullptr);
  EXPECT_THAT(waivers.problems(kHip), IsEmpty());
}

TEST_F(WaiversTest, UnmatchedIsAProblem) {
  const Waivers waivers = load(kGood);
  EXPECT_THAT(waivers.problems(kHip), ElementsAre(HasSubstr("matches no case")));
  EXPECT_THAT(waivers.problems({"hip", "6.4", true}), IsEmpty());
}

TEST_F(WaiversTest, ExpiredIsAProblem) {
  Waivers waivers = load(std::string(kGood) + "expires = \"2020-01-31\"\n");
  waivers.find(kHip, "capture.x", "eager");
  EXPECT_THAT(waivers.problems(kHip), ElementsAre(HasSubstr("expired on 2020-01-31")));
}

TEST_F(WaiversTest, VariantLimits) {
  Waivers waivers = load(std::string(kGood) + "variant = \"graph\"\n");
  EXPECT_EQ(waivers.find(kHip, "capture.x", "eager"), nullptr);
  EXPECT_NE(waivers.find(kHip, "capture.x", "graph"), nullptr);
}

TEST_F(WaiversTest, RefusalsNameFileLineAndReason) {
  EXPECT_THAT(refusal("[[waiver]]\nbackend = \"hip\"\n"), HasSubstr("waivers.toml:1"));
  EXPECT_THAT(
      refusal("[[waiver]]\nbackend = \"hip\"\ncase = \"x\"\nkind = \"flaky\"\nreason = \"r\"\n"),
      HasSubstr("kind is"));
  EXPECT_THAT(refusal(std::string(kGood) + "colour = \"red\"\n"),
              HasSubstr("waivers.toml:7: unknown key `colour`"));
  EXPECT_THAT(refusal(std::string(kGood) + "expires = \"soon\"\n"), HasSubstr("expires is a date"));
  for (const std::string date : {"2027-99-99", "2027-02-29", "2027-00-10", "2027-6-30"}) {
    EXPECT_THAT(refusal(std::string(kGood) + "expires = \"" + date + "\"\n"),
                HasSubstr("expires is a date"))
        << date;
  }
  EXPECT_EQ(load(std::string(kGood) + "expires = \"2028-02-29\"\n").problems(kHip).size(), 1U);
  EXPECT_THAT(refusal("[[waiver]]\nbackend = 3\n"), HasSubstr("waivers.toml:2"));
  EXPECT_THAT(refusal("[[waiver"), HasSubstr("waivers.toml:1"));
  EXPECT_THAT(refusal("name = 3\n"), HasSubstr("only [[waiver]]"));
  EXPECT_THAT(refusal("[[waiver]]\nbackend=\"h\"\ncase=\"x\"\nkind=\"unsupported\"\nreason="
                      "\"r\"\nversions=\"5\"\n"),
              HasSubstr("version condition"));
}

TEST_F(WaiversTest, AFolderIsNoFileOfWaivers) {
  const lockstep::testing::TempFolder folder;
  EXPECT_THROW(conformance::Waivers::load(folder.path()), lockstep::Error);
}

TEST(VersionRange, ComparesNumberByNumber) {
  EXPECT_TRUE(conformance::version_in_range("5.10", ">=5.9"));
  EXPECT_FALSE(conformance::version_in_range("5.9", ">=5.10"));
  EXPECT_TRUE(conformance::version_in_range("6.4.3", ">6.4,<7"));
  EXPECT_TRUE(conformance::version_in_range("13.0", "==13"));
  EXPECT_FALSE(conformance::version_in_range("", ">=1"));
  EXPECT_TRUE(conformance::version_in_range("5.2.21153-0", ">=5.2"));  // as HIP's are
  for (const char* bad : {">=5.2garbage", ">=5.2.", ">= 5.2", ">=5.2,", ">=", "5.2", "", "=5"}) {
    EXPECT_THROW(conformance::version_in_range("5.2", bad), lockstep::Error) << bad;
  }
}

TEST(Glob, MatchesStarsAndQuestionMarks) {
  EXPECT_TRUE(conformance::glob_match("*", ""));
  EXPECT_TRUE(conformance::glob_match("CAP_0?.*", "CAP_01.unjoined"));
  EXPECT_TRUE(conformance::glob_match("*a*b", "xxaxbxb"));
  EXPECT_FALSE(conformance::glob_match("a?", "a"));
  EXPECT_FALSE(conformance::glob_match("", "a"));
}

TEST(Report, RoundTripsAndCompares) {
  conformance::Report report;
  report.backend = "host";
  report.device = "a \"quoted\" name";
  report.results = {{"a", "eager", conformance::Outcome::kPassed, "", 0.5},
                    {"a", "graph", conformance::Outcome::kWaived, "unsupported: why", 0.25}};
  const lockstep::testing::TempFolder folder;
  std::ofstream(folder.path() / "report.json") << conformance::to_json(report);
  conformance::Report loaded = conformance::load_report(folder.path() / "report.json");
  EXPECT_EQ(conformance::to_json(loaded), conformance::to_json(report));
  EXPECT_TRUE(conformance::compare(report, loaded).equal);
  loaded.results[1].outcome = conformance::Outcome::kFailed;
  loaded.results.push_back({"b", "eager", conformance::Outcome::kPassed, "", 0.0});
  const auto comparison = conformance::compare(report, loaded);
  EXPECT_FALSE(comparison.equal);
  EXPECT_THAT(comparison.text, HasSubstr("a (graph)\n  - waived: unsupported: why\n  + failed"));
  EXPECT_THAT(comparison.text, HasSubstr("b (eager)\n  - not run"));
}

TEST(Report, ManyRunsWithOneReasonAreOneLine) {
  conformance::Report report;
  report.results = {{"first", "eager", conformance::Outcome::kPassed, "", 0.0}};
  for (int i = 0; i < 21; ++i) {
    report.results.push_back({"many", "eager", conformance::Outcome::kNotApplicable, "no b", 0.0});
  }
  report.results.push_back({"one", "eager", conformance::Outcome::kFailed, "wrong", 0.0});
  const std::string text = conformance::to_text(report);
  EXPECT_THAT(text, HasSubstr("  not_applicable  many (eager) and 20 more (--verbose lists them): "
                              "no b\n  failed  one (eager): wrong\n"));
  report.results.pop_back();
  EXPECT_TRUE(report.ok());
  report.not_run = 1;
  EXPECT_FALSE(report.ok());
}

TEST(Report, AFolderIsNoReport) {
  const lockstep::testing::TempFolder folder;
  EXPECT_THROW(conformance::load_report(folder.path()), lockstep::Error);
}

TEST(Report, NothingRunIsNotOk) { EXPECT_FALSE(conformance::Report{}.ok()); }

TEST(Report, NothingRunIsLikeNothing) {
  const auto comparison = conformance::compare({}, {});
  EXPECT_FALSE(comparison.equal);
  EXPECT_THAT(comparison.text, HasSubstr("0 runs, 0 alike\nno case was run: nothing is compared"));
}

}  // namespace
