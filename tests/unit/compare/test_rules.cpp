// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_file.h>
#include <lockstep/trace_rules.h>

#include <gmock/gmock.h>
#include <regex>

#include "src/trace/pattern.h"
#include "support/trace_entries.h"

namespace lockstep {
namespace {

using namespace testing_support;
using testing::HasSubstr;

LaunchTraceEntry mark(const std::string& what, const std::string& name) {
  LaunchTraceEntry entry = of_kind(OperationKind::kMark, name);
  entry.mark = what;
  return entry;
}

std::size_t broken(const std::string& rule, const Trace& trace) {
  return TraceRules::parse(rule).check(trace).size();
}

/// Ten rounds of a loop, with a 4-byte copy to the host in each or one behind it.
Trace loop(bool copy_inside) {
  std::vector<LaunchTraceEntry> entries;
  for (int round = 0; round < 10; ++round) {
    entries.push_back(mark("push", "step"));
    entries.push_back(kernel("scan"));
    if (copy_inside) entries.push_back(copy(MemcpyKind::kDtoH, 4, 3));
    entries.push_back(kernel("work"));
    entries.push_back(mark("pop", ""));
  }
  if (!copy_inside) entries.push_back(copy(MemcpyKind::kDtoH, 4, 3));
  return trace_of(entries);
}

TEST(Cases, GOLD_02_NoCopyToTheHostInTheLoop) {
  const auto violations =
      TraceRules::parse("# the loop\nno DtoH between marks\n").check(loop(true));
  ASSERT_EQ(violations.size(), 10u);
  EXPECT_EQ(violations[0].line, 2u);
  EXPECT_EQ(violations[0].index, 1u);
  EXPECT_EQ(violations[1].index, 4u);
  EXPECT_EQ(violations[0].stream, 3u);
  EXPECT_THAT(violations[0].message, HasSubstr("entry 1 on stream 3"));
  EXPECT_THAT(violations[0].message, HasSubstr("DtoH 4 B"));
  EXPECT_EQ(broken("no DtoH between marks", loop(false)), 0u);
  EXPECT_EQ(broken("max 1 DtoH", loop(false)), 0u);
  const auto too_many = TraceRules::parse("max 1 DtoH").check(loop(true));
  ASSERT_EQ(too_many.size(), 9u);
  EXPECT_EQ(too_many[0].index, 4u);
  EXPECT_THAT(too_many[0].message, HasSubstr("10 DtoH, 1 allowed"));
}

TEST(Rules, IndexCountsTheViewThatWasAskedFor) {
  ViewOptions all;
  all.core_kinds_only = false;
  EXPECT_EQ(TraceRules::parse("no DtoH").check(loop(true), all)[0].index, 2u);
}

TEST(Rules, Quantities) {
  const Trace trace = kernels({"a", "b", "b"});
  EXPECT_EQ(broken("at most 3 launches", trace), 0u);
  EXPECT_EQ(broken("at most 2 launches", trace), 1u);
  EXPECT_EQ(broken("at least 4 kernels", trace), 1u);
  EXPECT_EQ(broken("min 3 kernel launches", trace), 0u);
  EXPECT_EQ(broken("exactly one kernel matching ^a$", trace), 0u);
  EXPECT_EQ(broken("exactly one kernel matching b", trace), 1u);
  EXPECT_EQ(broken("exactly 1 kernel matching \"no such\"", trace), 1u);
  EXPECT_EQ(broken("NO COPIES", trace), 0u);
  const auto missing = TraceRules::parse("exactly one kernel matching c").check(trace);
  EXPECT_FALSE(missing[0].index.has_value());
  EXPECT_THAT(missing[0].message, HasSubstr("0 kernel, at least 1 must be there"));
}

TEST(Rules, WhatCanBeCounted) {
  Trace trace =
      trace_of({copy(MemcpyKind::kHtoD, 8), copy(MemcpyKind::kDtoD, 100, 2),
                of_kind(OperationKind::kSynchronize, "s"), of_kind(OperationKind::kAlloc, "a"),
                of_kind(OperationKind::kFree, "f"), of_kind(OperationKind::kEventRecord, "e"),
                of_kind(OperationKind::kOpaque, "o"), graph_launch(9)});
  EXPECT_EQ(broken("no copies", trace), 2u);
  EXPECT_EQ(broken("no HtoD copies", trace), 1u);
  EXPECT_EQ(broken("no copies over 8 bytes", trace), 1u);
  EXPECT_EQ(broken("no copies of 8 bytes", trace), 1u);
  EXPECT_EQ(broken("no copies up to 100 bytes", trace), 2u);
  EXPECT_EQ(broken("no copies on stream 2", trace), 1u);
  EXPECT_EQ(broken("no synchronizations", trace), 1u);
  EXPECT_EQ(broken("no allocations", trace), 1u);
  EXPECT_EQ(broken("no frees", trace), 1u);
  EXPECT_EQ(broken("no events", trace), 1u);
  EXPECT_EQ(broken("no opaque entries", trace), 1u);
  EXPECT_EQ(broken("no graph launches", trace), 1u);
  EXPECT_EQ(broken("no entries", trace), 8u);
}

// Rules would never see what is there only as its nodes.
TEST(Rules, LaunchesThatStandAsTheirNodesAreNotAskedFor) {
  Trace trace = trace_of({graph_launch(0), graph_launch(0), graph_launch(1)});
  GraphDefinition graph;
  graph.graph = 0;
  graph.nodes = {copy(MemcpyKind::kHtoD, 8)};
  trace.graphs[{0, graph_launch(0).graph_version}] = graph;
  for (const char* rule : {"no graph launches", "at least 1 graph launches"}) {
    const auto violations = TraceRules::parse(rule).check(trace);
    ASSERT_EQ(violations.size(), 1u) << rule;
    EXPECT_THAT(violations[0].message, HasSubstr("2 graph launch(es) stand as their nodes"));
  }
  EXPECT_EQ(broken("at most 2 HtoD", trace), 0u);
}

TEST(Rules, RangesAndMarks) {
  const Trace trace = loop(true);
  EXPECT_EQ(broken("at most 1 DtoH in each range step", trace), 0u);
  EXPECT_EQ(broken("at most 1 DtoH in range step", trace), 9u);
  EXPECT_EQ(broken("exactly 2 launches in each range step", trace), 0u);
  const auto each = TraceRules::parse("no DtoH in each range step").check(trace);
  EXPECT_THAT(each[9].message, HasSubstr("in range step number 10"));
  const Trace points =
      trace_of({kernel("before"), mark("point", "a"), kernel("in"), mark("point", "b"),
                kernel("in"), mark("point", "c"), kernel("after")});
  EXPECT_EQ(broken("no launches between marks", points), 2u);
}

std::string only_message(const std::string& rule, const Trace& trace) {
  const auto violations = TraceRules::parse(rule).check(trace);
  EXPECT_EQ(violations.size(), 1u) << rule;
  if (violations.empty()) return {};
  EXPECT_EQ(violations[0].line, 1u);
  EXPECT_EQ(violations[0].rule, rule);
  EXPECT_FALSE(violations[0].index.has_value());
  return violations[0].message;
}

TEST(Rules, RangesHaveToExist) {
  const Trace trace = loop(true);
  for (const char* quantity : {"no DtoH", "at most 5 DtoH", "exactly 2 launches", "min 1 launch"}) {
    for (const char* place : {" in range stpe", " in each range stpe"}) {
      EXPECT_EQ(only_message(std::string(quantity) + place, trace),
                "there is no range \"stpe\": the trace has the ranges \"step\"");
    }
  }
  EXPECT_EQ(only_message("no HtoD in range step", kernels({"a"})),
            "there is no range \"step\": the trace has no ranges");
  EXPECT_EQ(only_message("no HtoD in range a", trace_of({mark("point", "a"), kernel("k")})),
            "there is no range \"a\": the trace has no ranges, and marks that are no ranges: "
            "\"a\"");
  std::vector<LaunchTraceEntry> many;
  for (int i = 0; i < 20; ++i) many.push_back(mark("push", "r" + std::to_string(i)));
  EXPECT_THAT(only_message("no HtoD in range r", trace_of(many)), HasSubstr("\"r7\", …"));
  EXPECT_EQ(broken("no HtoD in range r19", trace_of(many)), 0u);  // there, with nothing in it
}

TEST(Rules, MarksAndStreamsHaveToExist) {
  EXPECT_EQ(only_message("no DtoH between marks", kernels({"a"})),
            "nothing is between marks: the trace has no range, and no other mark");
  EXPECT_EQ(only_message("no DtoH between marks", trace_of({mark("point", "a"), kernel("k")})),
            "nothing is between marks: the trace has no range, and only one other mark, \"a\"");
  EXPECT_EQ(broken("no DtoH between marks",
                   trace_of({mark("point", "a"), kernel("k"), mark("point", "a")})),
            0u);
  EXPECT_EQ(only_message("no DtoH on stream 1", kernels({"a"})),
            "there is no stream 1: the trace has the streams 0");
  EXPECT_EQ(only_message("at most 2 HtoD on stream 5",
                         trace_of({kernel("a"), copy(MemcpyKind::kDtoH, 4, 3)})),
            "there is no stream 5: the trace has the streams 0, 3");
  EXPECT_EQ(broken("no HtoD on stream 3", loop(true)), 0u);
  Trace idle = kernels({"a"});
  idle.streams.emplace_back().stream = 7;
  EXPECT_EQ(broken("no HtoD on stream 7", idle), 0u);
}

TEST(Rules, ATraceWithoutEntriesKeepsOnlyThat) {
  const Trace empty = trace_of({});
  for (const char* rule :
       {"no DtoH", "at most 3 launches", "no entries on stream 0", "no entries in range r",
        "no kernel matching a", "min 0 entries", "exactly 0 launches", "no opaque"}) {
    EXPECT_THAT(only_message(rule, empty), HasSubstr("the trace has no entries that executed"))
        << rule;
  }
  EXPECT_THAT(only_message("at least 1 entries", empty), HasSubstr("no entries that executed"));
  EXPECT_EQ(broken("no entries", empty), 0u);
  EXPECT_EQ(broken("at most 3 entries", empty), 0u);
  EXPECT_EQ(broken("no DtoH", trace_of({mark("point", "a")})), 0u);
  Trace captured = kernels({"a"});
  captured.entries[0].set(EntryFlag::kCaptured);
  EXPECT_THAT(only_message("no DtoH", captured), HasSubstr("no entries that executed"));
}

TEST(Rules, WhatIsMissingIsToldWithTheNamesThereAre) {
  const Trace trace = kernels({"softmax", "gemm", "gemm"});
  EXPECT_EQ(only_message("at least 1 kernel matching softmx", trace),
            "0 kernel, at least 1 must be there; no name matches, the trace has \"softmax\", "
            "\"gemm\"");
  EXPECT_EQ(only_message("exactly one HtoD matching cu", trace),
            "0 HtoD, at least 1 must be there; the trace has none of any name");
  EXPECT_EQ(only_message("min 2 kernel matching softmax", trace),
            "1 kernel, at least 2 must be there");
}

TEST(Rules, RangesOfOtherThreadsDoNotCount) {
  Trace trace = trace_of({mark("push", "r"), kernel("a"), kernel("b")});
  trace.entries[2].thread_index = 1;
  EXPECT_EQ(broken("no launches in range r", trace), 1u);
}

TEST(Rules, ManyViolationsAreCutShort) {
  const auto violations =
      TraceRules::parse("no launches").check(kernels(std::vector<std::string>(150, "k")));
  ASSERT_EQ(violations.size(), 100u);
  EXPECT_THAT(violations.back().message, HasSubstr("50 more of this rule"));
}

TEST(Rules, ErrorsNameLineAndWord) {
  const std::pair<const char*, const char*> cases[] = {
      {"some DtoH", "expected no, exactly"},
      {"no", "at the end"},
      {"no unicorns", "\"unicorns\" is nothing"},
      {"max DtoH", "expected a number"},
      {"max -1 DtoH", "expected a number"},
      {"max 99999999999999999999 DtoH", "expected a number"},
      {"at 5 DtoH", "expected \"least\""},
      {"no kernel matching", "a pattern"},
      {"no kernel matching (", "without its ')'"},
      {"no kernel matching a{3}", "not supported"},
      {"no kernel matching \"a", "quote"},
      {"no DtoH between", "expected \"marks\""},
      {"no DtoH in range", "name of a range"},
      {"no DtoH on stream x", "number"},
      {"no DtoH on stream 4294967296", "no such stream"},
      {"no DtoH between marks in range x", "one place"},
      {"no DtoH please", "instead of \"please\""},
  };
  for (const auto& [rule, says] : cases) {
    try {
      TraceRules::parse(std::string("no HtoD\n\n") + rule, "ci.rules");
      ADD_FAILURE() << rule;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidFile);
      EXPECT_THAT(error.what(), HasSubstr("ci.rules:3: "));
      EXPECT_THAT(error.what(), HasSubstr(says));
    }
  }
}

TEST(Rules, FilesAreRead) {
  TemporaryFolder folder;
  write_bytes(folder / "ci.rules", "no DtoH\r\n# comment\n  max 3 launches\n");
  EXPECT_EQ(TraceRules::read(folder / "ci.rules").size(), 2u);
  EXPECT_THROW(TraceRules::read(folder / "none.rules"), Error);
  EXPECT_EQ(TraceRules::parse("").size(), 0u);
}

TEST(Pattern, AgreesWithAReferenceOnSmallExpressions) {
  const char* const kPatterns[] = {"a",     "ab",         "a*",    "a+b",   "a?b$",    "^a",
                                   "a|b",   "(ab)*c",     "[ab]c", "[^a]b", "a.b",     "^(a|b)*$",
                                   "a**",   "()a",        "(a|)b", "^$",    "[a-c]+$", "\\.",
                                   "a\\+b", "(a(b|c))+$", "[]]",   "[a-]",  "^a|b$"};
  for (const char* text : kPatterns) {
    const Pattern pattern(text);
    // A reference that reads "a**" as an error reads the same without the second star.
    const std::string reference = std::string(text) == "a**" ? "a*" : text;
    const std::regex expected(
        reference, std::string(text) == "[]]" ? std::regex::extended : std::regex::ECMAScript);
    std::vector<std::string> words = {""};
    for (std::size_t i = 0; i < words.size() && words[i].size() < 4; ++i) {
      for (const char letter : std::string("abc.+]-")) words.push_back(words[i] + letter);
    }
    for (const std::string& word : words) {
      ASSERT_EQ(pattern.search(word), std::regex_search(word, expected)) << text << " on " << word;
    }
  }
}

TEST(Pattern, HostilePatternsAreHarmless) {
  const std::string many(100000, 'a');
  EXPECT_FALSE(Pattern("(a*)*(a*)*(a*)*b$").search(many));
  EXPECT_THROW(Pattern(std::string(4000, '(')), Error);
  EXPECT_THROW(Pattern(std::string(5000, 'a')), Error);
  EXPECT_TRUE(Pattern(std::string(2000, '?').insert(0, "a")).search(""));
}

}  // namespace
}  // namespace lockstep
