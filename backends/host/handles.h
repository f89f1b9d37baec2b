// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <memory>
#include <utility>

#include "device.h"
#include "driver.h"
#include "error.h"
#include "event.h"
#include "graph.h"
#include "graph_exec.h"
#include "module.h"
#include "stream.h"

// What the opaque handles of backend.h are here (graphs: graph.h, kernels: module.h), and the
// border that no exception crosses.

struct lockstep_device {
  lockstep::hostrt::Device* object;
};
struct lockstep_stream {
  lockstep::hostrt::StreamPtr object;
  bool owned;  // false: the legacy or a per-thread stream, which outlives its handle
};
struct lockstep_event {
  lockstep::hostrt::EventPtr object;
};
struct lockstep_module {
  std::shared_ptr<lockstep::hostrt::Module> object;
};
struct lockstep_graph_exec {
  std::shared_ptr<lockstep::hostrt::GraphExec> object;
};

namespace lockstep::hostrt {

// Runs a slot's body, turning what it throws into a code and an error record. Slots that need the
// runtime answer "unavailable" before it was started and in a forked child, and are refused inside
// of host functions.
void check_callable();
template <typename Body>
lockstep_code guarded(const char* call, lockstep_error* error, const Body& body) noexcept {
  try {
    check_callable();
    body();
    return LOCKSTEP_OK;
  } catch (...) {
    return report_current_exception(error, call);
  }
}

// A handle of the caller's, checked.
template <typename Handle>
auto& object_of(Handle* handle, const char* what) {
  if (handle == nullptr) throw Error(Native::kInvalidValue, std::string(what) + " is null");
  return *handle->object;
}

// Destroys a handle; quietly nothing when the runtime cannot be used any more.
template <typename Handle>
void release(Handle* handle) noexcept {
  if (handle != nullptr && Runtime::usable()) delete handle;
}

void fill_device_slots(lockstep_backend& table);
void fill_module_slots(lockstep_backend& table);
void fill_stream_slots(lockstep_backend& table);
void fill_graph_slots(lockstep_backend& table);

}  // namespace lockstep::hostrt
