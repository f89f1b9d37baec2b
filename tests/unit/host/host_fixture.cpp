// SPDX-License-Identifier: Apache-2.0
#include "unit/host/host_fixture.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <utility>

namespace lockstep::host_test {
namespace {

constexpr const char* kSource =
#include "unit/host/kernels.cu.inc"
    ;
constexpr const char* kKernels[] = {"nop",   "store",   "add",    "move",        "count_threads",
                                    "spin",  "meet",    "sum_of", "mixed",       "shared_sum",
                                    "shape", "must_be", "bump",   "fill_slowly", "scale<int, 3>"};

std::mutex g_mutex;
std::atomic<std::uint64_t> g_next_id{1};
volatile std::uint32_t g_active = 0;
std::map<std::string, std::uint32_t> g_texts;
std::deque<Recorded> g_records;
std::vector<DefinedGraph> g_graphs;
std::vector<lockstep_record> g_memory;

std::uint64_t next_id() { return g_next_id.fetch_add(1); }
std::uint32_t intern(const char* text, std::size_t length) {
  const std::lock_guard lock(g_mutex);
  return g_texts.emplace(std::string(text, length), static_cast<std::uint32_t>(g_texts.size()) + 1)
      .first->second;
}
std::string text_locked(std::uint32_t interned) {
  for (const auto& [text, number] : g_texts) {
    if (number == interned) return text;
  }
  return {};
}
void* begin(const lockstep_record* record) {
  const std::lock_guard lock(g_mutex);
  Recorded& recorded = g_records.emplace_back();
  recorded.record = *record;
  recorded.name = text_locked(record->name);
  if (record->kind == LOCKSTEP_RECORD_KERNEL) {
    for (std::uint32_t i = 0; i < record->of.kernel.parameter_count; ++i) {
      const auto* bytes = static_cast<const unsigned char*>(record->of.kernel.arguments[i]);
      recorded.arguments.emplace_back(bytes, bytes + record->of.kernel.parameters[i].size);
    }
  }
  return &recorded;
}
void end(void* slot, std::uint32_t flags, std::uint64_t graph, std::int32_t node) {
  const std::lock_guard lock(g_mutex);
  auto* recorded = static_cast<Recorded*>(slot);
  recorded->ended = true;
  recorded->flags = flags;
  recorded->graph = graph;
  recorded->node = node;
}
void define_stream(std::uint64_t, std::int32_t, std::uint64_t, int) {}
void define_graph(std::uint64_t graph, std::uint32_t version, const lockstep_record* nodes,
                  std::uint32_t node_count, const lockstep_graph_edge* edges,
                  std::uint32_t edge_count) {
  const std::lock_guard lock(g_mutex);
  g_graphs.push_back({graph, version, {nodes, nodes + node_count}, {edges, edges + edge_count}});
}
void memory(const lockstep_record* record) {
  const std::lock_guard lock(g_mutex);
  g_memory.push_back(*record);
}

const lockstep_recorder kRecorder = {sizeof(lockstep_recorder),
                                     &g_active,
                                     next_id,
                                     intern,
                                     begin,
                                     end,
                                     define_stream,
                                     define_graph,
                                     memory};
void log(std::uint32_t, const char* message) { std::fprintf(stderr, "%s\n", message); }

lockstep_backend_query_function query_function() {
  static const auto function = [] {
    const char* path = LOCKSTEP_TEST_PLUGIN_DIR "/liblockstep_backend_host.so";
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    return reinterpret_cast<lockstep_backend_query_function>(
        dlsym(library, "lockstep_backend_query"));
  }();
  return function;
}

lockstep_module* shared_module() {
  static lockstep_module* const module = [] {
    lockstep_device* device = nullptr;
    lockstep_module* result = nullptr;
    lockstep_module_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.format = LOCKSTEP_MODULE_SOURCE;
    desc.data = kSource;
    desc.bytes = std::char_traits<char>::length(kSource);
    desc.kernels = kKernels;
    desc.kernel_count = static_cast<std::uint32_t>(std::size(kKernels));
    Result r = call(backend().device_open, 0U, &device);
    if (r.ok()) r = call(backend().module_create, device, &desc, &result);
    if (!r.ok()) {
      std::fprintf(stderr, "%s\n%s\n", r.message.c_str(), r.log.c_str());
      std::abort();
    }
    backend().device_close(device);
    return result;
  }();
  return module;
}

}  // namespace

void start_recording() {
  const std::lock_guard lock(g_mutex);
  g_records.clear();
  g_active = 1;
}
std::vector<Recorded> stop_recording() {
  const std::lock_guard lock(g_mutex);
  g_active = 0;
  std::vector<Recorded> result(g_records.begin(), g_records.end());
  g_records.clear();
  return result;
}
std::vector<DefinedGraph> defined_graphs() {
  const std::lock_guard lock(g_mutex);
  return g_graphs;
}
std::vector<lockstep_record> memory_reports() {
  const std::lock_guard lock(g_mutex);
  return g_memory;
}
std::string text_of(std::uint32_t interned) {
  const std::lock_guard lock(g_mutex);
  return text_locked(interned);
}

const lockstep_backend* query(std::uint32_t abi_min, std::uint32_t abi_max, lockstep_error* error) {
  static lockstep_host host;
  host = {sizeof(lockstep_host), abi_min, abi_max, "test", log, &kRecorder};
  return query_function()(&host, error);
}

const lockstep_backend& backend() {
  static const lockstep_backend* const table = [] {
    lockstep_error error{};
    error.struct_size = sizeof(error);
    const lockstep_backend* result =
        query(LOCKSTEP_BACKEND_ABI_MIN, LOCKSTEP_BACKEND_ABI_MAX, &error);
    if (result == nullptr || result->initialize(&error) != LOCKSTEP_OK) {
      std::fprintf(stderr, "%s\n", error.message);
      std::abort();
    }
    return result;
  }();
  return *table;
}

Result to_result(lockstep_code code, const lockstep_error& error) {
  Result result;
  result.code = code;
  if (code == LOCKSTEP_OK) return result;
  EXPECT_EQ(error.code, code) << error.message;
  result.rule = error.capture_rule;
  result.native = error.native_code;
  result.call = error.call;
  result.message = error.message;
  if (error.log != nullptr) result.log = error.log;
  return result;
}

::testing::AssertionResult succeeded(const Result& result) {
  if (result.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << result.call << " gave " << result.code << " ("
                                       << result.native << "): " << result.message << "\n"
                                       << result.log;
}

HostTest::HostTest() { EXPECT_TRUE(succeeded(call(b.device_open, 0U, &device))); }
HostTest::~HostTest() {
  for (void* pointer : allocations_) {
    EXPECT_TRUE(
        succeeded(call(b.memory_free, device, pointer, static_cast<lockstep_stream*>(nullptr))));
  }
  b.device_close(device);
}

Stream HostTest::make_stream(bool blocking) {
  lockstep_stream_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.flags = blocking ? 0 : LOCKSTEP_STREAM_NON_BLOCKING;
  lockstep_stream* stream = nullptr;
  EXPECT_TRUE(succeeded(call(b.stream_create, device, &desc, &stream)));
  return Stream(stream);
}
Stream HostTest::special(std::uint32_t which) {
  lockstep_stream* stream = nullptr;
  EXPECT_TRUE(succeeded(call(b.stream_special, device, which, &stream)));
  return Stream(stream);
}
Event HostTest::make_event(std::uint32_t flags) {
  lockstep_event* event = nullptr;
  EXPECT_TRUE(succeeded(call(b.event_create, device, flags, &event)));
  return Event(event);
}
void* HostTest::allocate_bytes(std::uint64_t bytes, std::uint32_t kind) {
  lockstep_allocation_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.bytes = bytes;
  desc.memory_kind = kind;
  void* pointer = nullptr;
  EXPECT_TRUE(succeeded(call(b.memory_allocate, device, &desc, &pointer)));
  if (pointer != nullptr) allocations_.push_back(pointer);
  return pointer;
}

lockstep_kernel* HostTest::kernel(const char* name) {
  lockstep_kernel* result = nullptr;
  EXPECT_TRUE(succeeded(call(b.module_kernel, shared_module(), name, &result)));
  return result;
}
Result HostTest::compile(const std::string& source, std::initializer_list<const char*> kernels,
                         Module* module) {
  const std::vector<const char*> names(kernels);
  lockstep_module_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.format = LOCKSTEP_MODULE_SOURCE;
  desc.data = source.c_str();
  desc.bytes = source.size();
  desc.kernels = names.data();
  desc.kernel_count = static_cast<std::uint32_t>(names.size());
  lockstep_module* raw = nullptr;
  Result result = call(b.module_create, device, &desc, &raw);
  module->reset(raw);
  return result;
}

Result HostTest::launch_raw(lockstep_stream* stream, lockstep_kernel* k, const LaunchConfig& config,
                            const void* const* arguments, std::uint32_t count) {
  lockstep_launch_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.kernel = k;
  desc.grid = config.grid;
  desc.block = config.block;
  desc.shared_bytes = config.shared;
  desc.arguments = arguments;
  desc.argument_count = count;
  return call(b.launch, stream, &desc);
}
Result HostTest::copy(const Stream& stream, void* to, const void* from, std::uint64_t bytes,
                      std::uint32_t expected) {
  lockstep_copy_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.source = from;
  desc.destination = to;
  desc.width = bytes;
  desc.height = desc.depth = 1;
  desc.expected_direction = expected;
  desc.source_device = desc.destination_device = -1;
  return call(b.copy, stream.get(), &desc);
}
Result HostTest::set(const Stream& stream, void* to, std::uint32_t value, std::uint32_t value_size,
                     std::uint64_t count) {
  lockstep_set_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.destination = to;
  desc.width = count;
  desc.height = desc.depth = 1;
  desc.value = value;
  desc.value_size = value_size;
  return call(b.set, stream.get(), &desc);
}

Result HostTest::end(const Stream& stream, Graph* graph) {
  lockstep_graph* raw = nullptr;
  Result result = call(b.capture_end, stream.get(), &raw);
  EXPECT_EQ(result.ok(), raw != nullptr);
  if (graph != nullptr) {
    graph->reset(raw);
  } else {
    b.graph_destroy(raw);
  }
  return result;
}
std::uint32_t HostTest::status(const Stream& stream) {
  std::uint32_t result = 99;
  std::uint64_t id = 0;
  EXPECT_TRUE(succeeded(call(b.capture_status, stream.get(), &result, &id)));
  EXPECT_EQ(id != 0, result != LOCKSTEP_CAPTURE_NOT_CAPTURING);
  return result;
}
std::uint32_t HostTest::node_count(const Graph& graph) {
  std::uint32_t count = 0;
  EXPECT_TRUE(succeeded(call(b.graph_node_count, graph.get(), &count)));
  return count;
}
std::vector<std::pair<std::uint32_t, std::uint32_t>> HostTest::edges(const Graph& graph) {
  std::uint32_t count = 0;
  EXPECT_TRUE(succeeded(
      call(b.graph_edges, graph.get(), static_cast<lockstep_graph_edge*>(nullptr), 0U, &count)));
  std::vector<lockstep_graph_edge> found(count);
  EXPECT_TRUE(succeeded(call(b.graph_edges, graph.get(), found.data(), count, &count)));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> result;
  for (const auto& edge : found) result.emplace_back(edge.from, edge.to);
  return result;
}
std::vector<std::uint32_t> HostTest::kinds(const Graph& graph) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 0; i < node_count(graph); ++i) {
    lockstep_node_info info{};
    info.struct_size = sizeof(info);
    EXPECT_TRUE(succeeded(call(b.graph_node, graph.get(), i, &info)));
    result.push_back(info.kind);
  }
  return result;
}
Exec HostTest::instantiate(const Graph& graph) {
  lockstep_graph_exec* exec = nullptr;
  EXPECT_TRUE(succeeded(call(b.graph_instantiate, graph.get(), &exec)));
  return Exec(exec);
}
::testing::AssertionResult HostTest::usable(const Stream& stream) {
  int* p = allocate<int>(1);
  int value = 0;
  const Result launched = launch(stream, kernel("store"), {}, p, 41);
  if (!launched.ok()) return succeeded(launched);
  const Result copied = copy(stream, &value, p, sizeof(value));
  if (!copied.ok()) return succeeded(copied);
  const Result done = synchronize(stream);
  if (!done.ok()) return succeeded(done);
  if (value != 41) return ::testing::AssertionFailure() << "the kernel did not run";
  return ::testing::AssertionSuccess();
}

}  // namespace lockstep::host_test
