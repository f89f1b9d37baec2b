// SPDX-License-Identifier: Apache-2.0

// A plugin that does what a test tells it: loading, devices, streams, events, modules. Everything
// runs at once in the calling thread.

#include <cstdio>
#include <stdexcept>
#include <unistd.h>

#include "support/fake_backend/fake_state.h"

namespace lockstep::testing::fake {

State& state() {
  static auto* instance = new State;
  return *instance;
}

namespace {

template <std::size_t N>
void put(char (&field)[N], const std::string& text) {
  std::snprintf(field, N, "%s", text.c_str());
}

}  // namespace

lockstep_code give(lockstep_error* error, lockstep_code code, const char* call,
                   const std::string& message, std::uint32_t rule) {
  if (error != nullptr) {
    error->code = code;
    error->capture_rule = rule;
    put(error->call, call);
    put(error->message, message);
  }
  return code;
}

lockstep_code asked_failure(const char* slot, lockstep_error* error) {
  State& all = state();
  FakeFailure failure;
  {
    const std::lock_guard lock(all.control.mutex);
    auto& failures = all.control.failures;
    const auto found = std::find_if(failures.begin(), failures.end(),
                                    [&](const auto& each) { return each.slot == slot; });
    if (found == failures.end()) return LOCKSTEP_OK;
    failure = *found;
    failures.erase(found);
  }
  if (failure.invalidates) {
    const std::lock_guard lock(all.mutex);
    for (auto& [id, capture] : all.captures) capture.invalidated = true;
  }
  if (error != nullptr) {
    error->native_code = failure.native_code;
    put(error->native_name, failure.native_name);
  }
  return give(error, failure.code, failure.call.c_str(), failure.message, failure.rule);
}

lockstep_code refuse_in_capture(const char* call, lockstep_error* error) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (all.captures.empty() || all.thread_mode == LOCKSTEP_CAPTURE_RELAXED) return LOCKSTEP_OK;
  for (auto& [id, capture] : all.captures) capture.invalidated = true;
  return give(error, LOCKSTEP_E_ILLEGAL_DURING_CAPTURE, call, "not while a stream captures",
              LOCKSTEP_CAPTURE_RULE_UNSUPPORTED);
}

