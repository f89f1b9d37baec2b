// SPDX-License-Identifier: Apache-2.0
#pragma once

#define LOCKSTEP_BACKEND_IMPLEMENTATION
#include <lockstep/backend.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/fake_backend/fake_control.h"
#include "support/fake_backend/fake_script.h"

// Opaque handles of the interface: complete here.
struct lockstep_device {
  std::uint32_t ordinal = 0;
};
struct lockstep_stream {
  std::uint64_t identity = 0;
  std::uint64_t capture = 0;  ///< 0 = none
  bool origin = false;
};
struct lockstep_event {
  std::uint64_t capture = 0;
};
struct lockstep_kernel {
  std::string name;
  std::vector<lockstep_parameter> parameters;
  std::uint32_t parameter_count = 0;  ///< UINT32_MAX = layout not told
};
struct lockstep_module {
  std::map<std::string, lockstep_kernel> kernels;
};

namespace lockstep::testing::fake {

/// One operation, with all it points to.
struct Work {
  std::uint32_t kind = LOCKSTEP_NODE_EMPTY;
  lockstep_record record = {};
  std::vector<std::vector<std::byte>> arguments;
  std::vector<const void*> pointers;
  std::vector<lockstep_parameter> parameters;
  std::string kernel;
  lockstep_copy_desc copy = {};
  lockstep_set_desc set = {};
  lockstep_host_function function = nullptr;
  void* user_data = nullptr;
  std::shared_ptr<lockstep_graph> child;
};

}  // namespace lockstep::testing::fake

struct lockstep_graph {
  std::vector<std::shared_ptr<lockstep::testing::fake::Work>> nodes;
  std::set<std::pair<std::uint32_t, std::uint32_t>> edges;
};
struct lockstep_graph_exec {
  lockstep_graph graph;
  std::uint64_t identity = 0;
  std::uint32_t version = 1;
};

namespace lockstep::testing::fake {

struct Capture {
  lockstep_graph graph;
  std::set<lockstep_stream*> streams;
  bool invalidated = false;
};

struct State {
  const lockstep_host* host = nullptr;
  FakeScript script;
  FakeControl control;
  std::recursive_mutex mutex;
  std::map<std::uint64_t, Capture> captures;
  std::map<void*, std::uint64_t> memory;  ///< device memory: address, bytes
  std::map<void*, std::uint64_t> pinned;
  std::map<void*, std::uint64_t> registered;
  std::uint32_t thread_mode = LOCKSTEP_CAPTURE_THREAD_LOCAL;
};

State& state();
lockstep_code give(lockstep_error* error, lockstep_code code, const char* call,
                   const std::string& message, std::uint32_t rule = 0);
/// A failure that a test has asked for; LOCKSTEP_OK when there is none.
lockstep_code asked_failure(const char* slot, lockstep_error* error);
/// Refuses a call that no capture allows, and invalidates the captures.
lockstep_code refuse_in_capture(const char* call, lockstep_error* error);

void fill_memory_slots(lockstep_backend& table);
void fill_work_slots(lockstep_backend& table);
void fill_graph_slots(lockstep_backend& table);

std::shared_ptr<Work> work_of(const lockstep_launch_desc& desc);
std::shared_ptr<Work> work_of(const lockstep_copy_desc& desc);
std::shared_ptr<Work> work_of(const lockstep_set_desc& desc);
void execute(const Work& work);
void add_node(lockstep_graph& graph, std::shared_ptr<Work> work);

}  // namespace lockstep::testing::fake
