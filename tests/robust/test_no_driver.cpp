// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device.h>
#include <lockstep/error.h>

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>

#include "robust/robust_test.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

TEST(Cases, PLUG_01_NothingLinksADriver) {
  std::size_t looked_at = 0;
  const auto check = [&](const std::filesystem::path& file) {
    const ProcessResult result = run({"readelf", "-d", file.string()});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_FALSE(std::regex_search(
        result.out,
        std::regex("NEEDED.*(libcuda|libnvrtc|libcudart|libamdhip|libhip|libhsa|libOpenCL)")))
        << file << result.out;
    ++looked_at;
  };
  for (const auto& entry : std::filesystem::directory_iterator(LOCKSTEP_TEST_PLUGIN_DIR)) {
    if (entry.path().extension() == ".so") check(entry.path());
  }
  check(std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep");
  check(LOCKSTEP_CORE_LIBRARY);
  EXPECT_GE(looked_at, 3u);
}

TEST(Cases, PLUG_01_MachinesWithoutADriverRunOnTheHost) {
  const ProcessResult listed = lockstep_cli({"devices"});
  EXPECT_EQ(listed.exit_code, 0) << all_of(listed);
  EXPECT_THAT(listed.out, HasSubstr("host      ready"));
  const ProcessResult work = robust_program({"launch", "10"});
  EXPECT_EQ(work.exit_code, 0) << all_of(work);
  for (const std::string backend : {"cuda", "hip"}) {
    const ProcessResult asked = lockstep_cli({"devices", backend});
    if (asked.exit_code == 0) continue;  // this machine has one
    EXPECT_EQ(asked.exit_code, 4) << all_of(asked);
    try {
      Device::open(backend);
      ADD_FAILURE() << backend << " opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      // A plugin that is there names the driver's library, a missing one its own file.
      EXPECT_THAT(error.what(),
                  ::testing::AnyOf(HasSubstr("libcuda.so.1"), HasSubstr("libamdhip64.so"),
                                   HasSubstr("liblockstep_backend_" + backend + ".so")));
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
