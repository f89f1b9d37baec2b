// SPDX-License-Identifier: Apache-2.0
// One planted fault a test: the level that finds it and the words that tell it.
#include <lockstep/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "verify_programs.h"

namespace lockstep::testing_verify {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<LaunchTraceEntry> step() {
  return {with(kernel("first"), {pointer(1), scalar(7)}),
          with(kernel("second", 0, {8}, {128}, 64), {pointer(1), pointer(2, 16), scalar(9)}),
          with(kernel("third"), {pointer(2)})};
}

VerifyReport verify_step(std::vector<LaunchTraceEntry> nodes,
                         VerifyLevel level = VerifyLevel::kArguments) {
  return verify_traces(trace_of(step()), chain_of(std::move(nodes)), level);
}

TEST(VerifyFaults, CorrectGraphIsVerified) {
  const VerifyReport report = verify_step(step());
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.verified, VerifyLevel::kArguments);
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(to_text(report), "replay verified (L0-L3): 3 entries\n");
}

TEST(VerifyFaults, KernelLeftOut) {
  auto nodes = step();
  nodes.erase(nodes.begin() + 1);
  const VerifyReport report = verify_step(nodes);
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.verified, std::nullopt);
  ASSERT_NE(find(report, VerifyLevel::kCounts, "missing"), nullptr);
  EXPECT_EQ(find(report, VerifyLevel::kCounts, "missing")->message,
            "eager has 3 kernels, replay has 2");
  const VerifyFinding* missing = find(report, VerifyLevel::kMultiset, "missing");
  ASSERT_NE(missing, nullptr);
  EXPECT_EQ(missing->eager_index, 1u);
  EXPECT_EQ(missing->replay_index, std::nullopt);
  EXPECT_EQ(missing->eager->name, "second");
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("not verified: L0 (counts by kind) does not hold"));
  EXPECT_THAT(text, HasSubstr("  -    1  kernel  second   8×1×1 / 128×1×1 shared 64 B   stream 0"));
}

TEST(VerifyFaults, KernelTooMany) {
  auto nodes = step();
  nodes.push_back(kernel("fourth"));
  const VerifyReport report = verify_step(nodes);
  EXPECT_EQ(report.verified, std::nullopt);
  ASSERT_NE(find(report, VerifyLevel::kCounts, "extra"), nullptr);
  EXPECT_EQ(find(report, VerifyLevel::kCounts, "extra")->message,
            "eager has 3 kernels, replay has 4");
  ASSERT_NE(find(report, VerifyLevel::kMultiset, "extra"), nullptr);
  EXPECT_EQ(find(report, VerifyLevel::kMultiset, "extra")->replay_index, 3u);
  EXPECT_THAT(to_text(report), HasSubstr("  +    3  kernel  fourth"));
}

TEST(VerifyFaults, TwoKernelsSwapped) {
  auto nodes = step();
  std::swap(nodes[1], nodes[2]);
  const VerifyReport report = verify_step(nodes);
  EXPECT_EQ(report.verified, VerifyLevel::kMultiset);
  const VerifyFinding* order = find(report, VerifyLevel::kOrder, "order");
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(order->message,
            "eager guarantees that #1 (kernel  second   8×1×1 / 128×1×1 shared 64 B   stream 0) "
            "ends before #2 (kernel  third   4×1×1 / 256×1×1   stream 0) begins; in replay (#2 and "
            "#1) the second ends before the first begins");
  EXPECT_THAT(to_text(report), HasSubstr("not verified: L2 (order) does not hold; holds up to L1"));
}

struct FieldFault {
  std::string name;
  LaunchTraceEntry node;
  std::string message;
};

