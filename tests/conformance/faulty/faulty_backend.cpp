// SPDX-License-Identifier: Apache-2.0
// The host backend with one fault planted, named by LOCKSTEP_FAULT: proves that the conformance
// suite finds what it claims to find. Wraps the plugin that LOCKSTEP_FAULTY_INNER names.
#define LOCKSTEP_BACKEND_IMPLEMENTATION
#include <lockstep/backend.h>

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string_view>
#include <unistd.h>

namespace {

const lockstep_backend* inner = nullptr;
lockstep_backend table;
lockstep_host faulty_host;
lockstep_recorder faulty_recorder;
const lockstep_recorder* real_recorder = nullptr;

lockstep_code copy_drops_last_byte(lockstep_stream* stream, const lockstep_copy_desc* desc,
                                   lockstep_error* error) {
  lockstep_copy_desc changed = *desc;
  if (changed.width > 1 && changed.height == 1) --changed.width;
  return inner->copy(stream, &changed, error);
}

lockstep_code set_writes_another_value(lockstep_stream* stream, const lockstep_set_desc* desc,
                                       lockstep_error* error) {
  lockstep_set_desc changed = *desc;
  changed.value ^= 1u;
  return inner->set(stream, &changed, error);
}

lockstep_code launch_swaps_grid(lockstep_stream* stream, const lockstep_launch_desc* desc,
                                lockstep_error* error) {
  lockstep_launch_desc changed = *desc;
  changed.grid.x = desc->grid.y;
  changed.grid.y = desc->grid.x;
  return inner->launch(stream, &changed, error);
}

lockstep_code wait_does_nothing(lockstep_stream* stream, lockstep_event* event,
                                lockstep_error* error) {
  std::uint32_t status = 0;
  std::uint64_t id = 0;
  inner->capture_status(stream, &status, &id, nullptr);
  return status == LOCKSTEP_CAPTURE_NOT_CAPTURING ? LOCKSTEP_OK
                                                  : inner->stream_wait_event(stream, event, error);
}

lockstep_code wait_hangs(lockstep_stream*, lockstep_event*, lockstep_error*) {
  for (;;) sleep(60);
}

lockstep_code capture_executes(lockstep_stream* stream, lockstep_graph** graph,
                               lockstep_error* error) {
  const lockstep_code code = inner->capture_end(stream, graph, error);
  lockstep_graph_exec* exec = nullptr;
  if (code == LOCKSTEP_OK && inner->graph_instantiate(*graph, &exec, nullptr) == LOCKSTEP_OK) {
    inner->graph_exec_launch(exec, stream, nullptr);
    inner->graph_exec_destroy(exec);
  }
  return code;
}

lockstep_code replay_does_nothing(lockstep_graph_exec*, lockstep_stream*, lockstep_error*) {
  return LOCKSTEP_OK;
}

lockstep_code update_does_nothing(lockstep_graph_exec*, lockstep_graph*, std::uint32_t* result,
                                  lockstep_error*) {
  *result = LOCKSTEP_UPDATE_DONE;
  return LOCKSTEP_OK;
}

lockstep_code host_function_runs_at_once(lockstep_stream*, lockstep_host_function function,
                                         void* data, lockstep_error*) {
  function(data);
  return LOCKSTEP_OK;
}

lockstep_code bad_copy_is_accepted(lockstep_stream* stream, const lockstep_copy_desc* desc,
                                   lockstep_error* error) {
  const lockstep_code code = inner->copy(stream, desc, error);
  return code == LOCKSTEP_E_INVALID_ARGUMENT ? LOCKSTEP_OK : code;
}

lockstep_code illegal_query_is_accepted(lockstep_stream* stream, lockstep_error* error) {
  std::uint32_t status = 0;
  std::uint64_t id = 0;
  inner->capture_status(stream, &status, &id, nullptr);
  return status == LOCKSTEP_CAPTURE_ACTIVE ? LOCKSTEP_OK : inner->stream_query(stream, error);
}

lockstep_code edges_are_lost(lockstep_graph*, lockstep_graph_edge*, std::uint32_t,
                             std::uint32_t* count, lockstep_error*) {
  *count = 0;
  return LOCKSTEP_OK;
}

void* sets_are_not_recorded(const lockstep_record* record) {
  return record->kind == LOCKSTEP_RECORD_MEMSET ? nullptr : real_recorder->begin(record);
}

/// Every 3-D launch is reported with another block shape than it ran with.
void* kernels_are_recorded_wrongly(const lockstep_record* record) {
  lockstep_record changed = *record;
  if (changed.kind == LOCKSTEP_RECORD_KERNEL) changed.of.kernel.block.y += 1;
  return real_recorder->begin(&changed);
}

bool plant(std::string_view fault) {
  if (fault == "copy_drops_last_byte")
    table.copy = copy_drops_last_byte;
  else if (fault == "set_writes_another_value")
    table.set = set_writes_another_value;
  else if (fault == "launch_swaps_grid")
    table.launch = launch_swaps_grid;
  else if (fault == "wait_does_nothing")
    table.stream_wait_event = wait_does_nothing;
  else if (fault == "wait_hangs")
    table.stream_wait_event = wait_hangs;
  else if (fault == "capture_executes")
    table.capture_end = capture_executes;
  else if (fault == "replay_does_nothing")
    table.graph_exec_launch = replay_does_nothing;
  else if (fault == "update_does_nothing")
    table.graph_exec_update = update_does_nothing;
  else if (fault == "host_function_runs_at_once")
    table.host_function = host_function_runs_at_once;
  else if (fault == "bad_copy_is_accepted")
    table.copy = bad_copy_is_accepted;
  else if (fault == "illegal_query_is_accepted")
    table.stream_query = illegal_query_is_accepted;
  else if (fault == "edges_are_lost")
    table.graph_edges = edges_are_lost;
  else if (fault == "sets_are_not_recorded")
    faulty_recorder.begin = sets_are_not_recorded;
  else if (fault == "kernels_are_recorded_wrongly")
    faulty_recorder.begin = kernels_are_recorded_wrongly;
  else
    return fault == "none";
  return true;
}

}  // namespace

extern "C" const lockstep_backend* lockstep_backend_query(const lockstep_host* host,
                                                          lockstep_error* error) {
  const auto refuse = [error](const char* message) -> const lockstep_backend* {
    if (error != nullptr) {
      error->code = LOCKSTEP_E_UNAVAILABLE;
      std::strncpy(error->message, message, sizeof error->message - 1);
    }
    return nullptr;
  };
  if (inner != nullptr) return &table;
  const char* path = std::getenv("LOCKSTEP_FAULTY_INNER");
  const char* fault = std::getenv("LOCKSTEP_FAULT");
  void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return refuse("LOCKSTEP_FAULTY_INNER names no plugin");
  real_recorder = host->recorder;
  faulty_recorder = *host->recorder;
  faulty_host = *host;
  faulty_host.recorder = &faulty_recorder;
  const auto query =
      reinterpret_cast<lockstep_backend_query_function>(dlsym(library, "lockstep_backend_query"));
  if (query == nullptr) return refuse("the inner plugin has no lockstep_backend_query");
  const lockstep_backend* found = query(&faulty_host, error);
  if (found == nullptr) return nullptr;
  table = *found;
  table.name = "faulty";
  if (fault == nullptr || !plant(fault)) return refuse("LOCKSTEP_FAULT names no fault");
  inner = found;
  return &table;
}
