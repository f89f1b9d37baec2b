// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/gpu/driver.h"

// A driver that executes nothing and keeps the rules of capture that matter to backends/gpu: nodes
// and their dependencies, joining by events, what invalidates. For tests on one thread.
namespace lockstep::gpu_test {

struct FakeNode {
  gpu::NodeFacts facts;
  std::vector<FakeNode*> after;
  const FakeNode* original = nullptr;  // what it is a copy of
};
struct FakeGraph {
  std::vector<std::unique_ptr<FakeNode>> nodes;
  std::vector<std::unique_ptr<FakeGraph>> children;
};
struct FakeStream {
  std::uint64_t id = 0;
  std::uint64_t capture = 0;  // 0 = not capturing
  bool origin = false;
  std::vector<FakeNode*> tail;
};
struct FakeEvent {
  std::uint64_t capture = 0;
  std::vector<FakeNode*> tail;
};

class FakeDriver final : public gpu::Driver {
 public:
  using Result = gpu::Result;
  using Handle = gpu::Handle;

  // Set by tests.
  gpu::Traits& made_traits = traits_;
  Result next_result = 0;  // what the next enqueuing or freeing call answers
  Result unload_result = 0;
  std::uint32_t capture_mode = LOCKSTEP_CAPTURE_GLOBAL;  // the thread's
  std::vector<std::uint32_t> update_outcomes;            // of the next updates, the first one first
  int questions_until_failure = 0;                       // about captures; the last one fails
  std::set<const void*> device_memory;
  bool tells_stream_ids = true;
  Handle next_stream = nullptr;            // where the next stream is made, if set
  std::function<void()> before_returning;  // once: when the next enqueuing call has done its work
  // Seen by tests.
  std::vector<std::string> calls;
  std::vector<Handle> updated_to;  // graphs
  int streams_made = 0, id_questions_while_capturing = 0;

  FakeDriver();
  // A node that somebody else captured behind our back.
  void capture_foreign_node(Handle stream, std::uint32_t kind = LOCKSTEP_NODE_EMPTY);

  lockstep_code start(lockstep_error*) override { return LOCKSTEP_OK; }
  const char* call_name(gpu::Call call) const override;
  const char* result_name(Result) const override { return "FAKE"; }
  const char* result_text(Result) const override { return "fake failure"; }

  Result device_count(int* count) override;
  Result device_info(int, lockstep_device_info* info) override;
  Result device_attribute(int, lockstep_device_attribute attribute, std::int64_t* value,
                          bool* known) override;
  std::string capabilities(int) override { return "{}"; }
  Result context_retain(int ordinal, gpu::Context* context) override;
  Result context_current(gpu::Context* context) override;
  Result context_set(gpu::Context context) override;
  Result context_synchronize() override;
  Result prepare_device(int) override { return 0; }
  Result memory_info(std::uint64_t*, std::uint64_t*) override { return 0; }
  Result memory_allocate(std::uint64_t bytes, void** address) override;
  Result memory_free(void* address) override;
  Result host_allocate(std::uint64_t, void**) override { return 801; }
  Result host_free(void*) override { return 801; }
  Result host_register(void*, std::uint64_t) override { return 0; }
  Result host_unregister(void*) override { return 0; }
  Result memory_allocate_async(std::uint64_t, Handle, void**) override { return 801; }
  Result memory_free_async(void*, Handle) override { return 801; }
  Result pointer_facts(const void* address, gpu::PointerFacts* facts) override;
  Result can_access_peer(int, int, bool*) override { return 801; }
  Result enable_peer(gpu::Context) override { return 801; }

  lockstep_code compile(int, const lockstep_module_desc&, gpu::CompiledCode* code,
                        lockstep_error*) override;
  bool compiler_available() override { return true; }
  Result module_load(const void*, std::string*, Handle* module) override;
  Result module_unload(Handle module) override;
  Result module_function(Handle, const char* name, Handle* function) override;
  Result module_global(Handle, const char*, void**, std::uint64_t*) override { return 500; }
  bool module_functions(Handle, std::vector<Handle>*) override { return false; }
  Result function_load(Handle) override { return 0; }
  Result function_facts(Handle, gpu::FunctionFacts* facts) override;
  Result function_set_max_dynamic_shared(Handle, std::uint32_t) override { return 0; }
  std::string function_name(Handle) override { return ""; }
  gpu::ParameterLayout function_parameters(Handle, Handle, const std::string&) override;

