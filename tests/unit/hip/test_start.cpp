// SPDX-License-Identifier: Apache-2.0
// What the hip plugin says about runtimes that are missing, of another release, without devices or
// without functions (issue 5, acceptance 6): the right code, and what to do, in words.
#include <lockstep/backend.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <set>

#include "backends/hip/library.h"
#include "support/process.h"

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string start_with(const std::string& library,
                       const std::map<std::string, std::optional<std::string>>& environment = {}) {
  lockstep::testing::ProcessOptions options;
  options.environment = environment;
  options.environment["LOCKSTEP_HIP_LIBRARY"] = library;
  const auto result = lockstep::testing::run(
      {LOCKSTEP_TEST_START_PROBE, LOCKSTEP_TEST_PLUGIN_DIR "/liblockstep_backend_hip.so"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}
std::string stub(const std::string& name) {
  return std::string(LOCKSTEP_TEST_STUB_DIR) + "/stub_hip_" + name + ".so";
}
const std::string kUnavailable = "\n" + std::to_string(LOCKSTEP_E_UNAVAILABLE) + "\n";
const std::string kNotFound = "\n" + std::to_string(LOCKSTEP_E_NOT_FOUND) + "\n";

TEST(HipStart, NamesWhatWasTriedWhenThereIsNoRuntime) {
  const std::string said = start_with("/nowhere/libamdhip64.so.7");
  EXPECT_THAT(said, HasSubstr(kUnavailable));
  EXPECT_THAT(said, HasSubstr("/nowhere/libamdhip64.so.7"));
  EXPECT_THAT(said, HasSubstr("libamdhip64.so.7, .so.6 and .so.5 were not found"));
  EXPECT_THAT(said, HasSubstr("LOCKSTEP_HIP_LIBRARY"));
  EXPECT_THAT(said, HasSubstr("native name []"));  // nothing to warn of
}

TEST(HipStart, KnowsALibraryThatIsNoRuntime) {
  const std::string said = start_with(stub("other"));
  EXPECT_THAT(said, HasSubstr(kUnavailable));
  EXPECT_THAT(said, HasSubstr("is no HIP runtime"));
}

TEST(HipStart, RefusesReleasesThatItDoesNotKnow) {
  const std::string old = start_with(stub("old"));
  EXPECT_THAT(old, HasSubstr(kUnavailable));
  EXPECT_THAT(old, HasSubstr("too old: it is of ROCm 5.1.20532, 5.2 or newer is needed"));
  const std::string future = start_with(stub("future"));
  EXPECT_THAT(future, HasSubstr(kUnavailable));
  EXPECT_THAT(future, HasSubstr("too new for this plugin: it is of ROCm 8.0.12345"));
}

// 5.2 answers 101 where later releases answer 100.
TEST(HipStart, SaysThatThereIsNoDevice) {
  const std::string early = start_with(stub("nodevice52"));
  EXPECT_THAT(early, HasSubstr(kNotFound + "101\nhipInit\n"));
  EXPECT_THAT(early, HasSubstr("finds no AMD device"));
  EXPECT_THAT(early, HasSubstr("[hipErrorInvalidDevice]"));
  const std::string late = start_with(stub("nodevice72"));
  EXPECT_THAT(late, HasSubstr(kNotFound + "100\nhipInit\n"));
  EXPECT_THAT(late, HasSubstr("ROCR_VISIBLE_DEVICES"));
  EXPECT_THAT(late, HasSubstr("/dev/kfd"));
  EXPECT_THAT(late, HasSubstr("7.2.53211"));
}

TEST(Cases, DEV_01_MasksThatHideADeviceAreQuoted) {
  const std::string said = start_with(stub("nodevice72"), {{"ROCR_VISIBLE_DEVICES", "1"},
                                                           {"HIP_VISIBLE_DEVICES", "1"},
                                                           {"CUDA_VISIBLE_DEVICES", std::nullopt}});
  EXPECT_THAT(said, HasSubstr("ROCR_VISIBLE_DEVICES='1', HIP_VISIBLE_DEVICES='1'"));
  EXPECT_THAT(said, HasSubstr("two of them can hide every device"));
  const std::string unset =
      start_with(stub("nodevice72"), {{"ROCR_VISIBLE_DEVICES", std::nullopt},
                                      {"HIP_VISIBLE_DEVICES", std::nullopt},
                                      {"CUDA_VISIBLE_DEVICES", std::nullopt}});
  EXPECT_THAT(unset, Not(HasSubstr("set here")));
}

TEST(HipStart, SaysThatARuntimeDoesNotStart) {
  const std::string said = start_with(stub("broken"));
  EXPECT_THAT(said, HasSubstr(kUnavailable + "999\nhipInit\n"));
  EXPECT_THAT(said, HasSubstr("ROCm 6.4.43484"));
}

TEST(HipStart, NamesMissingFunctions) {
  const std::string said = start_with(stub("incomplete"));
  EXPECT_THAT(said, HasSubstr(kUnavailable));
  EXPECT_THAT(said, HasSubstr("lacks functions that every release from 5.2 on has"));
  EXPECT_THAT(said, HasSubstr("hipGetDeviceCount"));
  EXPECT_THAT(said, Not(HasSubstr("hipStreamGetId")));  // optional
}

// HIPG: clr#151, a property layout taken for the other one.
TEST(HipStart, OldestRuntimeServesByTheOldPropertyLayout) {
  const std::string said = start_with(stub("r0000"));
  EXPECT_THAT(said, HasSubstr("info 0 [SIMULATED stub] [gfx906:sramecc+:xnack-] [5.2.21153]"));
  for (const char* text :
       {"\"properties\":\"R0000\"", "\"capture\":false",
        "\"capture_why_not\":\"launches are not captured before ROCm 5.3\"",
        "\"graph_getters\":\"copies as recorded\"", "\"graph_node_types\":\"5.2\"",
        "\"memory_types\":\"5\"", "\"stream_ids\":false", "\"stream_ordered_memory\":false",
        "\"host_functions\":\"hipStreamAddCallback\"", "\"compiler\":\"none\""}) {
    EXPECT_THAT(said, HasSubstr(text));
  }
  EXPECT_THAT(said, HasSubstr("forked " + std::to_string(LOCKSTEP_E_UNAVAILABLE)));
}

TEST(HipStart, NewerPropertyLayoutIsTakenWhereItIs) {
  const std::string said = start_with(stub("r0600"));
  EXPECT_THAT(said, HasSubstr("[gfx90a:sramecc+:xnack-] [6.4.43484]"));
  EXPECT_THAT(said, HasSubstr("\"properties\":\"R0600\""));
  EXPECT_THAT(said, HasSubstr("\"capture\":true"));
  EXPECT_THAT(said, HasSubstr("\"memory_types\":\"6\""));
}

TEST(HipStart, LooksWhereRocmIsInstalled) {
  const auto candidates = lockstep::hip::rocm_candidates("libamdhip64.so.6");
  EXPECT_EQ(candidates.front(), "libamdhip64.so.6");
  EXPECT_THAT(candidates, ::testing::Contains("/opt/rocm/lib/libamdhip64.so.6"));
}

TEST(HipSymbols, EveryOneIsListedOnce) {
  const auto list = lockstep::hip::symbols();
  std::set<std::string> names;
  std::size_t required = 0;
  for (std::size_t index = 0; index < list.count; ++index) {
    EXPECT_TRUE(names.insert(list.first[index].name).second) << list.first[index].name;
    required += list.first[index].required ? 1 : 0;
  }
  EXPECT_GT(required, 75U);
  EXPECT_GT(list.count - required, 20U);
}

}  // namespace
