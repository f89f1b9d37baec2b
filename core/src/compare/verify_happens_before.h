// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// \file
/// What must end before what begins, worked out of a trace by vector clocks.
namespace lockstep::verifying {

/// How many entries of each chain are known to have ended. Missing numbers are 0.
using Clock = std::vector<std::uint32_t>;

void join(Clock& into, const Clock& other);

/// A partial order of numbered entries. Entries are held in chains: each one ends before the next
/// of its chain begins, so that one number a chain says everything that came before an entry.
class OrderRelation {
 public:
  /// Adds the next entry, which begins after `begin`; returns the clock of its end. It goes on with
  /// `preferred` where that chain has ended by then, else with the first chain that has.
  Clock add(const Clock& begin, std::int64_t preferred);

  std::size_t size() const noexcept { return begin_.size(); }
  std::size_t chain_count() const noexcept { return chains_.size(); }
  std::uint32_t chain(std::size_t entry) const noexcept { return chain_[entry]; }
  const std::vector<std::uint32_t>& members(std::size_t chain) const { return chains_[chain]; }
  /// How many entries of that chain end before `entry` begins.
  std::uint32_t reach(std::size_t entry, std::size_t chain) const noexcept {
    return chain < begin_[entry].size() ? begin_[entry][chain] : 0;
  }
  /// True when `first` is guaranteed to end before `second` begins.
  bool before(std::size_t first, std::size_t second) const noexcept {
    return reach(second, chain_[first]) > position_[first];
  }
  /// How many entries end before `entry` begins.
  std::uint64_t predecessors(std::size_t entry) const noexcept;
  /// Calls `visit(earlier)` with the last entry of each chain that ends before `entry` begins: all
  /// other orders follow from these.
  template <typename Visit>
  void visit_latest(std::size_t entry, Visit visit) const {
    for (std::size_t c = 0; c < begin_[entry].size(); ++c) {
      if (begin_[entry][c] != 0) visit(chains_[c][begin_[entry][c] - 1]);
    }
  }
  /// The entries directly before `entry`: those of visit_latest() that no other of them implies.
  std::vector<std::uint32_t> covers(std::size_t entry) const;
  /// False once the clocks had become too large to keep; nothing may be concluded then.
  bool complete() const noexcept { return complete_; }

 private:
  std::vector<Clock> begin_;
  std::vector<std::uint32_t> chain_, position_;
  std::vector<std::vector<std::uint32_t>> chains_;
  std::uint64_t cells_ = 0;
  bool complete_ = true;
};

struct OrderedViewOptions {
  /// Positions of the view that are left out (they go on ordering what is around them). Sorted.
  std::vector<std::size_t> left_out;
  /// Order that the trace does not decide (see Doubt) is taken for order; else for none.
  bool assume_doubtful = false;
};

/// A place where the program may have more order than can be followed.
struct Doubt {
  enum class Kind {
    kOtherThread,  ///< one thread waited, another enqueued later: did it know of that?
    kQuery,        ///< a query found work ended: did the program mind?
    kEventNode,    ///< a node of a graph waits for or made a record that cannot be told from others
    kSignal,       ///< stream memory operations and semaphores
  };
  Kind kind;
  std::string cause;  ///< the latest entry that may order; empty where `first` is that
  std::string first;  ///< the first entry that it may order
};

/// The executed view of a trace (core kinds, opaque entries, launches of graphs that nobody
/// defined) with the order that is guaranteed between its entries.
struct OrderedView {
  std::vector<LaunchTraceEntry> entries;
  OrderRelation strong;            ///< ends before the other begins
  OrderRelation programmatic_too;  ///< see weak(); empty where there is no programmatic edge
  bool has_programmatic = false;
  std::vector<std::uint32_t> creation;  ///< positions sorted as the work was captured or enqueued

  /// The first of each kind. None: the view is the same whatever is assumed.
  std::vector<Doubt> doubts;
  std::uint64_t memory_nodes = 0;  ///< allocations and frees among the nodes of launched graphs
  std::uint64_t host_functions = 0;
  std::uint64_t unfollowed = 0;  ///< entries whose order cannot be followed

  /// The order with programmatic edges taken for full ones.
  const OrderRelation& weak() const noexcept {
    return has_programmatic ? programmatic_too : strong;
  }
  bool complete() const noexcept { return strong.complete() && weak().complete(); }
};

/// Order comes from streams, event records and waits, edges of graphs, launches of one executable
/// (which follow each other), legacy-stream rules where streams are defined, and host threads: what
/// a thread waited for has ended before what it enqueues later begins. A copy to host memory whose
/// call has no "Async" in its name waits. Nodes of graphs that wait for events follow the records
/// that other nodes made of them, as long as these are certainly the latest.
/// \throws Error as expand_graph() does.
OrderedView ordered_view(const Trace& trace, const OrderedViewOptions& options = {});

}  // namespace lockstep::verifying
