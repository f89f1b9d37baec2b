// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/stream.h>

#include <fmt/format.h>

#include "src/runtime/log.h"
#include "src/runtime/states.h"

namespace lockstep {

using detail::StreamState;
using runtime::Capture;
using runtime::ErrorRecord;

namespace {

/// Whether the stream has left its capture, whatever the end of it returned.
bool has_left(StreamState& stream) {
  std::uint32_t status = LOCKSTEP_CAPTURE_NOT_CAPTURING;
  std::uint64_t id = 0;
  ErrorRecord error;
  return stream.table.capture_status(stream.handle, &status, &id, &error) != LOCKSTEP_OK ||
         status == LOCKSTEP_CAPTURE_NOT_CAPTURING;
}

void forget(StreamState& stream, const std::shared_ptr<Capture>& capture) noexcept {
  runtime::LoadedBackend& backend = stream.device_state.backend;
  if (capture == nullptr || !has_left(*capture->origin)) return;
  backend.captures.remove(*capture);
  backend.reclaimer.captures_ended(backend);
}

[[noreturn]] void throw_capture_error(StreamState& stream, Capture& capture, lockstep_code code,
                                      const ErrorRecord& error) {
  std::string subject = fmt::format("capture of stream #{}", stream.identity);
  {
    const std::lock_guard lock(capture.mutex);
    if (error.capture_rule == LOCKSTEP_CAPTURE_RULE_UNJOINED) {
      std::vector<std::string> names;
      for (const std::uint64_t identity : capture.unjoined()) {
        names.push_back(fmt::format("#{}", identity));
      }
      if (!names.empty()) {
        subject += fmt::format(": work on stream {} was never joined back", fmt::join(names, ", "));
      }
    } else if (!capture.invalidated_by.empty()) {
      subject += " invalidated by " + capture.invalidated_by;
    } else if (code == LOCKSTEP_E_CAPTURE_INVALIDATED) {
      subject += " invalidated by a call that was not made through this library";
    }
  }
  runtime::throw_plugin_error(stream.device_state.backend, &stream.device_state, &stream, code,
                              error, {"Stream::end_capture", subject});
}

/// Ends the capture whatever happens; null when it left no graph, and then `code` and `error` tell.
std::shared_ptr<detail::GraphState> end(StreamState& stream, std::shared_ptr<Capture>& capture,
                                        lockstep_code& code, ErrorRecord& error) {
  capture = stream.device_state.backend.captures.begun_by(stream);
  // The owner is there before the plugin makes anything.
  auto graph = std::make_shared<detail::GraphState>(stream.device);
  code = stream.table.capture_end(stream.handle, &graph->handle, &error);
  if (code != LOCKSTEP_OK) graph->handle = nullptr;
  forget(stream, capture);
  if (code != LOCKSTEP_OK) return nullptr;
  if (capture != nullptr) {
    const std::lock_guard lock(capture->mutex);
    graph->contents = std::move(capture->contents);
  }
  return graph;
}

}  // namespace

void StreamRef::begin_capture(const CaptureOptions& options) const {
  StreamState& stream = state();
  detail::DeviceState& device = stream.device_state;
  device.check_usable();
  device.load_modules();
  runtime::CaptureRegistry& captures = device.backend.captures;
  auto capture = std::make_shared<Capture>();
  capture->origin = state_;
  capture->options = options;
  capture->contents.captured = true;
  capture->streams.emplace(stream.identity, state_);
  captures.announce();
  ErrorRecord error;
  lockstep_code code =
      stream.table.capture_begin(stream.handle, static_cast<std::uint32_t>(options.mode), &error);
  if (code != LOCKSTEP_OK) {
    captures.withdraw();
    device.backend.reclaimer.captures_ended(device.backend);
    runtime::throw_plugin_error(device.backend, &device, &stream, code, error,
                                {"Stream::begin_capture"});
  }
  std::uint32_t status = LOCKSTEP_CAPTURE_NOT_CAPTURING;
  code = stream.table.capture_status(stream.handle, &status, &capture->id, &error);
  captures.add(capture);
  if (code != LOCKSTEP_OK) {
    detail::abandon_capture(*this);
    runtime::throw_plugin_error(device.backend, &device, &stream, code, error,
                                {"Stream::begin_capture"});
  }
}

Graph StreamRef::end_capture() const {
  StreamState& stream = state();
  stream.device_state.check_usable();
  std::shared_ptr<Capture> capture;
  lockstep_code code = LOCKSTEP_OK;
  ErrorRecord error;
  std::shared_ptr<detail::GraphState> graph = end(stream, capture, code, error);
  if (graph != nullptr && graph->handle != nullptr) return Graph(std::move(graph));
  if (graph != nullptr) {
    throw Error(ErrorCode::kInternal,
                fmt::format("the backend ended the capture of {} without a graph and without an "
                            "error",
                            stream.where()));
  }
  if (capture != nullptr) throw_capture_error(stream, *capture, code, error);
  runtime::throw_plugin_error(stream.device_state.backend, &stream.device_state, &stream, code,
                              error, {"Stream::end_capture"});
}

CaptureStatus StreamRef::capture_status() const {
  StreamState& stream = state();
  stream.device_state.check_usable();
  std::uint32_t status = LOCKSTEP_CAPTURE_NOT_CAPTURING;
  std::uint64_t id = 0;
  ErrorRecord error;
  const lockstep_code code = stream.table.capture_status(stream.handle, &status, &id, &error);
  if (code != LOCKSTEP_OK) {
    runtime::throw_plugin_error(stream.device_state.backend, &stream.device_state, &stream, code,
                                error, {"Stream::capture_status"});
  }
  return static_cast<CaptureStatus>(status);
}

namespace {

/// The registry of captures keeps their streams, so an owner that goes has to end its capture
/// itself.
void end_capture_of(const StreamRef& stream) noexcept {
  if (!stream) return;
  runtime::LoadedBackend& backend = stream.state().device_state.backend;
  if (backend.captures.any() && backend.captures.begun_by(stream.state()) != nullptr) {
    detail::abandon_capture(stream);
  }
}

}  // namespace

Stream::~Stream() { end_capture_of(*this); }

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  end_capture_of(*this);
  state_ = std::move(other.state_);
  return *this;
}

namespace detail {

void abandon_capture(const StreamRef& handle) noexcept {
  try {
    StreamState& stream = handle.state();
    std::shared_ptr<Capture> capture;
    lockstep_code code = LOCKSTEP_OK;
    ErrorRecord error;
    static_cast<void>(end(stream, capture, code, error));
    // The exception that is on its way says more than what became of the capture.
    if (code != LOCKSTEP_OK) {
      runtime::log(runtime::LogLevel::kDebug,
                   fmt::format("capture of {} given up: {}", stream.where(), error.message));
    }
  } catch (const std::exception& exception) {
    runtime::log(runtime::LogLevel::kError,
                 std::string("a capture could not be ended: ") + exception.what());
  }
}

}  // namespace detail
}  // namespace lockstep
