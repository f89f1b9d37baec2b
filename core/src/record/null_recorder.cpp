// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "src/record/host_recorder.h"

// Keeps identities and texts; records nothing.
namespace lockstep {
namespace {

struct Texts {
  std::mutex mutex;
  std::deque<std::string> list;
  std::map<std::string, std::uint32_t, std::less<>> numbers;
};

Texts& texts() {
  static auto* instance = new Texts;
  return *instance;
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

std::uint32_t intern(const char* text, std::size_t length) {
  Texts& all = texts();
  const std::lock_guard lock(all.mutex);
  const auto [entry, is_new] = all.numbers.emplace(std::string(text, length), 0u);
  if (is_new) {
    all.list.emplace_back(text, length);
    entry->second = static_cast<std::uint32_t>(all.list.size());
  }
  return entry->second;
}

const volatile std::uint32_t inactive = 0;
void* begin(const lockstep_record*) { return nullptr; }
void end(void*, std::uint32_t, std::uint64_t, std::int32_t) {}
void define_stream(std::uint64_t, std::int32_t, std::uint64_t, int) {}
void define_graph(std::uint64_t, std::uint32_t, const lockstep_record*, std::uint32_t,
                  const lockstep_graph_edge*, std::uint32_t) {}
void memory(const lockstep_record*) {}

}  // namespace

const lockstep_recorder* host_recorder() {
  static const lockstep_recorder table = {sizeof(lockstep_recorder),
                                          &inactive,
                                          next_id,
                                          intern,
                                          begin,
                                          end,
                                          define_stream,
                                          define_graph,
                                          memory};
  return &table;
}

std::string_view recorded_text(std::uint32_t number) {
  Texts& all = texts();
  const std::lock_guard lock(all.mutex);
  if (number == 0 || number > all.list.size()) return {};
  return all.list[number - 1];
}

void record_device(const TraceDevice&, std::string_view, bool) {}
void record_coverage(std::string_view) {}

}  // namespace lockstep