  Result stream_create(bool, std::int32_t, Handle* stream) override;
  Result stream_destroy(Handle stream) override;
  Result stream_synchronize(Handle stream) override;
  Result stream_query(Handle) override { return 0; }
  Result stream_context(Handle, gpu::Context* context) override;
  Result stream_is_non_blocking(Handle stream, bool* non_blocking) override;
  bool stream_unique_id(Handle stream, std::uint64_t* id) override;
  Result event_create(bool, Handle* event) override;
  Result event_destroy(Handle event) override;
  Result event_record(Handle event, Handle stream) override;
  Result event_query(Handle) override { return 0; }
  Result event_synchronize(Handle event) override;
  Result event_elapsed(Handle, Handle, float*) override { return 0; }
  Result stream_wait_event(Handle stream, Handle event) override;
  bool is_not_ready(Result result) const override { return result == 600; }

  Result launch(const gpu::KernelLaunch& launch, Handle stream) override;
  Result launch_host(lockstep_host_function, void*, Handle stream) override;
  Result copy(const gpu::Copy& copy, gpu::Call call, Handle stream) override;
  Result set(const gpu::Set& set, gpu::Call call, Handle stream) override;

  Result begin_capture(Handle stream, std::uint32_t mode) override;
  Result end_capture(Handle stream, Handle* graph) override;
  Result capture_info(Handle stream, gpu::CaptureInfo* info) override;
  Result exchange_capture_mode(std::uint32_t* mode) override;

  Result graph_create(Handle* graph) override;
  Result graph_clone(Handle graph, Handle* clone) override;
  Result graph_find_in_clone(Handle node, Handle clone, Handle* found) override;
  Result graph_destroy(Handle graph) override;
  Result graph_add_kernel(Handle, const std::vector<Handle>&, const gpu::KernelLaunch&,
                          Handle*) override {
    return 801;
  }
  Result graph_add_copy(Handle graph, const std::vector<Handle>& after, const gpu::Copy&,
                        gpu::Context, Handle* node) override;
  Result graph_add_set(Handle, const std::vector<Handle>&, const gpu::Set&, gpu::Context,
                       Handle*) override {
    return 801;
  }
  Result graph_add_host(Handle, const std::vector<Handle>&, lockstep_host_function, void*,
                        Handle*) override {
    return 801;
  }
  Result graph_add_empty(Handle graph, const std::vector<Handle>& after, Handle* node) override;
  Result graph_add_child(Handle graph, const std::vector<Handle>& after, Handle child,
                         Handle* node) override;
  Result graph_add_event_record(Handle, const std::vector<Handle>&, Handle, Handle*) override {
    return 801;
  }
  Result graph_add_event_wait(Handle, const std::vector<Handle>&, Handle, Handle*) override {
    return 801;
  }
  Result graph_node_count(Handle graph, std::size_t* count) override;
  Result graph_nodes(Handle graph, std::vector<Handle>* nodes) override;
  Result graph_edges(Handle graph, std::vector<gpu::Edge>* edges) override;
  Result graph_node_facts(Handle node, gpu::NodeFacts* facts) override;
  Result graph_instantiate(Handle, Handle* exec) override;
  Result graph_exec_destroy(Handle) override { return 0; }
  Result graph_exec_update(Handle, Handle, std::uint32_t* outcome) override;
  Result graph_exec_set_enabled(Handle, Handle, bool) override { return 0; }
  Result graph_launch(Handle exec, Handle stream) override;

 private:
  struct Capture {
    std::unique_ptr<FakeGraph> graph;
    bool invalidated = false;
  };
  Result enqueue(const std::string& call, Handle stream, gpu::NodeFacts facts);
  // A call that breaks the captures of a thread that is not relaxed, or any: 900 if it did.
  Result unsafe(bool even_relaxed);
  void leave(std::uint64_t capture);

  gpu::Context current_ = nullptr;
  std::uint64_t next_id_ = 0;
  std::map<Handle, std::unique_ptr<FakeStream>> streams_;
  std::map<std::uint64_t, Capture> captures_;
};

}  // namespace lockstep::gpu_test
