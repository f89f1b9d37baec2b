// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>

#include <utility>

namespace lockstep {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kOk:
      return "ok";
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kOutOfMemory:
      return "out of memory";
    case ErrorCode::kNotSupported:
      return "not supported";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kIllegalDuringCapture:
      return "illegal during capture";
    case ErrorCode::kCaptureInvalidated:
      return "capture invalidated";
    case ErrorCode::kStaleBuffer:
      return "stale buffer";
    case ErrorCode::kMismatch:
      return "mismatch";
    case ErrorCode::kDeviceLost:
      return "device lost";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kCompilationFailed:
      return "compilation failed";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kLaunchFailed:
      return "launch failed";
    case ErrorCode::kNotReady:
      return "not ready";
    case ErrorCode::kInvalidFile:
      return "invalid file";
    case ErrorCode::kTruncatedFile:
      return "truncated file";
    case ErrorCode::kInputOutput:
      return "input/output error";
    case ErrorCode::kIncompatiblePlugin:
      return "incompatible plugin";
    case ErrorCode::kInternal:
      return "internal error";
  }
  return "unknown error";
}

Error::Error(ErrorCode code, const std::string& message, ErrorContext context)
    : std::runtime_error(message), code_(code), context_(std::move(context)) {}

Error::~Error() = default;

}  // namespace lockstep
