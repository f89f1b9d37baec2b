// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backends.h>
#include <lockstep/device.h>
#include <lockstep/error.h>

#include <algorithm>
#include <cstdlib>
#include <elf.h>
#include <fstream>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fake_backend/fake_plugins.h"

namespace lockstep {
namespace {

using testing::FakePlugins;
using testing::FakeScriptLines;
using ::testing::HasSubstr;

BackendReport report_of(const std::vector<BackendReport>& reports, const std::string& name) {
  const auto found = std::find_if(reports.begin(), reports.end(),
                                  [&](const BackendReport& report) { return report.name == name; });
  if (found == reports.end()) throw std::runtime_error("no report for " + name);
  return *found;
}

/// What is listed for one fake plugin, and what opening its device says.
struct Outcome {
  BackendReport listed;
  std::string open_error;
  ErrorCode open_code = ErrorCode::kOk;
};

Outcome try_plugin(FakePlugins& plugins, const std::string& name) {
  (void)plugins;
  Outcome outcome;
  outcome.listed = report_of(list_backends(), name);
  try {
    Device::open(name);
  } catch (const Error& error) {
    outcome.open_code = error.code();
    outcome.open_error = error.what();
  }
  return outcome;
}

void expect_not_usable(FakePlugins& plugins, const std::string& name, BackendStatus status,
                       const std::string& words) {
  const Outcome outcome = try_plugin(plugins, name);
  EXPECT_EQ(to_string(outcome.listed.status), to_string(status));
  EXPECT_THAT(outcome.listed.reason, HasSubstr(words));
  EXPECT_EQ(outcome.listed.path, plugins.path_of(name));
  EXPECT_TRUE(outcome.listed.devices.empty());
  EXPECT_EQ(to_string(outcome.open_code), to_string(ErrorCode::kUnavailable));
  EXPECT_THAT(outcome.open_error, HasSubstr(words));
}

TEST(Plugins, ReadyOneIsListedWithItsDevices) {
  FakePlugins plugins;
  plugins.add("fake", {{"devices", "2"}, {"priority", "7"}});
  const BackendReport report = report_of(list_backends(), "fake");
  EXPECT_EQ(report.status, BackendStatus::kReady);
  EXPECT_EQ(report.reason, "");
  EXPECT_EQ(report.version, "9.8");
  EXPECT_EQ(report.vendor, "tests");
  EXPECT_EQ(report.priority, 7);
  EXPECT_EQ(report.abi_version, 1000u);
  ASSERT_EQ(report.devices.size(), 2u);
  EXPECT_EQ(report.devices[1].ordinal, 1);
  EXPECT_EQ(report.devices[1].name, "Fake 1");
  EXPECT_EQ(report.devices[1].uuid, "FAKE-1");
  EXPECT_EQ(report.devices[1].bus_id, "0000:01:00.0");
  EXPECT_EQ(report.devices[1].memory_bytes, 1u << 20);
  EXPECT_EQ(report.devices[1].capabilities, "{\"fake\":true}");
}

TEST(Plugins, ListingLoadsNothingIntoThisProcess) {
  FakePlugins plugins;
  plugins.add("fake");
  ASSERT_EQ(report_of(list_backends(), "fake").status, BackendStatus::kReady);
  EXPECT_THROW(plugins.control("fake"), std::runtime_error);
}

TEST(Plugins, TextFileIsNoLibrary) {
  FakePlugins plugins;
  testing::write_file(plugins.path_of("text"), "this is no library, only some text in a file\n");
  expect_not_usable(plugins, "text", BackendStatus::kBroken, "it does not load");
}

TEST(Plugins, EmptyFileIsNoLibrary) {
  FakePlugins plugins;
  testing::write_file(plugins.path_of("empty"), "");
  expect_not_usable(plugins, "empty", BackendStatus::kBroken, "file too short");
}

TEST(Plugins, WrongArchitectureIsNamed) {
  FakePlugins plugins;
  const std::string path = plugins.add("foreign");
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const Elf64_Half machine = EM_S390;
  file.seekp(offsetof(Elf64_Ehdr, e_machine));
  file.write(reinterpret_cast<const char*>(&machine), sizeof(machine));
  file.close();
  expect_not_usable(plugins, "foreign", BackendStatus::kBroken,
                    "built for another architecture (ELF machine 22");
}

TEST(Plugins, MissingDependencyIsNamed) {
  FakePlugins plugins;
  plugins.add_file("needy", LOCKSTEP_FAKE_DEPENDENT);
  expect_not_usable(plugins, "needy", BackendStatus::kBroken, "liblockstep_fake_dependency.so");
}

TEST(Plugins, LibraryWithoutTheSymbolIsNoPlugin) {
  FakePlugins plugins;
  plugins.add_file("other", LOCKSTEP_FAKE_DEPENDENCY);
  expect_not_usable(plugins, "other", BackendStatus::kBroken, "exports no lockstep_backend_query");
}

TEST(Plugins, TooNewNamesBothVersions) {
  FakePlugins plugins;
  plugins.add("newer", {{"abi", "2000"}});
  expect_not_usable(plugins, "newer", BackendStatus::kIncompatible, "interface version 2000");
}

TEST(Plugins, TooOldNamesBothVersions) {
  FakePlugins plugins;
  plugins.add("older", {{"abi", "7"}});
  expect_not_usable(plugins, "older", BackendStatus::kIncompatible, "speaks 1000");
}

TEST(Plugins, PluginThatRefusesThisLockstepSaysSo) {
  FakePlugins plugins;
  plugins.add("picky", {{"query", "incompatible"}});
  expect_not_usable(plugins, "picky", BackendStatus::kIncompatible,
                    "this plugin needs interface 3000 or later");
}

TEST(Plugins, NoTableAndNoReasonIsBroken) {
  FakePlugins plugins;
  plugins.add("silent", {{"query", "silent"}});
  expect_not_usable(plugins, "silent", BackendStatus::kBroken, "no table and no reason");
}

TEST(Plugins, ThrowingInQueryIsBroken) {
  FakePlugins plugins;
  plugins.add("thrower", {{"query", "throw"}});
  plugins.add("thrower7", {{"query", "throw_number"}});
  expect_not_usable(plugins, "thrower", BackendStatus::kBroken, "threw: thrown in query");
  expect_not_usable(plugins, "thrower7", BackendStatus::kBroken, "is no std::exception");
}

TEST(Plugins, ThrowingWhileStartedIsBroken) {
  FakePlugins plugins;
  plugins.add("thrower", {{"initialize", "throw"}});
  expect_not_usable(plugins, "thrower", BackendStatus::kBroken, "thrown while starting");
}

TEST(Plugins, AbsurdTableSizeIsBroken) {
  FakePlugins plugins;
  plugins.add("absurd", {{"size", "absurd"}});
  expect_not_usable(plugins, "absurd", BackendStatus::kBroken, "says it has 3 bytes");
}

TEST(Plugins, BadNamesAreBroken) {
  FakePlugins plugins;
  plugins.add("Upper");
  plugins.add("liar", {{"name", "truth"}});
  EXPECT_THAT(report_of(list_backends(), "Upper").reason, HasSubstr("lower case letters"));
  EXPECT_THAT(report_of(list_backends(), "liar").reason, HasSubstr("its file's name says 'liar'"));
}

TEST(Plugins, MissingDriverAndMissingDevice) {
  FakePlugins plugins;
  plugins.add("driverless", {{"initialize", "no_driver"}});
  plugins.add("ancient", {{"initialize", "old_driver"}});
  plugins.add("bare", {{"devices", "0"}});
  expect_not_usable(plugins, "driverless", BackendStatus::kNoDriver, "libfake.so.1: not found");
  expect_not_usable(plugins, "ancient", BackendStatus::kNoDriver, "driver 11.4 is too old");
  expect_not_usable(plugins, "bare", BackendStatus::kNoDevice, "has no device");
}

TEST(Plugins, HangingOneIsStoppedAndTheOthersAreListed) {
  FakePlugins plugins;
  plugins.add("hanging", {{"initialize", "hang"}});
  plugins.add("fake");
  setenv("LOCKSTEP_PROBE_TIMEOUT_MS", "1500", 1);
  const std::vector<BackendReport> reports = list_backends();
  unsetenv("LOCKSTEP_PROBE_TIMEOUT_MS");
  EXPECT_EQ(report_of(reports, "hanging").status, BackendStatus::kProbeFailed);
  EXPECT_THAT(report_of(reports, "hanging").reason, HasSubstr("stopped after 1500 ms"));
  EXPECT_EQ(report_of(reports, "fake").status, BackendStatus::kReady);
}

TEST(Plugins, CrashingOneNamesItsSignal) {
  FakePlugins plugins;
  plugins.add("crashing", {{"initialize", "crash"}});
  const BackendReport report = report_of(list_backends(), "crashing");
  EXPECT_EQ(report.status, BackendStatus::kProbeFailed);
  EXPECT_THAT(report.reason, HasSubstr("SIGABRT"));
}

TEST(Plugins, ProbeTimeLimitHasToBeANumber) {
  FakePlugins plugins;
  setenv("LOCKSTEP_PROBE_TIMEOUT_MS", "soon", 1);
  try {
    list_backends();
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("LOCKSTEP_PROBE_TIMEOUT_MS=soon"));
  }
  unsetenv("LOCKSTEP_PROBE_TIMEOUT_MS");
}

TEST(Plugins, SecondOfANameIsShadowed) {
  FakePlugins first;
  const std::string winner = first.add("twice", {{"priority", "1"}});
  FakePlugins second;
  const std::string loser = second.add("twice", {{"priority", "2"}});
  setenv("LOCKSTEP_BACKEND_PATH", (first.folder() + "::" + second.folder()).c_str(), 1);
  std::vector<BackendReport> named;
  for (const BackendReport& report : list_backends()) {
    if (report.name == "twice") named.push_back(report);
  }
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].status, BackendStatus::kReady);
  EXPECT_EQ(named[0].path, winner);
  EXPECT_EQ(named[1].status, BackendStatus::kShadowed);
  EXPECT_EQ(named[1].path, loser);
  EXPECT_THAT(named[1].reason, HasSubstr(winner));
  Device::open("twice");
  EXPECT_EQ(first.control("twice").devices, 0);
  EXPECT_EQ(first.control("twice").initializations, 1);
  EXPECT_THROW(second.control("twice"), std::runtime_error);
}

