// SPDX-License-Identifier: Apache-2.0
#include "fake_driver.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

namespace lockstep::gpu_test {
namespace {

FakeNode* add(FakeGraph& graph, gpu::NodeFacts facts, std::vector<FakeNode*> after) {
  graph.nodes.push_back(std::make_unique<FakeNode>(FakeNode{std::move(facts), std::move(after)}));
  return graph.nodes.back().get();
}
FakeGraph& graph_at(gpu::Handle handle) { return *static_cast<FakeGraph*>(handle); }

// As a getter that is not to be trusted has it.
gpu::NodeFacts facts_of_copy() {
  gpu::NodeFacts facts;
  facts.kind = LOCKSTEP_NODE_COPY;
  facts.copy.width = 0xBAD;
  return facts;
}

std::unique_ptr<FakeGraph> copy_of(const FakeGraph& graph) {
  auto copy = std::make_unique<FakeGraph>();
  std::map<const FakeNode*, FakeNode*> copies;
  for (const auto& node : graph.nodes) {
    std::vector<FakeNode*> after;
    for (const FakeNode* before : node->after) after.push_back(copies.at(before));
    FakeNode* made = copies[node.get()] = add(*copy, node->facts, after);
    made->original = node.get();
    if (node->facts.child == nullptr) continue;
    copy->children.push_back(copy_of(graph_at(node->facts.child)));
    made->facts.child = copy->children.back().get();
  }
  return copy;
}

}  // namespace

FakeDriver::FakeDriver() {
  made_traits.name = "fake";
  made_traits.legacy_stream = reinterpret_cast<Handle>(1);
  made_traits.per_thread_stream = reinterpret_cast<Handle>(2);
}

const char* FakeDriver::call_name(gpu::Call call) const {
  static std::map<gpu::Call, std::string> names;
  std::string& name = names[call];
  if (name.empty()) name = "fakeCall" + std::to_string(static_cast<int>(call));
  return name.c_str();
}

void FakeDriver::capture_foreign_node(Handle stream, std::uint32_t kind) {
  FakeStream& on = *streams_.at(stream);
  gpu::NodeFacts facts;
  facts.kind = kind;
  on.tail = {add(*captures_.at(on.capture).graph, facts, on.tail)};
}

FakeDriver::Result FakeDriver::device_count(int* count) {
  *count = 1;
  return 0;
}
FakeDriver::Result FakeDriver::device_info(int, lockstep_device_info* info) {
  std::strcpy(info->arch, "fake_1");
  return 0;
}
FakeDriver::Result FakeDriver::device_attribute(int, lockstep_device_attribute attribute,
                                                std::int64_t* value, bool* known) {
  *value = attribute == LOCKSTEP_ATTR_MAX_GRID_X ? 2147483647 : 1024;
  *known = true;
  return 0;
}
FakeDriver::Result FakeDriver::context_retain(int ordinal, gpu::Context* context) {
  *context = reinterpret_cast<gpu::Context>(static_cast<std::intptr_t>(ordinal) + 1);
  return 0;
}
FakeDriver::Result FakeDriver::context_current(gpu::Context* context) {
  *context = current_;
  return 0;
}
FakeDriver::Result FakeDriver::context_set(gpu::Context context) {
  current_ = context;
  return 0;
}
FakeDriver::Result FakeDriver::unsafe(bool even_relaxed) {
  if (captures_.empty() || (!even_relaxed && capture_mode == LOCKSTEP_CAPTURE_RELAXED)) return 0;
  for (auto& [id, capture] : captures_) capture.invalidated = true;
  return 900;
}
FakeDriver::Result FakeDriver::context_synchronize() {
  calls.emplace_back("wait for all");
  return unsafe(true);
}
FakeDriver::Result FakeDriver::memory_allocate(std::uint64_t bytes, void** address) {
  *address = std::calloc(1, bytes);
  device_memory.insert(*address);
  return 0;
}
FakeDriver::Result FakeDriver::memory_free(void* address) {
  if (const Result result = std::exchange(next_result, 0)) return result;
  device_memory.erase(address);
  std::free(address);
  return 0;
}
FakeDriver::Result FakeDriver::pointer_facts(const void* address, gpu::PointerFacts* facts) {
  if (device_memory.contains(address)) facts->memory_kind = LOCKSTEP_MEMORY_DEVICE;
  return 0;
}

lockstep_code FakeDriver::compile(int, const lockstep_module_desc&, gpu::CompiledCode* code,
                                  lockstep_error*) {
  code->code = {'c', 'o', 'd', 'e'};
  return LOCKSTEP_OK;
}
FakeDriver::Result FakeDriver::module_load(const void*, std::string*, Handle* module) {
  *module = reinterpret_cast<Handle>(++next_id_ << 8);
  return 0;
}
FakeDriver::Result FakeDriver::module_unload(Handle) {
  calls.emplace_back("unload");
  const Result result = unsafe(false);
  return result != 0 ? result : std::exchange(unload_result, 0);
}
FakeDriver::Result FakeDriver::module_function(Handle, const char*, Handle* function) {
  *function = reinterpret_cast<Handle>(++next_id_ << 8);
  return 0;
}
FakeDriver::Result FakeDriver::function_facts(Handle, gpu::FunctionFacts* facts) {
  facts->max_threads_per_block = 1024;
  facts->max_dynamic_shared_bytes = 49152;
  return 0;
}
gpu::ParameterLayout FakeDriver::function_parameters(Handle, Handle, const std::string&) {
  // (pointer, int): the driver tells sizes, not kinds.
  return {true, {{0, 8, 255, {}}, {8, 4, 0, {}}}};
}

FakeDriver::Result FakeDriver::stream_create(bool, std::int32_t, Handle* stream) {
  auto made = std::make_unique<FakeStream>();
  made->id = ++next_id_;
  *stream = next_stream != nullptr ? std::exchange(next_stream, nullptr) : made.get();
  streams_[*stream] = std::move(made);
  ++streams_made;
  return 0;
}
FakeDriver::Result FakeDriver::stream_destroy(Handle stream) {
  streams_.erase(stream);
  return 0;
}
FakeDriver::Result FakeDriver::stream_synchronize(Handle stream) {
  FakeStream& on = *streams_.at(stream);
  if (on.capture == 0) return 0;
  captures_.at(on.capture).invalidated = true;
  return 900;
}
FakeDriver::Result FakeDriver::stream_context(Handle, gpu::Context* context) {
  *context = reinterpret_cast<gpu::Context>(1);
  return 0;
}
FakeDriver::Result FakeDriver::stream_is_non_blocking(Handle stream, bool* non_blocking) {
  if (streams_.at(stream)->capture != 0) ++id_questions_while_capturing;
  *non_blocking = true;
  return 0;
}
bool FakeDriver::stream_unique_id(Handle stream, std::uint64_t* id) {
  if (streams_.at(stream)->capture != 0) ++id_questions_while_capturing;
  *id = streams_.at(stream)->id;
  return tells_stream_ids;
}
FakeDriver::Result FakeDriver::event_create(bool, Handle* event) {
  *event = new FakeEvent;
  return 0;
}
FakeDriver::Result FakeDriver::event_destroy(Handle event) {
  delete static_cast<FakeEvent*>(event);
  return 0;
}
FakeDriver::Result FakeDriver::event_record(Handle event, Handle stream) {
  const FakeStream& on = *streams_.at(stream);
  *static_cast<FakeEvent*>(event) = {on.capture, on.tail};
  return 0;
}
FakeDriver::Result FakeDriver::event_synchronize(Handle) {
  calls.emplace_back("wait");
  return unsafe(false);
}
FakeDriver::Result FakeDriver::stream_wait_event(Handle stream, Handle event) {
  FakeStream& on = *streams_.at(stream);
  const FakeEvent& awaited = *static_cast<FakeEvent*>(event);
  if (awaited.capture == 0) return 0;
  if (on.capture != 0 && on.capture != awaited.capture) {
    captures_.at(on.capture).invalidated = captures_.at(awaited.capture).invalidated = true;
    return 902;
  }
  on.capture = awaited.capture;
  for (FakeNode* node : awaited.tail) on.tail.push_back(node);
  return 0;
}

FakeDriver::Result FakeDriver::enqueue(const std::string& call, Handle stream,
                                       gpu::NodeFacts facts) {
  calls.push_back(call);
  if (const Result result = std::exchange(next_result, 0)) return result;
  FakeStream& on = *streams_.at(stream);
  if (on.capture == 0) return 0;
  on.tail = {add(*captures_.at(on.capture).graph, std::move(facts), on.tail)};
  if (const auto other = std::exchange(before_returning, nullptr)) other();
  return 0;
}
FakeDriver::Result FakeDriver::launch(const gpu::KernelLaunch& launch, Handle stream) {
  gpu::NodeFacts facts;
  facts.kind = LOCKSTEP_NODE_KERNEL;
  facts.kernel = launch;
  return enqueue("launch", stream, facts);
}
FakeDriver::Result FakeDriver::launch_host(lockstep_host_function, void*, Handle stream) {
  gpu::NodeFacts facts;
  facts.kind = LOCKSTEP_NODE_HOST;
  return enqueue("host", stream, facts);
}
FakeDriver::Result FakeDriver::copy(const gpu::Copy&, gpu::Call call, Handle stream) {
  return enqueue(std::string("copy ") + call_name(call), stream, facts_of_copy());
}
FakeDriver::Result FakeDriver::set(const gpu::Set& set, gpu::Call call, Handle stream) {
  gpu::NodeFacts facts;
  facts.kind = LOCKSTEP_NODE_SET;
  facts.set = set;
  return enqueue(std::string("set ") + call_name(call), stream, facts);
}

FakeDriver::Result FakeDriver::exchange_capture_mode(std::uint32_t* mode) {
  std::swap(*mode, capture_mode);
  return 0;
}
FakeDriver::Result FakeDriver::begin_capture(Handle stream, std::uint32_t) {
  FakeStream& on = *streams_.at(stream);
  if (on.capture != 0) return 401;
  on.capture = ++next_id_;
  on.origin = true;
  captures_[on.capture].graph = std::make_unique<FakeGraph>();
  return 0;
}
void FakeDriver::leave(std::uint64_t capture) {
  for (auto& [handle, stream] : streams_) {
    if (stream->capture != capture) continue;
    stream->capture = 0;
    stream->origin = false;
    stream->tail.clear();
  }
  captures_.erase(capture);
}
FakeDriver::Result FakeDriver::end_capture(Handle stream, Handle* graph) {
  FakeStream& on = *streams_.at(stream);
  if (on.capture == 0 || !on.origin) return on.capture == 0 ? 401 : 903;
  Capture& capture = captures_.at(on.capture);
  std::set<FakeNode*> reached;
  const std::function<void(FakeNode*)> reach = [&](FakeNode* node) {
    if (!reached.insert(node).second) return;
    for (FakeNode* before : node->after) reach(before);
  };
  for (FakeNode* node : on.tail) reach(node);
  const Result result = capture.invalidated                             ? 901
                        : reached.size() != capture.graph->nodes.size() ? 904
                                                                        : 0;
  if (result == 0) *graph = capture.graph.release();
  leave(on.capture);
  return result;
}
FakeDriver::Result FakeDriver::capture_info(Handle stream, gpu::CaptureInfo* info) {
  if (questions_until_failure > 0 && --questions_until_failure == 0) return 999;
  const auto it = streams_.find(stream);
  if (it == streams_.end() || it->second->capture == 0) return 0;
  const FakeStream& on = *it->second;
  const Capture& capture = captures_.at(on.capture);
  info->status = capture.invalidated ? LOCKSTEP_CAPTURE_IS_INVALIDATED : LOCKSTEP_CAPTURE_ACTIVE;
  info->id = on.capture;
  info->graph = capture.graph.get();
  info->dependencies = reinterpret_cast<const Handle*>(on.tail.data());
  info->dependency_count = on.tail.size();
  return 0;
}

FakeDriver::Result FakeDriver::graph_create(Handle* graph) {
  *graph = new FakeGraph;
  return 0;
}
FakeDriver::Result FakeDriver::graph_destroy(Handle graph) {
  delete static_cast<FakeGraph*>(graph);
  return 0;
}
FakeDriver::Result FakeDriver::graph_add_empty(Handle graph, const std::vector<Handle>& after,
                                               Handle* node) {
  gpu::NodeFacts facts;
  facts.kind = LOCKSTEP_NODE_EMPTY;
  std::vector<FakeNode*> before;
  for (Handle each : after) before.push_back(static_cast<FakeNode*>(each));
  *node = add(graph_at(graph), facts, before);
  return 0;
}
FakeDriver::Result FakeDriver::graph_add_child(Handle graph, const std::vector<Handle>& after,
                                               Handle child, Handle* node) {
  const Result result = graph_add_empty(graph, after, node);
  static_cast<FakeNode*>(*node)->facts.kind = LOCKSTEP_NODE_CHILD_GRAPH;
  FakeGraph& parent = graph_at(graph);
  parent.children.push_back(copy_of(graph_at(child)));
  static_cast<FakeNode*>(*node)->facts.child = parent.children.back().get();
  return result;
}
FakeDriver::Result FakeDriver::graph_add_copy(Handle graph, const std::vector<Handle>& after,
                                              const gpu::Copy&, gpu::Context, Handle* node) {
  const Result result = graph_add_empty(graph, after, node);
  static_cast<FakeNode*>(*node)->facts = facts_of_copy();
  return result;
}
FakeDriver::Result FakeDriver::graph_clone(Handle graph, Handle* clone) {
  *clone = copy_of(graph_at(graph)).release();
  return 0;
}
FakeDriver::Result FakeDriver::graph_find_in_clone(Handle node, Handle clone, Handle* found) {
  for (const auto& candidate : graph_at(clone).nodes) {
    if (candidate->original != node) continue;
    *found = candidate.get();
    return 0;
  }
  return 1;
}
FakeDriver::Result FakeDriver::graph_node_count(Handle graph, std::size_t* count) {
  *count = graph_at(graph).nodes.size();
  return 0;
}
FakeDriver::Result FakeDriver::graph_nodes(Handle graph, std::vector<Handle>* nodes) {
  // Backwards: no driver promises an order.
  const FakeGraph& from = graph_at(graph);
  for (std::size_t index = from.nodes.size(); index > 0; --index) {
    nodes->push_back(from.nodes[index - 1].get());
  }
  return 0;
}
FakeDriver::Result FakeDriver::graph_edges(Handle graph, std::vector<gpu::Edge>* edges) {
  for (const auto& node : graph_at(graph).nodes) {
    for (FakeNode* before : node->after) edges->push_back({before, node.get(), false});
  }
  return 0;
}
FakeDriver::Result FakeDriver::graph_node_facts(Handle node, gpu::NodeFacts* facts) {
  *facts = static_cast<FakeNode*>(node)->facts;
  return 0;
}
FakeDriver::Result FakeDriver::graph_instantiate(Handle, Handle* exec) {
  *exec = reinterpret_cast<Handle>(++next_id_);
  return 0;
}
FakeDriver::Result FakeDriver::graph_exec_update(Handle, Handle graph, std::uint32_t* outcome) {
  updated_to.push_back(graph);
  if (!update_outcomes.empty()) {
    *outcome = update_outcomes.front();
    update_outcomes.erase(update_outcomes.begin());
    return 0;
  }
  *outcome = static_cast<std::uint32_t>(std::exchange(next_result, 0));
  return 0;
}
FakeDriver::Result FakeDriver::graph_launch(Handle, Handle stream) {
  return enqueue("graph", stream, {});
}

}  // namespace lockstep::gpu_test
