// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device.h>
#include <lockstep/error.h>
#include <lockstep/stream.h>

#include <algorithm>
#include <fmt/format.h>

#include "src/runtime/copy_plan.h"
#include "src/runtime/host_watch.h"
#include "src/runtime/launch_check.h"
#include "src/runtime/states.h"

namespace lockstep {

using detail::StreamState;
using runtime::Capture;
using runtime::ErrorRecord;

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void fail(StreamState& stream, lockstep_code code,
                                                 const ErrorRecord& error, const char* function,
                                                 const std::string& subject = {}) {
  runtime::throw_plugin_error(stream.device_state.backend, &stream.device_state, &stream, code,
                              error, {function, subject});
}

void check(StreamState& stream, lockstep_code code, const ErrorRecord& error,
           const char* function) {
  if (code != LOCKSTEP_OK) fail(stream, code, error, function);
}

std::shared_ptr<Capture> capture_of(StreamState& stream) {
  runtime::LoadedBackend& backend = stream.device_state.backend;
  if (!backend.captures.any()) [[likely]]
    return nullptr;
  return backend.captures.of(backend, stream);
}

/// The capture learns that the stream has enqueued one more thing. Its mutex is held.
void count_operation(Capture& capture, StreamState& stream) {
  ++capture.operations[stream.identity];
  capture.streams.try_emplace(stream.identity, stream.shared_from_this());
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_device(const StreamState& stream,
                                                          const detail::KernelState& kernel) {
  runtime::throw_invalid(fmt::format("Stream::launch of kernel '{}', which is loaded on {}, on a "
                                     "stream of {}",
                                     kernel.name, kernel.device->id, stream.device_state.id),
                         stream.where());
}

void check_event(const StreamState& stream, const detail::EventState& event, const char* function) {
  if (&event.device_state.backend == &stream.device_state.backend) [[likely]]
    return;
  runtime::throw_invalid(fmt::format("{} of an event of {}: events do not reach across backends; "
                                     "synchronise instead",
                                     function, event.device_state.id),
                         stream.where());
}

/// Pinned memory of another backend is host memory like any other; device memory is out of reach.
void check_owner(const StreamState& stream, const detail::AllocationPtr* owner,
                 const char* function) {
  if (owner == nullptr || *owner == nullptr) return;
  const detail::Allocation& allocation = **owner;
  if (allocation.backend == &stream.device_state.backend || allocation.kind == MemoryKind::kPinned)
      [[likely]] {
    return;
  }
  runtime::throw_invalid(fmt::format("{} with a buffer of {}: memory of another backend cannot be "
                                     "reached; copy it through host memory",
                                     function, allocation.device.id()),
                         stream.where());
}

}  // namespace

[[gnu::hot]] StreamState& StreamRef::state() const {
  if (state_ == nullptr) [[unlikely]]
    runtime::throw_empty_handle("Stream");
  return *state_;
}

StreamRef StreamRef::from_native(const Device& device, void* native) {
  detail::DeviceState& state = device.state();
  state.check_usable();
  lockstep_stream* stream = nullptr;
  ErrorRecord error;
  const lockstep_code code =
      state.backend.table.stream_from_native(state.handle, native, &stream, &error);
  if (code != LOCKSTEP_OK) {
    runtime::throw_plugin_error(state.backend, &state, nullptr, code, error,
                                {"StreamRef::from_native"});
  }
  return StreamRef(std::make_shared<StreamState>(device, stream));
}

namespace {

[[gnu::always_inline]] inline void enqueue_launch(StreamState& stream,
                                                  const detail::KernelState& kernel,
                                                  const lockstep_launch_desc& launch) {
  ErrorRecord error;
  const lockstep_code code = stream.launch(stream.handle, &launch, &error);
  if (code != LOCKSTEP_OK) [[unlikely]] {
    fail(stream, code, error, "Stream::launch", fmt::format("kernel '{}'", kernel.name));
  }
}

/// While something captures: the launch may become a node that has to be known and kept alive.
[[gnu::noinline]] void launch_beside_captures(StreamState& stream,
                                              const detail::KernelState& kernel,
                                              const LaunchConfig& config,
                                              std::span<const KernelArgument> arguments,
                                              const lockstep_launch_desc& launch) {
  const std::shared_ptr<Capture> capture = capture_of(stream);
  enqueue_launch(stream, kernel, launch);
  if (capture == nullptr) return;
  const std::lock_guard lock(capture->mutex);
  const std::uint32_t node = capture->contents.add_node(runtime::launch_entry(kernel, config));
  runtime::keep_arguments(capture->contents, node, kernel, arguments, capture->id);
  count_operation(*capture, stream);
}

}  // namespace

[[gnu::hot]] void StreamRef::launch_arguments(const Kernel& kernel_handle,
                                              const LaunchConfig& config,
                                              std::span<const KernelArgument> arguments) const {
  StreamState& stream = state();
  stream.device_state.check_generation(stream.generation);
  const detail::KernelState& kernel = kernel_handle.state();
  // Which the plugin will look at, when the checks are done.
  __builtin_prefetch(stream.handle);
  __builtin_prefetch(kernel.handle);
  if (kernel.device != &stream.device_state) [[unlikely]]
    refuse_device(stream, kernel);
  const bool captured = runtime::captures_open();
  const runtime::LaunchDescription launch(kernel, config, arguments,
                                          captured || runtime::recording(), "Stream::launch");
  if (!captured) [[likely]] {
    enqueue_launch(stream, kernel, launch.desc());
    if (launch.looked_at_closely()) [[unlikely]]
      runtime::keep_fitted(kernel, arguments);
  } else {
    launch_beside_captures(stream, kernel, config, arguments, launch.desc());
  }
}

namespace {

void copy_region(StreamState& stream, const CopyRegion& region, const runtime::CopyOwners& owners) {
  stream.device_state.check_usable();
  check_owner(stream, owners.destination, "Stream::copy");
  check_owner(stream, owners.source, "Stream::copy");
  const std::shared_ptr<Capture> capture = capture_of(stream);
  ErrorRecord error;
  if (capture == nullptr) [[likely]] {
    const lockstep_copy_desc desc =
        runtime::describe_copy(region, "Stream::copy", stream.device_state.id);
    check(stream, stream.table.copy(stream.handle, &desc, &error), error, "Stream::copy");
    return;
  }
  runtime::HostMemoryRules rules;
  rules.declared = &capture->options.host_destinations;
  rules.snapshot_limit_bytes = capture->options.snapshot_limit_bytes;
  rules.capture_id = capture->id;
  const runtime::CopyPlan plan = runtime::plan_copy(stream.device_state, stream.device, region,
                                                    owners, rules, "Stream::copy", stream.where());
  check(stream, stream.table.copy(stream.handle, &plan.desc, &error), error, "Stream::copy");
  if (runtime::is_empty(region.extent)) return;
  const std::lock_guard lock(capture->mutex);
  plan.commit(capture->contents, capture->contents.add_node(plan.entry));
  count_operation(*capture, stream);
}

}  // namespace

void StreamRef::copy(const CopyRegion& region) const { copy_region(state(), region, {}); }

void StreamRef::copy_checked(void* destination, std::uint64_t destination_bytes, const void* source,
                             std::uint64_t source_bytes,
                             const detail::AllocationPtr* destination_owner,
                             const detail::AllocationPtr* source_owner) const {
  StreamState& stream = state();
  if (destination_bytes != source_bytes) {
    runtime::throw_invalid(fmt::format("Stream::copy: the destination has {} bytes, the source {}; "
                                       "take a subview of the larger one",
                                       destination_bytes, source_bytes),
                           stream.where());
  }
  CopyRegion region;
  region.destination = destination;
  region.source = source;
  region.extent = {source_bytes, source_bytes == 0 ? 0u : 1u, 1};
  copy_region(stream, region, {destination_owner, source_owner});
}

void StreamRef::fill(const FillRegion& region) const { fill_checked(region, nullptr); }

void StreamRef::fill_checked(const FillRegion& region, const detail::AllocationPtr* owner) const {
  StreamState& stream = state();
  stream.device_state.check_usable();
  check_owner(stream, owner, "Stream::fill");
  const lockstep_set_desc desc =
      runtime::describe_fill(region, "Stream::fill", stream.device_state.id);
  const std::shared_ptr<Capture> capture = capture_of(stream);
  ErrorRecord error;
  check(stream, stream.table.set(stream.handle, &desc, &error), error, "Stream::fill");
  if (capture == nullptr || runtime::is_empty(region.extent)) return;
  const std::lock_guard lock(capture->mutex);
  std::uint32_t node = 0;
  for (std::uint64_t plane = 0; plane < region.extent.depth; ++plane) {
    node = capture->contents.add_node(runtime::fill_entry(region));
  }
  runtime::keep_filled(capture->contents, node, stream.device_state, region, owner, capture->id);
  count_operation(*capture, stream);
}

void StreamRef::host_function(std::function<void()> function) const {
  StreamState& stream = state();
  stream.device_state.check_usable();
  if (!function)
    runtime::throw_invalid("Stream::host_function of an empty function", stream.where());
  runtime::LoadedBackend& backend = stream.device_state.backend;
  const std::shared_ptr<Capture> capture = capture_of(stream);
  ErrorRecord error;
  if (capture == nullptr) {
    backend.host_calls.collect();
    auto call = std::make_unique<runtime::HostCall>(backend.host_calls, std::move(function));
    check(
        stream,
        stream.table.host_function(stream.handle, runtime::HostCall::run_once, call.get(), &error),
        error, "Stream::host_function");
    static_cast<void>(call.release());  // run_once hands it over
    return;
  }
  auto call = std::make_shared<runtime::HostCall>(backend.host_calls, std::move(function));
  check(stream,
        stream.table.host_function(stream.handle, runtime::HostCall::run, call.get(), &error),
        error, "Stream::host_function");
  const std::lock_guard lock(capture->mutex);
  capture->contents.add_node(OperationKind::kHostFunc);
  capture->contents.keep(std::static_pointer_cast<const void>(std::move(call)));
  count_operation(*capture, stream);
}

namespace {

runtime::HostNotice notice_of(const StreamState& stream, runtime::HostNotice::Kind kind,
                              const detail::EventState* event = nullptr) {
  runtime::HostNotice notice;
  notice.kind = kind;
  notice.backend = &stream.device_state.backend;
  notice.device = stream.device_state.info.ordinal;
  notice.stream = stream.identity;
  notice.event = event;
  return notice;
}

}  // namespace

void StreamRef::record(const Event& event_handle) const {
  StreamState& stream = state();
  stream.device_state.check_usable();
  detail::EventState& event = event_handle.state();
  check_event(stream, event, "Stream::record");
  const std::shared_ptr<Capture> capture = capture_of(stream);
  ErrorRecord error;
  check(stream, stream.table.event_record(event.handle, stream.handle, &error), error,
        "Stream::record");
  if (capture == nullptr) {
    runtime::HostWatch::tell(notice_of(stream, runtime::HostNotice::Kind::kRecord, &event));
    return;
  }
  runtime::CapturedPoint point;
  point.capture = capture;
  {
    const std::lock_guard lock(capture->mutex);
    point.work = capture->joined[stream.identity];
    point.work[stream.identity] = capture->operations[stream.identity];
    capture->contents.keep(std::static_pointer_cast<const void>(event.shared_from_this()));
  }
  const std::lock_guard lock(event.mutex);
  event.captured = std::move(point);
}

void StreamRef::wait(const Event& event_handle) const {
  StreamState& stream = state();
  stream.device_state.check_usable();
  detail::EventState& event = event_handle.state();
  check_event(stream, event, "Stream::wait");
  ErrorRecord error;
  check(stream, stream.table.stream_wait_event(stream.handle, event.handle, &error), error,
        "Stream::wait");
  if (!stream.device_state.backend.captures.any()) return;
  runtime::CapturedPoint point;
  {
    const std::lock_guard lock(event.mutex);
    point = event.captured;
  }
  const std::shared_ptr<Capture> capture = point.capture.lock();
  if (capture == nullptr) return;
  const std::lock_guard lock(capture->mutex);
  capture->streams.try_emplace(stream.identity, stream.shared_from_this());
  runtime::JoinedWork& joined = capture->joined[stream.identity];
  for (const auto& [identity, count] : point.work) {
    joined[identity] = std::max(joined[identity], count);
  }
}

void StreamRef::synchronize() const {
  StreamState& stream = state();
  stream.device_state.check_usable();
  ErrorRecord error;
  check(stream, stream.table.stream_synchronize(stream.handle, &error), error,
        "Stream::synchronize");
  runtime::HostWatch::tell(notice_of(stream, runtime::HostNotice::Kind::kWait));
  runtime::LoadedBackend& backend = stream.device_state.backend;
  backend.reclaimer.collect(backend);
  backend.host_calls.collect();
  backend.host_calls.throw_error();
}

bool StreamRef::query() const {
  StreamState& stream = state();
  stream.device_state.check_usable();
  ErrorRecord error;
  const lockstep_code code = stream.table.stream_query(stream.handle, &error);
  if (code == LOCKSTEP_E_NOT_READY) return false;
  check(stream, code, error, "Stream::query");
  runtime::HostWatch::tell(notice_of(stream, runtime::HostNotice::Kind::kQuery));
  return true;
}

const Device& StreamRef::device() const { return state().device; }
std::uint64_t StreamRef::identity() const { return state().identity; }
void* StreamRef::native_handle() const { return state().table.stream_native(state().handle); }

}  // namespace lockstep
