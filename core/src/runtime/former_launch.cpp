// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/former_launch.h"

#include <lockstep/error.h>

#include <fmt/format.h>
#include <utility>

#include "src/runtime/states.h"

namespace lockstep::runtime {
namespace {

using detail::StreamState;

constexpr const char* kFunction = "GraphExec::launch";

void check(StreamState& stream, lockstep_code code, const ErrorRecord& error) {
  if (code == LOCKSTEP_OK) return;
  throw_plugin_error(stream.device_state.backend, &stream.device_state, &stream, code, error,
                     {kFunction});
}

/// Also where the plugin does not tell: the legacy stream beside a blocking one that captures.
bool captures(const lockstep_backend& table, lockstep_stream* stream) {
  std::uint32_t status = LOCKSTEP_CAPTURE_NOT_CAPTURING;
  std::uint64_t id = 0;
  ErrorRecord error;
  return table.capture_status(stream, &status, &id, &error) != LOCKSTEP_OK ||
         status != LOCKSTEP_CAPTURE_NOT_CAPTURING;
}

/// The plugin's handle for what a StreamState was in the thread that launched: itself, or in other
/// threads the legacy stream, which comes after the per-thread streams of all.
class HandleOfThen {
 public:
  HandleOfThen(StreamState& stream, std::uint64_t identity) : stream_(stream) {
    if (stream.table.stream_identity(stream.handle) == identity) return;
    ErrorRecord error;
    check(stream,
          stream.table.stream_special(stream.device_state.handle, LOCKSTEP_STREAM_LEGACY, &legacy_,
                                      &error),
          error);
  }
  ~HandleOfThen() {
    if (legacy_ != nullptr) stream_.table.stream_destroy(legacy_);
  }
  HandleOfThen(const HandleOfThen&) = delete;
  HandleOfThen& operator=(const HandleOfThen&) = delete;
  lockstep_stream* get() const { return legacy_ != nullptr ? legacy_ : stream_.handle; }

 private:
  StreamState& stream_;
  lockstep_stream* legacy_ = nullptr;
};

}  // namespace

void FormerLaunch::replaced(std::shared_ptr<StreamState> stream, std::uint64_t identity) {
  // Replaced again before it was launched: what was launched is the one before that.
  if (pending_) return;
  pending_ = true;
  recorded_ = false;
  identity_ = identity;
  stream_ = std::move(stream);
  try {
    record();
  } catch (const Error&) {
    // The executable is replaced all the same. Whoever launches it elsewhere tries again, and is
    // told; on the same stream nobody needs the event.
  }
}

FormerLaunch::Recorded FormerLaunch::record() {
  StreamState& stream = *stream_;
  const lockstep_backend& table = stream.table;
  ErrorRecord error;
  if (event_ == nullptr || &event_->device_state != &stream.device_state) {
    lockstep_event* made = nullptr;
    check(stream, table.event_create(stream.device_state.handle, 0, &made, &error), error);
    event_ = std::make_shared<detail::EventState>(stream.device, made);
  }
  const HandleOfThen handle(stream, identity_);
  bool asked = false, busy = false;
  lockstep_code code = LOCKSTEP_OK;
  const auto attempt = [&] {
    asked = true;
    busy = captures(table, handle.get());
    if (!busy) code = table.event_record(event_->handle, handle.get(), &error);
  };
  // So that no capture begins between the question and the record; where one is open, elsewhere
  // as a rule, the stream itself is asked.
  stream.device_state.backend.captures.while_none(attempt);
  if (!asked) attempt();
  if (busy) return Recorded::kStreamCaptures;
  check(stream, code, error);
  recorded_ = true;
  stream_.reset();
  return Recorded::kYes;
}

void FormerLaunch::let_wait(StreamState& stream) {
  if (stream.table.stream_identity(stream.handle) == identity_) return;
  // The launch is refused, and says why; a wait would harm the capture.
  if (captures(stream.table, stream.handle)) return;
  if (!recorded_ && record() == Recorded::kStreamCaptures) {
    ErrorContext context;
    context.where = stream.where();
    throw Error(ErrorCode::kIllegalDuringCapture,
                fmt::format("{} on {}: an update instantiated the graph anew, and the stream of "
                            "the launch before captures, so that this one cannot wait for it: "
                            "launch on that stream first, or after its capture has ended",
                            kFunction, stream.where()),
                context);
  }
  ErrorRecord error;
  check(stream, stream.table.stream_wait_event(stream.handle, event_->handle, &error), error);
}

void FormerLaunch::followed() noexcept {
  pending_ = false;
  stream_.reset();
}

}  // namespace lockstep::runtime
