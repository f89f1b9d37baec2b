// SPDX-License-Identifier: Apache-2.0
#include "launch.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "enqueue.h"
#include "module.h"

namespace lockstep::gpu {
namespace {

template <class T>
bool read_attribute(const lockstep_attribute& attribute, T* value) {
  if (attribute.size != sizeof(T) || attribute.value == nullptr) return false;
  std::memcpy(value, attribute.value, sizeof(T));
  return true;
}

[[gnu::noinline]] lockstep_code plan_attributes(const lockstep_launch_desc* desc,
                                                KernelLaunch* launch, lockstep_error* error) {
  for (std::uint32_t index = 0; index < desc->attribute_count; ++index) {
    const lockstep_attribute& attribute = desc->attributes[index];
    std::uint32_t flag = 0;
    bool read = false;
    switch (attribute.id) {
      case LOCKSTEP_LAUNCH_CLUSTER:
        read = read_attribute(attribute, &launch->cluster);
        break;
      case LOCKSTEP_LAUNCH_COOPERATIVE:
        read = read_attribute(attribute, &flag);
        launch->cooperative = flag != 0;
        break;
      case LOCKSTEP_LAUNCH_PRIORITY:
        read = read_attribute(attribute, &launch->priority);
        launch->has_priority = true;
        break;
      case LOCKSTEP_LAUNCH_PROGRAMMATIC_SERIALIZATION:
        read = read_attribute(attribute, &flag);
        launch->programmatic = flag != 0;
        break;
      default:
        return fail(
            error, LOCKSTEP_E_NOT_SUPPORTED, "launch",
            "launch attribute " + std::to_string(attribute.id) + " is not known to this backend");
    }
    if (!read) {
      return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "launch",
                  "launch attribute " + std::to_string(attribute.id) + " has the wrong size, " +
                      std::to_string(attribute.size) + " bytes");
    }
  }
  // A cluster of one block is none.
  if (launch->cluster.x == 1 && launch->cluster.y == 1 && launch->cluster.z == 1) {
    launch->cluster = {0, 0, 0};
  }
  return LOCKSTEP_OK;
}

// What is rarely needed stands apart, and cold: the driver's own code leaves little of ours in the
// processor's first cache, so that every line on the path of a launch counts.
[[gnu::cold, gnu::noinline]] lockstep_code refuse_shared(const lockstep_launch_desc* desc,
                                                         lockstep_error* error) {
  return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "launch",
              std::to_string(desc->shared_bytes) + " bytes of dynamic shared memory are too many");
}

[[gnu::cold, gnu::noinline]] lockstep_code refuse_arguments(const lockstep_launch_desc* desc,
                                                            const lockstep_kernel::Layout& layout,
                                                            lockstep_error* error) {
  if (desc->argument_count != layout.parameters.size()) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "launch",
                "kernel " + desc->kernel->name + " takes " +
                    std::to_string(layout.parameters.size()) + " parameters, " +
                    std::to_string(desc->argument_count) + " arguments were given");
  }
  std::uint32_t index = 0;
  while (desc->parameters[index].size == layout.parameters[index].size) ++index;
  return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "launch",
              "argument " + std::to_string(index) + " of kernel " + desc->kernel->name + " has " +
                  std::to_string(desc->parameters[index].size) + " bytes, the parameter has " +
                  std::to_string(layout.parameters[index].size));
}

[[gnu::cold, gnu::noinline]] lockstep_code refuse_kernel(lockstep_error* error) {
  return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "launch", "the kernel is null");
}

// Drivers read one pointer a parameter and cannot see that there are fewer, or smaller ones.
[[gnu::noinline]] lockstep_code check_arguments(const lockstep_launch_desc* desc,
                                                lockstep_error* error) {
  const lockstep_kernel::Layout& layout = *desc->kernel->layout.load(std::memory_order_acquire);
  if (desc->argument_count != layout.parameters.size())
    return refuse_arguments(desc, layout, error);
  for (std::uint32_t index = 0; index < desc->argument_count; ++index) {
    if (desc->parameters[index].size != layout.parameters[index].size) [[unlikely]]
      return refuse_arguments(desc, layout, error);
  }
  if (!layout.typed) [[unlikely]]
    learn_types(desc->kernel, desc->parameters, desc->argument_count);
  return LOCKSTEP_OK;
}

inline lockstep_code check_launch(const lockstep_launch_desc* desc, lockstep_error* error) {
  if (desc->kernel == nullptr) [[unlikely]]
    return refuse_kernel(error);
  if (desc->shared_bytes > UINT32_MAX) [[unlikely]]
    return refuse_shared(desc, error);
  const std::uint32_t count = desc->kernel->parameter_count;
  if (count != UINT32_MAX && (desc->argument_count != count || desc->parameters != nullptr))
      [[unlikely]] {
    return check_arguments(desc, error);
  }
  return LOCKSTEP_OK;
}

