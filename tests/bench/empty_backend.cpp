// SPDX-License-Identifier: Apache-2.0

// A plugin over a driver whose functions are empty: what is left is what we add ourselves. Compiled
// twice: with LOCKSTEP_BENCH_RECORDS as plugins are, without it as if there were no recorder.

#include "empty_backend.h"

#define LOCKSTEP_BACKEND_IMPLEMENTATION
#include <lockstep/backend.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

struct lockstep_device {
  std::uint32_t ordinal;
};
struct lockstep_stream {
  std::uint64_t identity;
};
struct lockstep_kernel {
  const char* name;
  std::uint32_t record_name;
  const lockstep_parameter* parameters;
};
struct lockstep_module {
  lockstep_kernel kernel;
};
struct lockstep_graph {
  std::uint32_t nodes = 0;
};
struct lockstep_graph_exec {
  std::uint64_t identity = 0;
  std::uint32_t record_name = 0;
};

namespace {

const lockstep_host* host = nullptr;

__attribute__((noinline)) int empty_launch(void* function, unsigned, unsigned, unsigned, unsigned,
                                           unsigned, unsigned, unsigned, void* stream, void**,
                                           void**) {
  __asm__ volatile("" ::"r"(function), "r"(stream) : "memory");
  return 0;
}

__attribute__((noinline)) int empty_graph_launch(void* executable, void* stream) {
  __asm__ volatile("" ::"r"(executable), "r"(stream) : "memory");
  return 0;
}

// Volatile: found at run time, as the functions of a real driver are.
bench::EmptyDriver* volatile driver = nullptr;

constexpr lockstep_parameter kParameters[] = {
    {0, 4, 0, {}}, {8, 8, 1, {}}, {16, 8, 1, {}}, {24, 4, 0, {}}};

lockstep_code initialize(lockstep_error*) { return LOCKSTEP_OK; }
lockstep_code device_count(std::uint32_t* count, lockstep_error*) {
  *count = 1;
  return LOCKSTEP_OK;
}
lockstep_code device_info(std::uint32_t, lockstep_device_info* info, lockstep_error*) {
  info->simulated = 1;
  std::snprintf(info->name, sizeof(info->name), "SIMULATED empty driver");
  return LOCKSTEP_OK;
}
lockstep_code device_attribute(std::uint32_t, lockstep_device_attribute, std::int64_t*,
                               lockstep_error*) {
  return LOCKSTEP_E_NOT_SUPPORTED;
}
lockstep_code device_open(std::uint32_t ordinal, lockstep_device** device, lockstep_error*) {
  *device = new lockstep_device{ordinal};
  return LOCKSTEP_OK;
}
void device_close(lockstep_device* device) { delete device; }

lockstep_code module_create(lockstep_device*, const lockstep_module_desc*, lockstep_module** module,
                            lockstep_error*) {
  *module = new lockstep_module{{"saxpy", host->recorder->intern("saxpy", 5), kParameters}};
  return LOCKSTEP_OK;
}
void module_destroy(lockstep_module* module) { delete module; }
lockstep_code module_kernel(lockstep_module* module, const char*, lockstep_kernel** kernel,
                            lockstep_error*) {
  *kernel = &module->kernel;
  return LOCKSTEP_OK;
}
lockstep_code kernel_info(lockstep_kernel* kernel, lockstep_kernel_info* info, lockstep_error*) {
  info->name = kernel->name;
  info->max_threads_per_block = 1024;
  info->parameter_count = 4;
  info->parameters = kernel->parameters;
  return LOCKSTEP_OK;
}

lockstep_code stream_create(lockstep_device* device, const lockstep_stream_desc*,
                            lockstep_stream** stream, lockstep_error*) {
  *stream = new lockstep_stream{host->recorder->next_id()};
  host->recorder->define_stream((*stream)->identity, static_cast<std::int32_t>(device->ordinal), 0,
                                1);
  return LOCKSTEP_OK;
}
void stream_destroy(lockstep_stream* stream) { delete stream; }
std::uint64_t stream_identity(lockstep_stream* stream) { return stream->identity; }
lockstep_code stream_synchronize(lockstep_stream*, lockstep_error*) { return LOCKSTEP_OK; }

lockstep_code graph_create(lockstep_device*, lockstep_graph** graph, lockstep_error*) {
  *graph = new lockstep_graph;
  return LOCKSTEP_OK;
}
void graph_destroy(lockstep_graph* graph) { delete graph; }
lockstep_code graph_add_node(lockstep_graph* graph, const lockstep_node_desc*, const std::uint32_t*,
                             std::uint32_t, std::uint32_t* node, lockstep_error*) {
  *node = graph->nodes++;
  return LOCKSTEP_OK;
}
lockstep_code graph_node_count(lockstep_graph* graph, std::uint32_t* count, lockstep_error*) {
  *count = graph->nodes;
  return LOCKSTEP_OK;
}
lockstep_code graph_instantiate(lockstep_graph*, lockstep_graph_exec** executable,
                                lockstep_error*) {
  *executable =
      new lockstep_graph_exec{host->recorder->next_id(), host->recorder->intern("benchGraph", 10)};
  lockstep_record node = {};
  node.struct_size = sizeof node;
  node.kind = LOCKSTEP_RECORD_MARK;
  node.name = host->recorder->intern("empty", 5);
  host->recorder->define_graph((*executable)->identity, 1, &node, 1, nullptr, 0);
  return LOCKSTEP_OK;
}
void graph_exec_destroy(lockstep_graph_exec* executable) { delete executable; }
std::uint64_t graph_exec_identity(lockstep_graph_exec* executable, std::uint32_t* version) {
  *version = 1;
  return executable->identity;
}

#ifdef LOCKSTEP_BENCH_RECORDS
__attribute__((noinline)) void* begin_graph_record(const lockstep_graph_exec* executable,
                                                   const lockstep_stream* stream) {
  lockstep_record record;
  std::memset(&record, 0, sizeof record);
  record.struct_size = sizeof record;
  record.kind = LOCKSTEP_RECORD_GRAPH_LAUNCH;
  record.name = executable->record_name;
  record.stream = stream->identity;
  record.of.graph_launch.graph = executable->identity;
  record.of.graph_launch.version = 1;
  return host->recorder->begin(&record);
}

__attribute__((noinline)) void* begin_record(const lockstep_stream* stream,
                                             const lockstep_launch_desc* desc) {
  lockstep_record record;
  std::memset(&record, 0, sizeof record);
  record.struct_size = sizeof record;
  record.kind = LOCKSTEP_RECORD_KERNEL;
  record.name = desc->kernel->record_name;
  record.stream = stream->identity;
  record.of.kernel.grid = desc->grid;
  record.of.kernel.block = desc->block;
  record.of.kernel.shared_bytes = desc->shared_bytes;
  record.of.kernel.parameter_count = 4;
  record.of.kernel.parameters = desc->kernel->parameters;
  record.of.kernel.arguments = desc->arguments;
  return host->recorder->begin(&record);
}
#endif

lockstep_code launch(lockstep_stream* stream, const lockstep_launch_desc* desc, lockstep_error*) {
#ifdef LOCKSTEP_BENCH_RECORDS
  void* slot = nullptr;
  if (__atomic_load_n(host->recorder->active, __ATOMIC_RELAXED) != 0) [[unlikely]]
    slot = begin_record(stream, desc);
#endif
  const int result =
      driver->launch(desc->kernel, desc->grid.x, desc->grid.y, desc->grid.z, desc->block.x,
                     desc->block.y, desc->block.z, static_cast<unsigned>(desc->shared_bytes),
                     stream, const_cast<void**>(desc->arguments), nullptr);
#ifdef LOCKSTEP_BENCH_RECORDS
  if (slot != nullptr) [[unlikely]]
    host->recorder->end(slot, result != 0 ? LOCKSTEP_RECORD_FAILED : 0, 0, -1);
#endif
  return result == 0 ? LOCKSTEP_OK : LOCKSTEP_E_LAUNCH_FAILED;
}

lockstep_code graph_exec_launch(lockstep_graph_exec* executable, lockstep_stream* stream,
                                lockstep_error*) {
#ifdef LOCKSTEP_BENCH_RECORDS
  void* slot = nullptr;
  if (__atomic_load_n(host->recorder->active, __ATOMIC_RELAXED) != 0) [[unlikely]]
    slot = begin_graph_record(executable, stream);
#endif
  const int result = driver->graph_launch(executable, stream);
#ifdef LOCKSTEP_BENCH_RECORDS
  if (slot != nullptr) [[unlikely]]
    host->recorder->end(slot, result != 0 ? LOCKSTEP_RECORD_FAILED : 0, 0, -1);
#endif
  return result == 0 ? LOCKSTEP_OK : LOCKSTEP_E_LAUNCH_FAILED;
}

lockstep_backend make_table(std::uint32_t version) {
  lockstep_backend table = {};
  table.struct_size = sizeof(table);
  table.abi_version = version;
  table.priority = -1;
  table.name = LOCKSTEP_BENCH_NAME;
  table.vendor = "benchmarks";
  table.version = "1";
  table.initialize = initialize;
  table.device_count = device_count;
  table.device_info = device_info;
  table.device_attribute = device_attribute;
  table.device_open = device_open;
  table.device_close = device_close;
  table.module_create = module_create;
  table.module_destroy = module_destroy;
  table.module_kernel = module_kernel;
  table.kernel_info = kernel_info;
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_identity = stream_identity;
  table.stream_synchronize = stream_synchronize;
  table.launch = launch;
  table.graph_create = graph_create;
  table.graph_destroy = graph_destroy;
  table.graph_add_node = graph_add_node;
  table.graph_node_count = graph_node_count;
  table.graph_instantiate = graph_instantiate;
  table.graph_exec_destroy = graph_exec_destroy;
  table.graph_exec_identity = graph_exec_identity;
  table.graph_exec_launch = graph_exec_launch;
  return table;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) bench::EmptyDriver* bench_empty_driver() {
  static bench::EmptyDriver table = {empty_launch, empty_graph_launch};
  return &table;
}

extern "C" const lockstep_backend* lockstep_backend_query(const lockstep_host* host_table,
                                                          lockstep_error*) {
  host = host_table;
  driver = bench_empty_driver();
  static const lockstep_backend table =
      make_table(std::min(host_table->abi_max, std::uint32_t{LOCKSTEP_BACKEND_ABI_MAX}));
  return &table;
}
