// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <elf.h>
#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "support/fake_backend/fake_plugins.h"
#include "support/process.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

void add_text(FakePlugins& plugins, const std::string& name) {
  write_file(plugins.path_of(name), "this is no library, only some text in a file\n");
}
void add_foreign(FakePlugins& plugins, const std::string& name) {
  std::fstream file(plugins.add(name), std::ios::in | std::ios::out | std::ios::binary);
  const Elf64_Half machine = EM_AARCH64;
  file.seekp(offsetof(Elf64_Ehdr, e_machine));
  file.write(reinterpret_cast<const char*>(&machine), sizeof(machine));
}
template <const auto& Library>
void add_library(FakePlugins& plugins, const std::string& name) {
  plugins.add_file(name, Library);
}
constexpr char kNoPlugin[] = LOCKSTEP_FAKE_DEPENDENCY;
constexpr char kDependent[] = LOCKSTEP_FAKE_DEPENDENT;

struct Bad {
  const char* name;  ///< of the test and, in lower case, of the plugin
  void (*add)(FakePlugins&, const std::string&);
  FakeScriptLines script;  ///< for the fake plugin, where `add` is null
  const char* status;
  const char* words;
};
void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

const Bad kBad[] = {
    {"NotALibrary", add_text, {}, "broken", "it does not load"},
    {"WrongArchitecture", add_foreign, {}, "broken", "another architecture (ELF machine 183"},
    {"MissingSymbol", add_library<kNoPlugin>, {}, "broken", "exports no lockstep_backend_query"},
    {"MissingDependency", add_library<kDependent>, {}, "broken", "liblockstep_fake_dependency.so"},
    {"VersionTooNew", nullptr, {{"abi", "2000"}}, "incompatible", "interface version 2000"},
    {"VersionTooOld", nullptr, {{"abi", "999"}}, "incompatible", "interface version 999"},
    {"NothingOfATable", nullptr, {{"size", "absurd"}}, "broken", "says it has 3 bytes"},
    {"NullSlot", nullptr, {{"null_slots", "required"}}, "broken", "does not offer initialize"},
    {"ThrowsInQuery", nullptr, {{"query", "throw"}}, "broken", "threw: thrown in query"},
    {"ThrowsANumber", nullptr, {{"query", "throw_number"}}, "broken", "is no std::exception"},
    {"ThrowsAtStart", nullptr, {{"initialize", "throw"}}, "broken", "thrown while starting"},
    {"Crashes", nullptr, {{"initialize", "crash"}}, "probe failed", "SIGABRT"},
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// What `lockstep devices --json` says of the plugins in these folders.
class Listing {
 public:
  explicit Listing(const std::string& folders, const char* limit_ms = "60000") {
    ProcessOptions options;
    options.environment["LOCKSTEP_BACKEND_PATH"] = folders;
    options.environment["LOCKSTEP_PROBE_TIMEOUT_MS"] = limit_ms;
    const ProcessResult result =
        run({std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep", "devices", "--json"}, options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    json_ = nlohmann::json::parse(result.out);
  }
  std::vector<nlohmann::json> of(const std::string& name) const {
    std::vector<nlohmann::json> found;
    for (const auto& backend : json_.at("backends")) {
      if (backend.at("name") == name) found.push_back(backend);
    }
    return found;
  }
  void expect(const std::string& name, const std::string& status, const std::string& words) const {
    const auto found = of(name);
    ASSERT_EQ(found.size(), 1u) << name;
    EXPECT_EQ(found[0].at("status"), status) << name << ": " << found[0].at("reason");
    EXPECT_THAT(found[0].at("reason").get<std::string>(), HasSubstr(words)) << name;
    EXPECT_EQ(found[0].at("devices").empty(), status != "ready") << name;
  }

 private:
  nlohmann::json json_;
};

void add(FakePlugins& plugins, const Bad& bad) {
  if (bad.add != nullptr) {
    bad.add(plugins, lower(bad.name));
  } else {
    plugins.add(lower(bad.name), bad.script);
  }
}

class BadPlugins : public ::testing::TestWithParam<Bad> {};

TEST_P(BadPlugins, IsListedByNameAndReason) {
  const Bad& bad = GetParam();
  FakePlugins plugins;
  add(plugins, bad);
  const Listing listing(plugins.folder());
  listing.expect(lower(bad.name), bad.status, bad.words);
  EXPECT_EQ(listing.of(lower(bad.name)).at(0).at("path"), plugins.path_of(lower(bad.name)));
  listing.expect("host", "ready", "");
}
INSTANTIATE_TEST_SUITE_P(All, BadPlugins, ::testing::ValuesIn(kBad),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(BadPluginsToo, AllAtOnceHurtNobody) {
  FakePlugins plugins;
  for (const Bad& bad : kBad) add(plugins, bad);
  plugins.add("sound");
  const Listing listing(plugins.folder());
  for (const Bad& bad : kBad) listing.expect(lower(bad.name), bad.status, bad.words);
  for (const char* name : {"sound", "host"}) listing.expect(name, "ready", "");
}

TEST(BadPluginsToo, HangsWhileProbed) {
  FakePlugins plugins;
  plugins.add("hangs", {{"initialize", "hang"}});
  const Listing listing(plugins.folder(), "6000");
  listing.expect("hangs", "probe failed", "hung while it was probed and was stopped after 6000 ms");
  listing.expect("host", "ready", "");
}

TEST(BadPluginsToo, ShortStructIsReadyWithWhatItHas) {
  FakePlugins plugins;
  plugins.add("short", {{"size", "short"}});
  Listing(plugins.folder()).expect("short", "ready", "");
}

TEST(BadPluginsToo, RegisteredTwiceIsShadowed) {
  FakePlugins second, first;
  first.add("twice");
  second.add("twice");
  const auto found = Listing(first.folder() + ":" + second.folder()).of("twice");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].at("status"), "ready");
  EXPECT_EQ(found[0].at("path"), first.path_of("twice"));
  EXPECT_EQ(found[1].at("status"), "shadowed");
  EXPECT_EQ(found[1].at("path"), second.path_of("twice"));
  EXPECT_THAT(found[1].at("reason").get<std::string>(), HasSubstr(first.path_of("twice")));
}

}  // namespace
}  // namespace lockstep::testing