// Before the call, for drivers that crash or answer nothing of use.
[[gnu::noinline]] lockstep_code check_first(const lockstep_launch_desc* desc,
                                            lockstep_error* error) {
  const std::string broken = explain_launch(desc, desc->kernel->module->device);
  return broken.empty() ? LOCKSTEP_OK : fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "launch", broken);
}

// What a launch that failed says.
[[gnu::cold, gnu::noinline]] lockstep_code explain_failure(lockstep_stream* stream,
                                                           const lockstep_launch_desc* desc,
                                                           Call call, Result result,
                                                           lockstep_error* error) {
  const ContextScope failed_in(stream->context);  // what a failure means depends on it
  std::string detail = rule_of(result) == LOCKSTEP_CAPTURE_RULE_NONE
                           ? explain_launch(desc, stream->device)
                           : describe(stream);
  if (detail.empty()) detail = "kernel " + desc->kernel->name + " on " + describe(stream);
  return fail_native(error, call, result, detail);
}

inline Result launch_plainly(lockstep_stream* stream, const lockstep_launch_desc* desc) {
  return g_state.plain_launch(desc->kernel->function, desc->grid.x, desc->grid.y, desc->grid.z,
                              desc->block.x, desc->block.y, desc->block.z,
                              static_cast<unsigned>(desc->shared_bytes), native_of(stream),
                              const_cast<void**>(desc->arguments), nullptr);
}

// As the arguments are read: by the kernel's layout where that tells all of it, else by what the
// caller knows of them.
inline void fill_parameters(lockstep_record& record, const lockstep_kernel* kernel,
                            const lockstep_launch_desc* desc) {
  auto& to = record.of.kernel;
  const lockstep_kernel::Layout& layout = *kernel->layout.load(std::memory_order_acquire);
  const bool given = desc != nullptr && desc->parameters != nullptr;
  if (layout.known && (layout.told || !given)) {
    to.parameter_count = static_cast<std::uint32_t>(layout.parameters.size());
    to.parameters = layout.parameters.data();
  } else if (given) {
    to.parameter_count = desc->argument_count;
    to.parameters = desc->parameters;
  } else {
    to.parameter_count = UINT32_MAX;
  }
}

// Into a stream that no capture can take in.
[[gnu::hot]] Result launch_recorded(lockstep_stream* stream, const lockstep_launch_desc* desc) {
  lockstep_record record;
  init_call(record, LOCKSTEP_RECORD_KERNEL, desc->kernel->name_number, stream->device,
            stream->identity);
  auto& to = record.of.kernel;
  to.grid = desc->grid;
  to.block = desc->block;
  to.cluster = desc->kernel->facts.cluster;
  to.shared_bytes = desc->shared_bytes;
  to.arguments = desc->arguments;
  fill_parameters(record, desc->kernel, desc);
  void* const begun = recorder().begin(&record);
  const Result result = launch_plainly(stream, desc);
  if (result == kSuccess) [[likely]] {
    recorder().end(begun, 0, 0, -1);
  } else {
    finish(stream, begun, true, result, record, true);
  }
  return result;
}

// Captured, with attributes, into a stream that is not ours alone, or by a driver that needs
// more than its own call.
[[gnu::noinline]] lockstep_code launch_planned(lockstep_stream* stream,
                                               const lockstep_launch_desc* desc,
                                               lockstep_error* error) {
  KernelLaunch planned;
  if (const lockstep_code code = plan_launch(desc, &planned, error)) return code;
  const LaunchScope scope(stream);
  const lockstep_kernel* kernel = desc->kernel;
  const Result result = enqueue(
      stream, LOCKSTEP_RECORD_KERNEL, kernel->name_number, true,
      [&](lockstep_record& record) { fill_kernel(record, kernel, planned, desc); },
      [&] { return driver().launch(planned, native_of(stream)); });
  if (result == kSuccess) [[likely]]
    return LOCKSTEP_OK;
  const Call call = planned.extended() ? Call::kLaunchKernelEx : Call::kLaunchKernel;
  return explain_failure(stream, desc, call, result, error);
}

}  // namespace

lockstep_code plan_launch(const lockstep_launch_desc* desc, KernelLaunch* launch,
                          lockstep_error* error) {
  if (const lockstep_code code = check_launch(desc, error)) return code;
  launch->function = desc->kernel->function;
  launch->grid = desc->grid;
  launch->block = desc->block;
  launch->shared_bytes = static_cast<std::uint32_t>(desc->shared_bytes);
  launch->arguments = const_cast<void**>(desc->arguments);
  if (desc->attribute_count != 0) [[unlikely]] {
    if (const lockstep_code code = plan_attributes(desc, launch, error)) return code;
  }
  return driver().traits().check_launches_first ? check_first(desc, error) : LOCKSTEP_OK;
}

