// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "graph.h"
#include "graph_exec.h"
#include "module.h"
#include "stream.h"

// The host backend's table of driver calls: every call that enqueues work, allocates or waits.
// Here, and for events and graph launches in their own classes, it is checked against the rules of
// capture, recorded, and then either executed or added to the graph being captured. All throw
// hostrt::Error.
namespace lockstep::hostrt::driver {

void launch(Stream& stream, Kernel& kernel, const lockstep_launch_desc& desc);
void copy(Stream& stream, const lockstep_copy_desc& desc);
void set(Stream& stream, const lockstep_set_desc& desc);
void host_function(Stream& stream, lockstep_host_function function, void* user_data);

// For who makes works of its own: captures the work, or hands it to `execute`.
void submit(Stream& stream, WorkPtr work, const char* call,
            const std::function<void(WorkPtr)>& execute);
// A call that does nothing: legal or not like any other, recorded, never a node.
void submit_empty(Stream& stream, const lockstep_record& record, const char* call);
// Adds a node to the graph that is being captured; returns its ordinal.
std::uint32_t capture_node(CaptureScope& scope, GraphNode node);

void* allocate(Device& device, std::uint64_t bytes, std::uint32_t kind, Stream* stream);
void free(Device& device, void* pointer, Stream* stream);
void register_memory(Device& device, void* pointer, std::uint64_t bytes);
void unregister_memory(Device& device, void* pointer);

void synchronize(Device& device);
void synchronize(Stream& stream);
bool query(Stream& stream);

std::uint32_t add_node(Graph& graph, GraphNode node, const std::uint32_t* dependencies,
                       std::uint32_t dependency_count);
WorkPtr make_host_work(const Device& device, lockstep_host_function function, void* user_data);
std::shared_ptr<GraphExec> instantiate(const std::shared_ptr<Graph>& graph);

}  // namespace lockstep::hostrt::driver
