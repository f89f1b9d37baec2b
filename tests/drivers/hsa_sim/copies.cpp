// SPDX-License-Identifier: Apache-2.0
#include "copies.h"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "memory.h"

namespace hsa_sim {
namespace {

class Engine {
 public:
  void submit(CopyJob job) {
    const std::lock_guard lock(mutex_);
    if (!started_) std::thread([this] { run(); }).detach();
    started_ = true;
    jobs_.push_back(std::move(job));
    condition_.notify_one();
  }

 private:
  [[noreturn]] void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      condition_.wait(lock, [&] { return !jobs_.empty(); });
      const CopyJob job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      for (const hsa_signal_t signal : job.after) {
        wait_until(signal_of(signal, "a copy that waits"), HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX);
      }
      settings().delay();
      const std::uint64_t began = now();
      job.work();
      complete(job.completion, began, "a copy at its end");
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable condition_;
  std::deque<CopyJob> jobs_;
  bool started_ = false;
};

// Of each pair of agents one; never destroyed.
Engine& engine(hsa_agent_t to, hsa_agent_t from) {
  static auto* const mutex = new std::mutex;
  static auto* const engines = new std::map<std::pair<std::uint64_t, std::uint64_t>, Engine*>;
  const std::lock_guard lock(*mutex);
  Engine*& found = (*engines)[{to.handle, from.handle}];
  if (found == nullptr) found = new Engine;
  return *found;
}

std::string range(const void* address, std::uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%p, %llu bytes", address,
                static_cast<unsigned long long>(bytes));
  return text;
}

// A GPU would stop with a memory fault, which ends the process.
void check_reachable(const void* address, std::uint64_t bytes, const char* side) {
  if (memory().covers(address, bytes)) return;
  complain("memory fault: the " + std::string(side) + " of a copy (" + range(address, bytes) +
           ") is not all memory that was allocated or locked");
  std::abort();
}

std::vector<hsa_signal_t> dependencies(std::uint32_t count, const hsa_signal_t* signals) {
  require(count == 0 || signals != nullptr);
  std::vector<hsa_signal_t> all(signals, signals + count);
  for (const hsa_signal_t signal : all) signal_of(signal);
  return all;
}

void copy(void* to, hsa_agent_t to_agent, const void* from, hsa_agent_t from_agent,
          std::size_t bytes, std::uint32_t count, const hsa_signal_t* after,
          hsa_signal_t completion) {
  require(to != nullptr && from != nullptr);
  require_agent(to_agent);
  require_agent(from_agent);
  require(completion.handle != 0, HSA_STATUS_ERROR_INVALID_SIGNAL);
  CopyJob job{dependencies(count, after),
              [=] {
                check_reachable(from, bytes, "source");
                check_reachable(to, bytes, "destination");
                std::memmove(to, from, bytes);
              },
              completion};
  if (settings().logs()) settings().log("copy " + std::to_string(bytes));
  submit_copy(to_agent, from_agent, std::move(job));
}

void copy_rows(const hsa_pitched_ptr_t& to, hsa_dim3_t to_at, const hsa_pitched_ptr_t& from,
               hsa_dim3_t from_at, hsa_dim3_t range) {
  const auto row = [](const hsa_pitched_ptr_t& side, hsa_dim3_t at, std::size_t y, std::size_t z) {
    return static_cast<char*>(side.base) + at.x + (at.y + y) * side.pitch + (at.z + z) * side.slice;
  };
  for (std::size_t z = 0; z < range.z; ++z) {
    for (std::size_t y = 0; y < range.y; ++y) {
      char* const destination = row(to, to_at, y, z);
      const char* const source = row(from, from_at, y, z);
      check_reachable(source, range.x, "source");
      check_reachable(destination, range.x, "destination");
      std::memmove(destination, source, range.x);
    }
  }
}

}  // namespace

void submit_copy(hsa_agent_t to, hsa_agent_t from, CopyJob job) {
  engine(to, from).submit(std::move(job));
}

}  // namespace hsa_sim

using namespace hsa_sim;

HSA_SIM_API hsa_amd_memory_async_copy(void* to, hsa_agent_t to_agent, const void* from,
                                      hsa_agent_t from_agent, std::size_t bytes,
                                      std::uint32_t count, const hsa_signal_t* after,
                                      hsa_signal_t completion) {
  return call("hsa_amd_memory_async_copy",
              [&] { copy(to, to_agent, from, from_agent, bytes, count, after, completion); });
}
// `engine` is a bit of what the two queries below say: one engine does all of one direction here.
HSA_SIM_API hsa_amd_memory_async_copy_on_engine(void* to, hsa_agent_t to_agent, const void* from,
                                                hsa_agent_t from_agent, std::size_t bytes,
                                                std::uint32_t count, const hsa_signal_t* after,
                                                hsa_signal_t completion, std::uint32_t, bool) {
  return call("hsa_amd_memory_async_copy_on_engine",
              [&] { copy(to, to_agent, from, from_agent, bytes, count, after, completion); });
}
HSA_SIM_API hsa_amd_memory_copy_engine_status(hsa_agent_t to, hsa_agent_t from,
                                              std::uint32_t* free_engines) {
  return call("hsa_amd_memory_copy_engine_status", [&] {
    require_agent(to);
    require_agent(from);
    require(free_engines != nullptr);
    *free_engines = 1;
  });
}
HSA_SIM_API hsa_amd_memory_get_preferred_copy_engine(hsa_agent_t to, hsa_agent_t from,
                                                     std::uint32_t* engines) {
  return call("hsa_amd_memory_get_preferred_copy_engine", [&] {
    require_agent(to);
    require_agent(from);
    require(engines != nullptr);
    *engines = 1;
  });
}
HSA_SIM_API hsa_amd_memory_async_copy_rect(const hsa_pitched_ptr_t* to, const hsa_dim3_t* to_at,
                                           const hsa_pitched_ptr_t* from, const hsa_dim3_t* from_at,
                                           const hsa_dim3_t* range, hsa_agent_t agent,
                                           hsa_amd_copy_direction_t direction, std::uint32_t count,
                                           const hsa_signal_t* after, hsa_signal_t completion) {
  return call("hsa_amd_memory_async_copy_rect", [&] {
    require(to != nullptr && to_at != nullptr && from != nullptr && from_at != nullptr);
    require(range != nullptr);
    require_agent(agent);
    require(completion.handle != 0, HSA_STATUS_ERROR_INVALID_SIGNAL);
    CopyJob job{dependencies(count, after),
                [to = *to, to_at = *to_at, from = *from, from_at = *from_at, range = *range] {
                  copy_rows(to, to_at, from, from_at, range);
                },
                completion};
    if (settings().logs()) settings().log("copy of rows " + std::to_string(range->x));
    const bool to_host = direction == hsaDeviceToHost;
    const bool from_host = direction == hsaHostToDevice;
    submit_copy(to_host ? hsa_agent_t{kCpu} : agent, from_host ? hsa_agent_t{kCpu} : agent,
                std::move(job));
  });
}
// Fills words of 4 bytes, and waits for it.
HSA_SIM_API hsa_amd_memory_fill(void* to, std::uint32_t value, std::size_t count) {
  return call("hsa_amd_memory_fill", [&] {
    require(to != nullptr && reinterpret_cast<std::uintptr_t>(to) % 4 == 0);
    require(memory().covers(to, count * 4));
    for (std::size_t i = 0; i < count; ++i) put(static_cast<std::uint32_t*>(to) + i, value);
  });
}
