// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "calls.h"

// What CUDA and HIP have in common, as one interface of driver calls. backends/gpu is written once
// over it; a vendor's plugin implements it by its own library and states in Traits where that
// library may not be trusted.
//
// Handles are the driver's own, as untyped pointers. Results are the driver's own numbers, 0 is
// success. Calls are made with the right context current, except where their comment says
// otherwise. Implementations hold no locks while they are in the driver.
namespace lockstep::gpu {

using Handle = void*;   // a native object
using Context = void*;  // what "current" means to the driver: CUcontext, or HIP's ordinal + 1
using Result = int;

inline constexpr Result kSuccess = 0;

// Where a side of a copy lies. kAny: found by the driver (unified addressing).
enum class Side : std::uint8_t { kHost, kDevice, kAny };

struct KernelLaunch {
  Handle function = nullptr;
  lockstep_dim3 grid{1, 1, 1}, block{1, 1, 1};
  std::uint32_t shared_bytes = 0;
  void** arguments = nullptr;  // one pointer a parameter
  // Anything beyond the plain call:
  lockstep_dim3 cluster{0, 0, 0};
  bool cooperative = false;
  bool programmatic = false;
  bool has_priority = false;
  std::int32_t priority = 0;
  bool extended() const { return cluster.x != 0 || cooperative || programmatic || has_priority; }
};

// cuLaunchKernel and hipModuleLaunchKernel: function, grid, block, shared bytes, stream, arguments,
// extra.
using PlainLaunch = Result (*)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, Handle, void**, void**);

using PlainGraphLaunch = Result (*)(Handle exec, Handle stream);

struct Copy {
  std::uint64_t source = 0, destination = 0;
  Side source_side = Side::kAny, destination_side = Side::kAny;
  std::uint64_t width = 0, height = 1, depth = 1;  // bytes, rows, planes
  std::uint64_t source_pitch = 0, source_slice_pitch = 0;
  std::uint64_t destination_pitch = 0, destination_slice_pitch = 0;
  // Set for a copy between contexts only.
  Context source_context = nullptr, destination_context = nullptr;
  int source_device = -1, destination_device = -1;
};

struct Set {
  std::uint64_t destination = 0;
  std::uint64_t width = 0, height = 1;  // elements, rows
  std::uint64_t pitch = 0;              // bytes
  std::uint32_t value = 0, value_size = 1;
};

struct CaptureInfo {
  std::uint32_t status = LOCKSTEP_CAPTURE_NOT_CAPTURING;
  std::uint64_t id = 0;
  Handle graph = nullptr;
  const Handle* dependencies = nullptr;  // valid until the stream's next call
  std::size_t dependency_count = 0;
};

struct PointerFacts {
  std::uint32_t memory_kind = LOCKSTEP_MEMORY_UNKNOWN;
  std::int32_t device = -1;
  std::uint64_t base = 0, bytes = 0;
};

struct FunctionFacts {
  std::uint32_t max_threads_per_block = 0, static_shared_bytes = 0, local_bytes = 0, registers = 0;
  std::uint32_t max_dynamic_shared_bytes = 0;
  lockstep_dim3 cluster{0, 0, 0};  // fixed when compiled; 0 = none
};

struct ParameterLayout {
  bool known = false;
  std::vector<lockstep_parameter> parameters;  // tag 255 where the driver does not tell
};

struct NodeFacts {
  std::uint32_t kind = LOCKSTEP_NODE_OTHER;
  std::string native_kind;  // for LOCKSTEP_NODE_OTHER: what it is
  KernelLaunch kernel;
  Copy copy;
  Set set;
  Handle child = nullptr;
  Handle event = nullptr;
  std::uint64_t address = 0, bytes = 0;  // alloc and free
};

struct Edge {
  Handle from = nullptr, to = nullptr;
  bool programmatic = false;
};

// The result of compiling or finding code for one device.
struct CompiledCode {
  std::vector<char> code;
  std::vector<std::pair<std::string, std::string>> lowered_names;  // expression → symbol
};

