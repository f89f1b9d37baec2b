// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backends.h>
#include <lockstep/device.h>
#include <lockstep/error.h>

#include <filesystem>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "support/fake_backend/fake_plugins.h"
#include "support/process.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// Plugins built with the header of 1.0, of 1.1, and one of 1.1 that does without a host of 1.0.
struct Plugins : FakePlugins {
  Plugins() {
    add_file("frozen", LOCKSTEP_FAKE_1_0);
    add_file("newer", LOCKSTEP_FAKE_1_1);
    write_file(add_file("needy", LOCKSTEP_FAKE_1_1) + ".script", "abi_min=1001\n");
  }
  ProcessOptions options() const {
    ProcessOptions options;
    options.environment["LOCKSTEP_BACKEND_PATH"] = folder();
    return options;
  }
};

nlohmann::json backend_of(const ProcessResult& result, const std::string& name) {
  const nlohmann::json listing = nlohmann::json::parse(result.out);
  for (const auto& backend : listing.at("backends")) {
    if (backend.at("name") == name) return backend;
  }
  throw std::runtime_error("no backend " + name + " in " + result.out + result.err);
}

void expect_works(const std::string& backend) {
  const Device device = Device::open(backend);
  const Stream stream = device.create_stream();
  const Buffer<int> buffer = device.allocate<int>(4);
  stream.fill(buffer, 7);
  std::vector<int> values(4);
  stream.copy_and_wait(values, buffer);
  EXPECT_EQ(values, std::vector<int>({7, 7, 7, 7})) << backend;
}

TEST(Versions, HostOf10TakesPluginsOf10AndOf11) {
  const Plugins plugins;
  const ProcessResult listed = run(
      {std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep", "devices", "--json"}, plugins.options());
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  for (const char* name : {"frozen", "newer"}) {
    const nlohmann::json backend = backend_of(listed, name);
    EXPECT_EQ(backend.at("status"), "ready") << name << backend.at("reason");
    EXPECT_EQ(backend.at("abi_version"), 1000) << name;
    EXPECT_EQ(backend.at("devices").at(0).at("name"), "Fake 0") << name;
    expect_works(name);
  }
}

TEST(Versions, HostOf10NamesBothVersionsToAPluginThatNeeds11) {
  const Plugins plugins;
  const ProcessResult listed = run(
      {std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep", "devices", "--json"}, plugins.options());
  const nlohmann::json backend = backend_of(listed, "needy");
  EXPECT_EQ(backend.at("status"), "incompatible");
  EXPECT_EQ(backend.at("reason"),
            "this plugin needs interface 1001 or later, the program has 1000");
  EXPECT_TRUE(backend.at("devices").empty());
  try {
    Device::open("needy");
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("needs interface 1001 or later"));
  }
}

/// The command line, the library and in its place a probe program of interface 1.1.
TEST(Versions, HostOf11ListsAllOfThem) {
  const Plugins plugins;
  const TempFolder tree;
  fs::create_directories(tree.path() / "bin");
  // Where the program looks for its library, and the library for its probe.
  const fs::path library = LOCKSTEP_CORE_LIBRARY;
  const fs::path place = tree.path() / library.parent_path().filename();
  fs::create_directories(place / "lockstep");
  fs::copy_file(library, place / "liblockstep.so.0");
  fs::copy_file(LOCKSTEP_PROBE_1_1, place / "lockstep" / "lockstep-probe");
  const fs::path program = tree.path() / "bin" / "lockstep";
  fs::copy_file(std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep", program);
  const ProcessResult listed = run({program.string(), "devices", "--json"}, plugins.options());
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_EQ(backend_of(listed, "frozen").at("status"), "ready");
  EXPECT_EQ(backend_of(listed, "frozen").at("abi_version"), 1000);
  for (const char* name : {"newer", "needy"}) {
    EXPECT_EQ(backend_of(listed, name).at("status"), "ready");
    EXPECT_EQ(backend_of(listed, name).at("abi_version"), 1001) << name;
  }
}

TEST(Versions, HostOf11WorksWithPluginsOf10AndOf11) {
  const Plugins plugins;
  const ProcessResult frozen = run({LOCKSTEP_WORK_1_1, plugins.path_of("frozen")});
  EXPECT_EQ(frozen.exit_code, 0) << frozen.err;
  EXPECT_EQ(frozen.out,
            "interface 1000, without the slot of 1.1\n"
            "device Fake 0, generation 99, by slot 0\nworks\n");
  const ProcessResult newer = run({LOCKSTEP_WORK_1_1, plugins.path_of("newer")});
  EXPECT_EQ(newer.exit_code, 0) << newer.err;
  EXPECT_EQ(newer.out,
            "interface 1001, with the slot of 1.1\n"
            "device Fake 0, generation 7, by slot 7\nworks\n");
  // The real thing: what it does not know of a structure it leaves alone.
  const ProcessResult host = run(
      {LOCKSTEP_WORK_1_1, std::string(LOCKSTEP_TEST_PLUGIN_DIR) + "/liblockstep_backend_host.so"});
  EXPECT_EQ(host.exit_code, 0) << host.out << host.err;
  EXPECT_THAT(host.out, HasSubstr("interface 1000, without the slot of 1.1\n"));
  EXPECT_THAT(host.out, HasSubstr("generation 99, by slot 0\nworks\n"));
}

}  // namespace
}  // namespace lockstep::testing
