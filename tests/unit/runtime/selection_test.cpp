// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backend.h>
#include <lockstep/device.h>
#include <lockstep/error.h>

#include <algorithm>
#include <cstdlib>
#include <gmock/gmock.h>

#include "support/fake_backend/fake_plugins.h"

namespace lockstep {
namespace {

using testing::FakePlugins;
using ::testing::HasSubstr;
using ::testing::Not;

// Priorities above every backend that the build tree itself may hold.
const testing::FakeScriptLines kFirst = {{"priority", "1000"}};
const testing::FakeScriptLines kSecond = {{"priority", "900"}};

Error error_of(const std::string& which) {
  try {
    Device::open(which);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kOk, "opened");
}

/// What the library says on standard error, at every level, while `call` runs.
template <typename Call>
std::string log_of(const Call& call) {
  ::testing::internal::CaptureStderr();
  call();
  return ::testing::internal::GetCapturedStderr();
}

// DEV-06: two backends with a device each.
TEST(Cases, DEV_06_ChoiceOfBackend) {
  FakePlugins plugins;
  plugins.add("first", kFirst);
  plugins.add("second", kSecond);
  EXPECT_EQ(Device::open("second:0").id(), "second:0");
  EXPECT_THROW(plugins.control("first"), std::runtime_error);  // not even loaded
  EXPECT_EQ(Device::open().id(), "first:0");
  EXPECT_EQ(Device::open("auto").id(), "first:0");
  EXPECT_EQ(Device::open("first").backend(), "first");
  const Error unknown = error_of("foo");
  EXPECT_EQ(unknown.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(unknown.what(), HasSubstr("'foo' is no device"));
  EXPECT_THAT(unknown.what(), HasSubstr("first"));
  EXPECT_THAT(unknown.what(), HasSubstr("second"));
}

TEST(Selection, EnvironmentNamesTheDevice) {
  FakePlugins plugins;
  plugins.add("first", kFirst);
  plugins.add("second", {{"devices", "3"}});
  setenv("LOCKSTEP_DEVICE", "second:2", 1);
  EXPECT_EQ(Device::open().id(), "second:2");
  EXPECT_EQ(Device::open("first").id(), "first:0");  // said in the program: wins
  setenv("LOCKSTEP_DEVICE", "second:7", 1);
  const Error error = error_of("");
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("LOCKSTEP_DEVICE: device second:7"));
  EXPECT_THAT(error.what(), HasSubstr("has 3 device(s)"));
  unsetenv("LOCKSTEP_DEVICE");
}

TEST(Selection, MalformedNamesAreTheCallersMistake) {
  FakePlugins plugins;
  plugins.add("first", kFirst);
  for (const char* text :
       {"first:", "first:x", "first:-1", "first:0:1", ":0", "first:99999999999", "first:1 "}) {
    EXPECT_EQ(error_of(text).code(), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(Selection, AutoNeverTakesASimulatedDevice) {
  FakePlugins plugins;
  plugins.add("simulator", {{"priority", "1000"}, {"simulated", "1"}});
  plugins.add("second", kSecond);
  EXPECT_EQ(Device::open().id(), "second:0");
  const Device simulated = Device::open("simulator");
  EXPECT_TRUE(simulated.simulated());
  EXPECT_EQ(simulated.name(), "SIMULATED Fake 0");
}

// PLUG-01: no driver at all is normal on a machine without that vendor's devices.
TEST(Cases, PLUG_01_MissingDriverIsNoMatterForOthers) {
  FakePlugins plugins;
  plugins.add("first", {{"priority", "1000"}, {"initialize", "no_driver"}});
  plugins.add("second", kSecond);
  const std::string log = log_of([] { EXPECT_EQ(Device::open().id(), "second:0"); });
  EXPECT_EQ(log, "");
  const Error error = error_of("first");
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("libfake.so.1: not found"));
  EXPECT_THAT(error.what(), HasSubstr("second"));  // the whole report
}

// PLUG-03: a driver that is too old is a warning, once.
TEST(Cases, PLUG_03_OldDriverIsOneWarning) {
  FakePlugins plugins;
  plugins.add("first", {{"priority", "1000"}, {"initialize", "old_driver"}});
  plugins.add("second", kSecond);
  const std::string log = log_of([] {
    EXPECT_EQ(Device::open().id(), "second:0");
    EXPECT_EQ(Device::open().id(), "second:0");
  });
  EXPECT_THAT(log, HasSubstr("warning: auto passes over first (no driver): driver 11.4 is too old, "
                             "12.0 is needed"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_EQ(log_of([] { Device::open("second"); }), "");
  EXPECT_THAT(error_of("first").what(), HasSubstr("driver 11.4 is too old"));
}

TEST(Selection, BrokenPluginIsAWarningOnTheWay) {
  FakePlugins plugins;
  plugins.add_file("wreck", LOCKSTEP_FAKE_DEPENDENCY);
  plugins.add("second", kSecond);
  const std::string log = log_of([] { EXPECT_EQ(Device::open().id(), "second:0"); });
  EXPECT_THAT(log, HasSubstr("warning: backend wreck is broken"));
  EXPECT_THAT(log, HasSubstr(plugins.path_of("wreck")));
}

TEST(Selection, BrokenFirstFileGivesWayToTheNextOfItsName) {
  FakePlugins broken, good;
  broken.add_file("fake", LOCKSTEP_FAKE_DEPENDENCY);
  good.add("fake");
  setenv("LOCKSTEP_BACKEND_PATH", (broken.folder() + ":" + good.folder()).c_str(), 1);
  const std::string log = log_of([] { EXPECT_EQ(Device::open("fake").id(), "fake:0"); });
  EXPECT_THAT(log, HasSubstr("backend fake is broken"));
}

TEST(Selection, AllListsRealDevicesFirstAndBestFirst) {
  FakePlugins plugins;
  plugins.add("first", {{"priority", "1000"}, {"devices", "2"}});
  plugins.add("simulator", {{"priority", "2000"}, {"simulated", "1"}});
  plugins.add("second", kSecond);
  plugins.add("bare", {{"devices", "0"}});
  std::vector<std::string> ids;
  for (const Device& device : Device::all()) ids.push_back(device.id());
  ASSERT_GE(ids.size(), 4u);
  EXPECT_EQ(ids[0], "first:0");
  EXPECT_EQ(ids[1], "first:1");
  EXPECT_EQ(ids[2], "second:0");
  EXPECT_EQ(ids.back(), "simulator:0");
}

TEST(Selection, DeviceTellsWhatItIs) {
  FakePlugins plugins;
  plugins.add("fake", {{"devices", "2"}});
  const Device device = Device::open("fake:1");
  EXPECT_EQ(device.ordinal(), 1);
  EXPECT_EQ(device.arch(), "fake_1");
  EXPECT_EQ(device.driver(), "1.2");
  EXPECT_EQ(device.limits().max_grid, Dim3(2147483647, 65535, 65535));
  EXPECT_EQ(device.limits().max_threads_per_block, 1024u);
  EXPECT_EQ(device.attribute(LOCKSTEP_ATTR_MAX_BLOCK_Z), 64);
  EXPECT_EQ(device.attribute(LOCKSTEP_ATTR_CLUSTER_LAUNCH), std::nullopt);
  EXPECT_EQ(device.memory_info().free_bytes, 1000u);
  EXPECT_EQ(device, Device::open("fake:1"));
  EXPECT_FALSE(device == Device::open("fake:0"));
}

TEST(Selection, EmptyHandlesAreRefused) {
  EXPECT_THROW(Device().name(), Error);
  EXPECT_THROW(Stream().synchronize(), Error);
  EXPECT_THROW(Event().query(), Error);
  EXPECT_THROW(Graph().node_count(), Error);
  EXPECT_THROW(GraphExec().version(), Error);
  EXPECT_THROW(Kernel().name(), Error);
  EXPECT_THROW(Module().kernel("x"), Error);
}

}  // namespace
}  // namespace lockstep
