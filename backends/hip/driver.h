// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "../gpu/driver.h"
#include "capture_model.h"
#include "code_object.h"
#include "fresh_execs.h"
#include "hiprtc.h"
#include "launched_graphs.h"
#include "library.h"

namespace lockstep::hip {

// AMD's HIP runtime behind the interface that backends/gpu is written over. Translates types and
// numbers by the runtime's version, and checks what the runtime would crash on.
class HipDriver final : public gpu::Driver {
 public:
  HipDriver();
  lockstep_code start(lockstep_error* error) override;
  const char* call_name(gpu::Call call) const override;
  const char* result_name(gpu::Result result) const override;
  const char* result_text(gpu::Result result) const override;
  const char* take_reason() override;
  lockstep_code translate(gpu::Result result) const override;

  gpu::Result device_count(int* count) override;
  gpu::Result device_info(int ordinal, lockstep_device_info* info) override;
  gpu::Result device_attribute(int ordinal, lockstep_device_attribute attribute,
                               std::int64_t* value, bool* known) override;
  std::string capabilities(int ordinal) override;
  gpu::Result context_retain(int ordinal, gpu::Context* context) override;
  gpu::Result context_current(gpu::Context* context) override;
  gpu::Result context_set(gpu::Context context) override;
  void* device_native(int ordinal, gpu::Context context) override;

  gpu::Result context_synchronize() override;
  gpu::Result prepare_device(int ordinal) override;
  gpu::Result memory_info(std::uint64_t* free_bytes, std::uint64_t* total_bytes) override;
  gpu::Result memory_allocate(std::uint64_t bytes, void** address) override;
  gpu::Result memory_free(void* address) override;
  gpu::Result host_allocate(std::uint64_t bytes, void** address) override;
  gpu::Result host_free(void* address) override;
  gpu::Result host_register(void* address, std::uint64_t bytes) override;
  gpu::Result host_unregister(void* address) override;
  gpu::Result memory_allocate_async(std::uint64_t bytes, gpu::Handle stream,
                                    void** address) override;
  gpu::Result memory_free_async(void* address, gpu::Handle stream) override;
  gpu::Result pointer_facts(const void* address, gpu::PointerFacts* facts) override;
  gpu::Result can_access_peer(int from, int to, bool* can) override;
  gpu::Result enable_peer(gpu::Context to) override;

  lockstep_code compile(int ordinal, const lockstep_module_desc& desc, gpu::CompiledCode* code,
                        lockstep_error* error) override;
  bool compiler_available() override;
  gpu::Result module_load(const void* image, std::string* log, gpu::Handle* module) override;
  bool image_acceptable(int ordinal, const void* image, std::uint64_t bytes,
                        std::string* why) override;
  gpu::Result module_unload(gpu::Handle module) override;
  gpu::Result module_function(gpu::Handle module, const char* name, gpu::Handle* function) override;
  gpu::Result module_global(gpu::Handle module, const char* name, void** address,
                            std::uint64_t* bytes) override;
  bool module_functions(gpu::Handle module, std::vector<gpu::Handle>* functions) override;
  gpu::Result function_load(gpu::Handle function) override;
  gpu::Result function_facts(gpu::Handle function, gpu::FunctionFacts* facts) override;
  gpu::Result function_set_max_dynamic_shared(gpu::Handle function, std::uint32_t bytes) override;
  std::string function_name(gpu::Handle function) override;
  gpu::ParameterLayout function_parameters(gpu::Handle module, gpu::Handle function,
                                           const std::string& name) override;

  gpu::Result stream_create(bool non_blocking, std::int32_t priority, gpu::Handle* stream) override;
  gpu::Result stream_destroy(gpu::Handle stream) override;
  bool stream_broken(gpu::Handle stream) override;
  gpu::Result stream_synchronize(gpu::Handle stream) override;
  gpu::Result stream_query(gpu::Handle stream) override;
  gpu::Result stream_context(gpu::Handle stream, gpu::Context* context) override;
  gpu::Result stream_is_non_blocking(gpu::Handle stream, bool* non_blocking) override;
  bool stream_unique_id(gpu::Handle stream, std::uint64_t* id) override;
  gpu::Result event_create(bool timing, gpu::Handle* event) override;
  gpu::Result event_destroy(gpu::Handle event) override;
  void event_shared(gpu::Handle event) override;
  gpu::Result event_record(gpu::Handle event, gpu::Handle stream) override;
  gpu::Result event_query(gpu::Handle event) override;
  gpu::Result event_synchronize(gpu::Handle event) override;
  gpu::Result event_elapsed(gpu::Handle begin, gpu::Handle end, float* milliseconds) override;
  gpu::Result stream_wait_event(gpu::Handle stream, gpu::Handle event) override;
  bool is_not_ready(gpu::Result result) const override;

