// SPDX-License-Identifier: Apache-2.0
// Random programs against graphs made of their own order, which is worked out here in another way.
#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "verify_programs.h"

namespace lockstep::testing_verify {
namespace {

std::uint32_t below(std::mt19937& random, std::uint32_t limit) {
  return static_cast<std::uint32_t>(random()) % limit;
}

using Order = std::vector<std::vector<bool>>;  ///< [first][second]
using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

struct Program {
  Trace trace;
  std::vector<LaunchTraceEntry> operations;  ///< the kernels among its entries, in order
  Order order;                               ///< between them
};

/// Entries of a random program over several streams, with `names` kinds of kernels.
Program random_program(std::mt19937& random, std::uint32_t operations, std::uint32_t streams,
                       std::uint32_t names) {
  std::vector<LaunchTraceEntry> entries;
  std::int64_t records = 0;
  std::uint32_t kernels = 0;
  while (kernels < operations) {
    const std::uint32_t stream = below(random, streams);
    const std::uint32_t choice = below(random, 10);
    if (choice < 6) {
      const std::uint32_t name = names == 0 ? kernels : below(random, names);
      entries.push_back(kernel("k" + std::to_string(name), stream));
      ++kernels;
    } else if (choice < 8) {
      entries.push_back(record(records++, stream));
    } else if (records != 0) {
      const auto event =
          static_cast<std::int64_t>(below(random, static_cast<std::uint32_t>(records)));
      entries.push_back(wait(event, stream));
    }
  }
  // Reachability among all entries, by the definition: stream order and record to wait.
  const std::size_t count = entries.size();
  Order reach(count, std::vector<bool>(count, false));
  for (std::size_t b = 0; b < count; ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      const bool same_stream = entries[a].stream_index == entries[b].stream_index;
      const bool bound = entries[a].kind == OperationKind::kEventRecord &&
                         entries[b].kind == OperationKind::kEventWait &&
                         entries[a].event == entries[b].event;
      if (!same_stream && !bound) continue;
      reach[a][b] = true;
      for (std::size_t c = 0; c < a; ++c) {
        if (reach[c][a]) reach[c][b] = true;
      }
    }
  }
  Program program;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < count; ++i) {
    if (entries[i].kind == OperationKind::kKernelLaunch) positions.push_back(i);
  }
  program.order.assign(positions.size(), std::vector<bool>(positions.size(), false));
  for (std::size_t a = 0; a < positions.size(); ++a) {
    program.operations.push_back(entries[positions[a]]);
    for (std::size_t b = 0; b < positions.size(); ++b) {
      program.order[a][b] = reach[positions[a]][positions[b]];
    }
  }
  program.trace = trace_of(std::move(entries));
  return program;
}

Edges reduction(const Order& order) {
  Edges edges;
  for (std::uint32_t a = 0; a < order.size(); ++a) {
    for (std::uint32_t b = 0; b < order.size(); ++b) {
      bool implied = false;
      for (std::size_t c = 0; c < order.size(); ++c) implied |= order[a][c] && order[c][b];
      if (order[a][b] && !implied) edges.emplace_back(a, b);
    }
  }
  return edges;
}

/// The program's graph; its nodes were made in an order that is shuffled when asked for.
Trace graph(const Program& program, const Edges& edges, std::mt19937* shuffle) {
  const std::size_t count = program.operations.size();
  std::vector<std::uint32_t> made(count);
  std::iota(made.begin(), made.end(), 0u);
  if (shuffle != nullptr) std::shuffle(made.begin(), made.end(), *shuffle);
  std::vector<LaunchTraceEntry> nodes(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    nodes[made[i]] = program.operations[i];
    nodes[made[i]].stream_index = 0;
  }
  Edges moved;
  for (const auto& [from, to] : edges) moved.emplace_back(made[from], made[to]);
  return graph_of(std::move(nodes), std::move(moved));
}

VerifyReport verify_order(const Program& program, const Trace& replay) {
  return verify_traces(program.trace, replay, VerifyLevel::kOrder);
}

