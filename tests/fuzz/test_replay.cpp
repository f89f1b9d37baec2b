// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <ostream>
#include <random>

#include "fuzz/fuzz_target.h"
#include "support/trace_entries.h"

namespace lockstep {
namespace {

using Target = void (*)(const std::uint8_t*, std::size_t);

struct Replay {
  const char* name;
  Target target;

  friend void PrintTo(const Replay& replay, std::ostream* to) { *to << replay.name; }
};

class FuzzReplay : public testing::TestWithParam<Replay> {};

void run(Target target, const std::string& bytes) {
  target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

TEST_P(FuzzReplay, CorpusAndNeighbours) {
  const auto folder = std::filesystem::path(LOCKSTEP_TEST_DATA_DIR) / "fuzz" / GetParam().name;
  std::mt19937_64 random(1);
  std::size_t inputs = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(file.path().string());
    const std::string bytes = testing_support::read_bytes(file.path());
    run(GetParam().target, bytes);
    ++inputs;
    for (int round = 0; round < 100 && !bytes.empty(); ++round) {
      std::string changed = bytes;
      changed[random() % changed.size()] = static_cast<char>(random());
      if (round % 4 == 0) changed.resize(random() % changed.size());
      run(GetParam().target, changed);
    }
  }
  EXPECT_GE(inputs, 5u) << "the corpus is missing";
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzReplay,
                         testing::Values(Replay{"trace_reader", fuzz::trace_reader},
                                         Replay{"diff", fuzz::diff}, Replay{"rules", fuzz::rules},
                                         Replay{"waivers", fuzz::waivers},
                                         Replay{"manifest", fuzz::manifest},
                                         Replay{"report", fuzz::report},
                                         Replay{"command_line", fuzz::command_line}),
                         [](const auto& parameter) {
                           std::string name = parameter.param.name;
                           name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
                           return name;
                         });

}  // namespace
}  // namespace lockstep