TEST(VerifyFaults, ChangedFieldsAreNamed) {
  const std::vector<LaunchTraceEntry> eager = {kernel("scale", 0, {4}, {256}, 32), copy(1024),
                                               set(64, 1)};
  const std::vector<std::pair<std::size_t, FieldFault>> faults = {
      {0,
       {"grid", kernel("scale", 0, {8}, {256}, 32),
        "kernel scale: grid 4×1×1 in eager, 8×1×1 in replay"}},
      {0,
       {"block", kernel("scale", 0, {4}, {64, 4}, 32),
        "kernel scale: block 256×1×1 in eager, 64×4×1 in replay"}},
      {0,
       {"shared", kernel("scale", 0, {4}, {256}, 48),
        "kernel scale: shared memory 32 B in eager, 48 B in replay"}},
      {0,
       {"name", kernel("shift", 0, {4}, {256}, 32),
        "kernel scale: name scale in eager, shift in replay"}},
      {1,
       {"bytes", copy(2048),
        "memcpy  HtoD 1024 B: bytes 1024 in eager, 2048 in replay; extent 1024×1×1 in eager, "
        "2048×1×1 in replay"}},
      {1,
       {"direction", copy(1024, 0, MemcpyKind::kDtoD),
        "memcpy  HtoD 1024 B: direction HtoD in eager, DtoD in replay"}},
      {2,
       {"value", set(64, 2),
        "memset  64 B value 0x00000001: value 0x00000001 in eager, 0x00000002 in replay"}},
  };
  for (const auto& [position, fault] : faults) {
    auto nodes = eager;
    nodes[position] = fault.node;
    const VerifyReport report = verify_traces(trace_of(eager), chain_of(nodes));
    EXPECT_EQ(report.verified, VerifyLevel::kCounts) << fault.name;
    EXPECT_EQ(failures(report), 1u) << fault.name;
    const VerifyFinding* changed = find(report, VerifyLevel::kMultiset, "changed");
    ASSERT_NE(changed, nullptr) << fault.name;
    EXPECT_EQ(changed->message, fault.message);
    EXPECT_EQ(changed->eager_index, position);
    EXPECT_EQ(changed->replay_index, position);
    EXPECT_THAT(to_text(report), HasSubstr("    eager  #" + std::to_string(position)));
    EXPECT_THAT(to_text(report), HasSubstr("    replay #" + std::to_string(position)));
  }
}

TEST(VerifyFaults, WrongBuffer) {
  auto nodes = step();
  nodes[2] = with(kernel("third"), {pointer(3)});
  const VerifyReport report = verify_step(nodes);
  EXPECT_EQ(report.verified, VerifyLevel::kOrder);
  const VerifyFinding* buffer = find(report, VerifyLevel::kArguments, "buffer");
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(buffer->message,
            "kernel third: argument 0: buffer 2 + 0 in eager, buffer 3 + 0 in replay, but eager's "
            "buffer 2 is replay's buffer 2 elsewhere");
  EXPECT_EQ(buffer->eager_index, 2u);
  EXPECT_TRUE(verify_step(nodes, VerifyLevel::kOrder).ok());
}

TEST(VerifyFaults, WrongOffsetAndScalar) {
  auto nodes = step();
  nodes[1].arguments[1].offset = 32;
  const VerifyReport offset = verify_step(nodes);
  ASSERT_NE(find(offset, VerifyLevel::kArguments, "buffer"), nullptr);
  EXPECT_EQ(find(offset, VerifyLevel::kArguments, "buffer")->message,
            "kernel second: argument 1: buffer 2 + 16 in eager, buffer 2 + 32 in replay: the "
            "offsets differ");

  nodes = step();
  nodes[0].arguments[1] = scalar(8);
  const VerifyReport value = verify_step(nodes);
  ASSERT_NE(find(value, VerifyLevel::kArguments, "scalar"), nullptr);
  EXPECT_THAT(find(value, VerifyLevel::kArguments, "scalar")->message,
              HasSubstr("argument 1: 7 (as float"));
}

TEST(VerifyFaults, OtherBuffersOfTheSamePatternAreFine) {
  auto nodes = step();
  for (LaunchTraceEntry& node : nodes) {
    for (TraceArgument& argument : node.arguments) {
      if (argument.buffer != 0) argument.buffer = 12 - argument.buffer;
    }
  }
  EXPECT_TRUE(verify_step(nodes).ok());
}

