// SPDX-License-Identifier: Apache-2.0
// Calls every slot of the cuda plugin's table with nothing current, with the device's own context
// current, and with another device's; each time what was current has to be so again when the slot
// returns, whether it succeeded or not. Then: captures that others began are still seen.
#include <cstddef>
#include <cstdlib>
#include <set>
#include <thread>

#include "native_driver.h"
#include "smoke_device.h"

namespace {

using namespace smoke;  // NOLINT: one program

using GetContext = int (*)(void**);
using SetContext = int (*)(void*);

const char* const kSource = R"(
extern "C" __global__ void add_one(int* x) { *x += 1; }
__device__ int counter = 7;
)";

constexpr std::size_t kSlots =
    (sizeof(lockstep_backend) - offsetof(lockstep_backend, initialize)) / sizeof(void*);

// Calls slots by their members and looks at the current context after each.
class Walker {
 public:
  Walker(std::string ambient_name, void* ambient)
      : ambient_name_(std::move(ambient_name)), ambient_(ambient) {}

  // A slot with an error record; the answer is the caller's to judge.
  template <class Member, class... Arguments>
  lockstep_code ask(const char* name, Member member, Arguments... arguments) {
    enter(member);
    lockstep_error error{};
    error.struct_size = sizeof error;
    const lockstep_code code = (b->*member)(arguments..., &error);
    leave(name);
    if (code != LOCKSTEP_OK) last_message_ = error.message;
    return code;
  }
  template <class Member, class... Arguments>
  void must(const char* name, Member member, Arguments... arguments) {
    if (ask(name, member, arguments...) != LOCKSTEP_OK) {
      check(false, name, __LINE__, last_message_ + ", with " + ambient_name_);
    }
  }
  // A slot that has to fail.
  template <class Member, class... Arguments>
  void refused(const char* name, Member member, Arguments... arguments) {
    check(ask(name, member, arguments...) != LOCKSTEP_OK, name, __LINE__,
          "succeeded, with " + ambient_name_);
  }
  // A slot without one.
  template <class Member, class... Arguments>
  auto plain(const char* name, Member member, Arguments... arguments) {
    enter(member);
    if constexpr (std::is_void_v<decltype((b->*member)(arguments...))>) {
      (b->*member)(arguments...);
      leave(name);
    } else {
      const auto value = (b->*member)(arguments...);
      leave(name);
      return value;
    }
  }

  const std::set<std::size_t>& visited() const { return visited_; }
  int calls() const { return calls_; }

 private:
  template <class Member>
  void enter(Member member) {
    const auto* at = reinterpret_cast<const char*>(&(b->*member));
    visited_.insert(static_cast<std::size_t>(at - reinterpret_cast<const char*>(&b->initialize)) /
                    sizeof(void*));
    native<SetContext>("cuCtxSetCurrent")(ambient_);
  }
  void leave(const char* name) {
    void* current = &current;
    native<GetContext>("cuCtxGetCurrent")(&current);
    check(current == ambient_, name, __LINE__, "changed the context, with " + ambient_name_);
    ++calls_;
  }

  std::string ambient_name_, last_message_;
  void* ambient_;
  std::set<std::size_t> visited_;
  int calls_ = 0;
};

#define ASK(slot, ...) walk.ask(#slot, &lockstep_backend::slot, __VA_ARGS__)
#define DO(slot, ...) walk.must(#slot, &lockstep_backend::slot, __VA_ARGS__)
#define REFUSED(slot, ...) walk.refused(#slot, &lockstep_backend::slot, __VA_ARGS__)
#define PLAIN(slot, ...) walk.plain(#slot, &lockstep_backend::slot, __VA_ARGS__)

struct Objects {
  lockstep_device *own = nullptr, *other = nullptr;
  lockstep_stream *stream = nullptr, *legacy = nullptr, *borrowed = nullptr;
  lockstep_event *event = nullptr, *later = nullptr, *foreign_event = nullptr;
  lockstep_module* module = nullptr;
  lockstep_kernel* kernel = nullptr;
  lockstep_graph *captured = nullptr, *built = nullptr, *clone = nullptr, *view = nullptr;
  lockstep_graph_exec* exec = nullptr;
  void *memory = nullptr, *pinned = nullptr, *in_order = nullptr;
};