TEST(Plugins, PathMayNameAFileOfAnyName) {
  FakePlugins plugins;
  const std::string path = plugins.add("fake", {{"name", "mine"}});
  const std::string other = plugins.folder() + "/mine.so";
  ASSERT_EQ(rename(path.c_str(), other.c_str()), 0);
  ASSERT_EQ(rename((path + ".script").c_str(), (other + ".script").c_str()), 0);
  setenv("LOCKSTEP_BACKEND_PATH", other.c_str(), 1);
  EXPECT_EQ(report_of(list_backends(), "mine").path, other);
  EXPECT_EQ(Device::open("mine").id(), "mine:0");
}

TEST(Plugins, KnownBackendsWithoutAFileSayWhereTheyWereLookedFor) {
  FakePlugins plugins;
  setenv("LOCKSTEP_BACKEND_PATH", (plugins.folder() + ":/nowhere/at/all").c_str(), 1);
  const BackendReport report = report_of(list_backends(), "hip");
  if (report.status != BackendStatus::kNotBuilt) GTEST_SKIP() << "this build has a hip plugin";
  EXPECT_TRUE(report.path.empty());
  ASSERT_EQ(report.tried.size(), 2u);
  EXPECT_EQ(report.tried[0], plugins.path_of("hip"));
  EXPECT_THAT(report.tried[1], HasSubstr("lockstep/backends/liblockstep_backend_hip.so"));
  EXPECT_THAT(report.reason, HasSubstr("/nowhere/at/all, which does not exist"));
}