TEST(VerifyFaults, TwoBuffersMayNotBecomeOne) {
  auto nodes = step();
  nodes[1].arguments[1].buffer = 1;
  nodes[2].arguments[0].buffer = 1;
  const VerifyReport report = verify_step(nodes);
  ASSERT_NE(find(report, VerifyLevel::kArguments, "buffer"), nullptr);
  EXPECT_THAT(find(report, VerifyLevel::kArguments, "buffer")->message,
              HasSubstr("but replay's buffer 1 is eager's buffer 1 elsewhere"));
}

TEST(VerifyFaults, UnknownArgumentsAreNeverVerified) {
  auto nodes = step();
  nodes[1].arguments.clear();
  nodes[1].argument_hash = 0;
  const VerifyReport report = verify_step(nodes);
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.verified, VerifyLevel::kOrder);
  EXPECT_EQ(failures(report), 0u);
  const VerifyFinding* unknown = find(report, VerifyLevel::kArguments, "unknown_arguments", true);
  ASSERT_NE(unknown, nullptr);
  EXPECT_THAT(unknown->message, HasSubstr("arguments unknown for 1 entry; first kernel  second"));
  EXPECT_THAT(to_text(report),
              HasSubstr("not verified: L3 was asked for and could not be decided; holds up to L2"));
}

TEST(VerifyFaults, KernelWithoutParametersHasKnownArguments) {
  const std::vector<LaunchTraceEntry> nodes = {with(kernel("nothing"), {})};
  EXPECT_TRUE(verify_traces(trace_of(nodes), chain_of(nodes)).ok());
}

TEST(VerifyFaults, StructsThatDifferAreNotDecided) {
  auto eager = step(), nodes = step();
  eager[0].arguments[1].tag = nodes[0].arguments[1].tag = TraceArgument::Tag::kStruct;
  EXPECT_TRUE(verify_traces(trace_of(eager), chain_of(nodes)).ok());
  nodes[0].arguments[1].bytes[3] = std::byte{1};
  const VerifyReport report = verify_traces(trace_of(eager), chain_of(nodes));
  EXPECT_EQ(report.verified, VerifyLevel::kOrder);
  EXPECT_NE(find(report, VerifyLevel::kArguments, "struct", true), nullptr);
}

TEST(VerifyFaults, BuffersOfCopiesBelongToTheBijection) {
  LaunchTraceEntry upload = copy(256);
  upload.destination = pointer(4);
  LaunchTraceEntry clear = set(256, 0);
  clear.destination = pointer(4, 256);
  const std::vector<LaunchTraceEntry> eager = {upload, clear};
  EXPECT_TRUE(verify_traces(trace_of(eager), chain_of(eager)).ok());
  auto nodes = eager;
  nodes[1].destination = pointer(5, 256);
  const VerifyReport report = verify_traces(trace_of(eager), chain_of(nodes));
  ASSERT_NE(find(report, VerifyLevel::kArguments, "buffer"), nullptr);
  EXPECT_THAT(find(report, VerifyLevel::kArguments, "buffer")->message, HasSubstr("destination: "));
}

// An empty capture: eager did something, the graph holds nothing.
TEST(Cases, CAP_13_EmptyCaptureIsNeverVerified) {
  const VerifyReport report =
      verify_traces(trace_of({kernel("work", 1)}), graph_of({}, {}), VerifyLevel::kCounts);
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.verified, std::nullopt);
  ASSERT_NE(find(report, VerifyLevel::kCounts, "empty"), nullptr);
  EXPECT_EQ(find(report, VerifyLevel::kCounts, "empty")->message,
            "eager has 1 kernel, replay has 0");

  const VerifyReport nothing = verify_traces(trace_of({}), graph_of({}, {}));
  EXPECT_FALSE(nothing.ok());
  EXPECT_NE(find(nothing, VerifyLevel::kCounts, "empty"), nullptr);
}

