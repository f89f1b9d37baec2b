// SPDX-License-Identifier: Apache-2.0
// The suite fails when the backend is at fault, and names the cases that say so.
#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_folder.h"

namespace {

struct Fault {
  const char* name;
  const char* filter;    ///< the cases to run, to keep the test short
  const char* found_by;  ///< a case that has to fail
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class PlantedFault : public ::testing::TestWithParam<Fault> {};

/// The names of the cases that failed, from the suite's own report.
std::vector<std::string> failed_cases(const std::string& fault, const std::string& filter,
                                      int* exit_code) {
  const lockstep::testing::TempFolder folder;
  const std::string report = (folder.path() / "report.json").string();
  lockstep::testing::ProcessOptions options;
  options.environment = {{"LOCKSTEP_FAULT", fault},
                         {"LOCKSTEP_FAULTY_INNER",
                          std::string(LOCKSTEP_TEST_PLUGIN_DIR) + "/liblockstep_backend_host.so"}};
  const auto result = lockstep::testing::run(
      {std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep-conformance", "--backend",
       LOCKSTEP_FAULTY_PLUGIN, "--filter", filter, "--report", report},
      options);
  *exit_code = result.exit_code;
  std::ifstream file(report);
  if (!file) {
    ADD_FAILURE() << "no report: " << result.err;
    return {};
  }
  const auto json = nlohmann::json::parse(file);
  std::vector<std::string> failed;
  for (const auto& item : json.at("results")) {
    if (item.at("outcome") == "failed") failed.push_back(item.at("case"));
  }
  return failed;
}

TEST_P(PlantedFault, IsFound) {
  int exit_code = -1;
  const auto failed = failed_cases(GetParam().name, GetParam().filter, &exit_code);
  EXPECT_EQ(exit_code, 1);
  EXPECT_THAT(failed, ::testing::Contains(GetParam().found_by));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, PlantedFault,
    ::testing::Values(Fault{"copy_drops_last_byte", "copy.*", "copy.device_to_device_13"},
                      Fault{"set_writes_another_value", "set.*", "set.bytes_4099"},
                      Fault{"launch_swaps_grid", "*coordinates*", "TRC_18.coordinates_3d"},
                      Fault{"wait_does_nothing", "event.*", "event.orders_streams"},
                      Fault{"capture_executes", "CAP_02*", "CAP_02.nothing_runs_at_capture"},
                      Fault{"replay_does_nothing", "kernel.saxpy", "kernel.saxpy"},
                      Fault{"update_does_nothing", "update.*", "update.parameters_in_place"},
                      Fault{"host_function_runs_at_once", "stream.host*",
                            "stream.host_functions_keep_order"},
                      Fault{"bad_copy_is_accepted", "copy.*", "copy.past_the_end_is_refused"},
                      Fault{"illegal_query_is_accepted", "capture_rule.stream_query*",
                            "capture_rule.stream_query.thread_local"},
                      Fault{"edges_are_lost", "graph.*", "graph.diamond_keeps_its_order"},
                      Fault{"sets_are_not_recorded", "trace.*", "trace.one_entry_a_call"},
                      Fault{"kernels_are_recorded_wrongly", "TRC_18*", "TRC_18.launch_shape"}),
    [](const auto& fault) { return std::string(fault.param.name); });

// The wrapper itself is not what the suite finds: without a fault everything passes.
TEST(PlantedFaultControl, NoFaultPasses) {
  int exit_code = -1;
  const auto failed = failed_cases("none", "kernel.*", &exit_code);
  EXPECT_THAT(failed, ::testing::IsEmpty());
  EXPECT_EQ(exit_code, 0);
}

// A plugin that hangs ends the suite, which says how far it came.
TEST(ConformanceProgram, TellsHowFarItCameWhenARunHangs) {
  lockstep::testing::ProcessOptions options;
  options.environment = {{"LOCKSTEP_FAULT", "wait_hangs"},
                         {"LOCKSTEP_FAULTY_INNER",
                          std::string(LOCKSTEP_TEST_PLUGIN_DIR) + "/liblockstep_backend_host.so"}};
  const auto result = lockstep::testing::run(
      {std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep-conformance", "--backend",
       LOCKSTEP_FAULTY_PLUGIN, "--filter", "event.orders_streams", "--limit", "2"},
      options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, ::testing::HasSubstr("): 1 runs, 0 passed, 1 failed"));
  EXPECT_THAT(result.out, ::testing::HasSubstr("; 1 not run\n"));
  EXPECT_THAT(result.out, ::testing::HasSubstr("  failed  event.orders_streams (eager): still "
                                               "running after 2 s; given up\n"));
  EXPECT_EQ(result.err, "") << "failures are told once";
}

TEST(ConformanceProgram, FileThatIsNoPlugin) {
  const lockstep::testing::TempFolder folder;
  const std::string file = (folder.path() / "plugin.cpp").string();
  std::ofstream(file) << "int main() {}\n";
  const auto result = lockstep::testing::run(
      {std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep-conformance", "--backend", file});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, ::testing::HasSubstr(file + ": is no plugin file"));
}

TEST(ConformanceProgram, PluginFileThatDoesNotExist) {
  for (const std::string plugin : {"/nowhere/liblockstep_backend_mine.so", "mine.so"}) {
    const auto result = lockstep::testing::run(
        {std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep-conformance", "--backend", plugin});
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err,
                ::testing::HasSubstr(plugin + ": there is no such plugin file; name one, or"));
  }
}

}  // namespace
