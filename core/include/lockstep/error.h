// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/export.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

/// \file
/// The one exception type of Lockstep. Every function that can fail throws it unless its comment
/// says otherwise; destructors never throw.
namespace lockstep {

/// What kind of failure it is: what a program decides on. The values equal LOCKSTEP_E_* of
/// lockstep/backend.h, so that a plugin's code passes through unchanged.
enum class ErrorCode : std::int32_t {
  kOk = 0,
  kInvalidArgument = 1,  ///< the caller's mistake; the call did nothing
  kOutOfMemory = 2,
  kNotSupported = 3,          ///< this backend or device cannot do it
  kUnavailable = 4,           ///< backend, driver or device not there (also after a fork)
  kIllegalDuringCapture = 5,  ///< the call is not allowed while a stream captures
  kCaptureInvalidated = 6,    ///< an earlier call invalidated the capture
  kStaleBuffer = 7,           ///< memory that a graph uses is no longer allocated
  kMismatch = 8,              ///< two things that had to agree do not
  kDeviceLost = 9,            ///< sticky: the device can do nothing more in this process
  kTimeout = 10,
  kCompilationFailed = 11,   ///< what() carries the compiler's log
  kNotFound = 12,            ///< no such file, kernel, device, backend
  kLaunchFailed = 13,        ///< a kernel failed while it ran (trap, assertion, bad access)
  kNotReady = 14,            ///< asked of work that has not finished
  kInvalidFile = 15,         ///< unreadable or damaged input; where() names file and line
  kTruncatedFile = 16,       ///< input ends too early
  kInputOutput = 17,         ///< the system refused a read or write
  kIncompatiblePlugin = 18,  ///< plugin and host have no interface version in common
  kInternal = 19,            ///< a broken promise of Lockstep itself or of a plugin
};

/// "invalid argument", "out of memory", …
LOCKSTEP_API std::string_view to_string(ErrorCode code) noexcept;

/// Where and how an error arose, beside its code. Empty strings and -1 mean not known.
struct ErrorContext {
  std::int64_t native_code = 0;  ///< the driver's own number
  std::string native_name;       ///< its name, e.g. CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  std::string call;              ///< the call that failed, e.g. cuStreamEndCapture
  std::string where;             ///< file:line of an input, or backend and device
  std::string stream;            ///< the stream it concerns, as the program named or we number it
};

/// Thrown by every part of Lockstep. what() is one self-contained message: what happened, where,
/// and what to do about it.
class LOCKSTEP_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, ErrorContext context = {});
  ~Error() override;
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;

  ErrorCode code() const noexcept { return code_; }
  const ErrorContext& context() const noexcept { return context_; }

 private:
  ErrorCode code_;
  ErrorContext context_;
};

}  // namespace lockstep
