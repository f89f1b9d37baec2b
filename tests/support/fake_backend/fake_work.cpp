// SPDX-License-Identifier: Apache-2.0

// Memory, streams and work of the fake plugin.

#include <cstdlib>

#include "support/fake_backend/fake_state.h"

namespace lockstep::testing::fake {
namespace {

std::uint64_t next_id() { return state().host->recorder->next_id(); }

bool lies_in(const std::map<void*, std::uint64_t>& blocks, const void* pointer) {
  auto after = blocks.upper_bound(const_cast<void*>(pointer));
  if (after == blocks.begin()) return false;
  --after;
  return static_cast<const char*>(pointer) < static_cast<char*>(after->first) + after->second;
}

lockstep_code memory_allocate(lockstep_device*, const lockstep_allocation_desc* desc,
                              void** address, lockstep_error* error) {
  if (const auto code = asked_failure("memory_allocate", error)) return code;
  if (desc->stream == nullptr) {
    if (const auto code = refuse_in_capture("fakeMalloc", error)) return code;
  }
  if (desc->bytes > 1u << 20) {
    return give(error, LOCKSTEP_E_OUT_OF_MEMORY, "fakeMalloc", "no room");
  }
  State& all = state();
  const std::lock_guard lock(all.mutex);
  *address = std::calloc(1, desc->bytes);
  auto& blocks = desc->memory_kind == LOCKSTEP_MEMORY_PINNED ? all.pinned : all.memory;
  blocks[*address] = desc->bytes;
  ++all.control.allocations;
  return LOCKSTEP_OK;
}

lockstep_code memory_free(lockstep_device*, void* address, lockstep_stream* stream,
                          lockstep_error*) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (stream == nullptr && !all.captures.empty()) ++all.control.illegal_frees;
  if (address != nullptr) --all.control.allocations;
  all.memory.erase(address);
  all.pinned.erase(address);
  std::free(address);
  return LOCKSTEP_OK;
}

lockstep_code memory_register(lockstep_device*, void* address, std::uint64_t bytes,
                              lockstep_error*) {
  const std::lock_guard lock(state().mutex);
  state().registered[address] = bytes;
  ++state().control.registrations;
  return LOCKSTEP_OK;
}
lockstep_code memory_unregister(lockstep_device*, void* address, lockstep_error*) {
  const std::lock_guard lock(state().mutex);
  state().registered.erase(address);
  --state().control.registrations;
  return LOCKSTEP_OK;
}
lockstep_code pointer_info(lockstep_device*, const void* pointer, lockstep_pointer_info* info,
                           lockstep_error*) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  info->memory_kind = lies_in(all.memory, pointer) ? LOCKSTEP_MEMORY_DEVICE
                      : lies_in(all.pinned, pointer) || lies_in(all.registered, pointer)
                          ? LOCKSTEP_MEMORY_PINNED
                          : LOCKSTEP_MEMORY_UNKNOWN;
  info->device = info->memory_kind == LOCKSTEP_MEMORY_DEVICE ? 0 : -1;
  return LOCKSTEP_OK;
}

lockstep_code stream_create(lockstep_device*, const lockstep_stream_desc*, lockstep_stream** stream,
                            lockstep_error* error) {
  if (const auto code = asked_failure("stream_create", error)) return code;
  *stream = new lockstep_stream{next_id()};
  ++state().control.streams;
  return LOCKSTEP_OK;
}
void stream_destroy(lockstep_stream* stream) {
  if (stream != nullptr) --state().control.streams;
  delete stream;
}
std::uint64_t stream_identity(lockstep_stream* stream) { return stream->identity; }
lockstep_code stream_synchronize(lockstep_stream*, lockstep_error* error) {
  if (const auto code = asked_failure("stream_synchronize", error)) return code;
  return refuse_in_capture("fakeStreamSynchronize", error);
}
lockstep_code stream_query(lockstep_stream*, lockstep_error* error) {
  if (state().control.on_query) state().control.on_query();
  if (const auto code = refuse_in_capture("fakeStreamQuery", error)) return code;
  return state().control.busy ? LOCKSTEP_E_NOT_READY : LOCKSTEP_OK;
}

