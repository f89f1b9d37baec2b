// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/plugin_error.h"

#include <fmt/format.h>

#include "src/runtime/states.h"

namespace lockstep::runtime {
namespace {

ErrorCode to_error_code(lockstep_code code) {
  const bool known = code >= LOCKSTEP_E_INVALID_ARGUMENT && code <= LOCKSTEP_E_INTERNAL;
  return known ? static_cast<ErrorCode>(code) : ErrorCode::kInternal;
}

std::string native_words(const lockstep_error& error) {
  std::string words;
  if (error.call[0] != '\0') words = error.call;
  if (error.native_name[0] != '\0') {
    words += fmt::format("{}{}", words.empty() ? "" : ": ", error.native_name);
  }
  if (error.native_code != 0) {
    words += fmt::format("{}{}", words.empty() ? "" : ", ", error.native_code);
  }
  return words;
}

}  // namespace

std::string_view to_string(lockstep_capture_rule rule) noexcept {
  switch (rule) {
    case LOCKSTEP_CAPTURE_RULE_UNSUPPORTED:
      return "this call is not allowed while a stream captures";
    case LOCKSTEP_CAPTURE_RULE_INVALIDATED:
      return "an earlier call had invalidated the capture";
    case LOCKSTEP_CAPTURE_RULE_MERGE:
      return "it would merge two separate captures";
    case LOCKSTEP_CAPTURE_RULE_UNMATCHED:
      return "the capture was not begun on this stream";
    case LOCKSTEP_CAPTURE_RULE_UNJOINED:
      return "forked work was not joined back: record an event on the forked stream and let the "
             "stream that began the capture wait for it";
    case LOCKSTEP_CAPTURE_RULE_ISOLATION:
      return "it depends on work outside the capture";
    case LOCKSTEP_CAPTURE_RULE_IMPLICIT:
      return "the legacy stream was used while a blocking stream captures: make the capturing "
             "stream non-blocking";
    case LOCKSTEP_CAPTURE_RULE_CAPTURED_EVENT:
      return "the event was recorded in a capture, so the host cannot ask for it";
    case LOCKSTEP_CAPTURE_RULE_WRONG_THREAD:
      return "another thread began the capture";
    default:
      return "";
  }
}

void throw_plugin_error(LoadedBackend& backend, const detail::DeviceState* device,
                        const detail::StreamState* stream, lockstep_code code,
                        const lockstep_error& error, const Operation& operation) {
  ErrorContext context;
  context.native_code = error.native_code;
  context.native_name = error.native_name;
  context.call = error.call;
  context.where = stream != nullptr   ? stream->device_state.id
                  : device != nullptr ? device->id
                                      : backend.name();
  if (stream != nullptr) context.stream = fmt::format("#{}", stream->identity);

  const std::string place = stream != nullptr ? stream->where() : context.where;
  const std::string native = native_words(error);
  if (code == LOCKSTEP_E_ILLEGAL_DURING_CAPTURE || code == LOCKSTEP_E_CAPTURE_INVALIDATED) {
    backend.captures.note_failure(
        backend,
        fmt::format("{}{}{}{} on thread {}{}", operation.function,
                    context.call.empty() ? "" : " (" + context.call + ")",
                    stream != nullptr ? " on stream " + context.stream : "",
                    operation.subject.empty() ? "" : " of " + operation.subject, thread_number(),
                    error.message[0] == '\0' ? "" : std::string(": ") + error.message));
  }
  std::string message = fmt::format("{}{} on {}: {}", operation.function,
                                    operation.subject.empty() ? "" : " of " + operation.subject,
                                    place, to_string(to_error_code(code)));
  if (error.message[0] != '\0') message += fmt::format(": {}", error.message);
  if (const auto rule = to_string(error.capture_rule); !rule.empty()) {
    message += fmt::format(" [{}]", rule);
  }
  if (!native.empty()) message += fmt::format(" ({})", native);
  if (error.log != nullptr && error.log_capacity > 0 && error.log[0] != '\0') {
    message += fmt::format("\n{}", error.log);
  }
  throw Error(to_error_code(code), message, std::move(context));
}

void throw_empty_handle(const char* type) {
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("an empty {0} was used: a default-constructed or moved-from {0} refers to "
                  "nothing",
                  type));
}

void throw_invalid(const std::string& message, std::string_view where) {
  ErrorContext context;
  context.where = where;
  throw Error(ErrorCode::kInvalidArgument,
              where.empty() ? message : fmt::format("{} ({})", message, where), context);
}

void throw_forked(std::string_view where) {
  ErrorContext context;
  context.where = where;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("{} was in use before this process was forked: a driver does not survive "
                          "a fork. Open devices in the child only, or start it with exec (listing "
                          "backends before a fork is fine)",
                          where),
              context);
}

}  // namespace lockstep::runtime
