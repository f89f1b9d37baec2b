// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/host_call.h"

#include <lockstep/error.h>

#include <new>

#include "src/runtime/log.h"

namespace lockstep::runtime {

void HostCall::run(void* self) noexcept {
  auto& call = *static_cast<HostCall*>(self);
  // Nothing may leave through a driver's frames; what is thrown surfaces at the next synchronise.
  try {
    call.function_();
  } catch (const std::exception& exception) {
    call.calls_.failed(exception.what());
  } catch (...) {
    call.calls_.failed("something that is no std::exception");
  }
}

void HostCall::run_once(void* self) noexcept {
  run(self);
  auto* call = static_cast<HostCall*>(self);
  call->calls_.finished(call);
}

void HostCalls::failed(const char* what) noexcept {
  const std::lock_guard lock(mutex_);
  if (has_error_) return;
  has_error_ = true;
  error_ = what;
}

void HostCalls::finished(HostCall* call) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    finished_.emplace_back(call);
  } catch (const std::bad_alloc&) {
    log(LogLevel::kError, "out of memory: a finished host function is not destroyed");
  }
}

void HostCalls::collect() noexcept {
  std::vector<std::unique_ptr<HostCall>> finished;  // destroyed outside the lock
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_);
  }
}

void HostCalls::throw_error() {
  std::string what;
  {
    const std::lock_guard lock(mutex_);
    if (!has_error_) return;
    has_error_ = false;
    what.swap(error_);
  }
  throw Error(ErrorCode::kLaunchFailed, "a host function threw: " + what);
}

}  // namespace lockstep::runtime