struct Traits {
  const char* name = "";    // "cuda"
  const char* vendor = "";  // "NVIDIA"
  Handle legacy_stream = nullptr, per_thread_stream = nullptr;
  // False: the getter of a captured copy may answer with garbage; what was recorded is used.
  bool copy_getter_trusted = true;
  // False: after a failed end of capture a stream that is broken is replaced by a new one.
  bool streams_survive_failed_capture = true;
  // False: an update does not look which nodes depend on which, and changes nodes before it refuses
  // others.
  bool update_trusted = true;
  // False: an event of a stream that was destroyed must not be used any more.
  bool events_outlive_streams = true;
  // False: launches into a capture would run at once; capturing is refused.
  bool captures = true;
  // True: launches are checked before the call, since the driver truncates or crashes.
  bool check_launches_first = false;
  // True: one peer call a copy is illegal while capturing and the unified call is used there.
  bool peer_call_illegal_in_capture = true;
  std::uint64_t max_grid_times_block = 0;  // threads in one dimension; 0 = no such limit
  // True: a kernel's failure takes its context along, and every later call answers the same number.
  bool failures_lose_the_context = false;
  // False: a launch into a stream that we made takes its context from there, whatever is current.
  bool launches_need_context = true;
  // The library's own function for a launch that asks for nothing beyond it, where that needs no
  // check and no context: then nothing of ours is between. Null otherwise.
  PlainLaunch plain_launch = nullptr;
  PlainGraphLaunch plain_graph_launch = nullptr;  // likewise
};

class Driver {
 public:
  explicit Driver(const Traits& traits = {}) : traits_(traits) {}
  virtual ~Driver() = default;

  // Loads and initialises the library. Called once, by one thread.
  virtual lockstep_code start(lockstep_error* error) = 0;
  // Asked on every launch: no virtual function. Complete when start() returns.
  const Traits& traits() const { return traits_; }
  virtual const char* call_name(Call call) const = 0;
  virtual const char* result_name(Result result) const = 0;  // "" when not known
  virtual const char* result_text(Result result) const = 0;
  // Why the implementation itself refused the calling thread's last call; "" when the library did.
  // Asked once.
  virtual const char* take_reason() { return ""; }
  // Numbers in which the vendor differs from the shared table; -1 = as the table says.
  virtual lockstep_code translate(Result) const { return -1; }

  // No context needed.
  virtual Result device_count(int* count) = 0;
  virtual Result device_info(int ordinal, lockstep_device_info* info) = 0;
  // False in *known: this device has no such attribute.
  virtual Result device_attribute(int ordinal, lockstep_device_attribute attribute,
                                  std::int64_t* value, bool* known) = 0;
  virtual std::string capabilities(int ordinal) = 0;
  virtual Result context_retain(int ordinal, Context* context) = 0;
  virtual Result context_current(Context* context) = 0;
  virtual Result context_set(Context context) = 0;
  // What device_native answers: CUcontext, or HIP's ordinal.
  virtual void* device_native(int, Context context) { return context; }

  virtual Result context_synchronize() = 0;
  virtual Result prepare_device(int ordinal) = 0;  // once, when first opened: memory pools
  virtual Result memory_info(std::uint64_t* free_bytes, std::uint64_t* total_bytes) = 0;
  virtual Result memory_allocate(std::uint64_t bytes, void** address) = 0;
  virtual Result memory_free(void* address) = 0;
  virtual Result host_allocate(std::uint64_t bytes, void** address) = 0;
  virtual Result host_free(void* address) = 0;
  virtual Result host_register(void* address, std::uint64_t bytes) = 0;
  virtual Result host_unregister(void* address) = 0;
  virtual Result memory_allocate_async(std::uint64_t bytes, Handle stream, void** address) = 0;
  virtual Result memory_free_async(void* address, Handle stream) = 0;
  virtual Result pointer_facts(const void* address, PointerFacts* facts) = 0;
  virtual Result can_access_peer(int from, int to, bool* can) = 0;
  virtual Result enable_peer(Context to) = 0;  // enabling twice is success

  virtual lockstep_code compile(int ordinal, const lockstep_module_desc& desc, CompiledCode* code,
                                lockstep_error* error) = 0;
  virtual bool compiler_available() = 0;
  // `log` receives what the loader says of a bad image.
  virtual Result module_load(const void* image, std::string* log, Handle* module) = 0;
  // Rejects images that the driver would crash on, or that are for another architecture where it
  // does not notice; true when the image may be loaded.
  virtual bool image_acceptable(int, const void*, std::uint64_t, std::string*) { return true; }
  virtual Result module_unload(Handle module) = 0;
  virtual Result module_function(Handle module, const char* name, Handle* function) = 0;
  virtual Result module_global(Handle module, const char* name, void** address,
                               std::uint64_t* bytes) = 0;
  // Every function of the module; false where the driver cannot list them.
  virtual bool module_functions(Handle module, std::vector<Handle>* functions) = 0;
  virtual Result function_load(Handle function) = 0;
  virtual Result function_facts(Handle function, FunctionFacts* facts) = 0;
  virtual Result function_set_max_dynamic_shared(Handle function, std::uint32_t bytes) = 0;
  virtual std::string function_name(Handle function) = 0;  // "" where the driver cannot tell
  virtual ParameterLayout function_parameters(Handle module, Handle function,
                                              const std::string& name) = 0;