// Pains: a table of an older interface is read beyond its end, or its missing slots are called.
// The fake fills what lies beyond its size with a pattern that crashes whoever uses it.
TEST(Plugins, ShortTableWorksAndSaysWhatItDoesNotOffer) {
  FakePlugins plugins;
  plugins.add("short", {{"size", "short"}});
  const Device device = Device::open("short");
  const Stream stream = device.create_stream();
  Buffer<int> buffer = device.allocate<int>(4);
  stream.fill(buffer, 7);
  std::vector<int> values(4);
  stream.copy_and_wait(values, buffer);
  EXPECT_EQ(values, std::vector<int>({7, 7, 7, 7}));
  EXPECT_EQ(stream.capture_status(), CaptureStatus::kNone);
  try {
    stream.begin_capture();
    ADD_FAILURE() << "captured";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_THAT(error.what(), HasSubstr("does not offer capture_begin"));
    EXPECT_EQ(error.context().where, "short:0");
  }
  EXPECT_THROW(device.create_graph(), Error);
}

TEST(Plugins, NullSlotsHaveTheirPolicies) {
  FakePlugins plugins;
  plugins.add("sparse", {{"null_slots", "optional"}});
  EXPECT_EQ(report_of(list_backends(), "sparse").devices.at(0).capabilities, "");
  const Device device = Device::open("sparse");
  EXPECT_EQ(device.native_handle(), nullptr);
  const Module module = device.compile("fake", {.kernels = {"nothing"}});
  Stream stream = device.create_stream();
  // module_load_all: nothing to load; graph_exec_update: instantiated anew.
  const auto step = [&](StreamRef& s) { s.launch(module.kernel("nothing"), {}); };
  GraphExec exec = stream.capture(step).instantiate();
  EXPECT_TRUE(exec.update(stream.capture(step)).reinstantiated);
  EXPECT_EQ(exec.reinstantiations(), 1u);
  int value = 0;
  try {
    device.register_host(std::span<int>(&value, 1));
    ADD_FAILURE() << "registered";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_THAT(error.what(), HasSubstr("memory_register"));
  }
}

