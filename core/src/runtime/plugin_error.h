// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>
#include <lockstep/error.h>

#include <string>
#include <string_view>

/// \file
/// From a plugin's error record to lockstep::Error.
namespace lockstep::detail {
struct DeviceState;
struct StreamState;
}  // namespace lockstep::detail

namespace lockstep::runtime {

class LoadedBackend;

/// An error record ready to be handed to a slot. Only what a plugin may leave alone is cleared: a
/// record is more than a kilobyte, and launches make one each.
struct ErrorRecord : lockstep_error {
  ErrorRecord() noexcept {  // NOLINT: texts are terminated, the rest of them is never read
    struct_size = sizeof(lockstep_error);
    code = LOCKSTEP_OK;
    capture_rule = LOCKSTEP_CAPTURE_RULE_NONE;
    native_code = 0;
    native_name[0] = '\0';
    call[0] = '\0';
    message[0] = '\0';
    log = nullptr;
    log_capacity = 0;
    log_size = 0;
  }
};

/// What failed, for the message: the public function, and what it was about.
struct Operation {
  const char* function = "";  ///< "Device::allocate"
  std::string subject = {};   ///< "kernel 'saxpy'", "" = nothing to add
};

/// Words for a capture rule, e.g. "the call itself is not allowed while a stream captures".
std::string_view to_string(lockstep_capture_rule rule) noexcept;

/// Throws what `code` and `error` say. When the failure invalidated captures, they learn which call
/// did it. `device` and `stream` may be null.
[[noreturn]] void throw_plugin_error(LoadedBackend& backend, const detail::DeviceState* device,
                                     const detail::StreamState* stream, lockstep_code code,
                                     const lockstep_error& error, const Operation& operation);

/// \throws Error kInvalidArgument "`function` was called on an empty Device".
[[noreturn]] void throw_empty_handle(const char* type);
[[noreturn]] void throw_invalid(const std::string& message, std::string_view where = {});
/// \throws Error kUnavailable: the object was made before a fork.
[[noreturn]] void throw_forked(std::string_view where);

}  // namespace lockstep::runtime