TEST(VerifyProperty, ProgramsVerifyAgainstTheirOwnGraph) {
  std::mt19937 random(20240817);
  for (int round = 0; round < 60; ++round) {
    // From all kernels different to all kernels equal.
    const std::uint32_t names = static_cast<std::uint32_t>(round % 4);
    const Program program =
        random_program(random, 10 + below(random, 50), 1 + below(random, 5), names);
    const Edges edges = reduction(program.order);
    const VerifyReport made_alike = verify_order(program, graph(program, edges, nullptr));
    ASSERT_TRUE(made_alike.ok()) << "round " << round << '\n' << to_text(made_alike);
    EXPECT_TRUE(made_alike.findings.empty()) << "round " << round << '\n' << to_text(made_alike);
    const VerifyReport shuffled = verify_order(program, graph(program, edges, &random));
    ASSERT_TRUE(shuffled.ok()) << "round " << round << '\n' << to_text(shuffled);
  }
}

TEST(VerifyProperty, EveryEssentialEdgeIsMissed) {
  std::mt19937 random(7);
  for (int round = 0; round < 12; ++round) {
    const Program program = random_program(random, 12 + below(random, 12), 2 + below(random, 3), 0);
    const Edges edges = reduction(program.order);
    for (std::size_t removed = 0; removed < edges.size(); ++removed) {
      Edges fewer = edges;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(removed));
      const VerifyReport report = verify_order(program, graph(program, fewer, &random));
      ASSERT_EQ(report.verified, VerifyLevel::kMultiset) << "round " << round;
      // It names exactly the pair that lost its order.
      const std::string first = program.operations[edges[removed].first].name;
      const std::string second = program.operations[edges[removed].second].name;
      const bool named = std::any_of(
          report.findings.begin(), report.findings.end(), [&](const VerifyFinding& finding) {
            return finding.what == "order" && !finding.note &&
                   finding.message.find("kernel  " + first + " ") != std::string::npos &&
                   finding.eager->name == second;
          });
      EXPECT_TRUE(named) << to_text(report);
    }
  }
}

/// Whether any matching of equal operations keeps the order, by trying all of them.
bool any_matching(const Program& program, const Order& replay) {
  std::vector<std::size_t> to(program.operations.size());
  std::iota(to.begin(), to.end(), std::size_t{0});
  do {
    bool fits = true;
    for (std::size_t a = 0; a < to.size() && fits; ++a) {
      fits = program.operations[a].name == program.operations[to[a]].name;
      for (std::size_t b = 0; b < to.size() && fits; ++b) {
        fits = !program.order[a][b] || replay[to[a]][to[b]];
      }
    }
    if (fits) return true;
  } while (std::next_permutation(to.begin(), to.end()));
  return false;
}

TEST(VerifyProperty, AgreesWithTryingEveryMatching) {
  std::mt19937 random(99);
  int verified = 0, refused = 0;
  for (int round = 0; round < 150; ++round) {
    const Program program = random_program(random, 6, 3, 2);
    // Another order of the same operations: edges taken away and added at random.
    Order order = program.order;
    for (std::size_t a = 0; a < order.size(); ++a) {
      for (std::size_t b = a + 1; b < order.size(); ++b) {
        if (below(random, 8) == 0) order[a][b] = !order[a][b];
      }
    }
    Edges edges;
    for (std::uint32_t b = 0; b < order.size(); ++b) {
      for (std::uint32_t a = 0; a < b; ++a) {
        if (!order[a][b]) continue;
        edges.emplace_back(a, b);
        for (std::size_t c = 0; c < a; ++c) {
          if (order[c][a]) order[c][b] = true;
        }
      }
    }
    const bool expected = any_matching(program, order);
    const VerifyReport report = verify_order(program, graph(program, edges, &random));
    ASSERT_EQ(report.ok(), expected) << "round " << round << '\n' << to_text(report);
    ASSERT_EQ(find(report, VerifyLevel::kOrder, "undecided"), nullptr);
    ++(expected ? verified : refused);
  }
  EXPECT_GT(verified, 10);
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace lockstep::testing_verify