// PLUG-07: listing before a fork leaves the child free to use a device.
TEST(Plugins, ChildMayOpenWhatTheParentOnlyListed) {
  FakePlugins plugins;
  plugins.add("fake");
  ASSERT_EQ(report_of(list_backends(), "fake").status, BackendStatus::kReady);
  const pid_t child = fork();
  if (child == 0) {
    int result = 1;
    try {
      const Device device = Device::open("fake");
      Buffer<int> buffer = device.allocate<int>(2);
      result = buffer.size() == 2 ? 0 : 2;
    } catch (const Error&) {
      result = 3;
    }
    _exit(result);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Plugins, ChildOfAProcessWithAnOpenDeviceGetsATypedError) {
  testing::FakeDevice fake;
  Stream stream = fake.device.create_stream();
  Buffer<int> buffer = fake.device.allocate<int>(2);
  const pid_t child = fork();
  if (child == 0) {
    int unavailable = 0;
    const auto count = [&](const auto& call) {
      try {
        call();
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kUnavailable) ++unavailable;
      }
    };
    count([&] { fake.device.allocate<int>(1); });
    count([&] { stream.synchronize(); });
    count([&] { stream.fill(buffer, 1); });
    count([&] { fake.device.create_event(); });
    count([&] { Device::open("fake"); });
    { const Buffer<int> gone = std::move(buffer); }  // must not reach the plugin
    _exit(unavailable * 10 + fake.control.allocations);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 51);
  stream.fill(buffer, 1);  // the parent goes on
  EXPECT_EQ(fake.control.sets, 1);
}

TEST(Plugins, RequiredBackendsHaveToBeReady) {
  FakePlugins plugins;
  plugins.add("fake");
  plugins.add("bare", {{"devices", "0"}});
  setenv("LOCKSTEP_REQUIRE_BACKENDS", "fake,bare", 1);
  for (const bool list : {true, false}) {
    try {
      list ? static_cast<void>(list_backends()) : static_cast<void>(Device::open("fake"));
      ADD_FAILURE() << "went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.what(), HasSubstr("asks for bare, which is not ready"));
    }
  }
  setenv("LOCKSTEP_REQUIRE_BACKENDS", "fake", 1);
  EXPECT_EQ(Device::open("fake").id(), "fake:0");
  unsetenv("LOCKSTEP_REQUIRE_BACKENDS");
}

}  // namespace
}  // namespace lockstep