void walk_devices(Walker& walk, Objects& o, std::uint32_t ordinal, std::uint32_t count) {
  walk.must("initialize", &lockstep_backend::initialize);
  std::uint32_t seen = 0;
  DO(device_count, &seen);
  CHECK(seen == count);
  lockstep_device_info info{};
  info.struct_size = sizeof info;
  DO(device_info, ordinal, &info);
  std::int64_t value = 0;
  DO(device_attribute, ordinal, lockstep_device_attribute{LOCKSTEP_ATTR_WARP_SIZE}, &value);
  CHECK(std::strlen(PLAIN(capabilities, ordinal)) > 2);
  DO(device_open, ordinal, &o.own);
  REFUSED(device_open, 4711U, &o.other);
  std::uint64_t free_bytes = 0, total = 0;
  DO(device_memory, o.own, &free_bytes, &total);
  DO(device_synchronize, o.own);
  CHECK(PLAIN(device_native, o.own) != nullptr);
  std::uint32_t can = 0;
  if (count > 1) {
    DO(device_open, 1 - ordinal, &o.other);
    DO(peer_access, o.own, o.other, &can);
    if (can != 0) DO(peer_enable, o.own, o.other);
  } else {
    ASK(peer_access, o.own, o.own, &can);
    ASK(peer_enable, o.own, o.own);
  }
}

void walk_memory(Walker& walk, Objects& o) {
  lockstep_stream_desc stream{sizeof stream, LOCKSTEP_STREAM_NON_BLOCKING, 0};
  DO(stream_create, o.own, &stream, &o.stream);
  lockstep_allocation_desc desc{};
  desc.struct_size = sizeof desc;
  desc.bytes = 4096;
  desc.memory_kind = LOCKSTEP_MEMORY_DEVICE;
  DO(memory_allocate, o.own, &desc, &o.memory);
  desc.stream = o.stream;
  DO(memory_allocate, o.own, &desc, &o.in_order);
  DO(memory_free, o.own, o.in_order, o.stream);
  desc.stream = nullptr;
  desc.memory_kind = LOCKSTEP_MEMORY_PINNED;
  DO(memory_allocate, o.own, &desc, &o.pinned);
  desc.memory_kind = LOCKSTEP_MEMORY_DEVICE;
  desc.bytes = std::uint64_t{1} << 50;
  void* none = nullptr;
  REFUSED(memory_allocate, o.own, &desc, &none);
  static char page[8192];
  DO(memory_register, o.own, page, std::uint64_t{sizeof page});
  REFUSED(memory_register, o.own, page, std::uint64_t{sizeof page});
  DO(memory_unregister, o.own, page);
  lockstep_pointer_info pointer{};
  pointer.struct_size = sizeof pointer;
  DO(pointer_info, o.own, o.memory, &pointer);
  CHECK(pointer.memory_kind == LOCKSTEP_MEMORY_DEVICE);
}

void walk_modules(Walker& walk, Objects& o) {
  lockstep_module_desc desc{};
  desc.struct_size = sizeof desc;
  desc.format = LOCKSTEP_MODULE_SOURCE;
  desc.data = kSource;
  desc.bytes = std::strlen(kSource);
  const char* names[] = {"add_one"};
  desc.kernels = names;
  desc.kernel_count = 1;
  DO(module_create, o.own, &desc, &o.module);
  DO(module_load_all, o.module);
  DO(module_kernel, o.module, "add_one", &o.kernel);
  lockstep_kernel* none = nullptr;
  REFUSED(module_kernel, o.module, "nothing", &none);
  void* address = nullptr;
  std::uint64_t bytes = 0;
  DO(module_global, o.module, "counter", &address, &bytes);
  CHECK(PLAIN(module_native, o.module) != nullptr);
  lockstep_kernel_info info{};
  info.struct_size = sizeof info;
  DO(kernel_info, o.kernel, &info);
  DO(kernel_set_max_dynamic_shared, o.kernel, 1024U);
  CHECK(PLAIN(kernel_native, o.kernel) != nullptr);
}

void walk_streams(Walker& walk, Objects& o) {
  DO(stream_special, o.own, std::uint32_t{LOCKSTEP_STREAM_LEGACY}, &o.legacy);
  void* handle = PLAIN(stream_native, o.stream);
  DO(stream_from_native, o.own, handle, &o.borrowed);
  CHECK(PLAIN(stream_identity, o.borrowed) == PLAIN(stream_identity, o.stream));
  DO(event_create, o.own, std::uint32_t{LOCKSTEP_EVENT_TIMING}, &o.event);
  DO(event_create, o.own, std::uint32_t{LOCKSTEP_EVENT_TIMING}, &o.later);
  DO(event_from_native, o.own, PLAIN(event_native, o.event), &o.foreign_event);
  const void* arguments[] = {&o.memory};
  lockstep_launch_desc launch = launch_desc(o.kernel, 1, 1, arguments, 1);
  lockstep_set_desc set = set_desc(o.memory, 16, 0, 4);
  DO(event_record, o.event, o.stream);
  DO(set, o.stream, &set);
  DO(launch, o.stream, &launch);
  launch.block.x = 4711;
  REFUSED(launch, o.stream, &launch);
  int value = -1;
  lockstep_copy_desc copy = copy_desc(&value, o.memory, sizeof value);
  DO(copy, o.stream, &copy);
  int called = 0;
  DO(
      host_function, o.stream, +[](void* seen) { *static_cast<int*>(seen) = 1; },
      static_cast<void*>(&called));
  DO(event_record, o.later, o.stream);
  DO(stream_wait_event, o.borrowed, o.later);
  ASK(stream_query, o.stream);  // done or not: both are answers
  DO(stream_synchronize, o.stream);
  DO(event_synchronize, o.later);
  DO(event_query, o.later);
  double milliseconds = -1;
  DO(event_elapsed, o.event, o.later, &milliseconds);
  CHECK(value == 1 && called == 1 && milliseconds >= 0);
}