  gpu::Result launch(const gpu::KernelLaunch& launch, gpu::Handle stream) override;
  gpu::Result launch_host(lockstep_host_function function, void* user, gpu::Handle stream) override;
  gpu::Result copy(const gpu::Copy& copy, gpu::Call call, gpu::Handle stream) override;
  gpu::Result set(const gpu::Set& set, gpu::Call call, gpu::Handle stream) override;

  gpu::Result begin_capture(gpu::Handle stream, std::uint32_t mode) override;
  gpu::Result end_capture(gpu::Handle stream, gpu::Handle* graph) override;
  gpu::Result capture_info(gpu::Handle stream, gpu::CaptureInfo* info) override;
  gpu::Result exchange_capture_mode(std::uint32_t* mode) override;

  gpu::Result graph_create(gpu::Handle* graph) override;
  gpu::Result graph_clone(gpu::Handle graph, gpu::Handle* clone) override;
  gpu::Result graph_find_in_clone(gpu::Handle node, gpu::Handle clone, gpu::Handle* found) override;
  gpu::Result graph_destroy(gpu::Handle graph) override;
  gpu::Result graph_add_kernel(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                               const gpu::KernelLaunch& launch, gpu::Handle* node) override;
  gpu::Result graph_add_copy(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                             const gpu::Copy& copy, gpu::Context context,
                             gpu::Handle* node) override;
  gpu::Result graph_add_set(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                            const gpu::Set& set, gpu::Context context, gpu::Handle* node) override;
  gpu::Result graph_add_host(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                             lockstep_host_function function, void* user,
                             gpu::Handle* node) override;
  gpu::Result graph_add_empty(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                              gpu::Handle* node) override;
  gpu::Result graph_add_child(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                              gpu::Handle child, gpu::Handle* node) override;
  gpu::Result graph_add_event_record(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                     gpu::Handle event, gpu::Handle* node) override;
  gpu::Result graph_add_event_wait(gpu::Handle graph, const std::vector<gpu::Handle>& after,
                                   gpu::Handle event, gpu::Handle* node) override;
  gpu::Result graph_node_count(gpu::Handle graph, std::size_t* count) override;
  gpu::Result graph_nodes(gpu::Handle graph, std::vector<gpu::Handle>* nodes) override;
  gpu::Result graph_edges(gpu::Handle graph, std::vector<gpu::Edge>* edges) override;
  gpu::Result graph_node_facts(gpu::Handle node, gpu::NodeFacts* facts) override;
  gpu::Result graph_instantiate(gpu::Handle graph, gpu::Handle* exec) override;
  gpu::Result graph_exec_destroy(gpu::Handle exec) override;
  gpu::Result graph_exec_update(gpu::Handle exec, gpu::Handle graph,
                                std::uint32_t* outcome) override;
  gpu::Result graph_exec_set_enabled(gpu::Handle exec, gpu::Handle node, bool enabled) override;
  gpu::Result graph_launch(gpu::Handle exec, gpu::Handle stream) override;

 private:
  using Metadata = std::shared_ptr<const CodeObject>;

  std::string architecture(int ordinal);
  Metadata metadata_of(gpu::Handle module);
  bool has_memory_pools(int ordinal);
  int attribute(int ordinal, int number, int otherwise);
  bool captures_now(hipStream_t stream) const;
  bool is_broken_set(std::uint64_t destination, std::uint64_t bytes) const;
  gpu::Result set_bytes(const gpu::Set& set, std::uint64_t bytes, hipStream_t stream);
  gpu::Result set_rows(const gpu::Set& set, hipStream_t stream);
  gpu::Result launch_by_callback(lockstep_host_function function, void* user, hipStream_t stream);

  gpu::Result has_host_nodes(gpu::Handle graph, bool* has);

  gpu::Result enqueue_set(const gpu::Set& set, gpu::Call call, hipStream_t stream);
  gpu::Result enqueue_copy(const gpu::Copy& copy, gpu::Call call, hipStream_t stream);
  gpu::Result enqueue_launch(const gpu::KernelLaunch& launch, hipStream_t stream);

  Library library_;
  Functions call_;  // a copy, one indirection nearer
  CaptureModel captures_{call_};
  LaunchedGraphs launched_{call_, captures_};
  FreshExecs fresh_{call_, captures_};
  Hiprtc hiprtc_;
  std::once_flag byte_table_made_;
  unsigned char* byte_table_ = nullptr;  // in host memory that devices reach
  std::shared_mutex mutex_;
  std::unordered_map<gpu::Handle, Metadata> modules_;
};

}  // namespace lockstep::hip