TEST(Cases, REP_06_MemoryNodesAreListedAndDoNotFail) {
  const std::vector<LaunchTraceEntry> eager = {with(kernel("gemm"), {pointer(1)})};
  LaunchTraceEntry allocate = other(OperationKind::kAlloc, 0, -1, "hostMemAllocAsync");
  LaunchTraceEntry release = other(OperationKind::kFree, 0, -1, "hostMemFreeAsync");
  const VerifyReport report =
      verify_traces(trace_of(eager), chain_of({allocate, eager[0], release}));
  EXPECT_TRUE(report.ok());
  ASSERT_NE(find(report, VerifyLevel::kCounts, "memory", true), nullptr);
  EXPECT_THAT(find(report, VerifyLevel::kCounts, "memory", true)->message,
              HasSubstr("replay has 2 memory nodes"));
}

TEST(Cases, REP_17_ExtraKernelsBeforeTheGraphMayBeAllowed) {
  const std::vector<LaunchTraceEntry> eager = {with(kernel("work"), {pointer(1)})};
  Trace replay = chain_of(eager);
  const LaunchTraceEntry fill = with(kernel("fill_seed[int]"), {pointer(9)});
  replay.entries.insert(replay.entries.begin(), {fill, fill});
  const VerifyReport refused = verify_traces(trace_of(eager), replay);
  EXPECT_EQ(refused.verified, std::nullopt);
  EXPECT_THAT(to_text(refused), HasSubstr("eager has 1 kernel, replay has 3"));
  EXPECT_THAT(find(refused, VerifyLevel::kMultiset, "extra")->message,
              HasSubstr("launched before the graph"));

  const VerifyReport allowed =
      verify_traces(trace_of(eager), replay, VerifyLevel::kArguments, {"fill_*[int]"});
  EXPECT_TRUE(allowed.ok()) << to_text(allowed);
  ASSERT_NE(find(allowed, VerifyLevel::kCounts, "allowed", true), nullptr);
  EXPECT_EQ(allowed.replay.size(), 1u);
  EXPECT_FALSE(verify_traces(trace_of(eager), replay, VerifyLevel::kArguments, {"fill_?"}).ok());
}

TEST(VerifyFaults, OpaqueAndUndefinedAreNeverEqual) {
  const std::vector<LaunchTraceEntry> opaque = {other(OperationKind::kOpaque, 0, -1, "cuLaunch")};
  const VerifyReport report = verify_traces(trace_of(opaque), trace_of(opaque));
  EXPECT_EQ(report.verified, VerifyLevel::kCounts);
  EXPECT_NE(find(report, VerifyLevel::kMultiset, "opaque"), nullptr);

  Trace undefined = chain_of(step());
  undefined.graphs.clear();
  const VerifyReport launch = verify_traces(undefined, undefined);
  EXPECT_FALSE(launch.ok());
  EXPECT_NE(find(launch, VerifyLevel::kMultiset, "undefined_graph"), nullptr);
}

TEST(VerifyFaults, TruncatedDroppedAndHolesAreNeverVerified) {
  Trace eager = trace_of(step());
  eager.footer.present = false;
  const VerifyReport truncated = verify_traces(eager, chain_of(step()));
  EXPECT_EQ(truncated.verified, std::nullopt);
  ASSERT_NE(find(truncated, VerifyLevel::kCounts, "truncated"), nullptr);
  EXPECT_THAT(find(truncated, VerifyLevel::kCounts, "truncated")->message, HasSubstr("eager"));

  Trace replay = chain_of(step());
  replay.footer.dropped = 3;
  EXPECT_NE(find(verify_traces(trace_of(step()), replay), VerifyLevel::kCounts, "dropped"),
            nullptr);

  replay.footer.dropped = 0;
  replay.footer.coverage = R"({"hooks":7,"holes":0})";
  EXPECT_TRUE(verify_traces(trace_of(step()), replay).ok());
  replay.footer.coverage = R"({"hooks":7,"holes":12})";
  const VerifyReport holes = verify_traces(trace_of(step()), replay);
  EXPECT_EQ(holes.verified, std::nullopt);
  ASSERT_NE(find(holes, VerifyLevel::kCounts, "holes"), nullptr);
  EXPECT_THAT(find(holes, VerifyLevel::kCounts, "holes")->message,
              HasSubstr("replay is not complete"));
}

