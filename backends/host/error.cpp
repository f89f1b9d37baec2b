// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <system_error>

namespace lockstep::hostrt {
namespace {

struct NativeRow {
  Native native;
  const char* name;
  lockstep_code code;
  lockstep_capture_rule rule;
};

constexpr NativeRow kNatives[] = {
    {Native::kSuccess, "hostSuccess", LOCKSTEP_OK, LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kInvalidValue, "hostErrorInvalidValue", LOCKSTEP_E_INVALID_ARGUMENT,
     LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kOutOfMemory, "hostErrorOutOfMemory", LOCKSTEP_E_OUT_OF_MEMORY,
     LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kNotInitialized, "hostErrorNotInitialized", LOCKSTEP_E_UNAVAILABLE,
     LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kInvalidImage, "hostErrorInvalidImage", LOCKSTEP_E_INVALID_ARGUMENT,
     LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kCompilationFailed, "hostErrorCompilationFailed", LOCKSTEP_E_COMPILATION_FAILED,
     LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kIllegalState, "hostErrorIllegalState", LOCKSTEP_E_INVALID_ARGUMENT,
     LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kNotFound, "hostErrorNotFound", LOCKSTEP_E_NOT_FOUND, LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kNotReady, "hostErrorNotReady", LOCKSTEP_E_NOT_READY, LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kAssert, "hostErrorAssert", LOCKSTEP_E_LAUNCH_FAILED, LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kLaunchFailed, "hostErrorLaunchFailed", LOCKSTEP_E_LAUNCH_FAILED,
     LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kNotPermitted, "hostErrorNotPermitted", LOCKSTEP_E_INVALID_ARGUMENT,
     LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kNotSupported, "hostErrorNotSupported", LOCKSTEP_E_NOT_SUPPORTED,
     LOCKSTEP_CAPTURE_RULE_NONE},
    {Native::kCaptureUnsupported, "hostErrorStreamCaptureUnsupported",
     LOCKSTEP_E_ILLEGAL_DURING_CAPTURE, LOCKSTEP_CAPTURE_RULE_UNSUPPORTED},
    {Native::kCaptureInvalidated, "hostErrorStreamCaptureInvalidated",
     LOCKSTEP_E_CAPTURE_INVALIDATED, LOCKSTEP_CAPTURE_RULE_INVALIDATED},
    {Native::kCaptureMerge, "hostErrorStreamCaptureMerge", LOCKSTEP_E_ILLEGAL_DURING_CAPTURE,
     LOCKSTEP_CAPTURE_RULE_MERGE},
    {Native::kCaptureUnmatched, "hostErrorStreamCaptureUnmatched",
     LOCKSTEP_E_ILLEGAL_DURING_CAPTURE, LOCKSTEP_CAPTURE_RULE_UNMATCHED},
    {Native::kCaptureUnjoined, "hostErrorStreamCaptureUnjoined", LOCKSTEP_E_ILLEGAL_DURING_CAPTURE,
     LOCKSTEP_CAPTURE_RULE_UNJOINED},
    {Native::kCaptureIsolation, "hostErrorStreamCaptureIsolation",
     LOCKSTEP_E_ILLEGAL_DURING_CAPTURE, LOCKSTEP_CAPTURE_RULE_ISOLATION},
    {Native::kCaptureImplicit, "hostErrorStreamCaptureImplicit", LOCKSTEP_E_ILLEGAL_DURING_CAPTURE,
     LOCKSTEP_CAPTURE_RULE_IMPLICIT},
    {Native::kCapturedEvent, "hostErrorCapturedEvent", LOCKSTEP_E_ILLEGAL_DURING_CAPTURE,
     LOCKSTEP_CAPTURE_RULE_CAPTURED_EVENT},
    {Native::kCaptureWrongThread, "hostErrorStreamCaptureWrongThread",
     LOCKSTEP_E_ILLEGAL_DURING_CAPTURE, LOCKSTEP_CAPTURE_RULE_WRONG_THREAD},
    {Native::kUnknown, "hostErrorUnknown", LOCKSTEP_E_INTERNAL, LOCKSTEP_CAPTURE_RULE_NONE},
};

const NativeRow& row_of(Native native) noexcept {
  const auto* row = std::find_if(std::begin(kNatives), std::end(kNatives),
                                 [native](const NativeRow& r) { return r.native == native; });
  return row == std::end(kNatives) ? *std::prev(std::end(kNatives)) : *row;
}

// Copies what fits and cuts before a UTF-8 character that would not fit whole.
void copy_text(char* to, std::size_t capacity, const char* from) noexcept {
  if (capacity == 0) return;
  std::size_t length = strnlen(from, capacity);
  if (length >= capacity) {
    length = capacity - 1;
    while (length > 0 && (static_cast<unsigned char>(from[length]) & 0xC0) == 0x80) --length;
  }
  std::memcpy(to, from, length);
  to[length] = '\0';
}

}  // namespace

const char* native_name(Native native) noexcept { return row_of(native).name; }
lockstep_code code_of(Native native) noexcept { return row_of(native).code; }
lockstep_capture_rule rule_of(Native native) noexcept { return row_of(native).rule; }

lockstep_code report(lockstep_error* error, const char* call, Native native, const char* message,
                     const char* log) noexcept {
  const NativeRow& row = row_of(native);
  if (error == nullptr || error->struct_size < offsetof(lockstep_error, log)) return row.code;
  error->code = row.code;
  error->capture_rule = row.rule;
  error->native_code = static_cast<std::int64_t>(native);
  copy_text(error->native_name, sizeof(error->native_name), row.name);
  copy_text(error->call, sizeof(error->call), call);
  copy_text(error->message, sizeof(error->message), message);
  if (error->struct_size >= sizeof(lockstep_error)) {
    error->log_size = log == nullptr ? 0 : std::strlen(log);
    if (error->log != nullptr && error->log_capacity > 0) {
      copy_text(error->log, error->log_capacity, log == nullptr ? "" : log);
    }
  }
  return row.code;
}

lockstep_code report_current_exception(lockstep_error* error, const char* call) noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return report(error, call, e.native(), e.what(), e.log().c_str());
  } catch (const std::bad_alloc&) {
    return report(error, call, Native::kOutOfMemory,
                  "the process could not get memory for its own bookkeeping");
  } catch (const std::system_error& e) {
    return report(error, call, Native::kOutOfMemory, e.what());
  } catch (const std::exception& e) {
    return report(error, call, Native::kUnknown, e.what());
  }
}

}  // namespace lockstep::hostrt