void walk_captures_and_graphs(Walker& walk, Objects& o) {
  const void* arguments[] = {&o.memory};
  const lockstep_launch_desc launch = launch_desc(o.kernel, 1, 1, arguments, 1);
  DO(capture_begin, o.stream, std::uint32_t{LOCKSTEP_CAPTURE_THREAD_LOCAL});
  REFUSED(capture_begin, o.stream, std::uint32_t{LOCKSTEP_CAPTURE_THREAD_LOCAL});
  DO(launch, o.stream, &launch);
  std::uint32_t status = 0;
  std::uint64_t id = 0;
  DO(capture_status, o.stream, &status, &id);
  CHECK(status == LOCKSTEP_CAPTURE_ACTIVE && id != 0);
  std::uint32_t mode = LOCKSTEP_CAPTURE_RELAXED;
  DO(capture_thread_mode, o.own, &mode);
  DO(capture_thread_mode, o.own, &mode);
  DO(capture_end, o.stream, &o.captured);
  lockstep_graph* none = nullptr;
  REFUSED(capture_end, o.stream, &none);
  // One that a forbidden call ends.
  DO(capture_begin, o.stream, std::uint32_t{LOCKSTEP_CAPTURE_THREAD_LOCAL});
  REFUSED(stream_synchronize, o.stream);
  REFUSED(capture_end, o.stream, &none);

  DO(graph_create, o.own, &o.built);
  lockstep_node_desc node{};
  node.struct_size = sizeof node;
  node.kind = LOCKSTEP_NODE_KERNEL;
  node.launch = &launch;
  std::uint32_t first = 0, second = 0, count = 0, edges = 0;
  DO(graph_add_node, o.built, &node, static_cast<const std::uint32_t*>(nullptr), 0U, &first);
  DO(graph_add_node, o.built, &node, &first, 1U, &second);
  node.kind = LOCKSTEP_NODE_SET;
  lockstep_set_desc set = set_desc(o.memory, 16, 0, 4);
  node.set = &set;
  DO(graph_add_node, o.built, &node, &second, 1U, &second);
  lockstep_node_info listed{};
  listed.struct_size = sizeof listed;
  DO(graph_node_count, o.built, &count);
  DO(graph_node, o.built, 0U, &listed);
  DO(graph_edges, o.built, static_cast<lockstep_graph_edge*>(nullptr), 0U, &edges);
  CHECK(count == 3 && edges == 2 && listed.kind == LOCKSTEP_NODE_KERNEL);
  DO(graph_clone, o.built, &o.clone);
  DO(graph_from_native, o.own, PLAIN(graph_native, o.built), &o.view);
  DO(graph_instantiate, o.built, &o.exec);
  CHECK(PLAIN(graph_exec_native, o.exec) != nullptr);
  std::uint32_t version = 0;
  CHECK(PLAIN(graph_exec_identity, o.exec, &version) != 0);
  std::uint32_t outcome = 0;
  DO(graph_exec_update, o.exec, o.clone, &outcome);
  CHECK(outcome == LOCKSTEP_UPDATE_DONE);
  DO(graph_exec_update, o.exec, o.captured, &outcome);
  CHECK(outcome != LOCKSTEP_UPDATE_DONE);
  DO(graph_exec_set_enabled, o.exec, 1U, 0U);
  DO(graph_exec_launch, o.exec, o.stream);
  DO(stream_synchronize, o.stream);
}