TEST(VerifyFaults, ValuesNeedARun) {
  try {
    verify_traces(trace_of(step()), chain_of(step()), VerifyLevel::kValues);
    FAIL() << "a trace has no values";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("L4"));
  }
}

TEST(VerifyFaults, ManyDifferencesAreCounted) {
  std::vector<LaunchTraceEntry> eager, nodes;
  for (std::uint32_t i = 0; i < 40; ++i) {
    eager.push_back(kernel("k" + std::to_string(i)));
    nodes.push_back(kernel("k" + std::to_string(i), 0, {5}));
  }
  const VerifyReport report = verify_traces(trace_of(eager), chain_of(nodes));
  ASSERT_NE(find(report, VerifyLevel::kMultiset, "more"), nullptr);
  EXPECT_EQ(find(report, VerifyLevel::kMultiset, "more")->message,
            "24 more differences of this level");
  EXPECT_THAT(to_text(report), HasSubstr("more lines"));
}

TEST(VerifyFaults, JsonHasStableKeys) {
  auto nodes = step();
  nodes[0] = kernel("first", 0, {5});
  const auto json = nlohmann::json::parse(to_json(verify_step(nodes)));
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("requested"), "L3");
  EXPECT_EQ(json.at("verified"), "L0");
  EXPECT_EQ(json.at("eager_entries"), 3);
  EXPECT_EQ(json.at("replay_entries"), 3);
  ASSERT_EQ(json.at("findings").size(), 1u);
  const auto& finding = json.at("findings")[0];
  EXPECT_EQ(finding.at("level"), "L1");
  EXPECT_EQ(finding.at("note"), false);
  EXPECT_EQ(finding.at("what"), "changed");
  EXPECT_EQ(finding.at("eager_index"), 0);
  EXPECT_EQ(finding.at("eager").at("name"), "first");
  EXPECT_EQ(finding.at("replay").at("grid")[0], 5);

  const auto empty = nlohmann::json::parse(to_json(verify_traces(trace_of({}), trace_of({}))));
  EXPECT_TRUE(empty.at("verified").is_null());
  EXPECT_TRUE(empty.at("findings")[0].at("eager").is_null());
}

TEST(VerifyFaults, JsonOfNamesThatAreNotText) {
  const VerifyReport report =
      verify_traces(trace_of({kernel("a\xff\"\n")}), chain_of({kernel("b")}));
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_THAT(json.at("findings")[0].at("message").get<std::string>(), HasSubstr("a\\xff\""));
}

TEST(VerifyFaults, ComparesTheExecutedView) {
  LaunchTraceEntry failed = kernel("failed");
  failed.set(EntryFlag::kFailed);
  LaunchTraceEntry captured = kernel("captured");
  captured.set(EntryFlag::kCaptured);
  LaunchTraceEntry internal = kernel("internal");
  internal.set(EntryFlag::kInternal);
  auto entries = step();
  entries.insert(entries.end(), {failed, captured, internal, copy(0)});
  auto nodes = step();
  nodes.push_back(kernel("disabled"));
  nodes.back().set(EntryFlag::kDisabled);
  const Trace eager = trace_of(entries), replay = chain_of(nodes);
  const VerifyReport report = verify_traces(eager, replay);
  EXPECT_TRUE(report.ok()) << to_text(report);
  EXPECT_EQ(report.eager, view(eager));
  const auto executed = view(replay);
  EXPECT_EQ(report.replay, executed);
}

}  // namespace
}  // namespace lockstep::testing_verify