lockstep_code event_create(lockstep_device*, std::uint32_t, lockstep_event** event,
                           lockstep_error*) {
  *event = new lockstep_event;
  ++state().control.events;
  return LOCKSTEP_OK;
}
void event_destroy(lockstep_event* event) {
  if (event != nullptr) --state().control.events;
  delete event;
}
lockstep_code event_record(lockstep_event* event, lockstep_stream* stream, lockstep_error*) {
  event->capture = stream->capture;
  return LOCKSTEP_OK;
}
lockstep_code event_query(lockstep_event*, lockstep_error*) { return LOCKSTEP_OK; }
lockstep_code event_elapsed(lockstep_event*, lockstep_event*, double* milliseconds,
                            lockstep_error*) {
  *milliseconds = 1.5;
  return LOCKSTEP_OK;
}
lockstep_code stream_wait_event(lockstep_stream* stream, lockstep_event* event, lockstep_error*) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto capture = all.captures.find(event->capture);
  if (capture == all.captures.end()) return LOCKSTEP_OK;
  stream->capture = event->capture;
  capture->second.streams.insert(stream);
  return LOCKSTEP_OK;
}

/// Runs the work, or makes a node of it when the stream captures.
lockstep_code enqueue(const char* slot, lockstep_stream* stream, std::shared_ptr<Work> work,
                      lockstep_error* error) {
  if (const auto code = asked_failure(slot, error)) return code;
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto capture = all.captures.find(stream->capture);
  if (capture == all.captures.end()) {
    execute(*work);
  } else if (capture->second.invalidated) {
    return give(error, LOCKSTEP_E_CAPTURE_INVALIDATED, slot, "the capture is over",
                LOCKSTEP_CAPTURE_RULE_INVALIDATED);
  } else {
    const bool lost = work->kind == LOCKSTEP_NODE_SET && all.control.loses_sets;
    add_node(capture->second.graph, lost ? std::make_shared<Work>() : std::move(work));
  }
  return LOCKSTEP_OK;
}

lockstep_code launch(lockstep_stream* stream, const lockstep_launch_desc* desc,
                     lockstep_error* error) {
  return enqueue("launch", stream, work_of(*desc), error);
}
lockstep_code copy(lockstep_stream* stream, const lockstep_copy_desc* desc, lockstep_error* error) {
  if (desc->width == 0 || desc->height == 0 || desc->depth == 0) return LOCKSTEP_OK;
  return enqueue("copy", stream, work_of(*desc), error);
}
lockstep_code set(lockstep_stream* stream, const lockstep_set_desc* desc, lockstep_error* error) {
  if (desc->width == 0 || desc->height == 0 || desc->depth == 0) return LOCKSTEP_OK;
  return enqueue("set", stream, work_of(*desc), error);
}
lockstep_code host_function(lockstep_stream* stream, lockstep_host_function function,
                            void* user_data, lockstep_error* error) {
  auto work = std::make_shared<Work>();
  work->kind = LOCKSTEP_NODE_HOST;
  work->record.kind = LOCKSTEP_RECORD_HOST_FUNC;
  work->function = function;
  work->user_data = user_data;
  return enqueue("host_function", stream, std::move(work), error);
}

/// A copy of a structure whose owner may know fewer fields than this plugin.
template <typename Struct>
Struct as_given(const Struct& given) {
  Struct copy = {};
  std::memcpy(&copy, &given, std::min(given.struct_size, sizeof(copy)));
  return copy;
}

bool is_device(const void* pointer) { return lies_in(state().memory, pointer); }

}  // namespace

std::shared_ptr<Work> work_of(const lockstep_launch_desc& desc) {
  auto work = std::make_shared<Work>();
  work->kind = LOCKSTEP_NODE_KERNEL;
  work->kernel = desc.kernel->name;
  work->parameters = desc.kernel->parameters;
  {
    const std::lock_guard lock(state().control.mutex);
    state().control.last_tags.clear();
    if (desc.parameters != nullptr) {
      work->parameters.assign(desc.parameters, desc.parameters + desc.argument_count);
      for (const auto& each : work->parameters) state().control.last_tags.push_back(each.tag);
    }
  }
  for (std::uint32_t i = 0; i < desc.argument_count; ++i) {
    const auto* bytes = static_cast<const std::byte*>(desc.arguments[i]);
    work->arguments.emplace_back(bytes, bytes + work->parameters[i].size);
  }
  for (const auto& argument : work->arguments) work->pointers.push_back(argument.data());
  lockstep_record& record = work->record;
  record.struct_size = sizeof(record);
  record.kind = LOCKSTEP_RECORD_KERNEL;
  record.name = state().host->recorder->intern(work->kernel.data(), work->kernel.size());
  record.of.kernel.grid = desc.grid;
  record.of.kernel.block = desc.block;
  record.of.kernel.shared_bytes = desc.shared_bytes;
  record.of.kernel.parameter_count = static_cast<std::uint32_t>(work->parameters.size());
  record.of.kernel.parameters = work->parameters.data();
  record.of.kernel.arguments = work->pointers.data();
  return work;
}

