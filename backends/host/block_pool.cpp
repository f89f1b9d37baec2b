// SPDX-License-Identifier: Apache-2.0
#include "block_pool.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <vector>

#include "executor.h"

namespace lockstep::hostrt {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kAloneFor = std::chrono::microseconds(15);

struct Loop {
  std::uint64_t total = 0;
  const std::function<bool(std::uint64_t, std::uint64_t)>* body = nullptr;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stopped{false};
  unsigned helpers = 0;  // guarded by the pool's lock

  bool exhausted() const noexcept {
    return stopped.load(std::memory_order_relaxed) || next.load(std::memory_order_relaxed) >= total;
  }
  void take(std::uint64_t count) {
    const std::uint64_t first = next.fetch_add(count, std::memory_order_relaxed);
    if (first >= total) return;
    if (!(*body)(first, std::min(count, total - first))) {
      stopped.store(true, std::memory_order_relaxed);
    }
  }
  // Small shares at the end, so that no thread is left with a long one.
  std::uint64_t share(unsigned threads) const noexcept {
    const std::uint64_t begun = next.load(std::memory_order_relaxed);
    const std::uint64_t left = begun < total ? total - begun : 0;
    return std::max<std::uint64_t>(1, left / (std::uint64_t{4} * threads));
  }
  void work(unsigned threads) {
    while (!exhausted()) take(share(threads));
  }
};

class Pool {
 public:
  static Pool& instance() {
    static auto* const pool = new Pool;  // never destroyed: see Executor
    return *pool;
  }

  unsigned threads() const noexcept { return usable_threads(); }

  // Lets helpers into `loop`; false when there can be none.
  bool open(Loop& loop) {
    const std::lock_guard lock(mutex_);
    if (!started_) {
      started_ = true;
      try {
        for (unsigned i = 1; i < threads(); ++i) {
          start_thread([] { instance().serve(); });
          ++helper_count_;
        }
      } catch (const std::system_error&) {
        // Fewer helpers than wished for; the caller's own thread does what is left.
      }
    }
    if (helper_count_ == 0) return false;
    open_.push_back(&loop);
    condition_.notify_all();
    return true;
  }

  void close(Loop& loop) {
    std::unique_lock lock(mutex_);
    std::erase(open_, &loop);
    left_.wait(lock, [&] { return loop.helpers == 0; });
  }

 private:
  void serve() noexcept {
    std::fesetenv(FE_DFL_ENV);
    std::unique_lock lock(mutex_);
    while (true) {
      condition_.wait(lock, [this] { return !open_.empty(); });
      // Oldest first would let a loop that spins take every helper; the emptiest one gets help.
      Loop& loop = **std::min_element(open_.begin(), open_.end(), [](const Loop* a, const Loop* b) {
        return a->helpers < b->helpers;
      });
      ++loop.helpers;
      lock.unlock();
      loop.work(threads());
      lock.lock();
      std::erase(open_, &loop);  // exhausted: nobody else need come
      if (--loop.helpers == 0) left_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable condition_;
  std::condition_variable left_;
  std::vector<Loop*> open_;
  unsigned helper_count_ = 0;
  bool started_ = false;
};

}  // namespace

void run_in_parallel(std::uint64_t total,
                     const std::function<bool(std::uint64_t, std::uint64_t)>& body) {
  if (total == 1) {
    body(0, 1);
    return;
  }
  Loop loop;
  loop.total = total;
  loop.body = &body;
  Pool& pool = Pool::instance();
  const unsigned threads = pool.threads();
  if (threads == 1) {
    loop.take(total);
    return;
  }
  const Clock::time_point begin = Clock::now();
  std::uint64_t count = 1;
  while (!loop.exhausted() && Clock::now() - begin < kAloneFor) {
    loop.take(count);
    count = std::min(2 * count, loop.share(threads));
  }
  if (loop.exhausted()) return;
  const bool helped = total - loop.next.load(std::memory_order_relaxed) > 1 && pool.open(loop);
  loop.work(helped ? threads : 1);
  if (helped) pool.close(loop);
}

}  // namespace lockstep::hostrt
