// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_diff.h>

#include <algorithm>
#include <gmock/gmock.h>
#include <numeric>
#include <random>

namespace lockstep {
namespace {

using Keys = std::vector<std::uint64_t>;
using Kind = DiffChange::Kind;

std::uint64_t lcs_by_table(const Keys& a, const Keys& b) {
  Keys row(b.size() + 1, 0);
  for (const std::uint64_t key : a) {
    std::uint64_t diagonal = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::uint64_t above = row[j + 1];
      row[j + 1] = key == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

/// Entries that stand outside the changes, after checking that they are equal in pairs.
std::uint64_t check_and_count(const Keys& a, const Keys& b,
                              const std::vector<DiffChange>& changes) {
  std::uint64_t x = 0, y = 0, matched = 0;
  const auto match_until = [&](std::uint64_t to_x, std::uint64_t to_y) {
    ASSERT_EQ(to_x - x, to_y - y);
    for (; x < to_x; ++x, ++y, ++matched) ASSERT_EQ(a[x], b[y]);
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const DiffChange& change = changes[i];
    match_until(change.left_begin, change.right_begin);
    EXPECT_TRUE(i == 0 || change.left_begin > x || change.right_begin > y || matched > 0);
    const bool deletes = change.left_end > change.left_begin;
    const bool inserts = change.right_end > change.right_begin;
    EXPECT_TRUE(deletes || inserts);
    EXPECT_EQ(change.kind, deletes && inserts ? Kind::kReplace
                           : deletes          ? Kind::kDelete
                                              : Kind::kInsert);
    x = change.left_end;
    y = change.right_end;
  }
  match_until(a.size(), b.size());
  return matched;
}

Keys random_keys(std::mt19937_64& random, std::size_t most, std::uint64_t alphabet) {
  Keys keys(random() % (most + 1));
  for (auto& key : keys) key = 1 + random() % alphabet;
  return keys;
}

TEST(Align, FindsALongestCommonSubsequence) {
  std::mt19937_64 random(20240607);
  for (int round = 0; round < 4000; ++round) {
    const std::uint64_t alphabet = 1 + random() % 12;
    const Keys a = random_keys(random, 40, alphabet), b = random_keys(random, 40, alphabet);
    bool exact = false;
    const auto changes = align(a, b, 10000, &exact);
    EXPECT_TRUE(exact);
    ASSERT_EQ(check_and_count(a, b, changes), lcs_by_table(a, b)) << "round " << round;
  }
}

TEST(Align, FindsOneInEditedCopies) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 60; ++round) {
    Keys a(600);
    for (auto& key : a) key = 1 + random() % 30;
    Keys b = a;
    for (std::uint64_t edit = random() % 80; edit > 0; --edit) {
      const auto at = static_cast<std::ptrdiff_t>(random() % b.size());
      if (random() % 2 == 0) {
        b.erase(b.begin() + at);
      } else {
        b.insert(b.begin() + at, 1 + random() % 40);
      }
    }
    ASSERT_EQ(check_and_count(a, b, align(a, b, 10000, nullptr)), lcs_by_table(a, b));
  }
}

TEST(Align, BothDirectionsMatchTheSameNumber) {
  std::mt19937_64 random(99);
  for (int round = 0; round < 500; ++round) {
    const Keys a = random_keys(random, 60, 6), b = random_keys(random, 60, 6);
    EXPECT_EQ(check_and_count(a, b, align(a, b, 10000, nullptr)),
              check_and_count(b, a, align(b, a, 10000, nullptr)));
  }
}

TEST(Align, IsAnchoredBeyondTheDistanceAskedFor) {
  std::mt19937_64 random(3);
  std::size_t anchored = 0;
  for (int round = 0; round < 300; ++round) {
    Keys a(300);
    for (auto& key : a) key = 1 + random() % 9;
    Keys b;
    for (const std::uint64_t key : a) {
      const std::uint64_t dice = random() % 16;
      if (dice != 0) b.push_back(key);
      if (dice == 1) b.push_back(1 + random() % 9);
    }
    bool exact = true;
    const auto changes = align(a, b, 10, &exact);
    const std::uint64_t matched = check_and_count(a, b, changes);
    const std::uint64_t longest = lcs_by_table(a, b);
    EXPECT_LE(matched, longest);
    if (exact) {
      EXPECT_EQ(matched, longest);
    } else {
      ++anchored;
      EXPECT_GE(10 * matched, 8 * longest) << "an anchored alignment should still be a good one";
    }
  }
  EXPECT_GT(anchored, 200u);
}

TEST(Align, KeepsLongTracesInTimeAndOrder) {
  std::mt19937_64 random(11);
  Keys a(300000);
  for (auto& key : a) key = 1 + random() % 20;
  Keys b;
  for (const std::uint64_t key : a) {
    const std::uint64_t dice = random() % 10;
    if (dice == 0) continue;
    b.push_back(dice == 1 ? 1 + random() % 20 : key);
  }
  bool exact = true;
  const std::uint64_t matched = check_and_count(a, b, align(a, b, 10000, &exact));
  EXPECT_FALSE(exact);
  EXPECT_GT(matched, a.size() * 7 / 10);
}

TEST(Align, KeyZeroEqualsNothing) {
  const Keys keys = {5, 0, 6};
  const auto changes = align(keys, keys, 10000, nullptr);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].kind, Kind::kReplace);
  EXPECT_EQ(changes[0].left_begin, 1u);
  EXPECT_EQ(changes[0].right_end, 2u);
}

TEST(Align, EmptySides) {
  EXPECT_TRUE(align({}, {}, 10, nullptr).empty());
  const auto inserted = align({}, {1, 2}, 10, nullptr);
  ASSERT_EQ(inserted.size(), 1u);
  EXPECT_EQ(inserted[0].kind, Kind::kInsert);
  EXPECT_EQ(inserted[0].right_end, 2u);
}

TEST(Align, OneMoreRoundOfALoopStandsAtTheEnd) {
  Keys three, four;
  for (int i = 0; i < 4; ++i) {
    for (const std::uint64_t key : {7, 8, 9}) {
      if (i < 3) three.push_back(key);
      four.push_back(key);
    }
  }
  // Something after the loop, so that stripping a common prefix alone does not decide it.
  three.push_back(50);
  four.push_back(50);
  const auto changes = align(three, four, 10000, nullptr);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].left_begin, 9u);
  EXPECT_EQ(changes[0].right_begin, 9u);
  EXPECT_EQ(changes[0].right_end, 12u);
}

}  // namespace
}  // namespace lockstep