std::shared_ptr<Work> work_of(const lockstep_copy_desc& desc) {
  auto work = std::make_shared<Work>();
  work->kind = LOCKSTEP_NODE_COPY;
  work->copy = as_given(desc);
  lockstep_record& record = work->record;
  record.struct_size = sizeof(record);
  record.kind = LOCKSTEP_RECORD_MEMCPY;
  record.name = state().host->recorder->intern("fakeMemcpyAsync", 15);
  const bool from = is_device(desc.source), to = is_device(desc.destination);
  record.of.copy.direction = from ? (to ? LOCKSTEP_COPY_DTOD : LOCKSTEP_COPY_DTOH)
                                  : (to ? LOCKSTEP_COPY_HTOD : LOCKSTEP_COPY_HTOH);
  record.of.copy.peer_device = -1;
  record.of.copy.width = desc.width;
  record.of.copy.height = desc.height;
  record.of.copy.depth = desc.depth;
  record.of.copy.source_pitch = desc.source_pitch;
  record.of.copy.source_slice_pitch = desc.source_slice_pitch;
  record.of.copy.destination_pitch = desc.destination_pitch;
  record.of.copy.destination_slice_pitch = desc.destination_slice_pitch;
  return work;
}

std::shared_ptr<Work> work_of(const lockstep_set_desc& desc) {
  auto work = std::make_shared<Work>();
  work->kind = LOCKSTEP_NODE_SET;
  work->set = as_given(desc);
  lockstep_record& record = work->record;
  record.struct_size = sizeof(record);
  record.kind = LOCKSTEP_RECORD_MEMSET;
  record.name = state().host->recorder->intern("fakeMemsetAsync", 15);
  record.of.set.width = desc.width * desc.value_size;
  record.of.set.height = desc.height;
  record.of.set.pitch = desc.pitch;
  record.of.set.value = desc.value;
  record.of.set.value_size = desc.value_size;
  return work;
}

void execute(const Work& work) {
  FakeControl& control = state().control;
  switch (work.kind) {
    case LOCKSTEP_NODE_KERNEL: {
      ++control.launches;
      const std::lock_guard lock(control.mutex);
      control.last_arguments = work.arguments;
      if (work.kernel == "_Z7add_onePij") {
        int* values = nullptr;
        std::uint32_t count = 0;
        std::memcpy(&values, work.arguments[0].data(), sizeof(values));
        std::memcpy(&count, work.arguments[1].data(), sizeof(count));
        for (std::uint32_t i = 0; i < count; ++i) ++values[i];
      }
      break;
    }
    case LOCKSTEP_NODE_COPY:
      ++control.copies;
      for (std::uint64_t row = 0; row < work.copy.height; ++row) {
        const auto pitch_of = [&](std::uint64_t pitch) {
          return pitch == 0 ? work.copy.width : pitch;
        };
        std::memcpy(
            static_cast<char*>(work.copy.destination) + row * pitch_of(work.copy.destination_pitch),
            static_cast<const char*>(work.copy.source) + row * pitch_of(work.copy.source_pitch),
            work.copy.width);
      }
      break;
    case LOCKSTEP_NODE_SET:
      ++control.sets;
      for (std::uint64_t i = 0; i < work.set.width; ++i) {
        std::memcpy(static_cast<char*>(work.set.destination) + i * work.set.value_size,
                    &work.set.value, work.set.value_size);
      }
      break;
    case LOCKSTEP_NODE_HOST:
      work.function(work.user_data);
      break;
    case LOCKSTEP_NODE_CHILD_GRAPH:
      for (const auto& node : work.child->nodes) execute(*node);
      break;
    default:
      break;
  }
}

void fill_memory_slots(lockstep_backend& table) {
  table.memory_allocate = memory_allocate;
  table.memory_free = memory_free;
  table.memory_register = memory_register;
  table.memory_unregister = memory_unregister;
  table.pointer_info = pointer_info;
}

void fill_work_slots(lockstep_backend& table) {
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_identity = stream_identity;
  table.stream_synchronize = stream_synchronize;
  table.stream_query = stream_query;
  table.event_create = event_create;
  table.event_destroy = event_destroy;
  table.event_record = event_record;
  table.event_query = event_query;
  table.event_elapsed = event_elapsed;
  table.stream_wait_event = stream_wait_event;
  table.launch = launch;
  table.copy = copy;
  table.set = set;
  table.host_function = host_function;
}

}  // namespace lockstep::testing::fake
