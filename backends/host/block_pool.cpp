// SPDX-License-Identifier: Apache-2.0
#include "block_pool.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>

#include "executor.h"

namespace lockstep::hostrt {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kAloneFor = std::chrono::microseconds(15);

using Body = std::function<bool(std::uint64_t, std::uint64_t)>;

// What is left of a loop as its caller and its helpers see it. A helper may come so late that the
// caller has left, and the body with it: it has to be let in.
class Loop {
 public:
  Loop(std::uint64_t first, std::uint64_t total, const Body& body)
      : total_(total), body_(body), next_(first) {}

  void work(unsigned threads) {
    while (!stopped_.load(std::memory_order_relaxed)) {
      const std::uint64_t begun = next_.load(std::memory_order_relaxed);
      if (begun >= total_) return;
      // Small shares at the end, so that no thread is left with a long one.
      const auto share =
          std::max<std::uint64_t>(1, (total_ - begun) / (std::uint64_t{4} * threads));
      const std::uint64_t first = next_.fetch_add(share, std::memory_order_relaxed);
      if (first >= total_) return;
      if (!body_(first, std::min(share, total_ - first))) {
        stopped_.store(true, std::memory_order_relaxed);
      }
    }
  }
  void help(unsigned threads) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      ++helpers_;
    }
    work(threads);
    const std::lock_guard lock(mutex_);
    if (--helpers_ == 0) helpers_left_.notify_all();
  }
  // Lets nobody in any more and waits for those who are.
  void close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    helpers_left_.wait(lock, [this] { return helpers_ == 0; });
  }

 private:
  const std::uint64_t total_;
  const Body& body_;  // valid until closed
  std::atomic<std::uint64_t> next_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::condition_variable helpers_left_;
  bool closed_ = false;
  unsigned helpers_ = 0;
};

// Boost.Asio's pool with threads of our own making attached, since these receive no signals of the
// program's. A pool that waits by running other tasks (oneTBB's) would not do: a stream would come
// to run, inside of its own kernel, a block of another stream that waits for this very kernel.
class Pool {
 public:
  static Pool& instance() {
    static auto* const pool = new Pool;  // never destroyed: see Executor
    return *pool;
  }

  // The most threads that work on one loop, its caller among them.
  unsigned threads() const noexcept { return helper_count_ + 1; }

  void ask_for_help(const std::shared_ptr<Loop>& loop, std::uint64_t left) {
    const auto wanted = std::min<std::uint64_t>(helper_count_, left - 1);
    for (std::uint64_t i = 0; i < wanted; ++i) {
      boost::asio::post(helpers_, [loop, threads = threads()] { loop->help(threads); });
    }
  }

 private:
  Pool() {
    try {
      for (unsigned i = 1; i < usable_threads(); ++i) {
        start_thread([] { instance().serve(); });
        ++helper_count_;
      }
    } catch (const std::system_error&) {
      // Fewer helpers than wished for; the caller's own thread does what is left.
    } catch (const std::bad_alloc&) {  // likewise
    }
  }

  void serve() noexcept {
    std::fesetenv(FE_DFL_ENV);
    helpers_.attach();
  }

  boost::asio::thread_pool helpers_{0};
  unsigned helper_count_ = 0;
};

}  // namespace

void run_in_parallel(std::uint64_t total, const Body& body) {
  const unsigned usable = usable_threads();
  std::uint64_t done = 0;
  std::uint64_t count = usable == 1 ? total : 1;
  const Clock::time_point begin = Clock::now();
  while (done < total) {
    count = std::min(count, total - done);
    if (!body(done, count)) return;
    done += count;
    if (total - done > 1 && Clock::now() - begin > kAloneFor) break;
    count = std::max<std::uint64_t>(1, std::min(2 * count, (total - done) / (4 * usable)));
  }
  if (done == total) return;
  std::shared_ptr<Loop> loop;
  try {
    loop = std::make_shared<Loop>(done, total, body);
    Pool::instance().ask_for_help(loop, total - done);
  } catch (const std::bad_alloc&) {
    // No memory for help, or for all of it: this thread does what is left.
  }
  if (loop == nullptr) {
    body(done, total - done);
    return;
  }
  loop->work(usable);
  loop->close();
}

}  // namespace lockstep::hostrt