std::string explain_launch(const lockstep_launch_desc* desc, const lockstep_device* device) {
  const std::uint32_t grid[3] = {desc->grid.x, desc->grid.y, desc->grid.z};
  const std::uint32_t block[3] = {desc->block.x, desc->block.y, desc->block.z};
  const lockstep_kernel& kernel = *desc->kernel;
  // Made up only when there is something to say: some drivers have every launch checked.
  const auto broken = [&](const std::string& what) {
    return "invalid launch configuration of kernel " + kernel.name + ": " + what;
  };
  const auto past = [&](const char* what, int axis, std::uint64_t value, std::uint64_t most) {
    return broken(std::string(what) + " " + "xyz"[axis] + " is " + std::to_string(value) +
                  ", this device allows " + std::to_string(most));
  };
  const std::uint64_t most = driver().traits().max_grid_times_block;
  for (int axis = 0; axis < 3; ++axis) {
    const char name = "xyz"[axis];
    if (grid[axis] == 0) return broken(std::string("grid ") + name + " is 0");
    if (block[axis] == 0) return broken(std::string("block ") + name + " is 0");
    if (device->max_grid[axis] > 0 && grid[axis] > device->max_grid[axis]) {
      return past("grid", axis, grid[axis], static_cast<std::uint64_t>(device->max_grid[axis]));
    }
    if (device->max_block[axis] > 0 && block[axis] > device->max_block[axis]) {
      return past("block", axis, block[axis], static_cast<std::uint64_t>(device->max_block[axis]));
    }
    const std::uint64_t product = std::uint64_t{grid[axis]} * block[axis];
    if (most != 0 && product > most) return past("grid times block in", axis, product, most);
  }
  const std::uint64_t threads = std::uint64_t{block[0]} * block[1] * block[2];
  if (kernel.facts.max_threads_per_block != 0 && threads > kernel.facts.max_threads_per_block) {
    return broken(std::to_string(threads) + " threads a block, the kernel can have " +
                  std::to_string(kernel.facts.max_threads_per_block));
  }
  if (desc->shared_bytes <= kernel.facts.max_dynamic_shared_bytes) return {};
  // HIP crashes when it is asked about a kernel of another device than the current one.
  const ContextScope scope(kernel.module->device->context);
  FunctionFacts now;  // the limit may have been raised since the kernel was found
  if (driver().function_facts(kernel.function, &now) == kSuccess &&
      desc->shared_bytes > now.max_dynamic_shared_bytes && now.max_dynamic_shared_bytes != 0) {
    return broken(std::to_string(desc->shared_bytes) +
                  " bytes of dynamic shared memory, the kernel may have " +
                  std::to_string(now.max_dynamic_shared_bytes) +
                  " (kernel_set_max_dynamic_shared raises it)");
  }
  return {};
}

std::uint32_t intern_attributes(const KernelLaunch& launch) {
  // Interning takes a lock: remember the few texts that occur.
  constexpr std::int32_t kRange = 16;
  static std::atomic<std::uint32_t> known[2][2 * kRange + 2];
  const std::int32_t priority = std::clamp(launch.priority, -kRange, kRange);
  const int slot = launch.has_priority ? priority + kRange : 2 * kRange + 1;
  std::atomic<std::uint32_t>& number = known[launch.programmatic ? 1 : 0][slot];
  if (const std::uint32_t value = number.load(std::memory_order_relaxed);
      value != 0 && priority == launch.priority) {
    return value;
  }
  std::string text = "{";
  if (launch.has_priority) text += "\"priority\":" + std::to_string(launch.priority);
  if (launch.programmatic) text += text.size() > 1 ? ",\"programmatic\":1" : "\"programmatic\":1";
  text += "}";
  const std::uint32_t value = recorder().intern(text.data(), text.size());
  if (priority == launch.priority) number.store(value, std::memory_order_relaxed);
  return value;
}

void fill_kernel(lockstep_record& record, const lockstep_kernel* kernel, const KernelLaunch& launch,
                 const lockstep_launch_desc* desc) {
  auto& to = record.of.kernel;
  to.grid = launch.grid;
  to.block = launch.block;
  to.cluster = launch.cluster.x != 0 ? launch.cluster : kernel->facts.cluster;
  to.cooperative = launch.cooperative ? 1 : 0;
  to.shared_bytes = launch.shared_bytes;
  to.attributes = attributes_number(launch);
  to.arguments = launch.arguments;
  fill_parameters(record, kernel, desc);
}

lockstep_code launch(lockstep_stream* stream, const lockstep_launch_desc* desc,
                     lockstep_error* error) {
  const bool recorded = recording();
  const bool plain = g_state.plain_launch != nullptr && desc->attribute_count == 0 &&
                     stream->origin == lockstep_stream::Origin::kOwn && !captures_open() &&
                     !(recorded && stream->known_to_others.load(std::memory_order_relaxed));
  if (!plain) [[unlikely]]
    return launch_planned(stream, desc, error);
  if (const lockstep_code code = check_launch(desc, error)) [[unlikely]]
    return code;
  const Result result = recorded ? launch_recorded(stream, desc) : launch_plainly(stream, desc);
  note_launch(stream);
  if (result == kSuccess) [[likely]]
    return LOCKSTEP_OK;
  return explain_failure(stream, desc, Call::kLaunchKernel, result, error);
}

}  // namespace lockstep::gpu