namespace {

lockstep_code initialize(lockstep_error* error) {
  State& all = state();
  ++all.control.initializations;
  const std::string how = all.script.text("initialize");
  if (how == "hang") {
    while (true) pause();
  }
  if (how == "crash") std::abort();
  if (how == "throw") throw std::runtime_error("thrown while starting");
  if (how == "no_driver") {
    return give(error, LOCKSTEP_E_UNAVAILABLE, "dlopen", "libfake.so.1: not found");
  }
  if (how == "old_driver") {
    if (error != nullptr) {
      error->native_code = 35;
      put(error->native_name, "FAKE_OLD_DRIVER");
    }
    return give(error, LOCKSTEP_E_UNAVAILABLE, "fakeInit",
                "driver 11.4 is too old, 12.0 is needed");
  }
  return LOCKSTEP_OK;
}

lockstep_code device_count(std::uint32_t* count, lockstep_error*) {
  *count = static_cast<std::uint32_t>(state().script.number("devices", 1));
  return LOCKSTEP_OK;
}

lockstep_code device_info(std::uint32_t ordinal, lockstep_device_info* info, lockstep_error*) {
  const State& all = state();
  const bool simulated = all.script.number("simulated", 0) != 0;
  put(info->name, (simulated ? "SIMULATED Fake " : "Fake ") + std::to_string(ordinal));
  put(info->arch, "fake_1");
  put(info->uuid, "FAKE-" + std::to_string(ordinal));
  put(info->bus_id, "0000:0" + std::to_string(ordinal) + ":00.0");
  put(info->driver, "1.2");
  info->memory_bytes = 1 << 20;
  info->simulated = simulated ? 1 : 0;
#if LOCKSTEP_BACKEND_ABI_MAX >= 1001
  // A host of interface 1.0 has no room for it.
  if (info->struct_size >= sizeof(*info)) info->generation = 7;
#endif
  return LOCKSTEP_OK;
}

lockstep_code device_attribute(std::uint32_t, lockstep_device_attribute attribute,
                               std::int64_t* value, lockstep_error* error) {
  static const std::map<lockstep_device_attribute, std::int64_t> values = {
      {LOCKSTEP_ATTR_MAX_THREADS_PER_BLOCK, 1024},
      {LOCKSTEP_ATTR_MAX_BLOCK_X, 1024},
      {LOCKSTEP_ATTR_MAX_BLOCK_Y, 1024},
      {LOCKSTEP_ATTR_MAX_BLOCK_Z, 64},
      {LOCKSTEP_ATTR_MAX_GRID_X, 2147483647},
      {LOCKSTEP_ATTR_MAX_GRID_Y, 65535},
      {LOCKSTEP_ATTR_MAX_GRID_Z, 65535},
      {LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK, 49152},
      {LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK_OPTIN, 65536}};
  const auto found = values.find(attribute);
  if (found == values.end()) {
    return give(error, LOCKSTEP_E_NOT_SUPPORTED, "fakeAttribute", "no such attribute");
  }
  *value = found->second;
  return LOCKSTEP_OK;
}

const char* capabilities(std::uint32_t) { return "{\"fake\":true}"; }

lockstep_code device_open(std::uint32_t ordinal, lockstep_device** device, lockstep_error* error) {
  if (const auto code = asked_failure("device_open", error)) return code;
  *device = new lockstep_device{ordinal};
  ++state().control.devices;
  return LOCKSTEP_OK;
}
void device_close(lockstep_device* device) {
  if (device != nullptr) --state().control.devices;
  delete device;
}
lockstep_code device_memory(lockstep_device*, std::uint64_t* free_bytes, std::uint64_t* total_bytes,
                            lockstep_error*) {
  *free_bytes = 1000;
  *total_bytes = 1 << 20;
  return LOCKSTEP_OK;
}
lockstep_code device_synchronize(lockstep_device*, lockstep_error* error) {
  if (const auto code = asked_failure("device_synchronize", error)) return code;
  return refuse_in_capture("fakeSynchronize", error);
}

// The kernels that there are. Layouts as a compiler would give them.
std::map<std::string, lockstep_kernel> all_kernels() {
  const auto parameter = [](std::uint32_t offset, std::uint32_t size, std::uint8_t tag) {
    return lockstep_parameter{offset, size, tag, {}};
  };
  std::map<std::string, lockstep_kernel> kernels;
  kernels["add_one"] = {"_Z7add_onePij", {parameter(0, 8, 1), parameter(8, 4, 0)}, 2};
  kernels["nothing"] = {"nothing", {}, 0};
  kernels["mixed"] = {"mixed",
                      {parameter(0, 8, 1), parameter(8, 4, 0), parameter(12, 1, 0),
                       parameter(16, 8, 0), parameter(24, 8, 2)},
                      5};
  kernels["untagged"] = {"untagged", {parameter(0, 8, 255), parameter(8, 4, 255)}, 2};
  kernels["opaque"] = {"opaque", {}, UINT32_MAX};
  return kernels;
}

lockstep_code module_create(lockstep_device*, const lockstep_module_desc* desc,
                            lockstep_module** module, lockstep_error* error) {
  if (std::string_view(static_cast<const char*>(desc->data), desc->bytes) == "bad source") {
    if (error != nullptr && error->log != nullptr) {
      error->log_size = static_cast<std::size_t>(
          std::snprintf(error->log, error->log_capacity, "kernel.cu(1): expected a declaration"));
    }
    return give(error, LOCKSTEP_E_COMPILATION_FAILED, "fakeCompile", "1 error");
  }
  *module = new lockstep_module{all_kernels()};
  ++state().control.modules;
  return LOCKSTEP_OK;
}
void module_destroy(lockstep_module* module) {
  if (module != nullptr) --state().control.modules;
  delete module;
}
lockstep_code module_kernel(lockstep_module* module, const char* name, lockstep_kernel** kernel,
                            lockstep_error* error) {
  const auto found = module->kernels.find(name);
  if (found == module->kernels.end()) {
    return give(error, LOCKSTEP_E_NOT_FOUND, "fakeGetKernel", "no such kernel");
  }
  *kernel = &found->second;
  return LOCKSTEP_OK;
}
lockstep_code module_load_all(lockstep_module*, lockstep_error*) {
  ++state().control.loads;
  return LOCKSTEP_OK;
}
lockstep_code kernel_info(lockstep_kernel* kernel, lockstep_kernel_info* info, lockstep_error*) {
  info->name = kernel->name.c_str();
  info->max_threads_per_block = 512;
  info->static_shared_bytes = 128;
  info->parameter_count = kernel->parameter_count;
  info->parameters = kernel->parameters.data();
  info->max_dynamic_shared_bytes = 49152 - 128;
  return LOCKSTEP_OK;
}
lockstep_code kernel_set_max_dynamic_shared(lockstep_kernel*, std::uint32_t, lockstep_error*) {
  return LOCKSTEP_OK;
}

constexpr std::uint32_t kNewest = LOCKSTEP_BACKEND_ABI_MAX;

#if LOCKSTEP_BACKEND_ABI_MAX >= 1001
/// A slot that interface 1.0 does not know (tests/compatibility).
lockstep_code device_generation(std::uint32_t ordinal, std::uint32_t* generation, lockstep_error*) {
  *generation = 7 + ordinal;
  return LOCKSTEP_OK;
}
#endif

lockstep_backend make_table() {
  const FakeScript& script = state().script;
  lockstep_backend table = {};
  table.struct_size = sizeof(table);
  table.abi_version = static_cast<std::uint32_t>(
      script.number("abi", static_cast<int>(std::min(state().host->abi_max, kNewest))));
  table.priority = script.number("priority", 1);
  table.name = script.name().c_str();
  table.vendor = "tests";
  table.version = "9.8";
  table.initialize = initialize;
  table.device_count = device_count;
  table.device_info = device_info;
  table.device_attribute = device_attribute;
  table.capabilities = capabilities;
  table.device_open = device_open;
  table.device_close = device_close;
  table.device_memory = device_memory;
  table.device_synchronize = device_synchronize;
  table.module_create = module_create;
  table.module_destroy = module_destroy;
  table.module_kernel = module_kernel;
  table.module_load_all = module_load_all;
  table.kernel_info = kernel_info;
  table.kernel_set_max_dynamic_shared = kernel_set_max_dynamic_shared;
  fill_memory_slots(table);
  fill_work_slots(table);
  fill_graph_slots(table);
#if LOCKSTEP_BACKEND_ABI_MAX >= 1001
  table.device_generation = device_generation;
#endif
  const std::string absent = script.text("null_slots");
  if (absent == "required") table.initialize = nullptr;
  if (absent == "optional") {
    table.capabilities = nullptr;
    table.module_load_all = nullptr;
    table.pointer_info = nullptr;
    table.capture_thread_mode = nullptr;
    table.graph_exec_update = nullptr;
    table.memory_register = nullptr;
  }
  // What lies beyond is poison: nobody may look at it.
  if (script.text("size") == "short") {
    table.struct_size = offsetof(lockstep_backend, capture_begin);
    std::memset(reinterpret_cast<char*>(&table) + table.struct_size, 0xa5,
                sizeof(table) - table.struct_size);
  }
  if (script.text("size") == "absurd") table.struct_size = 3;
  return table;
}

}  // namespace
}  // namespace lockstep::testing::fake

extern "C" __attribute__((visibility("default"))) lockstep::testing::FakeControl* fake_control() {
  return &lockstep::testing::fake::state().control;
}

extern "C" const lockstep_backend* lockstep_backend_query(const lockstep_host* host,
                                                          lockstep_error* error) {
  using namespace lockstep::testing::fake;
  State& all = state();
  all.host = host;
  const std::string how = all.script.text("query");
  if (how == "throw") throw std::runtime_error("thrown in query");
  if (how == "throw_number") throw 7;
  if (how == "silent") return nullptr;
  if (how == "incompatible") {
    give(error, LOCKSTEP_E_INCOMPATIBLE_PLUGIN, "", "this plugin needs interface 3000 or later");
    return nullptr;
  }
  const auto oldest = static_cast<std::uint32_t>(
      all.script.number("abi_min", static_cast<int>(LOCKSTEP_BACKEND_ABI_MIN)));
  if (host->abi_max < oldest) {
    give(error, LOCKSTEP_E_INCOMPATIBLE_PLUGIN, "",
         "this plugin needs interface " + std::to_string(oldest) + " or later, the program has " +
             std::to_string(host->abi_max));
    return nullptr;
  }
  static const auto* table = new lockstep_backend(make_table());
  return table;
}
