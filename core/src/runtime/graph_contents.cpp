// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/graph_contents.h"

#include <algorithm>

namespace lockstep::runtime {

void GraphContents::keep(const detail::AllocationPtr& allocation) {
  if (allocation == nullptr) return;
  if (std::find(allocations.begin(), allocations.end(), allocation) == allocations.end()) {
    allocations.push_back(allocation);
  }
}

void GraphContents::keep(std::shared_ptr<const void> object) {
  if (object == nullptr) return;
  // Kernels repeat much more often than they differ.
  if (std::find(objects.begin(), objects.end(), object) == objects.end()) {
    objects.push_back(std::move(object));
  }
}

std::uint32_t GraphContents::add_node(LaunchTraceEntry entry) {
  recorded.push_back(std::move(entry));
  return static_cast<std::uint32_t>(recorded.size() - 1);
}

std::uint32_t GraphContents::add_node(OperationKind kind) {
  LaunchTraceEntry entry;
  entry.kind = kind;
  return add_node(std::move(entry));
}

void GraphContents::add_child(const GraphContents& child, std::uint32_t node) {
  for (const auto& allocation : child.allocations) keep(allocation);
  for (const auto& object : child.objects) keep(object);
  for (HostSlot slot : child.slots) {
    slot.node = node;
    slots.push_back(slot);
  }
  for (RawPointer pointer : child.raw_pointers) {
    pointer.node = node;
    raw_pointers.push_back(pointer);
  }
}

}  // namespace lockstep::runtime
