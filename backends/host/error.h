// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

// Errors of the host runtime. Inside it everything that fails throws Error with a number that
// equals the CUDA driver's, so that the simulated CUDA driver can give it on as it is; the plugin
// turns them into codes of backend.h at its border.
namespace lockstep::hostrt {

enum class Native : std::int32_t {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidImage = 200,
  kCompilationFailed = 218,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kAssert = 710,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
  kUnknown = 999,
};

class Error : public std::runtime_error {
 public:
  Error(Native native, const std::string& message, std::string log = {})
      : std::runtime_error(message), native_(native), log_(std::move(log)) {}
  Native native() const noexcept { return native_; }
  const std::string& log() const noexcept { return log_; }

 private:
  Native native_;
  std::string log_;
};

// Why work on a stream failed after it had been enqueued. Shared by all that wait for it.
struct Failure {
  Native native;
  std::string message;
};
using FailurePtr = std::shared_ptr<const Failure>;

const char* native_name(Native native) noexcept;
lockstep_code code_of(Native native) noexcept;
lockstep_capture_rule rule_of(Native native) noexcept;

// Fills `error` (which may be null) and returns the code for it.
lockstep_code report(lockstep_error* error, const char* call, Native native, const char* message,
                     const char* log = nullptr) noexcept;
// To be called while an exception is handled: reports that one.
lockstep_code report_current_exception(lockstep_error* error, const char* call) noexcept;

// `size` bytes of the structure are the caller's. Copies what both sides know; the rest is zero.
template <typename T>
T read_sized(const T* from, const char* what) {
  T result{};
  if (from == nullptr) {
    throw Error(Native::kInvalidValue, std::string(what) + " is null");
  }
  const std::size_t size = from->struct_size;
  if (size < sizeof(std::size_t)) {
    throw Error(Native::kInvalidValue, std::string(what) + ": struct_size is not set");
  }
  __builtin_memcpy(&result, from, size < sizeof(T) ? size : sizeof(T));
  return result;
}

// The counterpart: fills as much of `to` as its owner knows and leaves its struct_size alone.
template <typename T>
void write_sized(T* to, T value, const char* what) {
  if (to == nullptr) {
    throw Error(Native::kInvalidValue, std::string(what) + " is null");
  }
  const std::size_t size = to->struct_size;
  if (size < sizeof(std::size_t)) {
    throw Error(Native::kInvalidValue, std::string(what) + ": struct_size is not set");
  }
  value.struct_size = size;
  __builtin_memcpy(to, &value, size < sizeof(T) ? size : sizeof(T));
}

template <typename T>
void require_pointer(const T* pointer, const char* what) {
  if (pointer == nullptr) throw Error(Native::kInvalidValue, std::string(what) + " is null");
}

}  // namespace lockstep::hostrt