  virtual Result stream_create(bool non_blocking, std::int32_t priority, Handle* stream) = 0;
  virtual Result stream_destroy(Handle stream) = 0;
  // Asked after a failed end of capture, where streams do not always survive it.
  virtual bool stream_broken(Handle) { return true; }
  virtual Result stream_synchronize(Handle stream) = 0;
  virtual Result stream_query(Handle stream) = 0;
  virtual Result stream_context(Handle stream, Context* context) = 0;
  virtual Result stream_is_non_blocking(Handle stream, bool* non_blocking) = 0;
  // Never used twice in a process; false where the driver has none.
  virtual bool stream_unique_id(Handle stream, std::uint64_t* id) = 0;
  virtual Result event_create(bool timing, Handle* event) = 0;
  virtual Result event_destroy(Handle event) = 0;
  // Its handle was given out: others may record it from now on.
  virtual void event_shared(Handle) {}
  virtual Result event_record(Handle event, Handle stream) = 0;
  virtual Result event_query(Handle event) = 0;
  virtual Result event_synchronize(Handle event) = 0;
  virtual Result event_elapsed(Handle begin, Handle end, float* milliseconds) = 0;
  virtual Result stream_wait_event(Handle stream, Handle event) = 0;
  virtual bool is_not_ready(Result result) const = 0;

  virtual Result launch(const KernelLaunch& launch, Handle stream) = 0;
  virtual Result launch_host(lockstep_host_function function, void* user, Handle stream) = 0;
  // `call` chooses the driver call; see plan_copy().
  virtual Result copy(const Copy& copy, Call call, Handle stream) = 0;
  virtual Result set(const Set& set, Call call, Handle stream) = 0;

  virtual Result begin_capture(Handle stream, std::uint32_t mode) = 0;
  virtual Result end_capture(Handle stream, Handle* graph) = 0;
  virtual Result capture_info(Handle stream, CaptureInfo* info) = 0;
  virtual Result exchange_capture_mode(std::uint32_t* mode) = 0;

  virtual Result graph_create(Handle* graph) = 0;
  virtual Result graph_clone(Handle graph, Handle* clone) = 0;
  virtual Result graph_find_in_clone(Handle node, Handle clone, Handle* found) = 0;
  virtual Result graph_destroy(Handle graph) = 0;
  virtual Result graph_add_kernel(Handle graph, const std::vector<Handle>& after,
                                  const KernelLaunch& launch, Handle* node) = 0;
  virtual Result graph_add_copy(Handle graph, const std::vector<Handle>& after, const Copy& copy,
                                Context context, Handle* node) = 0;
  virtual Result graph_add_set(Handle graph, const std::vector<Handle>& after, const Set& set,
                               Context context, Handle* node) = 0;
  virtual Result graph_add_host(Handle graph, const std::vector<Handle>& after,
                                lockstep_host_function function, void* user, Handle* node) = 0;
  virtual Result graph_add_empty(Handle graph, const std::vector<Handle>& after, Handle* node) = 0;
  virtual Result graph_add_child(Handle graph, const std::vector<Handle>& after, Handle child,
                                 Handle* node) = 0;
  virtual Result graph_add_event_record(Handle graph, const std::vector<Handle>& after,
                                        Handle event, Handle* node) = 0;
  virtual Result graph_add_event_wait(Handle graph, const std::vector<Handle>& after, Handle event,
                                      Handle* node) = 0;
  virtual Result graph_node_count(Handle graph, std::size_t* count) = 0;
  virtual Result graph_nodes(Handle graph, std::vector<Handle>* nodes) = 0;
  virtual Result graph_edges(Handle graph, std::vector<Edge>* edges) = 0;
  virtual Result graph_node_facts(Handle node, NodeFacts* facts) = 0;
  virtual Result graph_instantiate(Handle graph, Handle* exec) = 0;
  virtual Result graph_exec_destroy(Handle exec) = 0;
  // *outcome is LOCKSTEP_UPDATE_*; a refused update is success with an outcome other than DONE.
  virtual Result graph_exec_update(Handle exec, Handle graph, std::uint32_t* outcome) = 0;
  virtual Result graph_exec_set_enabled(Handle exec, Handle node, bool enabled) = 0;
  virtual Result graph_launch(Handle exec, Handle stream) = 0;

 protected:
  Traits traits_;
};

}  // namespace lockstep::gpu
