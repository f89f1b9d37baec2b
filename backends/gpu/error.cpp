// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "capture.h"
#include "state.h"

namespace lockstep::gpu {
namespace {

template <std::size_t N>
void put(char (&target)[N], std::string_view text) {
  std::size_t length = std::min(text.size(), N - 1);
  // Never cut a UTF-8 sequence in two.
  while (length < text.size() && length > 0 &&
         (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) {
    --length;
  }
  std::memcpy(target, text.data(), length);
  target[length] = '\0';
}

// The numbers that stay with a context: a kernel failed in it, or it is gone.
bool loses_the_context(Result result) {
  return result == 214 || result == 220 || result == 700 || result == 702 ||
         (result >= 709 && result <= 719 && result != 711 && result != 712 && result != 713);
}

// The call that reported the failure which lost the current context, "" when this is that report.
// Only the first report is the failure's own: all that follow say no more than that it is lost.
std::string first_report(const char* call, Result result) {
  struct Lost {
    std::mutex mutex;
    std::map<Context, std::string> calls;
  };
  static Lost* const lost = new Lost;
  Context context = nullptr;
  if (driver().context_current(&context) != kSuccess) context = nullptr;
  std::lock_guard lock(lost->mutex);
  const auto [known, fresh] =
      lost->calls.try_emplace(context, std::string(call) + " (" + std::to_string(result) + ")");
  return fresh ? "" : known->second;
}

}  // namespace

lockstep_code fail(lockstep_error* error, lockstep_code code, std::string_view call,
                   std::string_view message) {
  if (error == nullptr || error->struct_size < offsetof(lockstep_error, log)) return code;
  error->code = code;
  error->capture_rule = LOCKSTEP_CAPTURE_RULE_NONE;
  error->native_code = 0;
  error->native_name[0] = '\0';
  put(error->call, call);
  put(error->message, message);
  if (error->struct_size >= sizeof(lockstep_error)) error->log_size = 0;
  return code;
}

lockstep_code fail_native(lockstep_error* error, Call call, Result result,
                          std::string_view detail) {
  const char* call_name = driver().call_name(call);
  const lockstep_capture_rule rule = rule_of(result);
  lockstep_code code = driver().translate(result);
  if (code < 0) code = code_of(result);
  if (rule != LOCKSTEP_CAPTURE_RULE_NONE) blame_invalidated_captures(call_name);
  std::string lost_by;
  if (driver().traits().failures_lose_the_context && loses_the_context(result)) {
    lost_by = first_report(call_name, result);
    if (!lost_by.empty()) code = LOCKSTEP_E_DEVICE_LOST;
  }
  const char* const refused = driver().take_reason();
  if (error == nullptr) return code;
  const char* native_name = driver().result_name(result);
  const char* native_text = driver().result_text(result);
  std::string message = call_name;
  message += ": ";
  message += *native_text != '\0' ? native_text : "failed";
  message += " (";
  message += *native_name != '\0' ? native_name : "native code";
  message += ' ';
  message += std::to_string(result);
  message += ')';
  if (const char* reason = explain_rule(rule); *reason != '\0') {
    message += "; ";
    message += reason;
  }
  if (code == LOCKSTEP_E_NOT_SUPPORTED && *refused != '\0') {
    message += "; ";
    message += refused;
  }
  if (!lost_by.empty()) {
    message += "; the context was lost when " + lost_by +
               " reported a failure: only a new process can use the device again";
  } else if (!detail.empty()) {
    message += "; ";
    message += detail;
  }
  fail(error, code, call_name, message);
  error->capture_rule = rule;
  error->native_code = result;
  put(error->native_name, native_name);
  return code;
}

void give_log(lockstep_error* error, std::string_view log) {
  if (error == nullptr || error->struct_size < sizeof(lockstep_error)) return;
  error->log_size = log.size();
  if (error->log == nullptr || error->log_capacity == 0) return;
  const std::size_t length = std::min(log.size(), error->log_capacity - 1);
  std::memcpy(error->log, log.data(), length);
  error->log[length] = '\0';
}

lockstep_code code_of(Result result) {
  switch (result) {
    case 0:
      return LOCKSTEP_OK;
    case 1:    // invalid value
    case 101:  // invalid device
    case 200:  // invalid image
    case 201:  // invalid context
    case 209:  // no binary for this device
    case 400:  // invalid handle
    case 401:  // illegal state
    case 705:  // peer access not enabled
    case 712:  // host memory already registered
    case 713:  // host memory not registered
    case 720:  // cooperative launch too large
    case 800:  // not permitted
    case 912:  // invalid cluster size
      return LOCKSTEP_E_INVALID_ARGUMENT;
    case 2:    // out of memory
    case 701:  // launch out of resources
      return LOCKSTEP_E_OUT_OF_MEMORY;
    case 3:    // not initialised
    case 4:    // deinitialised
    case 34:   // stub library
    case 35:   // insufficient driver
    case 36:   // call requires a newer driver
    case 46:   // device unavailable
    case 100:  // no device
    case 102:  // not licensed
    case 802:  // system not ready
    case 803:  // driver mismatch
    case 804:  // compatibility not supported on device
      return LOCKSTEP_E_UNAVAILABLE;
    case 218:  // invalid PTX
    case 221:  // JIT compiler not found
    case 222:  // unsupported PTX version
    case 223:  // JIT compilation disabled
    case 300:  // invalid source
    case 302:  // symbol not found
    case 303:  // initialisation of a shared object
      return LOCKSTEP_E_COMPILATION_FAILED;
    case 301:  // file not found
    case 500:  // not found
      return LOCKSTEP_E_NOT_FOUND;
    case 600:
      return LOCKSTEP_E_NOT_READY;
    case 700:  // illegal address
    case 710:  // device-side assert
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
      return LOCKSTEP_E_LAUNCH_FAILED;
    case 702:  // launch timed out
    case 909:  // timeout
      return LOCKSTEP_E_TIMEOUT;
    case 214:  // uncorrectable ECC
    case 220:  // uncorrectable link error
    case 709:  // context destroyed
    case 911:  // external device
      return LOCKSTEP_E_DEVICE_LOST;
    case 801:  // not supported
      return LOCKSTEP_E_NOT_SUPPORTED;
    case 901:
      return LOCKSTEP_E_CAPTURE_INVALIDATED;
    case 900:
    case 902:
    case 903:
    case 904:
    case 905:
    case 906:
    case 907:
    case 908:
      return LOCKSTEP_E_ILLEGAL_DURING_CAPTURE;
    default:
      return LOCKSTEP_E_INTERNAL;
  }
}

lockstep_capture_rule rule_of(Result result) {
  // 900 … 908 are in the order of the rules.
  if (result < 900 || result > 908) return LOCKSTEP_CAPTURE_RULE_NONE;
  return static_cast<lockstep_capture_rule>(result - 899);
}

const char* explain_rule(lockstep_capture_rule rule) {
  switch (rule) {
    case LOCKSTEP_CAPTURE_RULE_UNSUPPORTED:
      return "this call is not allowed while a stream captures: make it before the capture begins "
             "or after it ended";
    case LOCKSTEP_CAPTURE_RULE_INVALIDATED:
      return "an earlier call invalidated the capture";
    case LOCKSTEP_CAPTURE_RULE_MERGE:
      return "it would join two separate captures; both are invalidated";
    case LOCKSTEP_CAPTURE_RULE_UNMATCHED:
      return "the capture was begun on another stream: end it there";
    case LOCKSTEP_CAPTURE_RULE_UNJOINED:
      return "work was forked to another stream and never joined back: record an event there and "
             "let the first stream wait for it before the end";
    case LOCKSTEP_CAPTURE_RULE_ISOLATION:
      return "it depends on work outside the capture";
    case LOCKSTEP_CAPTURE_RULE_IMPLICIT:
      return "the legacy stream was used while a blocking stream captures: make the capturing "
             "stream non-blocking, or use another stream";
    case LOCKSTEP_CAPTURE_RULE_CAPTURED_EVENT:
      return "the event was recorded in a capture, so that there is nothing to ask or wait for";
    case LOCKSTEP_CAPTURE_RULE_WRONG_THREAD:
      return "another thread than the one that began the capture ended it; only a relaxed capture "
             "allows that";
    default:
      return "";
  }
}

}  // namespace lockstep::gpu
