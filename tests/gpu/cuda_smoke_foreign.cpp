// SPDX-License-Identifier: Apache-2.0
// Beside the plugin's own objects: foreign streams, memory and contexts, and what a launch costs.
#include <algorithm>
#include <chrono>

#include "native_driver.h"
#include "smoke_device.h"

namespace smoke {

void test_foreign(lockstep_stream* stream, int* value) {
  const auto create_stream = native<int (*)(void**, unsigned)>("cuStreamCreate");
  const auto destroy_stream = native<int (*)(void*)>("cuStreamDestroy_v2");
  const auto begin = native<int (*)(void*, int)>("cuStreamBeginCapture_v2");
  const auto status_of = native<int (*)(void*, int*)>("cuStreamIsCapturing");
  const auto end = native<int (*)(void*, void**)>("cuStreamEndCapture");
  const auto allocate_native = native<int (*)(std::uint64_t*, std::size_t)>("cuMemAlloc_v2");
  const auto free_native = native<int (*)(std::uint64_t)>("cuMemFree_v2");
  const auto set_context = native<int (*)(void*)>("cuCtxSetCurrent");
  const auto get_context = native<int (*)(void**)>("cuCtxGetCurrent");
  const auto create_context = native<int (*)(void**, unsigned, int)>("cuCtxCreate_v2");
  const auto pop_context = native<int (*)(void**)>("cuCtxPopCurrent_v2");
  if (create_stream == nullptr) {
    std::printf("foreign objects: not tried, the driver is not libcuda.so.1\n");
    return;
  }
  // The plugin left the thread without a context, as it found it.
  void* current = &current;
  CHECK(get_context(&current) == 0 && current == nullptr);
  set_context(b->device_native(device));

  // What may be asked of a stream that captures.
  const auto get_id = native<int (*)(void*, unsigned long long*)>("cuStreamGetId");
  const auto get_flags = native<int (*)(void*, unsigned*)>("cuStreamGetFlags");
  const auto get_stream_context = native<int (*)(void*, void**)>("cuStreamGetCtx");
  const auto get_priority = native<int (*)(void*, int*)>("cuStreamGetPriority");
  const auto probe = [&](const char* name, auto&& ask) {
    void *s = nullptr, *graph = nullptr;
    int status = -1;
    create_stream(&s, 1);
    begin(s, 2);
    const int asked = ask(s);
    status_of(s, &status);
    const int ended = end(s, &graph);
    std::printf("  %s of a capturing stream: %d, then status %d, end %d\n", name, asked, status,
                ended);
    destroy_stream(s);
  };
  unsigned long long id = 0;
  unsigned flags = 0;
  int priority = 0;
  probe("cuStreamGetId", [&](void* s) { return get_id(s, &id); });
  probe("cuStreamGetFlags", [&](void* s) { return get_flags(s, &flags); });
  probe("cuStreamGetCtx", [&](void* s) { return get_stream_context(s, &current); });
  probe("cuStreamGetPriority", [&](void* s) { return get_priority(s, &priority); });

  // A stream that somebody else made and captures: met while it captures, known afterwards.
  void *s = nullptr, *graph = nullptr;
  CHECK(create_stream(&s, 1) == 0 && begin(s, 1) == 0);
  set_context(nullptr);
  lockstep_stream *met = nullptr, *again = nullptr;
  MUST(b->stream_from_native, device, s, &met);
  g_active = 1;
  CHECK(launch_on(met, add_one, value).ok());
  g_active = 0;
  const std::vector<Entry> entries = take();
  CHECK(entries.size() == 1 && (entries[0].flags & LOCKSTEP_RECORD_CAPTURED) != 0);
  CHECK(end(s, &graph) == 0 && graph != nullptr);
  MUST(b->stream_from_native, device, s, &again);
  CHECK(b->stream_identity(met) == b->stream_identity(again));
  CHECK(launch_on(again, add_one, value).ok());
  MUST(b->stream_synchronize, again);
  // Begun by somebody else, ended here.
  set_context(b->device_native(device));
  CHECK(begin(s, 1) == 0);
  CHECK(launch_on(again, add_one, value).ok() && launch_on(again, twice, value).ok());
  lockstep_graph* adopted = nullptr;
  MUST(b->capture_end, again, &adopted);
  CHECK(nodes_of(adopted) == 2);
  b->graph_destroy(adopted);
  b->stream_destroy(met);
  b->stream_destroy(again);
  destroy_stream(s);

  // Memory that the plugin did not allocate is device memory all the same.
  std::uint64_t address = 0;
  CHECK(allocate_native(&address, 4096) == 0);
  int number = 5;
  CHECK(copy(stream, reinterpret_cast<void*>(address), &number, 4, LOCKSTEP_COPY_HTOD).ok());
  CHECK(read_int(stream, reinterpret_cast<int*>(address)) == 5);
  CHECK(copy(stream, &number, reinterpret_cast<void*>(address), 4, LOCKSTEP_COPY_HTOD).code ==
        LOCKSTEP_E_INVALID_ARGUMENT);
  free_native(address);

  // A stream of another context of the device.
  void *context = nullptr, *popped = nullptr, *other = nullptr;
  if (create_context != nullptr && create_context(&context, 0, 0) == 0) {
    CHECK(create_stream(&other, 1) == 0 && allocate_native(&address, 4096) == 0);
    pop_context(&popped);
    lockstep_stream* elsewhere = nullptr;
    MUST(b->stream_from_native, device, other, &elsewhere);
    const lockstep_set_desc desc = set_desc(reinterpret_cast<void*>(address), 4, 3, 4);
    MUST(b->set, elsewhere, &desc);
    CHECK(read_int(elsewhere, reinterpret_cast<int*>(address)) == 3);
    const Answer foreign = launch_on(elsewhere, add_one, value);
    CHECK(!foreign.ok());
    std::printf("  kernel on another context's stream: %s\n", foreign.error.message);
    b->stream_destroy(elsewhere);
  }
  set_context(nullptr);

  // A programmatic launch while capturing makes a programmatic edge.
  const std::uint32_t one = 1;
  const lockstep_attribute attribute{LOCKSTEP_LAUNCH_PROGRAMMATIC_SERIALIZATION, 4, &one};
  const void* arguments[] = {&value};
  lockstep_launch_desc launch = launch_desc(add_one, 1, 1, arguments, 1);
  MUST(b->capture_begin, stream, std::uint32_t{LOCKSTEP_CAPTURE_THREAD_LOCAL});
  MUST(b->launch, stream, &launch);
  launch.attributes = &attribute;
  launch.attribute_count = 1;
  MUST(b->launch, stream, &launch);
  MUST(b->capture_end, stream, &adopted);
  lockstep_graph_edge edge{};
  std::uint32_t edges = 0;
  MUST(b->graph_edges, adopted, &edge, 1U, &edges);
  CHECK(edges == 1 && edge.from == 0 && edge.to == 1 && edge.programmatic == 1);
  b->graph_destroy(adopted);

  // Memory that is allocated in a capture and outlives the graph's launch.
  MUST(b->capture_begin, stream, std::uint32_t{LOCKSTEP_CAPTURE_THREAD_LOCAL});
  void* inside = nullptr;
  CHECK(allocate(8192, &inside, LOCKSTEP_MEMORY_DEVICE, stream).ok());
  lockstep_set_desc fill = set_desc(inside, 16, 77, 4);
  MUST(b->set, stream, &fill);
  MUST(b->capture_end, stream, &adopted);
  lockstep_node_info first{};
  first.struct_size = sizeof first;
  MUST(b->graph_node, adopted, 0U, &first);
  CHECK(first.kind == LOCKSTEP_NODE_ALLOC && first.record->of.memory.bytes == 8192 &&
        first.record->of.memory.address == reinterpret_cast<std::uintptr_t>(inside));
  lockstep_graph_exec* exec = nullptr;
  MUST(b->graph_instantiate, adopted, &exec);
  MUST(b->graph_exec_launch, exec, stream);
  CHECK(read_int(stream, static_cast<int*>(inside) + 15) == 77);
  MUST(b->memory_free, device, inside, stream);
  MUST(b->stream_synchronize, stream);
  b->graph_exec_destroy(exec);
  b->graph_destroy(adopted);

  // Attributes of nodes added by hand come back.
  const lockstep_dim3 cluster{2, 1, 1};
  const lockstep_attribute clustered{LOCKSTEP_LAUNCH_CLUSTER, sizeof cluster, &cluster};
  launch.grid = {4, 1, 1};
  launch.attributes = &clustered;
  MUST(b->graph_create, device, &adopted);
  lockstep_node_desc node{};
  node.struct_size = sizeof node;
  node.kind = LOCKSTEP_NODE_KERNEL;
  node.launch = &launch;
  std::uint32_t made = 0;
  MUST(b->graph_add_node, adopted, &node, nullptr, 0U, &made);
  lockstep_node_info info{};
  info.struct_size = sizeof info;
  MUST(b->graph_node, adopted, 0U, &info);
  CHECK(info.record->of.kernel.cluster.x == 2 && info.record->of.kernel.grid.x == 4);
  b->graph_destroy(adopted);
}

void test_peer(lockstep_stream* stream) {
  std::uint32_t count = 0;
  MUST(b->device_count, &count);
  if (count < 2) {
    std::printf("peer copies: not tried, there is one device\n");
    return;
  }
  lockstep_device* second = nullptr;
  MUST(b->device_open, 1U, &second);
  std::uint32_t can = 0;
  MUST(b->peer_access, device, second, &can);
  std::printf("  peer access: %u\n", can);
  if (can != 0) {
    MUST(b->peer_enable, device, second);
    MUST(b->peer_enable, device, second);
    MUST(b->peer_enable, second, device);
  }
  lockstep_allocation_desc desc{};
  desc.struct_size = sizeof desc;
  desc.bytes = 1 << 20;
  desc.memory_kind = LOCKSTEP_MEMORY_DEVICE;
  void *here = nullptr, *there = nullptr;
  MUST(b->memory_allocate, device, &desc, &here);
  MUST(b->memory_allocate, second, &desc, &there);
  std::vector<int> sent(1024), back(1024);
  for (int i = 0; i < 1024; ++i) sent[static_cast<std::size_t>(i)] = i * 3;
  CHECK(copy(stream, here, sent.data(), 4096).ok());
  g_active = 1;
  CHECK(copy(stream, there, here, 4096, LOCKSTEP_COPY_DTOD).ok());
  lockstep_copy_desc box = copy_desc(static_cast<char*>(there) + 8192, here, 64);
  box.height = 4;
  box.source_pitch = 128;
  box.destination_pitch = 256;
  MUST(b->copy, stream, &box);
  g_active = 0;
  const std::vector<Entry> entries = take();
  CHECK(entries.size() == 2 && entries[0].name == "cuMemcpyPeerAsync" &&
        entries[0].record.device == 0 && entries[0].record.of.copy.peer_device == 1 &&
        entries[1].name == "cuMemcpy3DPeerAsync");
  CHECK(copy(stream, back.data(), there, 4096).ok());
  MUST(b->stream_synchronize, stream);
  CHECK(back == sent);
  CHECK(read_int(stream, reinterpret_cast<int*>(static_cast<char*>(there) + 8192 + 3 * 256)) ==
        3 * 32 * 3);
  // The peer call is illegal while capturing; the plugin takes another there.
  MUST(b->capture_begin, stream, std::uint32_t{LOCKSTEP_CAPTURE_THREAD_LOCAL});
  CHECK(copy(stream, static_cast<char*>(there) + 65536, here, 4096).ok());
  MUST(b->copy, stream, &box);
  lockstep_graph* graph = nullptr;
  MUST(b->capture_end, stream, &graph);
  lockstep_graph_exec* exec = nullptr;
  MUST(b->graph_instantiate, graph, &exec);
  MUST(b->graph_exec_launch, exec, stream);
  CHECK(read_int(stream, reinterpret_cast<int*>(static_cast<char*>(there) + 65536) + 9) == 27);
  b->graph_exec_destroy(exec);
  b->graph_destroy(graph);
  // A kernel of the first device cannot run on the second one's stream.
  lockstep_stream_desc made{sizeof made, 1, 0};
  lockstep_stream* other = nullptr;
  MUST(b->stream_create, second, &made, &other);
  CHECK(!launch_on(other, add_one, static_cast<int*>(there)).ok());
  b->stream_destroy(other);
  MUST(b->memory_free, device, here, static_cast<lockstep_stream*>(nullptr));
  MUST(b->memory_free, second, there, static_cast<lockstep_stream*>(nullptr));
  b->device_close(second);
}

void measure(lockstep_stream* stream, int* value) {
  // Opened already by the plugin; here only to compare with the bare call.
  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void*, void**, void**);
  const auto bare = native<Launch>("cuLaunchKernel");
  if (bare == nullptr) return;
  const void* arguments[] = {&value};
  const lockstep_launch_desc desc = launch_desc(add_one, 1, 1, arguments, 1);
  const auto time = [&](auto&& one) {
    constexpr int kBatch = 200;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) one();
    const auto end = std::chrono::steady_clock::now();
    b->stream_synchronize(stream, nullptr);
    return std::chrono::duration<double, std::nano>(end - begin).count() / kBatch;
  };
  std::vector<double> raw, off, on, without;
  const auto set_context = native<int (*)(void*)>("cuCtxSetCurrent");
  set_context(b->device_native(device));
  int bad = 0;
  void* handle = b->stream_native(stream);
  void* function = b->kernel_native(add_one);
  for (int round = 0; round < 101; ++round) {
    raw.push_back(time([&] {
      bad |= bare(function, 1, 1, 1, 1, 1, 1, 0, handle, const_cast<void**>(arguments), nullptr);
    }));
    off.push_back(time([&] { b->launch(stream, &desc, nullptr); }));
    g_active = 1;
    on.push_back(time([&] { b->launch(stream, &desc, nullptr); }));
    g_active = 0;
    take();
    set_context(nullptr);
    without.push_back(time([&] { b->launch(stream, &desc, nullptr); }));
    set_context(b->device_native(device));
  }
  set_context(nullptr);
  CHECK(bad == 0);
  const auto print = [](const char* name, std::vector<double>& all) {
    std::sort(all.begin(), all.end());
    std::printf("  launch, %s: least %.0f, median %.0f ns\n", name, all.front(),
                all[all.size() / 2]);
  };
  print("bare driver call", raw);
  print("plugin", off);
  print("plugin, no context current before", without);
  print("plugin, into a test recorder", on);
}

}  // namespace smoke
