// SPDX-License-Identifier: Apache-2.0
#pragma once

#pragma GCC visibility push(default)
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#pragma GCC visibility pop

#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "settings.h"

// The border of the library: faults are injected, calls are logged, nothing is thrown across it.
namespace hsa_sim {

class Refusal : public std::exception {
 public:
  explicit Refusal(int status) : status_(status) {}
  int status() const noexcept { return status_; }
  const char* what() const noexcept override { return "refused"; }

 private:
  int status_;
};

// An int because newer runtimes know states that the header does not.
[[noreturn]] inline void refuse(int status) { throw Refusal(status); }
inline void require(bool holds, int status = HSA_STATUS_ERROR_INVALID_ARGUMENT) {
  if (!holds) refuse(status);
}

template <typename Body>
hsa_status_t call(const char* name, const Body& body) noexcept {
  int status = settings().enter(name);
  if (status == HSA_STATUS_SUCCESS) {
    try {
      body();
    } catch (const Refusal& refusal) {
      status = refusal.status();
    } catch (const std::bad_alloc&) {
      status = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    } catch (const std::exception& error) {
      complain(std::string(name) + ": " + error.what());
      status = HSA_STATUS_ERROR;
    }
  }
  if (settings().logs()) {
    settings().log("call " + std::string(name) + " " + std::to_string(status));
  }
  return static_cast<hsa_status_t>(status);
}

// What an attribute query writes: the caller knows the type.
template <typename T>
void put(void* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
}
inline void put_name(void* to, const std::string& text, std::size_t room) {
  auto* const bytes = static_cast<char*>(to);
  std::memset(bytes, 0, room);
  std::memcpy(bytes, text.data(), text.size() < room ? text.size() : room - 1);
}

}  // namespace hsa_sim

#define HSA_SIM_API extern "C" __attribute__((visibility("default"))) hsa_status_t
#define HSA_SIM_API_AS(type) extern "C" __attribute__((visibility("default"))) type