void walk_ends(Walker& walk, Objects& o) {
  PLAIN(graph_exec_destroy, o.exec);
  for (lockstep_graph* graph : {o.view, o.clone, o.captured, o.built}) PLAIN(graph_destroy, graph);
  for (lockstep_event* event : {o.foreign_event, o.later, o.event}) PLAIN(event_destroy, event);
  PLAIN(module_destroy, o.module);
  DO(memory_free, o.own, o.pinned, static_cast<lockstep_stream*>(nullptr));
  DO(memory_free, o.own, o.memory, static_cast<lockstep_stream*>(nullptr));
  for (lockstep_stream* stream : {o.borrowed, o.legacy, o.stream}) PLAIN(stream_destroy, stream);
  PLAIN(device_close, o.own);
  if (o.other != nullptr) PLAIN(device_close, o.other);
}

void walk_all(const std::string& ambient_name, void* ambient, std::uint32_t ordinal,
              std::uint32_t count) {
  Walker walk(ambient_name, ambient);
  Objects objects;
  walk_devices(walk, objects, ordinal, count);
  walk_memory(walk, objects);
  walk_modules(walk, objects);
  walk_streams(walk, objects);
  walk_captures_and_graphs(walk, objects);
  walk_ends(walk, objects);
  CHECK(walk.visited().size() == kSlots);
  std::printf("device %u, %s current: %zu of %zu slots, %d calls\n", ordinal, ambient_name.c_str(),
              walk.visited().size(), kSlots, walk.calls());
}

// Work that others capture behind the plugin's back is still told apart: on a stream of theirs, on
// one of ours whose handle they have, and on one of ours that joins by an event.
void see_foreign_captures() {
  lockstep_module_desc desc{};
  desc.struct_size = sizeof desc;
  desc.format = LOCKSTEP_MODULE_SOURCE;
  desc.data = kSource;
  desc.bytes = std::strlen(kSource);
  const char* names[] = {"add_one"};
  desc.kernels = names;
  desc.kernel_count = 1;
  MUST(b->module_create, device, &desc, &module);
  MUST(b->module_kernel, module, "add_one", &add_one);
  void* memory = nullptr;
  CHECK(allocate(64, &memory).ok());
  auto* value = static_cast<int*>(memory);
  lockstep_stream *given = make_stream(), *joining = make_stream(), *apart = make_stream();
  lockstep_event* event = make_event();
  const auto begin = native<int (*)(void*, int)>("cuStreamBeginCapture_v2");
  const auto end = native<int (*)(void*, void**)>("cuStreamEndCapture");
  const auto captured = [&](lockstep_stream* stream) {
    CHECK(launch_on(stream, add_one, value).ok());
    const std::vector<Entry> entries = take();
    return entries.size() == 1 && (entries[0].flags & LOCKSTEP_RECORD_CAPTURED) != 0;
  };
  g_active = 1;
  void* handle = b->stream_native(given);
  CHECK(!captured(given));
  CHECK(begin(handle, 1) == 0);
  CHECK(captured(given));
  MUST(b->event_record, event, given);
  MUST(b->stream_wait_event, joining, event);
  take();
  CHECK(captured(joining));
  CHECK(!captured(apart));
  MUST(b->event_record, event, joining);
  MUST(b->stream_wait_event, given, event);
  void* graph = nullptr;
  CHECK(end(handle, &graph) == 0 && graph != nullptr);
  take();
  CHECK(!captured(given) && !captured(joining));
  g_active = 0;
  MUST(b->stream_synchronize, given);
  for (lockstep_stream* stream : {given, joining, apart}) b->stream_destroy(stream);
  b->event_destroy(event);
  b->module_destroy(module);
}

}  // namespace

int main(int argc, char** argv) {
  if (const int code = load_plugin(argc, argv)) return code;
  if (native<GetContext>("cuCtxGetCurrent") == nullptr) {
    std::printf("skipped: the driver is not libcuda.so.1\n");
    return 77;
  }
  std::uint32_t count = 0;
  MUST(b->device_count, &count);
  std::vector<void*> contexts;
  for (std::uint32_t ordinal = 0; ordinal < std::min(count, 2U); ++ordinal) {
    lockstep_device* opened = nullptr;
    MUST(b->device_open, ordinal, &opened);
    contexts.push_back(b->device_native(opened));
  }
  for (std::uint32_t ordinal = 0; ordinal < contexts.size(); ++ordinal) {
    walk_all("nothing", nullptr, ordinal, count);
    walk_all("its own context", contexts[ordinal], ordinal, count);
    if (contexts.size() > 1) {
      walk_all("another device's context", contexts[1 - ordinal], ordinal, count);
    }
  }
  if (contexts.size() < 2) std::printf("one device only: another device's context was not tried\n");
  std::thread([&] { walk_all("on a fresh thread nothing", nullptr, 0, count); }).join();
  native<SetContext>("cuCtxSetCurrent")(nullptr);
  MUST(b->device_open, 0U, &device);
  see_foreign_captures();
  std::printf("%d checks, %d failures\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
