// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "symbols.h"

namespace lockstep::hip {

// Makes a device the thread's own for a scope: for what the runtime does for the current one only.
class DeviceScope {
 public:
  DeviceScope(const Functions& call, int ordinal) : call_(call) {
    result_ = call_.hipGetDevice_(&previous_);
    if (result_ == hipSuccess && previous_ != ordinal) {
      result_ = call_.hipSetDevice_(ordinal);
      changed_ = result_ == hipSuccess;
    }
  }
  ~DeviceScope() {
    if (changed_) call_.hipSetDevice_(previous_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  int result() const { return result_; }

 private:
  const Functions& call_;
  int previous_ = 0;
  int result_ = hipSuccess;
  bool changed_ = false;
};

}  // namespace lockstep::hip
