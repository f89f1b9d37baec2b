// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// A host for one plugin: a recorder that keeps what it is told, and short forms of slot calls.
namespace smoke {

struct Entry {
  lockstep_record record{};
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::uint8_t> tags;  // of the arguments
  std::uint32_t flags = 0;
  std::uint64_t graph = 0;
  std::int32_t node = -1;
};
struct Defined {
  std::uint64_t graph = 0;
  std::uint32_t version = 0;
  std::vector<lockstep_record> nodes;
  std::vector<lockstep_graph_edge> edges;
};

inline std::uint32_t g_active = 0;
inline std::uint64_t g_next_id = 0;
inline std::mutex g_mutex;
inline std::vector<std::string> g_texts;
inline std::vector<Entry*> g_entries;
inline std::vector<Defined> g_defined;
inline std::vector<std::uint64_t> g_defined_streams;
inline int g_failures = 0, g_checks = 0;

inline void check(bool ok, const char* what, int line, const std::string& more = "") {
  ++g_checks;
  if (ok) return;
  ++g_failures;
  std::printf("FAILED line %d: %s %s\n", line, what, more.c_str());
}
#define CHECK(...) ::smoke::check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

inline lockstep_recorder make_recorder() {
  lockstep_recorder made{};
  made.struct_size = sizeof made;
  made.active = &g_active;
  made.next_id = [] { return __atomic_add_fetch(&g_next_id, 1, __ATOMIC_RELAXED); };
  made.intern = [](const char* text, std::size_t length) -> std::uint32_t {
    std::lock_guard lock(g_mutex);
    const std::string wanted(text, length);
    for (std::size_t index = 0; index < g_texts.size(); ++index) {
      if (g_texts[index] == wanted) return static_cast<std::uint32_t>(index + 1);
    }
    g_texts.push_back(wanted);
    return static_cast<std::uint32_t>(g_texts.size());
  };
  made.begin = [](const lockstep_record* record) -> void* {
    // memory() makes the entries of these.
    if (record->kind == LOCKSTEP_RECORD_ALLOC || record->kind == LOCKSTEP_RECORD_FREE) {
      return nullptr;
    }
    auto* entry = new Entry;
    entry->record = *record;
    std::lock_guard lock(g_mutex);
    entry->name = record->name != 0 ? g_texts[record->name - 1] : "";
    if (record->kind == LOCKSTEP_RECORD_KERNEL && record->of.kernel.parameter_count != UINT32_MAX) {
      for (std::uint32_t index = 0; index < record->of.kernel.parameter_count; ++index) {
        const lockstep_parameter& parameter = record->of.kernel.parameters[index];
        entry->arguments.emplace_back(static_cast<const char*>(record->of.kernel.arguments[index]),
                                      parameter.size);
        entry->tags.push_back(parameter.tag);
      }
    }
    g_entries.push_back(entry);
    return entry;
  };
  made.end = [](void* slot, std::uint32_t flags, std::uint64_t graph, std::int32_t node) {
    if (slot == nullptr) return;
    auto* entry = static_cast<Entry*>(slot);
    entry->flags |= flags;
    entry->graph = graph;
    entry->node = node;
  };
  made.define_stream = [](std::uint64_t stream, std::int32_t, std::uint64_t, int) {
    std::lock_guard lock(g_mutex);
    g_defined_streams.push_back(stream);
  };
  made.define_graph = [](std::uint64_t graph, std::uint32_t version, const lockstep_record* nodes,
                         std::uint32_t node_count, const lockstep_graph_edge* edges,
                         std::uint32_t edge_count) {
    std::lock_guard lock(g_mutex);
    g_defined.push_back({graph, version, {nodes, nodes + node_count}, {edges, edges + edge_count}});
  };
  made.memory = [](const lockstep_record*) {};
  return made;
}

inline std::vector<Entry> take() {
  std::lock_guard lock(g_mutex);
  std::vector<Entry> taken;
  for (Entry* entry : g_entries) {
    taken.push_back(*entry);
    delete entry;
  }
  g_entries.clear();
  return taken;
}
inline std::string text_of(std::uint32_t number) {
  std::lock_guard lock(g_mutex);
  return number == 0 ? "" : g_texts[number - 1];
}

struct Answer {
  lockstep_code code = 0;
  lockstep_error error{};
  bool ok() const { return code == LOCKSTEP_OK; }
};
// Calls a slot with an error record after its arguments.
template <class Slot, class... Arguments>
Answer call(Slot slot, Arguments... arguments) {
  Answer answer;
  answer.error.struct_size = sizeof answer.error;
  answer.code = slot(arguments..., &answer.error);
  return answer;
}
// The same where success is expected.
template <class Slot, class... Arguments>
void must(int line, const char* what, Slot slot, Arguments... arguments) {
  const Answer answer = call(slot, arguments...);
  check(answer.ok(), what, line, answer.ok() ? "" : answer.error.message);
}
#define MUST(slot, ...) ::smoke::must(__LINE__, #slot, slot, __VA_ARGS__)
inline bool says(const Answer& answer, const char* text) {
  return std::strstr(answer.error.message, text) != nullptr;
}

inline lockstep_copy_desc copy_desc(void* to, const void* from, std::uint64_t bytes) {
  lockstep_copy_desc desc{};
  desc.struct_size = sizeof desc;
  desc.source = from;
  desc.destination = to;
  desc.width = bytes;
  desc.height = desc.depth = 1;
  desc.source_device = desc.destination_device = -1;
  return desc;
}

}  // namespace smoke
