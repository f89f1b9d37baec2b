// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device.h>
#include <lockstep/error.h>
#include <lockstep/graph.h>

#include <fmt/format.h>

#include "src/runtime/copy_plan.h"
#include "src/runtime/launch_check.h"
#include "src/runtime/states.h"

namespace lockstep {

using detail::GraphState;
using runtime::ErrorRecord;

namespace {

GraphState& usable(const Graph& graph) {
  GraphState& state = graph.state();
  state.device_state.check_usable();
  return state;
}

void check(GraphState& graph, lockstep_code code, const ErrorRecord& error, const char* function,
           const std::string& subject = {}) {
  if (code != LOCKSTEP_OK) {
    detail::DeviceState& device = graph.device_state;
    runtime::throw_plugin_error(device.backend, &device, nullptr, code, error, {function, subject});
  }
}

lockstep_node_desc describe_node(std::uint32_t kind) {
  lockstep_node_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.kind = kind;
  return desc;
}

GraphNode add(GraphState& graph, std::span<const GraphNode> dependencies,
              const lockstep_node_desc& desc, const char* function) {
  const lockstep_backend& table = graph.device_state.backend.table;
  std::uint32_t count = 0;
  ErrorRecord error;
  check(graph, table.graph_node_count(graph.handle, &count, &error), error, function);
  std::vector<std::uint32_t> before;
  for (const GraphNode& dependency : dependencies) {
    if (dependency.index >= count) {
      runtime::throw_invalid(fmt::format("{}: dependency {} is no node of this graph, which has {}",
                                         function, dependency.index, count),
                             graph.device_state.id);
    }
    before.push_back(dependency.index);
  }
  GraphNode node;
  check(graph,
        table.graph_add_node(graph.handle, &desc, before.data(),
                             static_cast<std::uint32_t>(before.size()), &node.index, &error),
        error, function);
  return node;
}

}  // namespace

GraphState& Graph::state() const {
  if (state_ == nullptr) runtime::throw_empty_handle("Graph");
  return *state_;
}

Graph Graph::from_native(const Device& device, void* native) {
  auto graph = std::make_shared<GraphState>(device);
  graph->device_state.check_usable();
  ErrorRecord error;
  check(*graph,
        graph->device_state.backend.table.graph_from_native(graph->device_state.handle, native,
                                                            &graph->handle, &error),
        error, "Graph::from_native");
  return Graph(std::move(graph));
}

GraphNode Graph::add_kernel_arguments(std::span<const GraphNode> dependencies,
                                      const Kernel& kernel_handle, const LaunchConfig& config,
                                      std::span<const KernelArgument> arguments) {
  constexpr const char* kFunction = "Graph::add_kernel";
  GraphState& graph = usable(*this);
  const detail::KernelState& kernel = kernel_handle.state();
  if (kernel.device != &graph.device_state) {
    runtime::throw_invalid(
        fmt::format("{} of kernel '{}', which is loaded on {}, to a graph of {}", kFunction,
                    kernel.name, kernel.device->id, graph.device_state.id),
        graph.device_state.id);
  }
  const runtime::LaunchDescription launch(kernel, config, arguments, true, kFunction);
  lockstep_node_desc desc = describe_node(LOCKSTEP_NODE_KERNEL);
  desc.launch = &launch.desc();
  const GraphNode node = add(graph, dependencies, desc, kFunction);
  runtime::keep_arguments(graph.contents, node.index, kernel, arguments, 0);
  return node;
}

GraphNode Graph::add_copy(std::span<const GraphNode> dependencies, const CopyRegion& region) {
  GraphState& graph = usable(*this);
  runtime::HostMemoryRules rules;
  rules.snapshot_limit_bytes = CaptureOptions().snapshot_limit_bytes;
  const runtime::CopyPlan plan =
      runtime::plan_copy(graph.device_state, graph.device, region, {}, rules, "Graph::add_copy",
                         graph.device_state.id);
  if (runtime::is_empty(region.extent)) return add_empty(dependencies);
  lockstep_node_desc desc = describe_node(LOCKSTEP_NODE_COPY);
  desc.copy = &plan.desc;
  const GraphNode node = add(graph, dependencies, desc, "Graph::add_copy");
  plan.commit(graph.contents, node.index);
  return node;
}

GraphNode Graph::add_fill(std::span<const GraphNode> dependencies, const FillRegion& region) {
  GraphState& graph = usable(*this);
  if (region.extent.depth > 1) {
    runtime::throw_invalid(
        fmt::format("Graph::add_fill of {} planes: add one node a plane", region.extent.depth),
        graph.device_state.id);
  }
  const lockstep_set_desc set =
      runtime::describe_fill(region, "Graph::add_fill", graph.device_state.id);
  if (runtime::is_empty(region.extent)) return add_empty(dependencies);
  lockstep_node_desc desc = describe_node(LOCKSTEP_NODE_SET);
  desc.set = &set;
  const GraphNode node = add(graph, dependencies, desc, "Graph::add_fill");
  runtime::keep_filled(graph.contents, node.index, graph.device_state, region, nullptr, 0);
  return node;
}

GraphNode Graph::add_host_function(std::span<const GraphNode> dependencies,
                                   std::function<void()> function) {
  GraphState& graph = usable(*this);
  if (!function) {
    runtime::throw_invalid("Graph::add_host_function of an empty function", graph.device_state.id);
  }
  auto call = std::make_shared<runtime::HostCall>(graph.device_state.backend.host_calls,
                                                  std::move(function));
  lockstep_node_desc desc = describe_node(LOCKSTEP_NODE_HOST);
  desc.function = runtime::HostCall::run;
  desc.user_data = call.get();
  const GraphNode node = add(graph, dependencies, desc, "Graph::add_host_function");
  graph.contents.keep(std::static_pointer_cast<const void>(std::move(call)));
  return node;
}

GraphNode Graph::add_empty(std::span<const GraphNode> dependencies) {
  return add(usable(*this), dependencies, describe_node(LOCKSTEP_NODE_EMPTY), "Graph::add_empty");
}

GraphNode Graph::add_child(std::span<const GraphNode> dependencies, const Graph& child_handle) {
  GraphState& graph = usable(*this);
  GraphState& child = usable(child_handle);
  if (&child.device_state.backend != &graph.device_state.backend) {
    runtime::throw_invalid(fmt::format("Graph::add_child of a graph of {} to one of {}",
                                       child.device_state.id, graph.device_state.id),
                           graph.device_state.id);
  }
  lockstep_node_desc desc = describe_node(LOCKSTEP_NODE_CHILD_GRAPH);
  desc.child = child.handle;
  const GraphNode node = add(graph, dependencies, desc, "Graph::add_child");
  graph.contents.add_child(runtime::GraphContents(child.contents), node.index);
  return node;
}

namespace {

GraphNode add_event(GraphState& graph, std::span<const GraphNode> dependencies, const Event& event,
                    std::uint32_t kind, const char* function) {
  if (&event.state().device_state.backend != &graph.device_state.backend) {
    runtime::throw_invalid(
        fmt::format("{} of an event of {}", function, event.state().device_state.id),
        graph.device_state.id);
  }
  lockstep_node_desc desc = describe_node(kind);
  desc.event = event.state().handle;
  const GraphNode node = add(graph, dependencies, desc, function);
  graph.contents.keep(std::static_pointer_cast<const void>(event.state().shared_from_this()));
  return node;
}

}  // namespace

GraphNode Graph::add_event_record(std::span<const GraphNode> dependencies, const Event& event) {
  return add_event(usable(*this), dependencies, event, LOCKSTEP_NODE_EVENT_RECORD,
                   "Graph::add_event_record");
}

GraphNode Graph::add_event_wait(std::span<const GraphNode> dependencies, const Event& event) {
  return add_event(usable(*this), dependencies, event, LOCKSTEP_NODE_EVENT_WAIT,
                   "Graph::add_event_wait");
}

// By value, since that is the interface. NOLINTNEXTLINE(performance-unnecessary-value-param)
void Graph::keep_alive(detail::AllocationPtr allocation) { state().contents.keep(allocation); }

Graph Graph::clone() const {
  GraphState& graph = usable(*this);
  auto copy = std::make_shared<GraphState>(graph.device);
  ErrorRecord error;
  check(graph, graph.device_state.backend.table.graph_clone(graph.handle, &copy->handle, &error),
        error, "Graph::clone");
  copy->contents = graph.contents;
  return Graph(std::move(copy));
}

std::vector<HostSlot> Graph::host_slots() const { return state().contents.slots; }

void* Graph::native_handle() const {
  GraphState& graph = usable(*this);
  return graph.device_state.backend.table.graph_native(graph.handle);
}

}  // namespace lockstep
